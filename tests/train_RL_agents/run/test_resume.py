"""Going on where a run stopped: exactly, after any interruption, from its own files only."""

import functools
import json
import random
import re
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tqdm import tqdm

from tests.conftest import wait_for
from tests.train_RL_agents.short_runs import (
    CPU,
    TINY,
    StopAt,
    assert_same,
    command,
    environment,
    stop_at,
    timeless,
    trainer,
)
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.metrics.writer import read_metrics
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.counters import InterruptedRunError
from train_RL_agents.training.interruption import Interruption
from train_RL_agents.training.trainer import TorchRLTrainer

pytestmark = pytest.mark.usefixtures("short_evaluations")
# Between two logs; at a log; at a log with an evaluation and a checkpoint; at the end.
STOPS = (252, 300, 402, 600)
NEWEST = "checkpoints/step_000000000600.pt"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a function that gives the folder of an agent's run that was never stopped."""

    @functools.cache
    def folder_of(agent):
        folder = tmp_path_factory.mktemp("whole")
        trainer(folder, agent=agent).train()
        return folder

    return folder_of


@pytest.mark.parametrize(
    ("agent", "step"),
    [*((agent, 252) for agent in AGENTS), *(("AC-IQN", step) for step in STOPS[1:])],
)
def test_resumed_run_is_the_run_never_stopped(whole, tmp_path, monkeypatch, agent, step):
    stopped = trainer(tmp_path / "parts", agent=agent)
    assert stop_at(monkeypatch, stopped, step - 2) == step
    torch.manual_seed(12345)
    resumed = trainer(tmp_path / "parts", agent=agent)
    resumed.resume(checkpoint.newest(tmp_path / "parts"))
    resumed.train()

    folders = whole(agent), tmp_path / "parts"
    assert_same(*(checkpoint.load(folder / NEWEST) for folder in folders))
    assert timeless(folders[0]) == timeless(folders[1])
    tables = [(folder / "evaluation.json").read_text() for folder in folders]
    assert tables[0] == tables[1]


def test_a_run_goes_on_without_a_replay_of_other_settings(tmp_path, monkeypatch, refused):
    assert stop_at(monkeypatch, trainer(tmp_path, agent="DQN"), 250) == 252
    newest = checkpoint.newest(tmp_path)
    saved = checkpoint.load(newest)
    saved["learner"]["replay"]["obs"] = saved["learner"]["replay"]["obs"][..., 1:].clone()
    checkpoint.save(newest, saved)
    resume = ["--resume", str(tmp_path)]
    refused(train.main, resume, "the saved replay's obs", "with checkpoint.with_replay=false")
    assert train.main([*resume, "checkpoint.with_replay=false"]) == 0
    after = checkpoint.load(checkpoint.newest(tmp_path))
    assert (after["step"], after["learner"]["replay"]) == (600, None)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="continues with a GPU")
