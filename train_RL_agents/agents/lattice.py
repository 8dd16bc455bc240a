"""A lattice of actions: values at its points make a value of any action.

The points are all combinations of the ends and the middle of every coordinate's range [-1, 1].
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

ENDS_AND_MIDDLE = (-1.0, 0.0, 1.0)


def points(actions: int) -> Tensor:
    """Return the points `[3 ** actions, actions]`, the last coordinate changing fastest."""
    return torch.tensor(list(itertools.product(ENDS_AND_MIDDLE, repeat=actions)))


def interpolated(values: Tensor, action: Tensor) -> Tensor:
    """Return values between the points, linear in each coordinate.

    Args:
        values: at the points, `[B, 3 ** A]`.
        action: `[B, A]` in [-1, 1].

    Returns:
        `[B]`.
    """
    ends = (-action).clamp(min=0.0), 1.0 - action.abs(), action.clamp(min=0.0)
    shares = torch.stack(ends, -1)  # [B, A, 3], each coordinate's share of its three places
    weights = shares[:, 0]
    for coordinate in range(1, action.shape[-1]):
        weights = (weights.unsqueeze(-1) * shares[:, coordinate].unsqueeze(-2)).flatten(1)
    return (weights * values).sum(-1)
