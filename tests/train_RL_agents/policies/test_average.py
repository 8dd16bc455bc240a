"""Several policies made one by the mean of their weights."""

import pytest
import torch

from marinenav_env.fields import ConfigError
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents.policies.average import average
from train_RL_agents.policies.load import read_policy

NAMES = ("a.pt", "b.pt")
BEGUN = {"algorithm": {"start": "pretrained/distilled"}}


def two(folder, name="DPI", first=BEGUN, second=BEGUN, other="DPI"):
    """Read two policies of other weights."""
    policies = [
        read_policy(save_policy(folder / NAMES[0], name, **first)),
        read_policy(save_policy(folder / NAMES[1], other, **second)),
    ]
    with torch.no_grad():
        for parameter in policies[1].agent.actor.parameters():
            parameter.mul_(-3.0)
    return policies


@pytest.mark.parametrize("name", ["DPI", "SAC", "IQN"])
def test_every_weight_is_the_mean_of_both(tmp_path, name):
    policies = two(tmp_path, name, other=name)
    states = [policy.agent.actor.state_dict() for policy in policies]
    expected = {key: (states[0][key] + states[1][key]) / 2 for key in states[0]}
    mean = average(policies, NAMES)
    state = mean.agent.actor.state_dict()
    assert not mean.whole
    assert state.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(state[key], value)
    assert mean.config == policies[0].config


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"algorithm": {"start": "pretrained/ac_iqn"}}, "b.pt has algorithm.start='pretrained/ac_"),
        (
            {"algorithm": {**BEGUN["algorithm"], "widening": 2}},
            "b.pt has algorithm.widening=2, and",
        ),
        ({**BEGUN, "stack_k": 2}, "b.pt has stack_k=2, and a.pt 1: the mean"),
    ],
)
def test_policies_without_a_mean_are_refused(tmp_path, settings, told):
    with pytest.raises(ConfigError, match="began with the same one") as error:
        average(two(tmp_path, second=settings), NAMES)
    assert told in str(error.value)


def test_policies_of_two_algorithms_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"b.pt has agent='DDPG', and a.pt 'DPI'"):
        average(two(tmp_path, other="DDPG"), NAMES)


def test_policies_from_scratch_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"a.pt began with no policy"):
        average(two(tmp_path, first={}, second={}), NAMES)
