"""Several trained policies made one network, by the mean of their weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError
from train_RL_agents.config.build import LoadedPolicy
from train_RL_agents.policies.load import shared_by_members
from train_RL_agents.policies.start import settings_of

NEAR = 0.8
"""Least cosine between two policies' weights of a layer. After 2 to 5 million decisions of DPI it
is .94 or more between runs that began with one policy, and .3 or less between others."""


def average(policies: Sequence[LoadedPolicy], names: Sequence[str]) -> LoadedPolicy:
    """Return the first policy with the mean of all policies' acting weights.

    Trained apart from one beginning, networks stay so near to each other that the mean of their
    weights acts about as the mean of their actions does, at the price of one (Wortsman et al. 2022,
    "Model soups", https://arxiv.org/abs/2203.05482). With prices of their own they make a trade
    between these (Rame et al. 2023, "Rewarded soups", https://arxiv.org/abs/2306.04488). Units that
    a run has added to what it began with (`algorithm.widening`) are its own, and lose by the mean.

    Args:
        policies: two or more, on one device; the first one's acting weights are replaced.
        names: what messages call each.

    Returns:
        The policy, with the settings of the first; of its networks the acting one alone is the
        mean.

    Raises:
        ConfigError: they are of several algorithms, tasks or vessels, have other networks, or did
            not begin with the same policy.
    """
    first, expected = policies[0], in_common(policies[0])
    states = [policy.agent.actor.state_dict() for policy in policies]
    for name, policy, state in zip(names, policies, states, strict=True):
        for key, value in in_common(policy).items():
            if value != expected[key]:
                raise ConfigError(
                    f"{name} has another {key} than {names[0]}, and their weights no mean: give "
                    "runs that are alike in it"
                )
        layer, cosine = farthest_layer(states[0], state)
        if cosine < NEAR:
            raise ConfigError(
                f"{name} lies apart from {names[0]} (the cosine of their weights {layer} is "
                f"{cosine:.2f}, and {NEAR} at least where two began with one policy), so the mean "
                "of their weights is no policy: give runs with the same algorithm.start"
            )
    mean = {key: torch.stack([state[key] for state in states]).mean(0) for key in states[0]}
    first.agent.actor.load_state_dict(mean)
    return first._replace(whole=False)


def in_common(policy: LoadedPolicy) -> dict[str, object]:
    """Return what policies share whose weights have a mean, by its name in a message."""
    networks = settings_of(policy.config, policy.agent.network_settings)
    return {"agent": policy.config.agent, **shared_by_members(policy), **networks}


def farthest_layer(one: dict[str, Tensor], other: dict[str, Tensor]) -> tuple[str, float]:
    """Return the layer in which two networks of one shape differ most, and the cosine there."""
    layers = [name for name, weight in one.items() if weight.dim() > 1]
    cosines = {
        name: torch.cosine_similarity(one[name].flatten(), other[name].flatten(), dim=0).item()
        for name in layers
    }
    return min(cosines.items(), key=lambda pair: pair[1])
