"""The classical controllers by name."""

from __future__ import annotations

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
from train_RL_agents.evaluation.baselines.vessel import (
    CHOSEN_ON,
    VesselModel,
    model_of,
    thrust_time,
)
from train_RL_agents.evaluation.ensemble import Ensemble

BASELINES: dict[str, Callable[[Observation, VesselModel], Tensor]] = {
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
PREFIX = "baseline:"
"""Of the name of a baseline where a policy's file is asked for."""


@functools.cache
def _choices(
    rates: tuple[float, ...], largest: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return a side's choices as shares of the largest; made once, as a copy to a device waits."""
    return torch.tensor(rates, dtype=dtype, device=device) / largest


def nearest_index(action: Tensor, vessel: VesselConfig) -> Tensor:
    """Return the index [...] of a vessel's discrete action that is nearest on either side.

    Args:
        action: [..., 2] in [-1, 1].
        vessel: gives the choices.
    """
    largest = vessel.max_thrust_rate
    left, right = (
        (part.unsqueeze(-1) - _choices(rates, largest, part.dtype, part.device)).abs().argmin(-1)
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

    It steers the WAM-V 16 until `steer` gives it another vessel.

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
        self.steer(CHOSEN_ON)

    def steer(self, vessel: VesselConfig) -> None:
        """Steer a vessel from now on.

        Raises:
            ConfigError: controllers cannot.
        """
        if why := unable_to_steer(self.name, vessel):
            raise ConfigError(f"baseline is {self.name!r}: {why}; or give a policy")
        self._model = model_of(vessel)

    def act(self, observation: Observation, *, mean: bool = False) -> Tensor:
        """Return actions [..., 2] in [-1, 1]."""
        return self._act(newest_frame(observation), self._model)

    def act_under(self, **settings: Any) -> None:
        """Refuse any setting.

        Raises:
            ConfigError: one is given.
        """
        for name, value in settings.items():
            raise ConfigError(f"{name} is {value!r}: a baseline has no such setting; leave it out")


Actor = Agent | Baseline | Ensemble
"""What an evaluation can evaluate."""


def let_steer(agent: Actor, vessel: VesselConfig) -> None:
    """Tell a classical controller, which knows any vessel, what it steers; policies are trained.

    Raises:
        ConfigError: a controller cannot steer it.
    """
    if isinstance(agent, Baseline):
        agent.steer(vessel)


def unable_to_steer(name: str, vessel: VesselConfig) -> str | None:
    """Return what keeps a baseline from steering a vessel, in words; None if nothing does."""
    try:
        model = model_of(vessel)
    except ConfigError as error:
        return str(error)
    if name.startswith("apf") and model.slowness > apf.MOST_SLOWNESS:
        most = apf.MOST_SLOWNESS * thrust_time(CHOSEN_ON)
        others = ", ".join(other for other in BASELINES if not other.startswith("apf"))
        return (
            f"env.vessel's thrusters take {thrust_time(vessel):g} s from min_thrust to max_thrust "
            f"at max_thrust_rate, and potential fields steer those that take up to {most:g} s; give"
            f" one of {others}"
        )
    return None
