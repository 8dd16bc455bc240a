"""Encounters of pairs of vessels: when they open and close, and what happens in between.

Everything is batched over decisions, pairs and worlds, on one device. The definitions are those of
docs/evaluation.md; angles are in degrees.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.motion import FIELDS, Motion
from train_RL_agents.evaluation.score import V1, Score

NEVER = -1.0
"""The decision of an action that never came."""

Columns = dict[str, Tensor]


class Approach(NamedTuple):
    """Where two courses lead: distance now [m], time to the closest point [s], distance there."""

    distance: Tensor
    tcpa: Tensor
    dcpa: Tensor


def closest_approach(
    dx: Tensor, dy: Tensor, dvx: Tensor, dvy: Tensor, score: Score = V1
) -> Approach:
    """Return the closest point of approach of straight courses (Lenart 2015).

    Args:
        dx: position of the other minus own [m]; all of one shape.
        dy: the same, east.
        dvx: velocity of the other minus own [m/s].
        dvy: the same, east.
        score: its least relative speed, below which TCPA is 0.

    Returns:
        Fields of that shape. TCPA is negative where the two move apart; DCPA is then the distance
        now.
    """
    squared_speed = dvx * dvx + dvy * dvy
    moving = squared_speed > score.least_relative_speed**2
    tcpa = -(dx * dvx + dy * dvy) / torch.where(moving, squared_speed, 1.0)
    tcpa = torch.where(moving, tcpa, 0.0)
    ahead = tcpa.clamp(min=0.0)
    dcpa = length(dx + ahead * dvx, dy + ahead * dvy)
    return Approach(length(dx, dy), tcpa, dcpa)


def length(x: Tensor, y: Tensor) -> Tensor:
    """Return the length of (x, y); `torch.hypot` takes several times as long on a CPU."""
    return (x * x + y * y).sqrt()


def least_distance(dx0: Tensor, dy0: Tensor, dx1: Tensor, dy1: Tensor) -> Tensor:
    """Return the least distance while a relative position moves straight from (0) to (1) [m]."""
    ex, ey = dx1 - dx0, dy1 - dy0
    share = -(dx0 * ex + dy0 * ey) / (ex * ex + ey * ey).clamp(min=1e-12)
    share = share.clamp(0.0, 1.0)
    return length(dx0 + share * ex, dy0 + share * ey)


def wrap180(angle: Tensor) -> Tensor:
    """Return an angle in degrees in [-180, 180)."""
    return torch.remainder(angle + 180.0, 360.0) - 180.0


class Pairs(NamedTuple):
    """Geometry of all P = R (R - 1) / 2 pairs of different vessels.

    Attributes:
        first: [P] index of the one vessel.
        second: [P] index of the other.
        approach: the closest point of approach, fields [T, P, W].
        passed: [T, P, W] least distance since the row before [m]; in row 0 the distance.
        both: [T, P, W] bool, both are present.
    """

    first: Tensor
    second: Tensor
    approach: Approach
    passed: Tensor
    both: Tensor


def pairs_of(motion: Motion, score: Score = V1) -> Pairs:
    """Return the geometry of all pairs."""
    robots = motion.x.shape[1]
    first, second = torch.triu_indices(robots, robots, 1, device=motion.x.device)

    def between(field: Tensor) -> Tensor:
        return field.index_select(1, second) - field.index_select(1, first)

    dx, dy = between(motion.x), between(motion.y)
    approach = closest_approach(dx, dy, between(motion.vx), between(motion.vy), score)
    passed = least_distance(dx[:-1], dy[:-1], dx[1:], dy[1:])
    passed = torch.cat((approach.distance[:1], passed))
    both = motion.present.index_select(1, first) & motion.present.index_select(1, second)
    return Pairs(first, second, approach, passed, both)


def under_way(
    motion: Motion, pairs: Pairs, hull_radius: float, score: Score = V1
) -> tuple[Tensor, Tensor]:
    """Return which rows open an encounter, and which belong to one: both [T, P, W] bool."""
    distance, tcpa, dcpa = pairs.approach
    fast = torch.hypot(motion.vx, motion.vy) >= score.min_speed
    seen = score.detection_range_m + hull_radius
    could_open = (
        pairs.both
        & (distance <= seen)
        & (tcpa > 0.0)
        & (tcpa <= score.horizon_s)
        & (dcpa - 2.0 * hull_radius <= score.separation_gaps[-1] * score.length_m)
        & fast.index_select(1, pairs.first)
        & fast.index_select(1, pairs.second)
    )
    receding = tcpa < 0.0
    stops = distance > score.release_ratio * seen
    stops[1:] |= receding[1:] & receding[:-1]
    inside, goes_on = torch.empty_like(could_open), ~stops
    was_open = torch.zeros_like(could_open)  # when the row begins
    last = torch.zeros_like(could_open[0])
    rows = zip(
        could_open, pairs.both, inside, goes_on, (*was_open[1:], last), was_open, strict=True
    )
    for opens, both, within, stays, then, now in rows:
        torch.logical_and(now, both, out=within)
        within |= opens
        torch.logical_and(within, stays, out=then)
    return could_open & ~was_open, inside


def find_encounters(motion: Motion, pairs: Pairs, hull_radius: float, score: Score = V1) -> Columns:
    """Return the encounters as columns [E], each encounter twice: once for either vessel.

    Returns:
        ``world``, ``own``, ``other``; ``start``, ``closest``, ``end`` (decisions since the reset),
        ``distance0``, ``tcpa0``, ``beta0``, ``alpha0`` at the start; ``closest_distance``,
        ``beta_closest``, ``alpha_closest`` at the closest decision; ``least_distance``, within
        decisions too; what the own vessel did from the start to the closest decision: ``turn`` (the
        largest change of heading, signed), ``loss`` (the largest loss of speed, a share of that at
        the start), ``early_turn``, ``early_loss`` (while TCPA > 4 s), ``late_turn`` (after); and
        of its first action, at any time: ``action`` (decision, or `NEVER`), ``action_distance``,
        ``action_tcpa`` (or NaN). Metres, seconds, degrees.
    """
    opening, inside = under_way(motion, pairs, hull_radius, score)
    order = (1, 2, 0)  # the rows of an encounter one after another
    pair, world, row = inside.permute(order).nonzero(as_tuple=True)
    flat = (row * inside.shape[1] + pair) * inside.shape[2] + world
    starts = opening.take(flat)
    rows = Rows(
        step=row.to(motion.x.dtype),
        encounter=starts.cumsum(0) - 1,
        starts=starts.nonzero().squeeze(1),
        distance=pairs.approach.distance.take(flat),
        tcpa=pairs.approach.tcpa.take(flat),
    )
    passed = torch.where(starts, rows.distance, pairs.passed.take(flat))
    common = {
        "world": world[rows.starts],
        "distance0": rows.distance[rows.starts],
        "tcpa0": rows.tcpa[rows.starts],
        "least_distance": rows.reduce(passed, "amin"),
        "start": rows.step[rows.starts],
        "end": rows.reduce(rows.step, "amax"),
    }
    vessels = [side.index_select(0, pair) for side in (pairs.first, pairs.second)]
    states = []
    for vessel in vessels:
        place = (row * motion.x.shape[1] + vessel) * motion.x.shape[2] + world
        states.append([field.take(place) for field in motion[: len(FIELDS)]])
    sides = []
    for own, other in ((0, 1), (1, 0)):
        numbers = {"own": vessels[own][rows.starts], "other": vessels[other][rows.starts]}
        sides.append(common | numbers | _own_side(rows, states[own], states[other], score))
    return {name: torch.cat([side[name] for side in sides]) for name in sides[0]}


class Rows(NamedTuple):
    """The N rows of all encounters, those of one after another.

    Attributes:
        step: [N] decisions since the reset.
        encounter: [N] its number.
        starts: [E] the first row of each.
        distance: [N] m.
        tcpa: [N] s.
    """

    step: Tensor
    encounter: Tensor
    starts: Tensor
    distance: Tensor
    tcpa: Tensor

    def reduce(self, values: Tensor, by: str, among: Tensor | None = None) -> Tensor:
        """Return the largest or least value of each encounter [E], ``by`` "amax" or "amin".

        Args:
            values: [N].
            by: the reduction.
            among: [N] bool, the rows that count; with none of them the result is infinite.
        """
        nothing = -math.inf if by == "amax" else math.inf
        values = values if among is None else torch.where(among, values, nothing)
        out = values.new_full((len(self.starts),), nothing)
        return out.scatter_reduce_(0, self.encounter, values, by)

    def first(self, among: Tensor) -> Tensor:
        """Return the first row of each encounter among [N] bool, or N where there is none."""
        number = torch.arange(len(among), device=among.device)
        number = torch.where(among, number, len(among))
        out = number.new_full((len(self.starts),), len(among))
        return out.scatter_reduce_(0, self.encounter, number, "amin")


def _own_side(rows: Rows, own: list[Tensor], other: list[Tensor], score: Score) -> Columns:
    """Return the columns of one vessel of each encounter, from states [N] in order of FIELDS."""
    step, encounter = rows.step, rows.encounter
    x, y, heading, vx, vy = own
    dx, dy = other[0] - x, other[1] - y
    beta, alpha = bearing(vx, vy, dx, dy), bearing(other[3], other[4], -dx, -dy)
    heading, speed = torch.rad2deg(heading), torch.hypot(vx, vy)
    turn = wrap180(heading - heading[rows.starts][encounter])
    loss = 1.0 - speed / speed[rows.starts][encounter]

    least = rows.reduce(rows.distance, "amin")
    closest = rows.first(rows.distance == least[encounter])
    until = step <= step[closest][encounter]
    early = until & (rows.tcpa > score.stage_4_s)

    def largest_turn(among: Tensor) -> Tensor:
        right = rows.reduce(turn, "amax", among).clamp(min=0.0)
        left = rows.reduce(turn, "amin", among).clamp(max=0.0)
        return torch.where(right >= -left, right, left)

    acts = (turn.abs() >= score.turn_noticed) | (loss >= score.loss_noticed)
    action = rows.first(acts)
    acted, at = action < len(acts), action.clamp(max=max(len(acts) - 1, 0))
    return {
        "beta0": beta[rows.starts],
        "alpha0": alpha[rows.starts],
        "closest": step[closest],
        "closest_distance": least,
        "beta_closest": beta[closest],
        "alpha_closest": alpha[closest],
        "turn": largest_turn(until),
        "loss": rows.reduce(loss, "amax", until),
        "early_turn": largest_turn(early),
        "early_loss": rows.reduce(loss, "amax", early).clamp(min=0.0),
        "late_turn": largest_turn(until & ~early),
        "action": torch.where(acted, step[at], NEVER),
        "action_distance": torch.where(acted, rows.distance[at], math.nan),
        "action_tcpa": torch.where(acted, rows.tcpa[at], math.nan),
    }


def bearing(vx: Tensor, vy: Tensor, dx: Tensor, dy: Tensor) -> Tensor:
    """Return the bearing of (dx, dy) from the course (vx, vy), to starboard, in (-180, 180]."""
    return torch.rad2deg(torch.atan2(vx * dy - vy * dx, vx * dx + vy * dy))
