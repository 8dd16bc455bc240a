"""How the benchmark measures trainings."""

import pytest
import torch

from scripts.bench import training as bench_training
from scripts.bench.case import Case, Effort
from scripts.bench.training import Lap, Training, jitter, measure_training, training_config
from train_RL_agents.agents import base
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.config.schema import training_env
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS
from train_RL_agents.metrics.writer import read_metrics
from train_RL_agents.training.replay_learner import UPDATES_IN_A_GRAPH

CPU = torch.device("cpu")
BRIEF = Effort(repeats=2, seconds=0.001)


@pytest.mark.parametrize("agent", REPLAY_AGENTS)
def test_settings(agent):
    ratio, batch = 0.125, 64
    case = Case(
        "train", CPU, 8, vortices=2, agent=agent, samples_per_insert=ratio, batch_size=batch
    )
    config = training_config(case)
    assert config.agent == agent
    assert (config.updates.samples_per_insert, config.updates.batch_size) == (ratio, batch)
    assert config.curriculum.stages == (case.stage,)
    assert config.env == training_env()
    # The trainer corrects over the shortest interval: that must be the log's.
    intervals = (config.log, config.evaluation, config.checkpoint)
    assert min(part.interval_steps for part in intervals) == 8 * bench_training.LOG_EVERY
    assert config.log.interval_steps == 8 * bench_training.LOG_EVERY


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_peak_is_that_of_the_agents_format(dtype, monkeypatch):
    monkeypatch.setattr(base, "multiplies_bfloat16", lambda device: dtype == "bfloat16")
    case = Case("train", CPU, 4, agent="DQN", samples_per_insert=1.0, batch_size=64)
    rates = {"float32": 1e9, "bfloat16": 5e9}
    measured = measure_training(case, BRIEF, rates)
    assert measured["product_dtype"] == dtype
    rate = measured["flops_per_update"] / measured["update_s"]
    assert measured["update_share_of_peak"] == pytest.approx(rate / rates[dtype])


def test_begins_with_a_full_replay_and_writes_its_log():
    case = Case("train", CPU, 4, agent="DQN", samples_per_insert=1.0, batch_size=64)
    with Training.running(case) as training:
        replay = training.trainer.learner.replay
        assert int(replay.filled) == replay.rows
        before, whole = training.robot_steps(), training.repeat(150)[0]
        assert training.robot_steps() - before == whole.robot_steps
        metrics = read_metrics(training.trainer.output_dir / "metrics.jsonl")
        records = [record for record in metrics if record["mode"] == "train"]
        assert len(records) == training.trainer.counters.iteration // bench_training.LOG_EVERY


@pytest.mark.parametrize(("ratio", "most"), [(1.0, 1), (8.0, 3), (64.0, 8)])
def test_the_numbers_of_updates_that_come_are_captured(ratio, most, monkeypatch):
    case = Case("train", CPU, 4, agent="DQN", samples_per_insert=ratio, batch_size=64)
    with Training.running(case) as training:
        learner, done = training.trainer.learner, []
        come = {lap.updates for lap in training.repeat(20)[1]} - {0}
        monkeypatch.setattr(learner, "learn", done.append)
        training.capture()
    assert done == [n for n in range(1, most + 1) for _ in range(WARM_UP_CALLS + 1)]
    assert come <= set(done) or most == UPDATES_IN_A_GRAPH  # more are several graphs


def test_jitter():
    figures = jitter([Lap(s, 1) for s in [1.0] * 198 + [3.0, 5.0]])
    assert figures["median_iteration_s"] == 1.0
    assert figures["slowest_percent_over_median"] == 4.0
    assert jitter([Lap(s, 1) for s in (1.0, 2.0, 3.0)])["slowest_percent_over_median"] == 1.5
    # An iteration with more updates is slower without being late.
    laps = [Lap(1.0, 1)] * 60 + [Lap(2.0, 2)] * 40
    assert jitter(laps)["slowest_percent_over_median"] == 2.0
    assert jitter(laps)["slowest_percent_over_median_of_equal"] == 1.0
    late = jitter([*laps, Lap(3.0, 2)])
    assert late["slowest_percent_over_median_of_equal"] == 1.5