@pytest.mark.parametrize("agent", ["AC-IQN", "Rainbow"])
@pytest.mark.parametrize(
    "places", [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")], ids="-to-".join
)
def test_a_run_goes_on_with_this_and_another_device(tmp_path, monkeypatch, agent, places):
    before, after = map(torch.device, places)
    stopped = trainer(tmp_path, agent=agent, device=before)
    assert stop_at(monkeypatch, stopped, 250) == 252
    resumed = trainer(tmp_path, agent=agent, device=after)
    newest = checkpoint.newest(tmp_path)
    resumed.resume(newest)
    saved, learner = checkpoint.load(newest), resumed.learner
    assert_same(saved["model"], learner.agent.training_state())
    assert_same(saved["learner"], learner.state_dict(with_replay=True), ignored=("random",))
    assert len(resumed.train()) == 6
    steps = [record["step"] for record in timeless(tmp_path) if record["mode"] == "train"]
    assert steps == [102, 204, 300, 402, 504, 600]


def test_a_signal_in_the_last_report_is_heard(tmp_path, monkeypatch):
    run = trainer(tmp_path)
    interruption, save = Interruption(), run.save

    def signalled():
        if run.counters.step == 600:
            interruption.received = signal.SIGTERM
        return save()

    monkeypatch.setattr(run, "save", signalled)
    with monkeypatch.context() as patch:
        patch.setattr("train_RL_agents.training.trainer.Interruption", lambda: interruption)
        with pytest.raises(InterruptedRunError, match="at step 600"):
            run.train()
    assert not (tmp_path / "evaluation.json").exists()
    resumed = trainer(tmp_path)
    resumed.resume(checkpoint.newest(tmp_path))
    resumed.train()
    assert (tmp_path / "evaluation.json").exists()
    records = [r["step"] for r in timeless(tmp_path) if r["mode"] == "train"]
    assert records == [102, 204, 300, 402, 504, 600]


def test_a_signal_in_the_final_evaluation_leaves_at_once(tmp_path, monkeypatch):
    run, number = trainer(tmp_path), signal.SIGTERM
    with monkeypatch.context() as patch:
        patch.setattr(run.evaluation, "final", lambda *_: signal.raise_signal(number))
        with pytest.raises(InterruptedRunError, match="SIGTERM in the final evaluation") as raised:
            run.train()
    assert raised.value.received == number
    newest = checkpoint.newest(tmp_path)
    assert str(newest) in str(raised.value)
    assert (tmp_path / "summary.json").exists()
    resumed = trainer(tmp_path)
    resumed.resume(newest)
    assert len(resumed.train()) == 6
    assert (tmp_path / "evaluation.json").exists()


def test_a_signal_while_the_end_is_drawn_leaves_the_end_to_do(tmp_path):
    run, drawn = trainer(tmp_path), []
    with pytest.raises(InterruptedRunError, match="SIGTERM in the final evaluation"):
        run.train(lambda *_: signal.raise_signal(signal.SIGTERM))
    assert not (tmp_path / "evaluation.json").exists()
    resumed = trainer(tmp_path)
    resumed.resume(checkpoint.newest(tmp_path))
    assert resumed.train(lambda results, _: drawn.append(len(results)))
    assert drawn == [6]
    assert (tmp_path / "evaluation.json").exists()


def test_a_run_that_dies_before_its_second_checkpoint_begins_the_same_again(
    whole, tmp_path, monkeypatch
):
    dies = trainer(tmp_path)
    calls = iter(range(3))
    collect = dies.learner.collect
    monkeypatch.setattr(dies.learner, "collect", lambda: (next(calls), collect()))
    with pytest.raises(StopIteration):
        dies.train()
    resumed = trainer(tmp_path)
    resumed.resume(checkpoint.newest(tmp_path))
    assert resumed.counters.step == 0
    resumed.train()
    folders = whole("AC-IQN"), tmp_path
    assert timeless(folders[0]) == timeless(folders[1])
    assert_same(*(checkpoint.load(checkpoint.newest(folder)) for folder in folders))


@pytest.mark.parametrize("way", ["start", "resume", "sweep"])
def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path, monkeypatch, way):
    run = tmp_path / "run"
    start = ["--output", str(run), *TINY, *(["--seed", "0", "1"] if way == "sweep" else [])]

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TorchRLTrainer, "save", killed)
        assert train.main(start) == 128 + signal.SIGINT
    folder = run / "seed_0" if way == "sweep" else run
    assert (folder / "run.json").exists()
    assert train.main(start if way == "start" else ["--resume", str(run)]) == 0
    assert (folder / "evaluation.json").exists()
    assert len(list(folder.glob("events*"))) == 1
    assert len(json.loads((folder / "run.json").read_text())["starts"]) == 1


def test_kill_loses_at_most_one_interval_and_no_record_is_doubled(tmp_path, monkeypatch):
    process = subprocess.Popen(
        command(tmp_path, "total_steps=10_000_000", "checkpoint.interval_steps=100"),
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    metrics = tmp_path / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.read_text().count('"train"') > 2, process)
    time.sleep(random.random())
    process.kill()
    process.wait()
    logged = [record["step"] for record in read_metrics(metrics)][-1]
    newest = checkpoint.newest(tmp_path)
    config = config_from_plain(checkpoint.load(newest)["config"])
    resumed = TorchRLTrainer(config, tmp_path, CPU)
    resumed.resume(newest)
    assert 0 <= logged - resumed.counters.step <= 102
    stop = StopAt(resumed, resumed.counters.step + 300)
    monkeypatch.setattr("train_RL_agents.training.trainer.Interruption", lambda: stop)
    with pytest.raises(InterruptedRunError):
        resumed.train()
    steps = [r["step"] for r in read_metrics(metrics) if r["mode"] == "train"]
    assert steps == sorted(set(steps))
    assert max(steps) > logged
    events = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0})
    events.Reload()
    # Sorted: files begun within one second are read in any order.
    assert sorted(event.step for event in events.Scalars("train/epsilon")) == steps


