"""The classical controllers by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
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
PREFIX = "baseline:"
"""Of the name of a baseline where a policy's file is asked for."""
RATES = (HULL.left_thrust_rates, HULL.right_thrust_rates)


@functools.cache
def _rates(side: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a side's choices of actions in [-1, 1]; made once, as a copy to a device waits."""
    return torch.tensor(RATES[side], dtype=dtype, device=device) / HULL.max_thrust_rate


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
        return self._act(observation)

    def act_index(self, observation: Observation) -> Tensor:
        """Return the index [...] of the discrete action that is nearest on either side."""
        action = self.act(observation)
        rates = [_rates(side, action.dtype, action.device) for side in range(2)]
        left, right = (
            (part.unsqueeze(-1) - rate).abs().argmin(-1)
            for part, rate in zip(action.unbind(-1), rates, strict=True)
        )
        return left * len(RATES[1]) + right

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
    if isinstance(agent, Baseline) and vessel.name != HULL.name:
        raise ConfigError(
            f"vessel is {vessel.name!r}: baseline {agent.name!r} knows the motion of {HULL.name!r} "
            "only; leave env.vessel out, or give a policy"
        )
