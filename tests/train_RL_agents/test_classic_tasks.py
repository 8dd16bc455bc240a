"""Tasks without vessels on the command lines: training, evaluation, export, and what is refused."""

import pytest
import torch

from marinenav_env.envs.classic import CLASSIC, ONE_ROBOT, CartPoleConfig
from marinenav_env.envs.make import ENVIRONMENTS, VESSEL_TASKS
from marinenav_env.fields import ConfigError, plain
from marinenav_env.kernel import ops
from tests.train_RL_agents.policy_samples import table_of
from tests.train_RL_agents.short_runs import SHORT
from train_RL_agents import evaluate, export, train
from train_RL_agents.config.files import load_config
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.episodes import Evaluation, evaluation_config
from train_RL_agents.evaluation.results import ReturnResult, Returns, StageResult
from train_RL_agents.evaluation.watches import watch_of
from train_RL_agents.metrics.writer import read_metrics
from train_RL_agents.policies.load import load_policy
from train_RL_agents.training.trainer import TorchRLTrainer

pytestmark = pytest.mark.usefixtures("short_evaluations")
TINY = [*SHORT, "total_steps=12"]
AGENT_OF = {kind.kernel: "DQN" if ops.describe(kind.kernel).discrete else "SAC" for kind in CLASSIC}


def test_the_outcomes_of_a_task_decide_how_it_is_evaluated():
    rows = {name: watch_of(ops.describe(name)).row for name in ENVIRONMENTS}
    assert rows == {
        name: StageResult if name in VESSEL_TASKS else ReturnResult for name in ENVIRONMENTS
    }


@pytest.mark.parametrize("task", AGENT_OF)
def test_train_evaluate_and_export(task, tmp_path, refused):
    run = tmp_path / "run"
    arguments = ["--task", task, "--agent", AGENT_OF[task], "--output", str(run), *TINY]
    assert train.main(arguments) == 0
    assert not (run / "trajectories.png").exists()
    policy, config = load_policy(run)
    assert (config.task, policy.spec.group) == (task, None)
    (row,) = table_of(tmp_path, "--checkpoint", str(run), "--episodes", "3")["stages"]
    limit = min(50, ENVIRONMENTS[task].evaluation_episode.max_steps)  # as the fixture has it
    assert row["episodes"] == 3
    assert 0 < row["mean_length"] <= limit
    exports = ["--checkpoint", str(run), "--output", str(tmp_path / "policy.onnx"), "--format"]
    assert export.main([*exports, "onnx"]) == 0
    refused(export.main, [*exports, "torchscript"], "observes observation: --format torchscript")
    for option in (["--figure", str(tmp_path / "a.png")], ["--against", str(run)]):
        message = f"task is '{task}', which has no vessels"
        refused(evaluate.main, ["--checkpoint", str(run), *option], message)


def test_records_hold_what_the_task_has(tmp_path):
    overrides = [*SHORT, "env.episode.max_steps=7", "evaluation.episodes=4"]
    config, _, _ = load_config(task="cartpole", agent="DQN", overrides=overrides)
    trainer = TorchRLTrainer(config, tmp_path, torch.device("cpu"))
    (result,) = trainer.train()
    records = read_metrics(tmp_path / "metrics.jsonl")
    trained = [record for record in records if record["mode"] == "train"]
    assert sum(record["robot_steps"] for record in trained) == 600
    for record in trained:
        assert record["length"] == record["episode_return"] == 7.0
        assert record["timeout"] == 1.0
        assert "success" not in record
        assert "energy" not in record
        assert sum(record["return_distribution"]["histogram"]["counts"]) == record["episodes"]
    means = [r["episode_return"] for r in records if r["mode"] == "evaluation"]
    assert trainer.counters.best_success == max(means)
    first = next(r for r in records if r["mode"] == "evaluation, all")
    assert first["returns"]["mean"] == means[0]
    assert result.score == result.as_json()["mean_return"]


def test_the_interval_of_a_mean_return_is_students():
    returns = Returns(torch.tensor([True, False]), torch.tensor([1.0, 3.0]), torch.ones(2))
    row = ReturnResult(returns, ONE_ROBOT[0]).as_json()
    assert (row["mean_return"], row["std_return"]) == (2.0, pytest.approx(2**0.5))
    assert row["timeout"] == 0.5
    low, high = row["mean_return_ci95"]  # 12.706 standard errors of 1
    assert (low, high) == (pytest.approx(-10.706, abs=1e-3), pytest.approx(14.706, abs=1e-3))
    alone = returns.of_worlds(torch.tensor([False, True]))
    assert ReturnResult(alone, ONE_ROBOT[0]).as_json()["mean_return_ci95"] == [None, None]


def test_standing_by_hand():
    returns = Returns(torch.tensor([True, False]), torch.tensor([1.0, 3.0]), torch.ones(2))
    row = ReturnResult(returns, ONE_ROBOT[0])
    alone = ReturnResult(returns.of_worlds(torch.tensor([False, True])), ONE_ROBOT[0])
    assert ReturnResult.standing([row]) == (2.0, 1.0, 0.0)  # a variance of 2, of two episodes
    assert ReturnResult.standing([row, alone]) == (2.5, 0.5, 0.0)


def test_an_evaluation_counts_the_decisions_of_each_episode():
    """Always to the right: the cart falls after a number of decisions that any can check."""
    config = CartPoleConfig()
    evaluation = Evaluation(ONE_ROBOT, (9,), seed=4, config=config, discrete=True)
    (row,) = evaluation.run(lambda obs: torch.ones(obs.state.shape[:-1], dtype=torch.int64))
    assert not row.returns.timeout.any()
    assert ((row.returns.length > 7) & (row.returns.length < 12)).all()
    assert torch.equal(row.returns.length, row.returns.episode_return)


def test_settings_are_the_tasks_own():
    config, _, _ = load_config(task="pendulum", agent="SAC", overrides=["env.physics.mass=2"])
    assert (config.env.physics.mass, config.env.episode.max_steps) == (2.0, 200)
    assert config.curriculum.stages == config.evaluation.stages == ONE_ROBOT
    assert config_from_plain(plain(config)) == config
    assert evaluation_config(config.env).episode.max_steps == 50  # the fixture's limit


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["task=cartpole", "agent=SAC"],
            r"agent is 'SAC': .* choose one of IQN, DQN, Rainbow",
        ),
        (["task=pendulum", "agent=DQN"], r"agent is 'DQN': .* choose one of AC-IQN, DDPG, SAC"),
        (["task=pendulum", "env.vessel.mass=3"], r"env\.vessel is a setting of marine and"),
        (["task=pendulum", "env.physics.mass=0"], r"physics\.mass is 0\.0: give more than 0\.0"),
    ],
)
def test_what_does_not_fit_is_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config(overrides=overrides)


def test_other_stages_are_refused(tmp_path):
    stages = "curriculum.stages=[[5,0,0,40]]"
    config, _, _ = load_config(task="cartpole", agent="DQN", overrides=[*TINY, stages])
    with pytest.raises(ConfigError, match="the task 'cartpole' has one stage"):
        TorchRLTrainer(config, tmp_path, torch.device("cpu"))
    assert TrainConfig(task="cartpole", agent="DQN").env == CartPoleConfig()
