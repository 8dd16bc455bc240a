"""Several trained policies made one network, by the mean of their weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from marinenav_env.fields import ConfigError
from train_RL_agents.config.build import Policy
from train_RL_agents.policies.start import settings_of


def average(policies: Sequence[Policy], names: Sequence[str]) -> Policy:
    """Return the first policy with the mean of all policies' acting weights.

    Trained apart from one beginning, networks stay so near to each other that the mean of their
    weights acts about as the mean of their actions does, at the price of one (Wortsman et al. 2022,
    "Model soups", https://arxiv.org/abs/2203.05482). With prices of their own they make a trade
    between these (Rame et al. 2023, "Rewarded soups", https://arxiv.org/abs/2306.04488).

    Args:
        policies: two or more, on one device; the first one's acting weights are replaced.
        names: what messages call each.

    Returns:
        The policy; of its networks the acting one alone is the mean.

    Raises:
        ConfigError: they are of several algorithms, have other networks, or did not begin with the
            same policy: the mean of such weights is of no use.
    """
    first = policies[0]
    for name, policy in zip(names, policies, strict=True):
        for key, value in in_common(policy).items():
            if value != in_common(first)[key]:
                raise ConfigError(
                    f"{name} has {key}={value!r}, and {names[0]} {in_common(first)[key]!r}: the "
                    "mean of their weights is no policy; give runs that began with the same one"
                )
    if not first.config.algorithm.start:
        raise ConfigError(
            f"{names[0]} began with no policy (algorithm.start): the mean of weights that are "
            "learned from scratch is no policy; give runs that began with the same one"
        )
    states = [policy.agent.actor.state_dict() for policy in policies]
    mean = {key: torch.stack([state[key] for state in states]).mean(0) for key in states[0]}
    first.agent.actor.load_state_dict(mean)
    return first._replace(whole=False)


def in_common(policy: Policy) -> dict[str, object]:
    """Return what policies share whose weights have a mean, by the names of the settings."""
    config = policy.config
    networks = settings_of(config, policy.agent.network_settings)
    return {"agent": config.agent, "algorithm.start": config.algorithm.start, **networks}
