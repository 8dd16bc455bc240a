"""Meetings: on which side vessels pass whose planned courses cross or oppose each other.

An encounter (`encounters.py`) follows the courses that vessels take. It ends as soon as they draw
apart, and where they stop and start anew there is another. A meeting follows from the scenario
alone, once for a pair, and what comes of it is read from the tracks where one vessel passes the
other. Angles are in degrees, and the definitions those of docs/evaluation.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.colregs import GW, HO, classify
from train_RL_agents.evaluation.encounters import Columns
from train_RL_agents.evaluation.geometry import Pairs, bearing
from train_RL_agents.evaluation.motion import Motion

PORT = ASTERN = -1
"""The other was left to port; the own vessel passed astern of it."""
STARBOARD = AHEAD = 1
"""The other was left to starboard; the own vessel passed ahead of it."""
NOT_PASSED = 0


def find_meetings(motion: Motion, pairs: Pairs, hull_radius: float) -> Columns:
    """Return the head-on and give-way meetings as columns [M]; head-on each vessel has its own.

    A vessel's planned course is its heading in row 0.

    Args:
        motion: of the vessels, which head for their goals at first.
        pairs: of them.
        hull_radius: of every vessel [m].

    Returns:
        ``world``, ``own``, ``other``; ``class``, `HO` or `GW`; ``gap``, the least gap between hull
        circles [m]; ``side``, `PORT` or `STARBOARD` of a meeting head-on, `ASTERN` or `AHEAD` of a
        crossing one, `NOT_PASSED` if one vessel was gone before.
    """
    least = torch.where(pairs.both, pairs.passed, math.inf).amin(0).sqrt_() - 2.0 * hull_radius
    found = []
    for first, second in ((pairs.first, pairs.second), (pairs.second, pairs.first)):
        own, other = (_sides(motion, side) for side in (first, second))
        dx, dy = other.x - own.x, other.y - own.y  # [T, P, W]
        beta = bearing(own.north, own.east, dx[0], dy[0])
        alpha = bearing(other.north, other.east, -dx[0], -dy[0])
        kind = classify(beta, alpha)
        closing = dx[0] * (other.north - own.north) + dy[0] * (other.east - own.east) < 0.0
        met = pairs.both[0] & closing
        # Head-on: how far the other is ahead of the own vessel, and to starboard.
        ahead, right = own.along(dx, dy), own.abeam(dx, dy)
        port_or_starboard = _passes(ahead, right, pairs.both).sign()
        # Crossing: how far the own vessel is to port of the other's course, and ahead of it.
        left, before = -other.abeam(-dx, -dy), other.along(-dx, -dy)
        crossed = _passes(left, before, pairs.both).sign()
        # Who is abaft the other's beam at the last, and has not crossed, passes astern.
        abaft = _last(before, pairs.both) < 0.0
        astern_or_ahead = torch.where((crossed == 0) & abaft, float(ASTERN), crossed)
        for index, side in ((HO, port_or_starboard), (GW, astern_or_ahead)):
            pair, world = (met & (kind == index)).nonzero(as_tuple=True)
            found.append(
                {
                    "world": world,
                    "own": first[pair],
                    "other": second[pair],
                    "class": torch.full_like(pair, index),
                    "gap": least[pair, world],
                    "side": side[pair, world],
                }
            )
    return {name: torch.cat([columns[name] for columns in found]) for name in found[0]}


class _Sides(NamedTuple):
    """One vessel of each pair: where it is, [T, P, W], and its planned course, [P, W]."""

    x: Tensor
    y: Tensor
    north: Tensor
    east: Tensor

    def along(self, dx: Tensor, dy: Tensor) -> Tensor:
        """Return how far a place is ahead, on the planned course [m]."""
        return dx * self.north + dy * self.east

    def abeam(self, dx: Tensor, dy: Tensor) -> Tensor:
        """Return how far a place is to starboard of the planned course [m]."""
        return dy * self.north - dx * self.east


def _sides(motion: Motion, vessels: Tensor) -> _Sides:
    course = motion.heading[0].index_select(0, vessels)
    x, y = (field.index_select(1, vessels) for field in (motion.x, motion.y))
    return _Sides(x, y, course.cos(), course.sin())


def _passes(way: Tensor, value: Tensor, both: Tensor) -> Tensor:
    """Return a value [P, W] where a way last falls from above 0; 0 where it does not end below.

    Args:
        way: [T, P, W] m.
        value: [T, P, W] m, interpolated between two rows.
        both: [T, P, W] bool, rows in which both vessels are present.
    """
    falls = (way[:-1] > 0.0) & (way[1:] <= 0.0) & both[1:]
    row = torch.arange(1, len(way), device=way.device).view(-1, 1, 1)
    last = (falls * row).amax(0, keepdim=True)
    after = last.clamp(min=1)
    way_0, way_1, value_0, value_1 = (
        field.gather(0, at)[0] for field in (way, value) for at in (after - 1, after)
    )
    share = way_0 / (way_0 - way_1).clamp(min=1e-9)
    there = value_0 + share * (value_1 - value_0)
    return torch.where((last[0] > 0) & (_last(way, both) <= 0.0), there, 0.0)


def _last(field: Tensor, both: Tensor) -> Tensor:
    """Return a field [T, P, W] in the last row in which both vessels are present."""
    return field.gather(0, (both.sum(0, keepdim=True) - 1).clamp(min=0))[0]
