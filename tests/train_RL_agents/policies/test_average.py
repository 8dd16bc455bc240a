"""Several policies made one by the mean of their weights."""

import pytest
import torch

from marinenav_env.fields import ConfigError
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents.policies.average import average
from train_RL_agents.policies.load import read_policy

NAMES = ("a.pt", "b.pt", "c.pt")


def policies_in(folder, *kinds, **second):
    """Read policies of alike weights, each farther from 0 than the one before."""
    policies = []
    for place, (name, kind) in enumerate(zip(NAMES, kinds, strict=False)):
        settings = second if place == 1 else {}
        policies.append(read_policy(save_policy(folder / name, kind, **settings)))
        with torch.no_grad():
            for parameter in policies[-1].agent.actor.parameters():
                parameter.mul_(1.0 + place)
    return policies


@pytest.mark.parametrize("kind", ["DPI", "SAC", "IQN"])
@pytest.mark.parametrize("number", [2, 3])
def test_every_weight_is_the_mean_of_all(tmp_path, kind, number):
    dearer = {"env": {"reward": {"timestep": -9.0}}}
    policies = policies_in(tmp_path, *[kind] * number, **dearer)
    states = [policy.agent.actor.state_dict() for policy in policies]
    expected = {key: sum(state[key] for state in states) / number for key in states[0]}
    mean = average(policies, NAMES[:number])
    state = mean.agent.actor.state_dict()
    assert not mean.whole
    assert mean.config.env.reward.timestep != -9.0
    assert state.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(state[key], value)


def test_a_policy_that_is_named_twice_counts_twice(tmp_path):
    one, other, third = policies_in(tmp_path, "DPI", "DPI", "DPI")
    expected = {key: weight.clone() for key, weight in other.agent.actor.state_dict().items()}
    mean = average([one, one, third, third], (*NAMES, "d.pt")).agent.actor.state_dict()
    for key, weight in mean.items():  # of 1, 1, 3 and 3 times the same
        torch.testing.assert_close(weight, expected[key])


@pytest.mark.parametrize(
    ("settings", "differ"),
    [
        ({"algorithm": {"widening": 2}}, "algorithm.widening"),
        ({"algorithm": {"encoder": "relative_motion"}}, "algorithm.encoder"),
        ({"stack_k": 2}, "stack_k"),
        ({"env": {"vessel": "otter"}}, "observation"),
    ],
)
def test_policies_without_a_mean_are_refused(tmp_path, settings, differ):
    policies = policies_in(tmp_path, "DPI", "DPI", **settings)
    with pytest.raises(ConfigError, match=rf"b\.pt has another {differ} than a\.pt.*alike in it"):
        average(policies, NAMES[:2])


def test_policies_of_two_algorithms_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"b\.pt has another agent than a\.pt"):
        average(policies_in(tmp_path, "DPI", "DDPG"), NAMES[:2])


def test_policies_of_two_beginnings_are_refused(tmp_path):
    policies = policies_in(tmp_path, "DPI", "DPI", "DPI")
    weight = policies[1].agent.actor.state_dict()["hidden_layer.weight"]
    weight.copy_(weight.roll(1, 0))  # units that have changed places
    with pytest.raises(ConfigError, match=r"b\.pt lies apart from a\.pt .*hidden_layer\.weight is"):
        average(policies, NAMES)
