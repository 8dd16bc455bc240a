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

from train_RL_agents.evaluation.colregs import AMB, GW, HO, classify
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
    north, east = motion.heading[0].cos(), motion.heading[0].sin()  # [R, W]
    found = []
    for first, second in ((pairs.first, pairs.second), (pairs.second, pairs.first)):
        dx, dy = (field[0][second] - field[0][first] for field in (motion.x, motion.y))
        beta = bearing(north[first], east[first], dx, dy)
        alpha = bearing(north[second], east[second], -dx, -dy)
        closing = dx * (north[second] - north[first]) + dy * (east[second] - east[first]) < 0.0
        kind = torch.where(pairs.both[0] & closing, classify(beta, alpha), AMB)  # [P, W]
        for index, passing in ((HO, _head_on), (GW, _crossing)):
            pair, world = (kind == index).nonzero(as_tuple=True)
            own, other = (_vessel(motion, robot[pair], world) for robot in (first, second))
            found.append(
                {
                    "world": world,
                    "own": first[pair],
                    "other": second[pair],
                    "class": torch.full_like(pair, index),
                    "gap": least[pair, world],
                    "side": passing(own, other, pairs.both[:, pair, world]),
                }
            )
    return {name: torch.cat([columns[name] for columns in found]) for name in found[0]}


class _Vessel(NamedTuple):
    """One vessel of each meeting: where it is, [T, M], and its planned course, [M]."""

    x: Tensor
    y: Tensor
    north: Tensor
    east: Tensor

    def along(self, other: _Vessel) -> Tensor:
        """Return how far another one is ahead, on the planned course [T, M] (m)."""
        return (other.x - self.x) * self.north + (other.y - self.y) * self.east

    def abeam(self, other: _Vessel) -> Tensor:
        """Return how far another one is to starboard of the planned course [T, M] (m)."""
        return (other.y - self.y) * self.north - (other.x - self.x) * self.east


def _vessel(motion: Motion, robot: Tensor, world: Tensor) -> _Vessel:
    x, y = (field[:, robot, world] for field in (motion.x, motion.y))
    course = motion.heading[0, robot, world]
    return _Vessel(x, y, course.cos(), course.sin())


def _head_on(own: _Vessel, other: _Vessel, both: Tensor) -> Tensor:
    """Return `PORT`, `STARBOARD` or `NOT_PASSED` [M]: where the other was when it came abeam."""
    return _passes(own.along(other), own.abeam(other), both).sign()


def _crossing(own: _Vessel, other: _Vessel, both: Tensor) -> Tensor:
    """Return `ASTERN`, `AHEAD` or `NOT_PASSED` [M]: where it came to the other's planned course."""
    ahead = other.along(own)
    crossed = _passes(-other.abeam(own), ahead, both).sign()
    # Who is abaft the other's beam at the last, and has not crossed, passes astern.
    return torch.where((crossed == 0) & (_last(ahead, both) < 0.0), float(ASTERN), crossed)


def _passes(way: Tensor, value: Tensor, both: Tensor) -> Tensor:
    """Return a value [M] where a way last falls from above 0; 0 where it does not end below.

    Args:
        way: [T, M] m.
        value: [T, M] m, interpolated between two rows.
        both: [T, M] bool, rows in which both vessels are present.
    """
    if len(way) < 2:  # nobody took a decision
        return torch.zeros_like(way[0])
    falls = (way[:-1] > 0.0) & (way[1:] <= 0.0) & both[1:]
    row = torch.arange(1, len(way), device=way.device).unsqueeze(1)
    last = (falls * row).amax(0, keepdim=True)
    after = last.clamp(min=1)
    way_0, way_1, value_0, value_1 = (
        field.gather(0, at)[0] for field in (way, value) for at in (after - 1, after)
    )
    share = way_0 / (way_0 - way_1).clamp(min=1e-9)
    there = value_0 + share * (value_1 - value_0)
    return torch.where((last[0] > 0) & (_last(way, both) <= 0.0), there, 0.0)


def _last(field: Tensor, both: Tensor) -> Tensor:
    """Return a field [T, M] in the last row in which both vessels are present."""
    return field.gather(0, (both.sum(0, keepdim=True) - 1).clamp(min=0))[0]
