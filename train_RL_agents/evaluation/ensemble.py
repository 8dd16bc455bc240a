"""Several policies that act as one, by the mean of their actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import ConfigError
from train_RL_agents.agents.base import Agent

ENSEMBLE = "mean:"
"""Before the members, which commas part, where a policy's file is asked for."""


class Ensemble:
    """Trained policies of one task with the part of an agent's face that evaluations need.

    Trained apart, policies err in different places, and their mean errs less (Wiering and van
    Hasselt 2008, "Ensemble algorithms in reinforcement learning").

    Args:
        members: the policies, on one device.

    Attributes:
        members: the policies.

    Raises:
        ConfigError: a member has discrete actions, of which there is no mean.
    """

    discrete: ClassVar[bool] = False
    stochastic: ClassVar[bool] = False

    def __init__(self, members: Sequence[Agent]) -> None:
        for member in members:
            if member.discrete:
                raise ConfigError(
                    f"ensemble has a {member.name}, whose actions are discrete: give policies with "
                    "continuous ones"
                )
        self.members = tuple(members)
        self.name = " + ".join(member.name for member in members)
        self.device = members[0].device

    def act(self, observation: ObservationTensors, *, mean: bool = False) -> Tensor:
        """Return the mean [..., A] of the members' mean actions, in (-1, 1)."""
        actions = [member.act(observation, mean=True) for member in self.members]
        return torch.stack(actions).mean(0)

    def act_under(self, **settings: Any) -> None:
        """Refuse any setting.

        Raises:
            ConfigError: one is given.
        """
        for name, value in settings.items():
            raise ConfigError(f"{name} is {value!r}: an ensemble has no such setting; leave it out")
