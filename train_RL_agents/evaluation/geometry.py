"""Geometry of pairs of vessels: closest points of approach, least distances and bearings.

Everything is batched, on one device; angles are in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.motion import Motion
from train_RL_agents.evaluation.score import V1


class Approach(NamedTuple):
    """Where two courses lead: distance now [m], time to the closest point [s], distance there."""

    distance: Tensor
    tcpa: Tensor
    dcpa: Tensor


def closest_approach(dx: Tensor, dy: Tensor, dvx: Tensor, dvy: Tensor) -> Approach:
    """Return the closest point of approach of straight courses (Lenart 2015).

    Args:
        dx: position of the other minus own [m]; all of one shape.
        dy: the same, east.
        dvx: velocity of the other minus own [m/s].
        dvy: the same, east.

    Returns:
        Fields of that shape. TCPA is negative where the two move apart; DCPA is then the distance
        now.
    """
    squared_speed = torch.addcmul(dvx * dvx, dvy, dvy)
    moving = squared_speed > V1.least_relative_speed**2
    tcpa = -torch.addcmul(dx * dvx, dy, dvy) / torch.where(moving, squared_speed, math.inf)
    ahead = tcpa.clamp(min=0.0)
    dcpa = length(torch.addcmul(dx, ahead, dvx), torch.addcmul(dy, ahead, dvy))
    return Approach(length(dx, dy), tcpa, dcpa)


def length(x: Tensor, y: Tensor) -> Tensor:
    """Return the length of (x, y); `torch.hypot` takes several times as long on a CPU."""
    return torch.addcmul(x * x, y, y).sqrt_()


def least_distance(dx0: Tensor, dy0: Tensor, dx1: Tensor, dy1: Tensor) -> Tensor:
    """Return the least distance while a relative position moves straight from (0) to (1) [m]."""
    return least_squared_distance(dx0, dy0, dx1 - dx0, dy1 - dy0).sqrt_()


def least_squared_distance(dx: Tensor, dy: Tensor, ex: Tensor, ey: Tensor) -> Tensor:
    """Return the square of the least distance while a position (dx, dy) moves by (ex, ey) [m^2]."""
    squared_way = torch.addcmul(ex * ex, ey, ey).clamp_(min=1e-12)
    share = torch.addcmul(dx * ex, dy, ey).div_(squared_way).neg_().clamp_(0.0, 1.0)
    x, y = torch.addcmul(dx, share, ex), torch.addcmul(dy, share, ey)
    return x.mul_(x).addcmul_(y, y)


def wrap180(angle: Tensor) -> Tensor:
    """Return an angle in degrees in [-180, 180)."""
    return torch.remainder(angle + 180.0, 360.0) - 180.0


class Pairs(NamedTuple):
    """Geometry of all P = R (R - 1) / 2 pairs of different vessels.

    Attributes:
        first: [P] index of the one vessel.
        second: [P] index of the other.
        approach: the closest point of approach, fields [T, P, W].
        passed: [T, P, W] square of the least distance since the row before [m^2]; in row 0 that of
            the distance.
        both: [T, P, W] bool, both are present.
    """

    first: Tensor
    second: Tensor
    approach: Approach
    passed: Tensor
    both: Tensor


def pairs_of(motion: Motion) -> Pairs:
    """Return the geometry of all pairs."""
    robots = motion.x.shape[1]
    first, second = torch.triu_indices(robots, robots, 1, device=motion.x.device)
    dx, dy, dvx, dvy = (
        between(torch.subtract, field) for field in (motion.x, motion.y, motion.vx, motion.vy)
    )
    approach = closest_approach(dx, dy, dvx, dvy)
    passed = torch.empty_like(dx)
    passed[0] = approach.distance[0] ** 2
    passed[1:] = least_squared_distance(dx[:-1], dy[:-1], dx.diff(dim=0), dy.diff(dim=0))
    return Pairs(first, second, approach, passed, between(torch.logical_and, motion.present))


def between(function: Callable[..., Tensor], field: Tensor) -> Tensor:
    """Return a function [T, P, W] of a field [T, R, W] of the second and the first of all pairs."""
    rows, robots, worlds = field.shape
    out = field.new_empty(rows, robots * (robots - 1) // 2, worlds)
    parts = out.split(list(range(robots - 1, 0, -1)), 1)
    for own, part in enumerate(parts):
        function(field[:, own + 1 :], field[:, own : own + 1], out=part)
    return out


def bearing(vx: Tensor, vy: Tensor, dx: Tensor, dy: Tensor) -> Tensor:
    """Return the bearing of (dx, dy) from the course (vx, vy), to starboard, in (-180, 180]."""
    return torch.rad2deg(torch.atan2(vx * dy - vy * dx, vx * dx + vy * dy))
