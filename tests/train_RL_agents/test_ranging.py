"""Policies on range finders: every agent learns, and one goes the whole way of the commands."""

import pytest
import torch

from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError
from scripts import episode
from tests.train_RL_agents.policy_samples import table_of
from tests.train_RL_agents.short_runs import TINY
from train_RL_agents import export, train
from train_RL_agents.agents.encoders import RayEncoder, make_encoder
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import fitting_agents
from train_RL_agents.policies.load import load_policy

RANGING = ("marine_sectors", "marine_beams")


@pytest.mark.parametrize("task", RANGING)
def test_the_description_drives_a_fitting_encoder(task):
    config, _, _ = load_config(task=task, agent="IQN", overrides=["env.vessel=heron", "stack_k=2"])
    spec = TASKS[task].describe(config.env, discrete=True, stack_k=2).observation
    encoder = make_encoder(spec)
    assert isinstance(encoder, RayEncoder)
    observation = spec.draw(4, torch.Generator().manual_seed(0))
    features = encoder(observation)
    assert features.shape == (4, encoder.features)
    for i, part in enumerate(observation):
        changed = [*observation]
        changed[i] = part + 1.0
        assert not torch.equal(encoder(tuple(changed)), features), i


@pytest.mark.parametrize("name", fitting_agents("marine_sectors"))
def test_every_agent_acts_on_rays(name):
    config, _, _ = load_config(task="marine_sectors", agent=name)
    agent = build_agent(config, "cpu")
    action = agent.act(agent.spec.observation.draw(3, torch.Generator().manual_seed(1)))
    assert action.shape == ((3,) if agent.discrete else (3, 2))


def test_faults_of_range_finders_are_settings(tmp_path, refused):
    """A key that is wrong, or of another sensor, is told before anything begins."""
    command = ["--task", "marine_beams", "--agent", "IQN", "--output", str(tmp_path / "run")]
    for setting, message in (
        ("env.perception.miss=1.5", "env.perception.miss is 1.5: give 1.0 or less"),
        ("env.perception.missing=0.1", "the nearest valid one is 'env.perception.miss'"),
        ("env.perception.velocity_std=0.1", "env.perception.velocity_std is a setting of marine,"),
    ):
        refused(train.main, [*command, setting], message)
    config, _, _ = load_config(task="marine_beams", overrides=["env.perception.miss=0.1"])
    assert config.env.perception.miss == 0.1


def test_a_risk_level_needs_objects():
    overrides = ["algorithm.adaptive_cvar=true"]
    config, _, _ = load_config(task="marine_beams", agent="IQN", overrides=overrides)
    with pytest.raises(ConfigError, match="adaptive_cvar is True"):
        build_agent(config, "cpu")


@pytest.mark.usefixtures("short_evaluations")
def test_train_evaluate_and_export(tmp_path, refused):
    run, stage = tmp_path / "run", "evaluation.stages=[[3,0,1,30]]"
    task = ["--task", "marine_beams", "--agent", "AC-IQN", "--output", str(run)]
    faults = ["env.perception.miss=0.1", "env.perception.noise_factor=[0.5,2]"]
    changes = [*faults, "env.perception.range_std=0.1", "env.vessel=otter", "env.wind.speed=[1,2]"]
    assert train.main([*task, *TINY, stage, *changes]) == 0
    _, config = load_policy(run)
    perception = config.env.perception
    assert (perception.miss, perception.noise_factor) == (0.1, (0.5, 2.0))
    assert perception.range_std == 0.1
    assert (config.task, config.env.vessel.name) == ("marine_beams", "otter")
    assert config.env.reward.collision == -10.0
    blind = ["env.perception.dropout=1"]
    (row,) = table_of(tmp_path, "--checkpoint", str(run), "--episodes", "1", *blind)["stages"]
    assert row["episodes"] == 1
    assert export.main(["--checkpoint", str(run), "--format", "torchscript"]) == 0
    arguments = ["record", "--checkpoint", str(run), "--output", str(tmp_path)]
    refused(episode.main, arguments, "policy of the task 'marine_beams': give one of the tasks")
    drawing = tmp_path / "drawing.png"
    shown = ["--stage", "3,0,1,30", "--limit", "20", "--output", str(drawing), "--dpi", "30"]
    assert episode.main(["plot", "--checkpoint", str(run), *shown]) == 0
    assert drawing.is_file()
