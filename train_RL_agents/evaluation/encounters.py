"""Encounters of pairs of vessels: when they open and close, and what happens in between.

Everything is batched over decisions, pairs and worlds, on one device. The definitions are those of
docs/evaluation.md; angles are in degrees.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.geometry import Pairs, bearing, between, wrap180
from train_RL_agents.evaluation.motion import Motion
from train_RL_agents.evaluation.score import V1

NEVER = -1.0
"""The decision of an action that never came."""

Columns = dict[str, Tensor]


def under_way(
    motion: Motion, pairs: Pairs, speed: Tensor, hull_radius: float
) -> tuple[Tensor, Tensor]:
    """Return which rows open an encounter, and which belong to one: both [T, P, W] bool.

    Args:
        motion: of the vessels.
        pairs: of them.
        speed: [T, R, W] of the vessels [m/s].
        hull_radius: of every vessel [m].
    """
    distance, tcpa, dcpa = pairs.approach
    seen = V1.detection_range_m + hull_radius
    could_open = between(torch.logical_and, motion.present & (speed >= V1.min_speed))
    for condition in (
        distance <= seen,
        tcpa > 0.0,
        tcpa <= V1.horizon_s,
        dcpa <= V1.separation_gaps[-1] * V1.length_m + 2.0 * hull_radius,
    ):
        could_open &= condition
    receding = tcpa < 0.0
    stops = distance > V1.release_ratio * seen
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


def find_encounters(motion: Motion, pairs: Pairs, hull_radius: float) -> Columns:
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
    speed = torch.hypot(motion.vx, motion.vy)
    opening, inside = under_way(motion, pairs, speed, hull_radius)
    order = (1, 2, 0)  # the rows of an encounter one after another
    pair, world, row = inside.permute(order).nonzero(as_tuple=True)
    flat = (row * inside.shape[1] + pair) * inside.shape[2] + world
    opens = _taken(opening, flat)
    starts = opens.nonzero().squeeze(1)
    rows = Rows(
        step=row.to(motion.x.dtype),
        encounter=opens.cumsum(0) - 1,
        starts=starts,
        lengths=starts.diff(append=starts.new_full((1,), len(row))),
        distance=_taken(pairs.approach.distance, flat),
        tcpa=_taken(pairs.approach.tcpa, flat),
    )
    passed = torch.where(opens, rows.distance, _taken(pairs.passed, flat).sqrt_())
    least = rows.reduce(rows.distance, "min")
    closest = rows.first(rows.distance == rows.spread(least))
    common = {
        "world": world[starts],
        "distance0": rows.distance[starts],
        "tcpa0": rows.tcpa[starts],
        "least_distance": rows.reduce(passed, "min"),
        "closest_distance": least,
        "start": rows.step[starts],
        "closest": closest,
        "end": rows.step[starts + rows.lengths - 1],
    }
    vessels = [side.index_select(0, pair) for side in (pairs.first, pairs.second)]
    robots, worlds = motion.x.shape[1:]
    places = [(row * robots + vessel).mul_(worlds).add_(world) for vessel in vessels]
    ends = {"0": starts, "_closest": rows.at(closest)}
    bearings = {
        name: _bearings(motion, *(place[at] for place in places)) for name, at in ends.items()
    }
    heading = torch.rad2deg(motion.heading)
    until = rows.step <= rows.spread(closest)
    early = until & (rows.tcpa > V1.stage_4_s)
    sides = []
    for own, other in ((0, 1), (1, 0)):
        numbers = {"own": vessels[own][starts], "other": vessels[other][starts]}
        for name, angles in bearings.items():
            numbers |= {f"beta{name}": angles[own], f"alpha{name}": angles[other]}
        turned, sailed = _taken(heading, places[own]), _taken(speed, places[own])
        sides.append(common | numbers | _actions(rows, turned, sailed, until, early))
    return {name: torch.cat([side[name] for side in sides]) for name in sides[0]}


def _taken(field: Tensor, places: Tensor) -> Tensor:
    """Return the values of a field at flat places [N]; `Tensor.take` takes twice as long."""
    return field.reshape(-1).index_select(0, places)


class Rows(NamedTuple):
    """The N rows of all encounters, those of one after another.

    Attributes:
        step: [N] decisions since the reset.
        encounter: [N] its number.
        starts: [E] the first row of each.
        lengths: [E] how many each has.
        distance: [N] m.
        tcpa: [N] s.
    """

    step: Tensor
    encounter: Tensor
    starts: Tensor
    lengths: Tensor
    distance: Tensor
    tcpa: Tensor

    def reduce(self, values: Tensor, by: str) -> Tensor:
        """Return the "max" or "min" of the values [N] of each encounter [E]."""
        return torch.segment_reduce(values, by, lengths=self.lengths, unsafe=True)

    def spread(self, values: Tensor) -> Tensor:
        """Return values [E] of the encounters in their rows [N]."""
        return values.index_select(0, self.encounter)

    def first(self, among: Tensor) -> Tensor:
        """Return the first step of each encounter among [N] bool, infinite where there is none."""
        return self.reduce(torch.where(among, self.step, math.inf), "min")

    def at(self, step: Tensor) -> Tensor:
        """Return the row of each encounter [E] at its step [E]."""
        return self.starts + (step - self.step[self.starts]).long()


def _actions(rows: Rows, heading: Tensor, speed: Tensor, until: Tensor, early: Tensor) -> Columns:
    """Return what one vessel of each encounter did.

    Args:
        rows: of all encounters.
        heading: [N] of the vessel [deg].
        speed: [N] of the vessel [m/s].
        until: [N] bool, up to the closest decision.
        early: [N] bool, of those the ones while TCPA > 4 s.
    """
    turn = wrap180(heading - rows.spread(heading[rows.starts]))
    loss = 1.0 - speed / rows.spread(speed[rows.starts])

    # At the start both are 0, and so may be the rows that do not count.
    def extremes(among: Tensor) -> tuple[Tensor, Tensor]:
        counted = turn * among
        return rows.reduce(counted, "max"), rows.reduce(counted, "min")

    before, after = extremes(early), extremes(until & ~early)
    whole = torch.maximum(before[0], after[0]), torch.minimum(before[1], after[1])
    action = rows.first((turn.abs() >= V1.turn_noticed) | (loss >= V1.loss_noticed))
    acted = action.isfinite()
    at = rows.at(torch.where(acted, action, rows.step[rows.starts]))
    return {
        "turn": _larger(*whole),
        "loss": rows.reduce(loss * until, "max"),
        "early_turn": _larger(*before),
        "early_loss": rows.reduce(loss * early, "max"),
        "late_turn": _larger(*after),
        "action": torch.where(acted, action, NEVER),
        "action_distance": torch.where(acted, rows.distance[at], math.nan),
        "action_tcpa": torch.where(acted, rows.tcpa[at], math.nan),
    }


def _larger(right: Tensor, left: Tensor) -> Tensor:
    return torch.where(right >= -left, right, left)


def _bearings(motion: Motion, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bearing of either vessel from the other's course, [E] and [E].

    Args:
        motion: of all vessels.
        first: [E] place of the one vessel in the flat fields of the motion.
        second: [E] place of the other.
    """
    fields = motion.x, motion.y, motion.vx, motion.vy
    x, y, vx, vy = (_taken(field, first) for field in fields)
    x_2, y_2, vx_2, vy_2 = (_taken(field, second) for field in fields)
    dx, dy = x_2 - x, y_2 - y
    return bearing(vx, vy, dx, dy), bearing(vx_2, vy_2, -dx, -dy)
