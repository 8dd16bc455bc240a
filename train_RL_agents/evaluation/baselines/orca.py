"""Optimal reciprocal collision avoidance (van den Berg et al. 2011) on the vessel.

Each object forbids a half-plane of velocities. The velocity nearest to the preferred one is among
26 candidates of five lines and the circle of speeds: all are tried, so nothing branches. Where none
is allowed, that of a grid with the smallest violation is taken (RVO2 solves a third program there).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from train_RL_agents.evaluation.baselines.observed import Objects, objects_of
from train_RL_agents.evaluation.baselines.vessel import VesselModel, action_for, hold_velocity

DIRECTIONS, SPEEDS = 64, 8  # of the grid
TOLERANCE = 1e-5  # m/s


class Settings(NamedTuple):
    """The best of a search (docs/diary.md) on the WAM-V 16, which follows a velocity seconds late.

    Attributes:
        speed: preferred [m/s], of the WAM-V 16.
        horizon_s: within which vessels are avoided.
        static_horizon_s: within which what stands still is avoided.
        margin_m: beyond the two radii.
        share: of the avoidance that the vessel takes upon itself.
    """

    speed: float = 1.5
    horizon_s: float = 5.0
    static_horizon_s: float = 10.0
    margin_m: float = 4.5
    share: float = 0.5


TUNED = Settings()
PLAIN = Settings(speed=2.5, horizon_s=10.0, margin_m=0.0)
"""As in the examples of the authors' library: one horizon, no margin."""


class Lines(NamedTuple):
    """Half-planes of allowed velocities: det(direction, point - v) <= 0; [..., K, 2]."""

    point: Tensor
    direction: Tensor
    present: Tensor


def orca(observation: Observation, model: VesselModel, settings: Settings = TUNED) -> Tensor:
    """Return actions [..., 2]."""
    ego = observation.ego
    goal, own = ego[..., :2], ego[..., 2:4]
    distance = goal.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    least, most = (model.speed_ratio * speed for speed in (0.8, settings.speed))
    preferred = goal / distance * distance.clamp(min=least, max=most)
    lines = lines_of(objects_of(observation, model.vessel.radius), own, model, settings)
    desired = nearest_allowed(lines, preferred, 1.25 * most)
    return action_for(model, ego, hold_velocity(model, ego, desired))


def lines_of(objects: Objects, own: Tensor, model: VesselModel, settings: Settings) -> Lines:
    """Return the half-planes of objects for the own velocity [..., 2]."""
    position = objects.position
    radius = objects.radius + model.vessel.radius + settings.margin_m
    relative = own.unsqueeze(-2) - objects.velocity
    horizon = torch.where(objects.static, settings.static_horizon_s, settings.horizon_s)
    squared = (position * position).sum(-1)
    overlap = squared <= radius * radius
    rate = torch.where(overlap, 1.0 / model.decision_s, 1.0 / horizon).unsqueeze(-1)
    w = relative - rate * position
    length = w.norm(dim=-1).clamp(min=1e-9)
    along = (w * position).sum(-1)
    cut_off = overlap | ((along < 0.0) & (along * along > radius**2 * length**2))

    normal = w / length.unsqueeze(-1)
    to_circle = (radius * rate.squeeze(-1) - length).unsqueeze(-1) * normal
    across = torch.stack((normal[..., 1], -normal[..., 0]), -1)

    leg = (squared - radius * radius).clamp(min=0.0).sqrt()
    px, py = position.unbind(-1)
    left = torch.stack((px * leg - py * radius, px * radius + py * leg), -1)
    right = -torch.stack((px * leg + py * radius, -px * radius + py * leg), -1)
    on_left = det(position, w) > 0.0
    leg = torch.where(on_left.unsqueeze(-1), left, right) / squared.clamp(min=1e-9).unsqueeze(-1)
    to_leg = (relative * leg).sum(-1, keepdim=True) * leg - relative

    direction = torch.where(cut_off.unsqueeze(-1), across, leg)
    change = torch.where(cut_off.unsqueeze(-1), to_circle, to_leg)
    share = torch.where(objects.static, 1.0, settings.share).unsqueeze(-1)
    return Lines(own.unsqueeze(-2) + share * change, direction, objects.present)


def nearest_allowed(lines: Lines, preferred: Tensor, most_speed: float) -> Tensor:
    """Return the allowed velocity [..., 2] nearest to the preferred one."""
    candidates = _candidates(lines, preferred, most_speed)
    allowed = _violation(lines, candidates) <= TOLERANCE
    allowed &= candidates.norm(dim=-1) <= most_speed + TOLERANCE
    cost = (candidates - preferred.unsqueeze(-2)).norm(dim=-1)
    cost = torch.where(allowed & cost.isfinite(), cost, math.inf)
    best = _picked(candidates, cost.argmin(-1))
    grid = _grid(most_speed, preferred)
    least = _picked(
        grid.expand(*preferred.shape[:-1], *grid.shape), _violation(lines, grid).argmin(-1)
    )
    return torch.where(allowed.any(-1, keepdim=True), best, least)


def _candidates(lines: Lines, preferred: Tensor, most_speed: float) -> Tensor:
    """Return [..., 26, 2]: the preferred velocity, its projections, and intersections."""
    point, direction, _ = lines
    offset = ((preferred.unsqueeze(-2) - point) * direction).sum(-1, keepdim=True)
    projected = point + offset * direction
    middle = (point * direction).sum(-1, keepdim=True)
    root = middle**2 + most_speed**2 - (point * point).sum(-1, keepdim=True)
    half = root.clamp(min=0.0).sqrt()
    on_circle = [point + (-middle + sign * half) * direction for sign in (-1.0, 1.0)]
    first, second = torch.triu_indices(point.shape[-2], point.shape[-2], 1, device=point.device)
    d1, d2 = direction[..., first, :], direction[..., second, :]
    p1, p2 = point[..., first, :], point[..., second, :]
    way = (det(d2, p1 - p2) / det(d1, d2)).nan_to_num(0.0, 0.0, 0.0).unsqueeze(-1)
    return torch.cat((preferred.unsqueeze(-2), projected, *on_circle, p1 + way * d1), -2)


def _violation(lines: Lines, velocity: Tensor) -> Tensor:
    """Return by how much velocities [..., N, 2] break the worst of the half-planes [m/s]."""
    outside = det(lines.direction.unsqueeze(-3), lines.point.unsqueeze(-3) - velocity.unsqueeze(-2))
    return torch.where(lines.present.unsqueeze(-2), outside, -math.inf).amax(-1)


def _grid(most_speed: float, like: Tensor) -> Tensor:
    angle = torch.arange(DIRECTIONS, device=like.device) * (2.0 * math.pi / DIRECTIONS)
    speed = torch.arange(SPEEDS, device=like.device) * (most_speed / (SPEEDS - 1))
    rays = torch.stack((angle.cos(), angle.sin()), -1)
    return (speed.view(-1, 1, 1) * rays).flatten(0, 1).to(like.dtype)


def _picked(velocities: Tensor, index: Tensor) -> Tensor:
    """Return [..., 2], one of velocities [..., N, 2]."""
    index = index.unsqueeze(-1).unsqueeze(-1).expand(*index.shape, 1, 2)
    return velocities.gather(-2, index).squeeze(-2)


def det(a: Tensor, b: Tensor) -> Tensor:
    """Return the determinant of two vectors [..., 2]."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