def test_resume_without_replay_warms_up_again(tmp_path):
    run = trainer(tmp_path, "checkpoint.with_replay=false")
    run.train()
    resumed = trainer(tmp_path, "checkpoint.with_replay=false")
    resumed.resume(checkpoint.newest(tmp_path))
    assert resumed.counters.updates == run.counters.updates
    assert resumed.counters.stored == 0.0


def test_parts_saved_at_different_moments_are_refused(tmp_path, finished):
    folder = shutil.copytree(finished, tmp_path / "run")
    second = trainer(folder)
    part = checkpoint.load(folder / NEWEST)
    part["counters"]["logged_step"] = 504
    second.saved.processes = SimpleNamespace(size=1, first=False, rank=1)
    checkpoint.save(second.saved.checkpoints.path(part["step"], 1), part)
    with pytest.raises(CheckpointError, match="saved at different moments"):
        second.resume(folder / NEWEST)


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        ({NEWEST: "a/b/step_000000000600.pt"}, "lies in no folder 'checkpoints' of a run"),
        ({NEWEST: "a/diverged_600_0.pt"}, "is no checkpoint to resume from"),
        ({"checkpoints/best.pt": "a/checkpoints/best.pt"}, "is no checkpoint to resume from"),
        ({NEWEST: f"{NEWEST[:-3]}.rank1.pt"}, "is no checkpoint to resume from"),
        ({NEWEST: f"a/{NEWEST}"}, r"metrics\.jsonl is missing or shorter"),
        ({NEWEST: f"a/{NEWEST}", "metrics.jsonl": "a/metrics.jsonl"}, r"events.* is missing"),
    ],
)
def test_a_checkpoint_outside_its_run_is_refused(tmp_path, finished, refused, moved, message):
    kept = [tmp_path / "metrics.jsonl", tmp_path / "a" / "events.out.tfevents.1"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("another's records")
    for name, target in moved.items():
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(finished / name, tmp_path / target)
    given = tmp_path / next(iter(moved.values()))
    assert re.search(message, refused(train.main, ["--resume", str(given)], "--resume"))
    assert all(path.exists() for path in kept)


def test_a_best_policy_of_a_discarded_future_is_dropped(tmp_path, finished):
    folder = shutil.copytree(finished, tmp_path / "run")
    assert checkpoint.load(folder / "checkpoints" / "best.pt")["step"] == 600
    for step, best in ((600, True), (402, False)):
        resumed = trainer(folder)
        resumed.resume(folder / "checkpoints" / f"step_{step:012d}.pt")
        assert (folder / "checkpoints" / "best.pt").exists() == best
        assert (resumed.counters.best_success >= 0.0) == best


def test_a_longer_run_compares_with_the_policy_that_its_end_kept(tmp_path, finished):
    folder = shutil.copytree(finished, tmp_path / "run")
    best = folder / "checkpoints" / "best.pt"
    kept = [0.93, 0.004, 22.0]
    checkpoint.save(best, {**checkpoint.load(best), "standing": kept})
    resumed = trainer(folder)
    resumed.resume(folder / "checkpoints" / "step_000000000600.pt")
    counters = resumed.counters
    assert [counters.kept_success, counters.kept_error, counters.kept_time_s] == kept


def test_going_back_leaves_no_checkpoint_without_its_records(tmp_path, finished, monkeypatch):
    """A kill may come while the records of the discarded future are removed."""
    folder = shutil.copytree(finished, tmp_path / "run")
    older = folder / "checkpoints" / "step_000000000402.pt"

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("train_RL_agents.run.saved.cut_back", kill)
        with pytest.raises(KeyboardInterrupt):
            trainer(folder).resume(older)
    assert checkpoint.newest(folder) == older
    trainer(folder).resume(checkpoint.newest(folder))


def test_the_bar_of_a_resumed_run_begins_where_it_stopped(tmp_path, finished, monkeypatch):
    folder, bars = shutil.copytree(finished, tmp_path / "run"), []

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            bars.append(self)

    monkeypatch.setattr("train_RL_agents.metrics.progress.tqdm", Bar)
    resumed = trainer(folder)
    resumed.resume(folder / "checkpoints" / "step_000000000402.pt")
    resumed.train()
    # The rate is that of the steps from `initial` on.
    assert (bars[0].initial, bars[0].n) == (402, 600)
