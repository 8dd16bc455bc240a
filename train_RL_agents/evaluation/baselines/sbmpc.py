"""Simulation-based model predictive control (Johansen et al. 2016; Hagen et al. 2018), scaled.

Each of 39 behaviours, an offset of the course to the goal with a factor of the speed, is simulated
with the vessel's own motion and velocity controller in still water, the others on straight courses.
The cheapest is begun. The published costs of a changed behaviour need a memory; they are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from train_RL_agents.evaluation.baselines.observed import Objects, objects_of
from train_RL_agents.evaluation.baselines.vessel import (
    HULL,
    action_for,
    advance,
    hold_velocity,
)

DECISION_S = HULL.dt * HULL.substeps
SUBSTEPS = 5
"""Of a predicted decision."""


class Settings(NamedTuple):
    """Horizon, behaviours and costs.

    Attributes:
        speed: wanted [m/s].
        horizon_s: predicted time.
        offsets_deg: of the course.
        factors: of the speed.
        safe_m: beyond contact, below which nearness costs.
        close_m: within which the rules count.
        nearness_power: Q.
        contact_m: beyond contact, what counts as one.
        contact_cost: over the time to it.
        rule_cost: kappa, of breaking a rule.
        speed_cost: K_P, of slowing down.
        course_cost: K_chi, of turning off.
    """

    speed: float = 2.5
    horizon_s: float = 8.0
    offsets_deg: tuple[float, ...] = tuple(range(90, -91, -15))  # of equals the first is begun
    factors: tuple[float, ...] = (1.0, 0.5, 0.0)
    safe_m: float = 2.0
    close_m: float = 20.0
    nearness_power: float = 4.0
    contact_m: float = 0.3
    contact_cost: float = 50.0
    rule_cost: float = 3.0
    speed_cost: float = 2.5
    course_cost: float = 1.3


TUNED = Settings()
AHEAD, OVERTAKING, HEAD_ON, ABEAM = (math.radians(angle) for angle in (15.0, 68.5, 22.5, 112.5))


class Body(NamedTuple):
    """State of the predicted vessel in the frame of its present heading; fields [..., C]."""

    x: Tensor
    y: Tensor
    heading: Tensor
    u: Tensor
    v: Tensor
    r: Tensor
    left: Tensor
    right: Tensor


def sb_mpc(observation: Observation, settings: Settings = TUNED) -> Tensor:
    """Return actions [..., 2]."""
    ego = observation.ego
    offsets = torch.tensor(settings.offsets_deg, dtype=ego.dtype).deg2rad().to(ego.device)
    factors = torch.tensor(settings.factors, dtype=ego.dtype).to(ego.device)
    offset, factor = (part.flatten() for part in torch.meshgrid(offsets, factors, indexing="ij"))
    cost = settings.speed_cost * (1.0 - factor) + settings.course_cost * offset**2
    cost = cost + _danger(observation, offset, factor, settings)
    best = cost.argmin(-1)
    desired = _desired(ego[..., :2], offset[best], factor[best], settings)
    return action_for(ego, hold_velocity(ego, desired))


def _desired(goal: Tensor, offset: Tensor, factor: Tensor, settings: Settings) -> Tensor:
    """Return the velocity [..., 2] of a behaviour with the goal at [..., 2]."""
    course = torch.atan2(goal[..., 1], goal[..., 0]) + offset
    speed = factor * goal.norm(dim=-1).clamp(min=0.8, max=settings.speed)
    return torch.stack((speed * course.cos(), speed * course.sin()), -1)


def _danger(observation: Observation, offset: Tensor, factor: Tensor, settings: Settings) -> Tensor:
    """Return the cost [..., C] of what the behaviours [C] lead to: the worst object and moment."""
    ego = observation.ego
    start = torch.zeros_like(ego[..., :1] + offset)
    u, v, r, left, right = (ego[..., i : i + 1] + start for i in range(2, 7))
    body = Body(start, start, start, u, v, r, left, right)
    goal = ego[..., :2].unsqueeze(-2)
    objects = objects_of(observation, HULL.radius)
    worst = start
    for decision in range(1, round(settings.horizon_s / DECISION_S) + 1):
        body = _predict(body, goal, offset, factor, settings)
        worst = torch.maximum(worst, _cost(body, objects, decision * DECISION_S, settings))
    return worst


def _predict(body: Body, goal: Tensor, offset: Tensor, factor: Tensor, settings: Settings) -> Body:
    """Return the state after a decision."""
    x, y, heading, u, v, r, left, right = body
    to_goal = _turned(goal[..., 0] - x, goal[..., 1] - y, -heading)
    desired = _desired(torch.stack(to_goal, -1), offset, factor, settings)
    ego = torch.stack((*to_goal, u, v, r, left, right), -1)
    change = DECISION_S * HULL.max_thrust_rate * action_for(ego, hold_velocity(ego, desired))
    left, right = (
        (thrust + part).clamp(HULL.min_thrust, HULL.max_thrust)
        for thrust, part in zip((left, right), change.unbind(-1), strict=True)
    )
    dt = DECISION_S / SUBSTEPS
    for _ in range(SUBSTEPS):
        north, east = _turned(u, v, heading)
        x, y, heading = x + dt * north, y + dt * east, heading + dt * r
        u, v, r = advance(u, v, r, left, right, dt)
    return Body(x, y, heading, u, v, r, left, right)


def _cost(body: Body, objects: Objects, time: float, settings: Settings) -> Tensor:
    """Return the cost [..., C] of a predicted moment, of the worst object."""
    there = objects.position + time * objects.velocity
    dx, dy = (there[..., i].unsqueeze(-1) - body[i].unsqueeze(-2) for i in (0, 1))  # [..., K, C]
    distance = torch.hypot(dx, dy).clamp(min=1e-6)
    own = [part.unsqueeze(-2) for part in _turned(body.u, body.v, body.heading)]
    other = [objects.velocity[..., i].unsqueeze(-1) for i in (0, 1)]
    contact = (HULL.radius + objects.radius).unsqueeze(-1)
    safe = contact + settings.safe_m

    squared_speed = (own[0] - other[0]) ** 2 + (own[1] - other[1]) ** 2
    nearness = (safe / distance) ** settings.nearness_power / time
    nearness = torch.where(distance < safe, nearness, 0.0)
    cost = 0.5 * squared_speed.clamp(min=1.0) * nearness
    hit = distance < contact + settings.contact_m
    cost = cost + torch.where(hit, settings.contact_cost / time, 0.0)
    breaks = _breaks_a_rule((dx / distance, dy / distance), own, other, body.heading.unsqueeze(-2))
    near = distance < torch.clamp(safe + 1.0, max=settings.close_m)
    cost = cost + torch.where(
        breaks & near & ~objects.static.unsqueeze(-1), settings.rule_cost, 0.0
    )
    return torch.where(objects.present.unsqueeze(-1), cost, 0.0).amax(-2)


def _breaks_a_rule(
    sight: tuple[Tensor, Tensor], own: list[Tensor], other: list[Tensor], heading: Tensor
) -> Tensor:
    """Return where a head-on vessel is passed, or one to starboard crossed, on the wrong side."""
    own_speed, other_speed = torch.hypot(*own), torch.hypot(*other)
    along = own[0] * other[0] + own[1] * other[1]
    both = own_speed * other_speed
    toward = own[0] * sight[0] + own[1] * sight[1]
    bearing = torch.atan2(*reversed(_turned(*sight, -heading)))
    starboard = (bearing > 0.0) & (bearing < ABEAM)
    overtaking = (along > math.cos(OVERTAKING) * both) & (own_speed > other_speed)
    head_on = (other_speed > 0.05) & (along < -math.cos(HEAD_ON) * both)
    head_on &= toward > math.cos(AHEAD) * own_speed
    crossing = (along < math.cos(OVERTAKING) * both) & starboard
    return (starboard & head_on) | (crossing & ~overtaking)


def _turned(x: Tensor, y: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Return a vector turned by an angle."""
    cos, sin = angle.cos(), angle.sin()
    return x * cos - y * sin, x * sin + y * cos
