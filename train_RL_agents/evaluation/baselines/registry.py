"""The classical controllers by name."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from marinenav_env.envs.observation import EGO_FEATURES, Observation
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from train_RL_agents.agents.base import Agent
from train_RL_agents.evaluation.baselines import apf, kuwata, orca, sbmpc
from train_RL_agents.evaluation.baselines.straight import goal_straight
from train_RL_agents.evaluation.baselines.vessel import HULL
from train_RL_agents.evaluation.ensemble import Ensemble

BASELINES: dict[str, Callable[[Observation], Tensor]] = {
    "goal-straight": goal_straight,
    "apf": functools.partial(apf.apf, settings=apf.REPAIRED),
    "apf-published": functools.partial(apf.apf, settings=apf.PUBLISHED),
    "kuwata": functools.partial(kuwata.kuwata, settings=kuwata.TUNED),
    "kuwata-published": functools.partial(kuwata.kuwata, settings=kuwata.PUBLISHED),
    "orca": functools.partial(orca.orca, settings=orca.TUNED),
    "orca-published": functools.partial(orca.orca, settings=orca.PLAIN),
    "sb-mpc": functools.partial(sbmpc.sb_mpc, settings=sbmpc.TUNED),
    "sb-mpc-published": functools.partial(sbmpc.sb_mpc, settings=sbmpc.PUBLISHED),
}
"""Under its plain name each has the settings that did best here."""
CHOSEN_FROM = ("left_thrust_rates", "right_thrust_rates")
"""Fields of a vessel that controllers may find otherwise: they take the nearest choices."""
PREFIX = "baseline:"
"""Of the name of a baseline where a policy's file is asked for."""


@functools.cache
def _choices(rates: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a side's choices of actions in [-1, 1]; made once, as a copy to a device waits."""
    return torch.tensor(rates, dtype=dtype, device=device) / HULL.max_thrust_rate


def nearest_index(action: Tensor, vessel: VesselConfig) -> Tensor:
    """Return the index [...] of a vessel's discrete action that is nearest on either side.

    Args:
        action: [..., 2] in [-1, 1].
        vessel: gives the choices.
    """
    left, right = (
        (part.unsqueeze(-1) - _choices(rates, action.dtype, action.device)).abs().argmin(-1)
        for part, rates in zip(
            action.unbind(-1), (vessel.left_thrust_rates, vessel.right_thrust_rates), strict=True
        )
    )
    return left * len(vessel.right_thrust_rates) + right


def newest_frame(observation: Observation) -> Observation:
    """Return the latest of the decisions that an observation shows."""
    frames = observation.ego.shape[-1] // len(EGO_FEATURES)
    rows = observation.mask.shape[-1] // frames
    ego, objects, mask = observation
    return Observation(ego[..., : len(EGO_FEATURES)], objects[..., :rows, :], mask[..., :rows])


def _plain(name: str) -> str:
    return name.replace("-", "")


class Baseline:
    """A classical controller with the part of an agent's face that evaluations need.

    Args:
        name: of the controller; its hyphens may be left out, as in ``sbmpc``.
        device: where it acts.

    Raises:
        ConfigError: there is none of that name.
    """

    discrete: ClassVar[bool] = False
    stochastic: ClassVar[bool] = False

    def __init__(self, name: str, device: torch.device | str = "cpu") -> None:
        known = {_plain(entry): entry for entry in BASELINES}.get(_plain(name))
        if known is None:
            raise ConfigError(f"baseline is {name!r}: choose one of {', '.join(BASELINES)}")
        self.name, self.device = known, torch.device(device)
        self._act = BASELINES[known]

    def act(self, observation: Observation, *, mean: bool = False) -> Tensor:
        """Return actions [..., 2] in [-1, 1]."""
        return self._act(newest_frame(observation))

    def act_under(self, **settings: Any) -> None:
        """Refuse any setting.

        Raises:
            ConfigError: one is given.
        """
        for name, value in settings.items():
            raise ConfigError(f"{name} is {value!r}: a baseline has no such setting; leave it out")


Actor = Agent | Baseline | Ensemble
"""What an evaluation can evaluate."""


def check_hull(agent: Actor, vessel: VesselConfig) -> None:
    """Check that a classical controller steers the vessel that it is made for.

    Raises:
        ConfigError: it is to steer another vessel.
    """
    if isinstance(agent, Baseline) and (unknown := unknown_of(vessel)):
        raise ConfigError(
            f"{unknown}: baseline {agent.name!r} knows the motion of {HULL.name!r} only; leave "
            "env.vessel out, or give a policy"
        )


def unknown_of(vessel: VesselConfig) -> str | None:
    """Return what keeps classical controllers from steering a vessel, in words; None if nothing."""
    if vessel.name != HULL.name:
        return f"vessel is {vessel.name!r}"
    names = (field.name for field in dataclasses.fields(HULL) if field.name not in CHOSEN_FROM)
    for name in names:
        value, known = getattr(vessel, name), getattr(HULL, name)
        if value != known:
            return f"vessel.{name} is {value}, not {known}"
    return None
