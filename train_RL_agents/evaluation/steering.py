"""What steers vessels besides the policy: in scenarios, and as traffic on random maps."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig, TaskConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from train_RL_agents.evaluation.baselines.registry import (
    BASELINES,
    HULL,
    Baseline,
    nearest_index,
    unknown_of,
)

Policy = Callable[..., Tensor]
"""From observations to actions."""
CONTROLLERS = ("straight", *BASELINES)
"""Names of what may steer a vessel besides the policy."""


def steering_policies(
    vessel: VesselConfig, discrete: bool, device: torch.device | str
) -> dict[str, Policy]:
    """Return what may steer a vessel besides the policy, by name."""
    steering: dict[str, Policy] = {"straight": hold}
    steering |= {name: Baseline(name, device).act for name in BASELINES}
    if not discrete:
        return steering
    return {name: functools.partial(act_index, act, vessel) for name, act in steering.items()}


def act_index(act: Policy, vessel: VesselConfig, observation: Observation) -> Tensor:
    """Return the indices [...] of a vessel's discrete actions nearest to those of a policy."""
    return nearest_index(act(observation), vessel)


def hold(observation: Observation) -> Tensor:
    """Return actions [..., 2] that change no thrust."""
    return observation.ego.new_zeros(*observation.ego.shape[:-1], 2)


def traffic_policy(
    name: str, env: TaskConfig, *, discrete: bool, device: torch.device | str
) -> Policy:
    """Return the controller of the traffic.

    Args:
        name: as a vessel of a scenario has it under ``steer``.
        env: gives the vessel.
        discrete: whether it is to give action indices.
        device: where it acts.

    Raises:
        ConfigError: the task has no such vessels, there is no such controller, or it does not know
            the vessel.
    """
    if not isinstance(env, EnvConfig):
        raise ConfigError(
            f"traffic is {name!r}: it steers vessels of the task 'marine' only; leave it out"
        )
    if name not in CONTROLLERS:
        raise ConfigError(f"traffic is {name!r}: choose one of {', '.join(CONTROLLERS)}")
    if name in BASELINES and (unknown := unknown_of(env.vessel)):
        raise ConfigError(
            f"traffic is {name!r}: it knows the motion of {HULL.name!r} only, and {unknown}; leave "
            "traffic out"
        )
    return steering_policies(env.vessel, discrete, device)[name]


def traffic_robots(share: float, worlds: int, robots: int) -> Tensor:
    """Return [worlds, robots] bool: every other robot of a share of the worlds.

    The worlds are a fixed random choice, since stages and named scenarios come in turns of any
    period; and so is whether the first robot is one of them.
    """
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(worlds, generator=generator) < round(share * worlds)
    first = torch.randint(2, (worlds, 1), generator=generator)
    return chosen.unsqueeze(1) & ((torch.arange(robots) + first) % 2 == 1)
