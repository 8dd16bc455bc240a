"""What an evaluation needs of an agent or a baseline."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor


class Actor(Protocol):
    """Chooses actions as deployed.

    Attributes:
        name: in tables.
        discrete: whether its actions are indices.
        stochastic: whether it draws its actions, and has mean ones too.
        device: where it acts.
    """

    name: str
    discrete: ClassVar[bool]
    stochastic: ClassVar[bool]
    device: torch.device

    def act(self, observation: Any, *, mean: bool = False) -> Tensor:
        """Return actions for any leading dimensions; see `Agent.act`."""

    def act_under(self, **settings: Any) -> None:
        """Change settings that enter only when it acts; see `Agent.act_under`."""
