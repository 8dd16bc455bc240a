"""What happened to the vessels of evaluated episodes: separations, ways, encounters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.encounters import Columns, find_encounters
from train_RL_agents.evaluation.geometry import Pairs, least_squared_distance, length, pairs_of
from train_RL_agents.evaluation.meetings import find_meetings
from train_RL_agents.evaluation.motion import Motion, sizes_of
from train_RL_agents.evaluation.score import V1

CHUNK = 600_000
"""Decisions times pairs, of vessels or of vessels and buoys, that are looked at together."""


class Measures(NamedTuple):
    """What happened in W episodes.

    Attributes:
        worlds: W.
        vessels: columns [N] of the vessel-episodes: ``world``, ``robot``, ``gap_vessel`` and
            ``gap_buoy`` (least gap between hull circles, m, infinite when alone), ``end_vessel``
            and ``end_buoy`` (the same at its end), ``near_vessel`` and ``near_buoy`` (how many came
            nearer than a near miss, without contact), ``path`` (m), ``direct`` (m, straight from
            start to end), ``time`` (s), ``sternway`` (s of it moving astern), and what `measure`
            was given.
        encounters: columns [E] of `encounters.find_encounters`.
        meetings: columns [M] of `meetings.find_meetings`.
        hull_radius: m.
        decision_time: s.
    """

    worlds: int
    vessels: Columns
    encounters: Columns
    meetings: Columns
    hull_radius: float
    decision_time: float

    def of_worlds(self, worlds: Tensor) -> Measures:
        """Return the measures of the worlds [W] bool, numbered anew."""
        number = worlds.cumsum(0) - 1

        def chosen(columns: Columns) -> Columns:
            part = _rows(columns, worlds[columns["world"]].nonzero().squeeze(1))
            return part | {"world": number[part["world"]]}

        return self._replace(
            worlds=int(worlds.sum()),
            vessels=chosen(self.vessels),
            encounters=chosen(self.encounters),
            meetings=chosen(self.meetings),
        )

    def reordered(self, order: Tensor) -> Measures:
        """Return the measures with world ``order[i]`` as world i; ``order`` is [W]."""
        number = order.argsort()

        def renumbered(columns: Columns) -> Columns:
            world = number[columns["world"]]
            return _rows(columns | {"world": world}, world.argsort(stable=True))

        return self._replace(
            vessels=renumbered(self.vessels),
            encounters=renumbered(self.encounters),
            meetings=renumbered(self.meetings),
        )

    def of_robots(self, robots: Tensor) -> Measures:
        """Return the measures of the robots [R, W] bool, which meet the others as before."""

        def chosen(columns: Columns, robot: Tensor) -> Columns:
            return _rows(columns, robots[robot.long(), columns["world"]].nonzero().squeeze(1))

        return self._replace(
            vessels=chosen(self.vessels, self.vessels["robot"]),
            encounters=chosen(self.encounters, self.encounters["own"]),
            meetings=chosen(self.meetings, self.meetings["own"]),
        )


def _rows(columns: Columns, rows: Tensor) -> Columns:
    return {name: column.index_select(0, rows) for name, column in columns.items()}


def measure(
    groups: Iterable[tuple[Tensor, Motion]],
    buoys: Tensor,
    *,
    hull_radius: float,
    decision_time: float,
    **vessels: Tensor,
) -> Measures:
    """Measure episodes on the device they lie on; the results are on the host.

    Args:
        groups: worlds and their motion, as `MotionLog.read` yields them; each world once.
        buoys: [3, B, W] x, y, radius [m]; radius 0 is an empty slot.
        hull_radius: of every vessel [m].
        decision_time: between two rows of a motion [s].
        **vessels: [R, W] further columns of `Measures.vessels`.
    """
    measured = []
    for group, whole in groups:
        for worlds, motion, there in _chunks(group, whole, buoys):
            pairs = pairs_of(motion)
            rows = measure_vessels(motion, pairs, there, hull_radius, decision_time)
            robot, world = motion.present[0].nonzero(as_tuple=True)
            rows |= {name: field.index_select(-1, worlds) for name, field in vessels.items()}
            table = {name: row[robot, world] for name, row in rows.items()}
            found = (find(motion, pairs, hull_radius) for find in (find_encounters, find_meetings))
            between = [{**columns, "world": worlds[columns["world"]]} for columns in found]
            measured.append(({"world": worlds[world], "robot": robot, **table}, *between))
    own, encounters, meetings = (_to_host(columns) for columns in zip(*measured, strict=True))
    return Measures(
        buoys.shape[-1],
        own,
        encounters,
        meetings,
        hull_radius=hull_radius,
        decision_time=decision_time,
    )


def _chunks(group: Tensor, whole: Motion, buoys: Tensor) -> Iterator[tuple[Tensor, Motion, Tensor]]:
    """Yield worlds of a group, their motion and buoys, without what none of them has.

    The last rows, vessels and buoys of the fullest world are the last ones.

    Args:
        group: [N] the worlds.
        whole: their motion.
        buoys: [3, B, W] of all worlds.
    """
    rows, robots = whole.present.shape[:2]
    slots = buoys.shape[1]
    step = max(CHUNK // (rows * max(robots * (robots - 1) // 2, robots * slots, 1)), 1)
    there = buoys[2].index_select(-1, group) > 0.0
    sizes = sizes_of(whole.present[0], there, whole.present.any(1))
    for start in range(0, len(group), step):
        chosen = slice(start, start + step)
        robots, slots, rows = sizes[:, chosen].amax(1).clamp(min=1).tolist()
        motion = Motion(*(field[:rows, :robots, chosen].contiguous() for field in whole))
        yield group[chosen], motion, buoys[:, :slots].index_select(-1, group[chosen])


def _to_host(parts: tuple[Columns, ...]) -> Columns:
    """Return parts of columns as whole ones on the host, in float64, in the order of worlds."""
    whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    columns = _rows(whole, whole["world"].argsort(stable=True))
    packed = torch.stack([column.double() for column in columns.values()]).cpu()
    table = dict(zip(columns, packed, strict=True))
    return table | {"world": table["world"].long()}


def measure_vessels(
    motion: Motion,
    pairs: Pairs,
    buoys: Tensor,
    hull_radius: float,
    decision_time: float,
) -> Columns:
    """Return the columns [R, W] of `Measures.vessels` that follow from the motion."""
    present = motion.present
    last_row = (present.sum(0) - 1).clamp(min=0)
    sailed = torch.hypot(motion.x.diff(dim=0), motion.y.diff(dim=0))
    ways = (_at(field, last_row) - field[0] for field in (motion.x, motion.y))
    surge = torch.addcmul(motion.vx * motion.heading.cos(), motion.vy, motion.heading.sin())
    astern = present[1:] & (surge[1:] < -V1.sternway)
    return {
        **_among_vessels(pairs, last_row, hull_radius),
        **_among_buoys(motion, buoys, last_row, hull_radius),
        "path": torch.where(present[1:], sailed, 0.0).sum(0),
        "direct": torch.hypot(*ways),
        "time": last_row * decision_time,
        "sternway": astern.sum(0) * decision_time,
    }


def _among_vessels(pairs: Pairs, last_row: Tensor, hull_radius: float) -> Columns:
    least = torch.where(pairs.both, pairs.passed, math.inf).amin(0).sqrt_()
    ends = [
        torch.where(_at(pairs.both, row), _at(pairs.approach.distance, row), math.inf)
        for row in (last_row[pairs.first], last_row[pairs.second])
    ]
    # Rounding leaves no gap larger than that at an end.
    gap = torch.minimum(least, torch.minimum(*ends)) - 2.0 * hull_radius
    end = torch.cat(ends) - 2.0 * hull_radius
    near = V1.near_misses(gap, "vessel")
    sides = torch.cat((pairs.first, pairs.second)).unsqueeze(1).expand_as(end)
    alone = gap.new_full(last_row.shape, math.inf)
    return {
        "gap_vessel": alone.scatter_reduce(0, sides, torch.cat((gap, gap)), "amin"),
        "end_vessel": alone.scatter_reduce(0, sides, end, "amin"),
        "near_vessel": torch.zeros_like(alone).scatter_add_(
            0, sides, torch.cat((near, near)).to(alone)
        ),
    }


def _among_buoys(motion: Motion, buoys: Tensor, last_row: Tensor, hull_radius: float) -> Columns:
    alone = motion.x.new_full(last_row.shape, math.inf)
    worlds = (buoys[2] > 0.0).any(0).nonzero().squeeze(1)
    if not len(worlds):
        return {"gap_buoy": alone, "end_buoy": alone, "near_buoy": torch.zeros_like(alone)}
    if len(worlds) < buoys.shape[-1]:
        motion, last_row = motion.of_worlds(worlds), last_row.index_select(1, worlds)
    x, y, radius = buoys.index_select(-1, worlds)
    there, reach = radius > 0.0, radius + hull_radius
    dx, dy = x - motion.x.unsqueeze(2), y - motion.y.unsqueeze(2)  # [T, R, B, W]
    ways = (-field.diff(dim=0).unsqueeze(2) for field in (motion.x, motion.y))
    passed = least_squared_distance(dx[:-1], dy[:-1], *ways)
    passed = torch.where(motion.present[1:].unsqueeze(2), passed, math.inf)
    first = torch.where(motion.present[0].unsqueeze(1), dx[0] ** 2 + dy[0] ** 2, math.inf)
    least = torch.cat((first.unsqueeze(0), passed)).amin(0).sqrt_()
    last = last_row.unsqueeze(1).expand_as(least)
    end = length(_at(dx, last), _at(dy, last))
    end = torch.where(_at(motion.present, last_row).unsqueeze(1), end, math.inf)
    gap, end = (
        torch.where(there, distance - reach, math.inf)
        for distance in (torch.minimum(least, end), end)
    )
    near = V1.near_misses(gap, "buoy")
    return {
        "gap_buoy": alone.index_copy(1, worlds, gap.amin(1)),
        "end_buoy": alone.index_copy(1, worlds, end.amin(1)),
        "near_buoy": torch.zeros_like(alone).index_copy(1, worlds, near.sum(1).to(alone)),
    }


def _at(field: Tensor, row: Tensor) -> Tensor:
    """Return the values [...] of a field [T, ...] in the rows [...]."""
    return field.gather(0, row.unsqueeze(0)).squeeze(0)
