"""What steers vessels besides the policy: in scenarios, and as traffic on random maps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig, TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from train_RL_agents.evaluation.baselines.registry import (
    BASELINES,
    Baseline,
    nearest_index,
    unable_to_steer,
)

Policy = Callable[..., Tensor]
"""From observations to actions."""
CONTROLLERS = ("straight", *BASELINES)
"""Names of what may steer a vessel besides the policy."""


def controller(
    name: str, vessel: VesselConfig, *, discrete: bool, device: torch.device | str
) -> Policy:
    """Return what steers a vessel besides the policy, one of `CONTROLLERS`."""
    act: Policy = hold
    if name in BASELINES:
        baseline = Baseline(name, device)
        baseline.steer(vessel)
        act = baseline.act
    return functools.partial(act_index, act, vessel) if discrete else act


def act_index(act: Policy, vessel: VesselConfig, observation: Observation) -> Tensor:
    """Return the indices [...] of a vessel's discrete actions nearest to those of a policy."""
    return nearest_index(act(observation), vessel)


def hold(observation: Observation) -> Tensor:
    """Return actions [..., 2] that change no thrust."""
    return observation.ego.new_zeros(*observation.ego.shape[:-1], 2)


def unable(name: str, vessel: VesselConfig, *, discrete: bool) -> str | None:
    """Return what keeps a controller from steering a vessel, in words; None if nothing does."""
    if name in BASELINES:
        return unable_to_steer(name, vessel)
    holds = 0.0 in vessel.left_thrust_rates and 0.0 in vessel.right_thrust_rates
    if discrete and not holds:
        return "a thrust rate of 0 is missing among the discrete ones of the vessel on either side"
    return None


def with_actions_of(policy: Policy, robots: Tensor, action: Tensor, seen: Any) -> Tensor:
    """Return actions [W, R, ...], those of a policy in the place of some robots [W, R] bool."""
    chosen = robots.view(*robots.shape, *(1,) * (action.dim() - robots.dim()))
    return torch.where(chosen, policy(seen).to(action.dtype), action)


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
        ConfigError: the task has no such vessels, there is no such controller, or it cannot steer
            the vessel.
    """
    if not isinstance(env, EnvConfig):
        raise ConfigError(
            f"traffic is {name!r}: it steers vessels of the task 'marine' only; leave it out"
        )
    if name not in CONTROLLERS:
        raise ConfigError(f"traffic is {name!r}: choose one of {', '.join(CONTROLLERS)}")
    if why := unable(name, env.vessel, discrete=discrete):
        raise ConfigError(f"traffic is {name!r}: {why}; give another, or leave it out")
    return controller(name, env.vessel, discrete=discrete, device=device)


def traffic_robots(share: float, worlds: int, robots: int) -> Tensor:
    """Return [worlds, robots] bool: every other robot of a share of the worlds.

    The worlds are a fixed random choice, since stages and named scenarios come in turns of any
    period; and so is whether the first robot is one of them.
    """
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(worlds, generator=generator) < round(share * worlds)
    first = torch.randint(2, (worlds, 1), generator=generator)
    return chosen.unsqueeze(1) & ((torch.arange(robots) + first) % 2 == 1)


def traffic_in(env: KernelEnv, policy: Policy) -> list[tuple[Tensor, Policy]]:
    """Return every other robot of every world, [W, R] bool, and what steers it.

    Raises:
        ConfigError: a stage has one robot, which would be of the policy in some worlds only.
    """
    for stage in env.stages:
        if stage.robots < 2:
            raise ConfigError(
                f"traffic is given for the stage {stage.label!r}: it takes two robots or more; "
                "leave the stage or the traffic out"
            )
    return [(traffic_robots(1.0, env.worlds, env.robots).to(env.device), policy)]
