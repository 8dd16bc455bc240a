"""Velocity obstacles with the collision regulations (Kuwata et al. 2014).

Each candidate, a heading with a speed, is judged by the straight line that it leads along: whether
it comes into an object, and whether it passes a vessel on the side that the rules forbid. The
cheapest one is held by the velocity controller. Classes and costs are those of the implementation
in NTNU-TTO/SFI-AutoShip-COLAV-simulator (`kuwata_vo.py`), which keeps the class of an encounter and
decides once a second; this one has no memory and decides anew.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from train_RL_agents.evaluation.baselines.observed import Objects, objects_of
from train_RL_agents.evaluation.baselines.vessel import VesselModel, action_for, hold_velocity

ABAFT_DEG = 112.0
"""Bearing beyond which a vessel is abaft the beam."""


class Settings(NamedTuple):
    """Candidates, limits and costs.

    Attributes:
        speed: desired [m/s], of the WAM-V 16.
        factors: of it, candidates.
        headings: candidates, all around.
        horizon_s: within which an encounter counts.
        encounter_m: distance at the closest point up to which it counts.
        margin_m: beyond the two radii, what is an obstacle.
        head_on_deg: courses within this of opposite ones are head-on.
        obstacle_cost: of a candidate that leads into an object.
        rule_cost: of one that passes on the forbidden side.
    """

    speed: float = 2.5
    factors: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)
    headings: int = 24
    horizon_s: float = 8.0
    encounter_m: float = 9.6
    margin_m: float = 1.0
    head_on_deg: float = 15.0
    obstacle_cost: float = 1000.0
    rule_cost: float = 100.0


PUBLISHED = Settings(headings=144, horizon_s=60.0, encounter_m=20.0)
"""Headings, horizon and distance as of the implementation and the paper; the rest is scaled."""
TUNED = Settings(
    speed=1.5,
    factors=(1.0, 0.66, 0.33, 0.0),
    horizon_s=20.0,
    encounter_m=20.0,
    margin_m=6.0,
    rule_cost=1.0,
)
"""The best of a search for success (docs/diary.md): it may stop, and rules weigh little."""


def kuwata(observation: Observation, model: VesselModel, settings: Settings = TUNED) -> Tensor:
    """Return actions [..., 2]."""
    ego = observation.ego
    goal = ego[..., :2]
    distance = goal.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    least, most = (model.speed_ratio * speed for speed in (0.8, settings.speed))
    straight = goal / distance * distance.clamp(min=least, max=most)
    candidates = _candidates(straight, settings)  # [..., C, 2]
    objects = objects_of(observation, model.vessel.radius)
    unwanted = (candidates - straight.unsqueeze(-2)) / model.speed_ratio
    cost = unwanted.square().sum(-1)
    cost = cost + _forbidden(objects, ego[..., 2:4], candidates, model.vessel.radius, settings)
    best = cost.argmin(-1, keepdim=True).unsqueeze(-1).expand(*cost.shape[:-1], 1, 2)
    desired = candidates.gather(-2, best).squeeze(-2)
    return action_for(model, ego, hold_velocity(model, ego, desired))


@functools.cache
def _factors(settings: Settings, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the factors of the speed; made once, since a copy to a device waits for it."""
    return torch.tensor(settings.factors, dtype=dtype, device=device)


def _candidates(straight: Tensor, settings: Settings) -> Tensor:
    """Return velocities [..., C, 2]: all headings by all speeds, from the straight one on."""
    angle = torch.arange(settings.headings, device=straight.device, dtype=straight.dtype)
    angle = angle * (2.0 * math.pi / settings.headings)
    factor = _factors(settings, straight.dtype, straight.device).view(-1, 1)
    cos, sin = (factor * part for part in (angle.cos(), angle.sin()))  # [S, H]
    x, y = (part[..., None, None] for part in straight.unbind(-1))
    return torch.stack((x * cos - y * sin, x * sin + y * cos), -1).flatten(-3, -2)


def _forbidden(
    objects: Objects, own: Tensor, candidates: Tensor, hull_radius: float, settings: Settings
) -> Tensor:
    """Return the cost [..., C] of candidates that meet an object, or pass it on the wrong side."""
    position, velocity = objects.position, objects.velocity  # [..., K, 2]
    relative = own.unsqueeze(-2) - velocity
    time = (position * relative).sum(-1) / relative.square().sum(-1).clamp(min=1e-6)
    nearest = (position - relative * time.unsqueeze(-1)).norm(dim=-1)
    counts = (time >= 0.0) & (time <= settings.horizon_s) & (nearest <= settings.encounter_m)
    ruled = counts & ~objects.static & gives_way(position, velocity, own, settings)

    way = candidates.unsqueeze(-3) - velocity.unsqueeze(-2)  # [..., K, C, 2]
    toward = (position.unsqueeze(-2) * way).sum(-1)
    across = position[..., 0, None] * way[..., 1] - position[..., 1, None] * way[..., 0]
    reach = (objects.radius + hull_radius + settings.margin_m).unsqueeze(-1)
    squared = way.square().sum(-1).clamp(min=1e-6)
    inside = position.norm(dim=-1, keepdim=True) <= reach
    hits = (toward > 0.0) & ((across.square() <= squared * reach.square()) | inside)
    seen = counts | inside.squeeze(-1) | objects.static
    cost = settings.obstacle_cost * (hits & (objects.present & seen).unsqueeze(-1))
    # To port of the line of sight the other is left to starboard.
    wrong = (toward > 0.0) & (across < 0.0) & (objects.present & ruled).unsqueeze(-1)
    return (cost + settings.rule_cost * wrong).amax(-2)


def gives_way(position: Tensor, velocity: Tensor, own: Tensor, settings: Settings) -> Tensor:
    """Return whether the vessel meets others [..., K] head-on, overtakes, or has them to starboard.

    Args:
        position: of the others [..., K, 2], body frame, m.
        velocity: of the others, m/s.
        own: velocity [..., 2], m/s.
        settings: hold the sectors.
    """
    own = own.unsqueeze(-2).expand_as(velocity)
    course = _angle(own, velocity)
    head_on = course.abs() > 180.0 - settings.head_on_deg
    bearing = _angle(own, position)
    overtaken = bearing.abs() > ABAFT_DEG
    overtakes = _angle(velocity, -position).abs() > ABAFT_DEG
    return head_on | (~overtaken & (overtakes | (bearing > 0.0)))


def _angle(a: Tensor, b: Tensor) -> Tensor:
    """Return the angle [deg] from vectors a to b [..., 2], clockwise."""
    across = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return torch.atan2(across, (a * b).sum(-1)).rad2deg()
