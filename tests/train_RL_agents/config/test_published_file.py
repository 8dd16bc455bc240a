"""Training files of the published code, and which settings they leave out."""

import json

import pytest

from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import TrainConfig

PUBLISHED = {
    "seed": [9, 10],
    "total_timesteps": 6000000,
    "eval_freq": 60000,
    "save_dir": "training_data",
    "training_schedule": {
        "timesteps": [0, 1000000, 2000000],
        "num_robots": [3, 4, 5],
        "num_cores": [0, 0, 4],
        "num_obstacles": [0, 0, 2],
        "min_start_goal_dis": [30.0, 35.0, 40.0],
    },
    "eval_schedule": {
        "num_episodes": [10, 0, 5],
        "num_robots": [3, 4, 5],
        "num_cores": [0, 0, 0],
        "num_obstacles": [0, 0, 4],
        "min_start_goal_dis": [30.0, 35.0, 40.0],
    },
    "imitation_learning": False,
    "agent_type": "IQN",
}


def published(tmp_path, **changes):
    path = tmp_path / "training.json"
    path.write_text(json.dumps({**PUBLISHED, **changes}))
    return path


def test_published_training_file(tmp_path):
    config, seeds, output = load_config(path=published(tmp_path))
    assert (config.agent, seeds, output) == ("IQN", (9, 10), "training_data")
    assert (config.total_steps, config.evaluation.interval_steps) == (6_000_000, 60_000)
    assert config.curriculum.mode == "sequential"
    assert config.curriculum.starts == (0, 1_000_000, 2_000_000)
    last = config.curriculum.stages[2]
    assert (last.robots, last.vortices, last.buoys, last.min_distance_m) == (5, 4, 2, 40.0)
    assert config.evaluation.episodes_per_stage == (10, 0, 5)
    assert config.evaluation.stages[2].buoys == 4


@pytest.mark.parametrize("task", ["marine", "icra2024"])
@pytest.mark.parametrize("agent", REPLAY_AGENTS)
def test_a_published_training_file_leaves_the_projects_own_settings_out(tmp_path, task, agent):
    """Networks, hulls and risk level are the published ones, not what was found better here."""
    config, _, _ = load_config(task=task, path=published(tmp_path, agent_type=agent))
    assert config.algorithm == AGENTS[agent].Config.for_values(*TASKS[task].value_range)
    assert (config.algorithm.encoder, config.algorithm.widening) == ("published", 1)
    assert (config.stack_k, config.curriculum.fringe, config.curriculum.hull_margin) == (1, 0, 0)
    assert config.updates == TrainConfig(agent=agent).updates


@pytest.mark.parametrize("agent", ["PPO", "DAgger"])
def test_an_algorithm_that_was_not_published_keeps_its_settings(tmp_path, agent):
    path = published(tmp_path, agent_type=agent)
    usual, _, _ = load_config(agent=agent, overrides=["algorithm.encoder=published"])
    config, _, _ = load_config(path=path, overrides=["algorithm.encoder=published"])
    assert (config.algorithm, config.updates) == (usual.algorithm, usual.updates)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eval_frequency": 3}, "unknown setting 'eval_frequency'.*'eval_freq'"),
        ({"imitation_learning": True}, "imitation_learning is true"),
        ({"agent_type": "XYZ"}, "agent is 'XYZ'"),
        ({"total_timesteps": "many"}, "total_steps is 'many'"),
        (
            {"training_schedule": {**PUBLISHED["training_schedule"], "num_cores": [0]}},
            r"training_schedule.num_cores is \[0\]",
        ),
        ({"eval_schedule": {"num_episode": [1]}}, "'eval_schedule.num_episodes'"),
    ],
)
def test_wrong_published_training_file(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        load_config(path=published(tmp_path, **changes))
