"""Several policies that act as one: how, who may be among them, and what takes them."""

import pytest
import torch

from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from tests.train_RL_agents.policy_samples import (
    export_policy,
    recorded_observation,
    save_policy,
    table_of,
)
from train_RL_agents import export
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.files import load_config
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.shield.acting import shield_agent
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.imitation import teacher_of

CPU = torch.device("cpu")
MEMBERS = [f"pretrained/{name}" for name in ("ac_iqn_many", "sac_rules", "ddpg")]


def seen():
    """What robots of a recorded episode saw, in the type of the weights."""
    return Observation(*(part.float() for part in recorded_observation()))


def named(paths):
    return "mean:" + ",".join(map(str, paths))


NAMED = named(MEMBERS)


@torch.no_grad()
def test_it_acts_by_the_mean_of_mean_actions():
    ensemble, config = load_policy(NAMED)
    observation = seen()
    actions = [read_policy(path).agent.act(observation, mean=True) for path in MEMBERS]
    found = ensemble.act(observation)
    torch.testing.assert_close(found, sum(actions) / 3)
    assert (found - actions[0]).abs().max() > 0.01
    assert ensemble.name == "AC-IQN + SAC + DDPG"
    assert config == read_policy(MEMBERS[0]).config


def test_evaluate_and_the_shield_take_it(tmp_path):
    table = table_of(tmp_path, "--checkpoint", NAMED, "--episodes", "2", "--stage", "1")
    assert table["stages"][0]["success"] == 1.0
    ensemble, config = load_policy(NAMED)
    guarded = shield_agent(ensemble, config, ShieldConfig(), ensemble.act)
    observation = seen()
    assert guarded(observation).shape == ensemble.act(observation).shape


def test_it_teaches():
    overrides = [f"algorithm.teacher={NAMED}", "algorithm.guarded=false"]
    config, _, _ = load_config(agent="DAgger", overrides=overrides)
    observation = seen()
    asked = teacher_of(config, CPU)(observation)
    torch.testing.assert_close(asked, load_policy(NAMED)[0].act(observation))


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        (("AC-IQN",), {}, "names fewer than two policies"),
        (("AC-IQN", "DQN"), {}, "has a DQN, whose actions are discrete"),
        (("AC-IQN", "SAC"), {"stack_k": 2}, "SAC.pt is of another stack_k"),
        (("AC-IQN", "DDPG"), {"task": "icra2024", "env": {}}, "DDPG.pt is of another task"),
        (("AC-IQN", "DDPG"), {"env": {"vessel": {"mass": 500.0}}}, "is of another vessel"),
    ],
)
def test_who_is_not_among_them(tmp_path, names, settings, message):
    paths = [save_policy(tmp_path / f"{name}.pt", name) for name in names[:1]]
    paths += [save_policy(tmp_path / f"{name}.pt", name, **settings) for name in names[1:]]
    with pytest.raises(ConfigError, match=message):
        load_policy(named(paths))


@pytest.mark.parametrize("member", ["baseline:orca", "mean:a,b"])
def test_members_are_trained_policies(member):
    with pytest.raises(ConfigError, match=f"has {member.split(',')[0]} as a member"):
        load_policy(named([MEMBERS[0], member]))


def test_a_shield_inside_a_member_is_seen(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "AC-IQN")
    ensemble, config = load_policy(named([export_policy(path, "torchscript", "--shield"), path]))
    with pytest.raises(ConfigError, match="the policy has one inside already"):
        shield_agent(ensemble, config, ShieldConfig(), ensemble.act)
    plain, config = load_policy(named([path, path]))
    shield_agent(plain, config, ShieldConfig(), plain.act)


def test_it_is_not_exported(capsys):
    assert export.main(["--checkpoint", NAMED, "--format", "onnx"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "is no single network: give a policy that is, or let one learn" in said
    assert f"algorithm.teacher={NAMED})" in said


def test_what_it_has_not():
    with pytest.raises(CheckpointError, match=r"none\.pt"):
        load_policy(named([MEMBERS[0], "none.pt"]))
    with pytest.raises(ConfigError, match=r"cvar is 0\.5: an ensemble has no such setting"):
        load_policy(NAMED)[0].act_under(cvar=0.5)
