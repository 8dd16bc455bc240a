"""The ICRA 2024 task on the command lines: settings, training, evaluation, and what is refused."""

import pytest

from marinenav_env.config import EnvConfig
from marinenav_env.envs.icra2024 import ICRA2024_EXPERIMENTS, ICRA2024_STAGES, Icra2024Config
from marinenav_env.episodes.format import read_episode
from marinenav_env.fields import ConfigError, plain
from scripts import episode
from tests.train_RL_agents.policy_samples import table_of
from tests.train_RL_agents.short_runs import TINY
from train_RL_agents import evaluate, train
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.episodes import evaluation_config
from train_RL_agents.policies.load import load_policy
from train_RL_agents.training import evaluations

pytestmark = pytest.mark.usefixtures("short_evaluations")


def test_the_task_gives_its_own_defaults():
    config, _, _ = load_config(
        task="icra2024", agent="IQN", overrides=["env.vessel.max_speed=1.5", "evaluation.seed=7"]
    )
    assert config.env.vessel.max_speed == 1.5
    assert (config.env.reward.goal, config.env.episode.max_steps) == (100.0, 300)
    assert config.curriculum.stages == ICRA2024_STAGES
    assert config.evaluation.stages == ICRA2024_EXPERIMENTS
    assert config.evaluation.seed == 7
    assert config_from_plain(plain(config)) == config
    assert TrainConfig(task="icra2024").env == Icra2024Config(episode=config.env.episode)


def test_evaluation_lasts_361_decisions_and_goes_on_after_a_collision(monkeypatch):
    monkeypatch.undo()
    ends = evaluation_config(Icra2024Config()).episode
    assert (ends.max_steps, ends.stop_on_collision) == (361, False)
    ends = evaluation_config(EnvConfig()).episode
    assert (ends.max_steps, ends.stop_on_collision) == (1000, True)


def test_memory_is_asked_for_the_tensors_of_the_task(monkeypatch):
    asked = []
    monkeypatch.setattr(evaluations, "check_memory", lambda spec, *_: asked.append(spec.name))
    config, _, _ = load_config(task="icra2024", agent="IQN", overrides=list(TINY))
    evaluations.RunEvaluation(config, build_agent(config, "cpu"))
    assert asked == ["icra2024"]


def test_another_task_and_another_tasks_settings_are_refused():
    with pytest.raises(ConfigError, match="task is 'lake': choose one of marine, icra2024"):
        load_config(overrides=["task=lake"])
    with pytest.raises(ConfigError, match="give a Icra2024Config to icra2024"):
        TrainConfig(task="icra2024", env=EnvConfig())
    with pytest.raises(ConfigError, match=r"env\.vessel\.mass"):
        load_config(task="icra2024", overrides=["env.vessel.mass=300"])


@pytest.mark.parametrize("agent", ["IQN", "AC-IQN"])
def test_train_then_evaluate(agent, tmp_path, refused):
    run = tmp_path / "run"
    stages = "evaluation.stages=[[3,4,4,40]]"
    arguments = ["--task", "icra2024", "--agent", agent, "--output", str(run), *TINY, stages]
    assert train.main(arguments) == 0
    policy, config = load_policy(run)
    assert config.task == "icra2024"
    assert policy.actions == {"IQN": 9, "AC-IQN": 2}[agent]
    (row,) = table_of(tmp_path, "--checkpoint", str(run), "--episodes", "2")["stages"]
    assert (row["robots"], row["vortices"], row["episodes"]) == (3, 4, 2)
    scenario = ["--checkpoint", str(run), "--scenario", "imazu-01"]
    refused(evaluate.main, scenario, "scenarios are of the task 'marine'")
    record = ["record", "--checkpoint", str(run), "--limit", "9"]
    files = tmp_path / "files"
    if agent == "AC-IQN":
        message = "discrete is False: episode files of the ICRA 2024 task hold indices"
        refused(episode.main, [*record, "--output", str(files)], message)
        return
    refused(episode.main, [*record, "--scenario", "imazu-01"], "not 'icra2024'; leave it out")
    assert episode.main([*record, "--episodes", "2", "--output", str(files)]) == 0
    recorded = sorted(map(str, files.iterdir()))
    assert len(read_episode(recorded[0]).lengths) == 3  # the last stage of its evaluation
    assert episode.main(["replay", *recorded]) == 0
    scenario = ["--checkpoint", "baseline:orca", "--scenario", recorded[0]]
    refused(evaluate.main, scenario, "episode_0_0.json' is of the ICRA 2024 task")
    refused(episode.main, ["score", recorded[0]], "can be replayed and drawn", status=2)
    for source in ([recorded[0]], ["--checkpoint", str(run), "--stage", "3,4,4,40"]):
        drawing = tmp_path / "drawn.png"
        limited = ["--limit", "5", "--dpi", "40", "--output", str(drawing)]
        assert episode.main(["plot", *source, *limited]) == 0
        assert drawing.stat().st_size > 10_000
        drawing.unlink()
