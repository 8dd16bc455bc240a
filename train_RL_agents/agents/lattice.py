"""A lattice of actions: what values at its points say of any action.

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
    """Return what the main effects of values at the points make of an action.

    That is the function nearest to the values, by the sum of squares, of those that are a sum of
    one function of each coordinate, and linear between the points. What the coordinates do together
    is left out: of rollouts it is mostly noise (docs/diary.md).

    Args:
        values: at the points, `[B, 3 ** A]`.
        action: `[B, A]` in [-1, 1].

    Returns:
        `[B]`.
    """
    ends = (-action).clamp(min=0.0), 1.0 - action.abs(), action.clamp(min=0.0)
    shares = torch.stack(ends, -1)  # [B, A, 3], each coordinate's share of its three places
    actions = action.shape[-1]
    lattice = values.unflatten(-1, (3,) * actions)
    mean = values.mean(-1)  # [B]
    total = mean
    for coordinate in range(actions):
        by_place = lattice.movedim(1 + coordinate, -1).reshape(len(values), -1, 3)
        at_places = by_place.mean(1)  # [B, 3]
        total = total + (shares[:, coordinate] * at_places).sum(-1) - mean
    return total
