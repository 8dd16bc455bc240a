"""The monitor: follows all vessels through their episodes and measures on the device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.encounters import (
    REGISTERS,
    SLOTS,
    EncounterRegisters,
    Pairs,
    least_distance,
    pairs_of,
)
from train_RL_agents.evaluation.motion import Motion
from train_RL_agents.evaluation.score import V1, Score


class Measures(NamedTuple):
    """What happened in W episodes, on the host.

    Attributes:
        worlds: W.
        vessels: columns [N] of all vessel-episodes: ``world``, ``robot``, ``gap_vessel`` and
            ``gap_buoy`` (least gap between hull circles, m, infinite when alone), ``end_vessel``
            and ``end_buoy`` (the same at the end), ``near_vessel`` and ``near_buoy`` (how many
            came nearer than a near miss without contact), ``path`` (m), ``direct`` (m, straight
            from its start to its end), ``time`` (s), and what `Monitor.finish` was given.
        encounters: columns [E] of all closed encounters: ``world``, ``own``, ``other``, ``slot``,
            the registers of `encounters.REGISTERS`, ``alpha0`` and ``alpha_closest``.
        dropped: encounters of a pair beyond `encounters.SLOTS`.
        hull_radius: m.
        decision_time: s.
    """

    worlds: int
    vessels: dict[str, Tensor]
    encounters: dict[str, Tensor]
    dropped: int
    hull_radius: float
    decision_time: float

    def of_worlds(self, worlds: Tensor) -> Measures:
        """Return the measures of the worlds [W] bool, numbered anew."""
        number = worlds.cumsum(0) - 1

        def chosen(columns: dict[str, Tensor]) -> dict[str, Tensor]:
            kept = worlds[columns["world"]]
            part = {name: column[kept] for name, column in columns.items()}
            return part | {"world": number[part["world"]]}

        return self._replace(
            worlds=int(worlds.sum()),
            vessels=chosen(self.vessels),
            encounters=chosen(self.encounters),
        )


class Monitor:
    """Measures separations and encounters of W worlds from their motion alone.

    Args:
        motion: after the reset, of all worlds.
        buoys: [3, B, W] x, y, radius [m]; radius 0 is an empty slot.
        hull_radius: of every vessel [m].
        decision_time: between two motions [s].
        score: the constants.
    """

    def __init__(
        self,
        motion: Motion,
        buoys: Tensor,
        *,
        hull_radius: float,
        decision_time: float,
        score: Score = V1,
    ) -> None:
        self.score, self.hull_radius, self.decision_time = score, hull_radius, decision_time
        self.start, self.step = motion, 0
        robots, worlds = motion.x.shape
        x = motion.x
        self.buoys = buoys.unsqueeze(1)
        self.encounters = EncounterRegisters(
            robots, worlds, hull_radius=hull_radius, like=x, score=score
        )
        self.least_vessel = x.new_full((robots, robots, worlds), math.inf)
        self.least_buoy = x.new_full((robots, *buoys.shape[1:]), math.inf)
        self.end_vessel, self.end_buoy = (x.new_full(x.shape, math.inf) for _ in range(2))
        self.path, self.decisions = torch.zeros_like(x), torch.zeros_like(x)
        self.before, self.pairs = motion, pairs_of(motion, score)
        self._measure(motion, motion, self.pairs)

    def update(self, motion: Motion) -> None:
        """Take up the motion after the next decision."""
        self.step += 1
        self._measure(self.before, motion, pairs_of(motion, self.score))

    def _measure(self, before: Motion, motion: Motion, pairs: Pairs) -> None:
        passed = least_distance(self.pairs.dx, self.pairs.dy, pairs.dx, pairs.dy)
        self.encounters.update(self.step, motion, pairs, passed)
        gap = torch.where(pairs.both, passed - 2.0 * self.hull_radius, math.inf)
        torch.minimum(self.least_vessel, gap, out=self.least_vessel)
        here = torch.where(pairs.both, pairs.approach.distance, math.inf).amin(1)
        present = motion.present
        self.end_vessel = torch.where(present, here - 2.0 * self.hull_radius, self.end_vessel)
        self._measure_buoys(before, motion)
        sailed = torch.hypot(motion.x - before.x, motion.y - before.y)
        self.path += torch.where(present, sailed, 0.0)
        self.decisions += present
        self.before, self.pairs = motion, pairs

    def _measure_buoys(self, before: Motion, motion: Motion) -> None:
        x, y, radius = self.buoys
        if not radius.numel():
            return
        there = (radius > 0.0) & motion.present.unsqueeze(1)
        old = x - before.x.unsqueeze(1), y - before.y.unsqueeze(1)
        new = x - motion.x.unsqueeze(1), y - motion.y.unsqueeze(1)
        reach = radius + self.hull_radius
        gap = torch.where(there, least_distance(*old, *new) - reach, math.inf)
        torch.minimum(self.least_buoy, gap, out=self.least_buoy)
        here = torch.where(there, torch.hypot(*new) - reach, math.inf).amin(1)
        self.end_buoy = torch.where(motion.present, here, self.end_buoy)

    def finish(self, **vessels: Tensor) -> Measures:
        """Close the books: the one read of the device.

        Args:
            **vessels: [R, W] further columns of `Measures.vessels`.
        """
        self.encounters.finish()
        score = self.score

        def near(gap: Tensor, limit: float) -> Tensor:
            return ((gap > 0.0) & (gap <= limit * score.length_m)).sum(1)

        last = self.before
        columns = {
            "gap_vessel": self.least_vessel.amin(1),
            "gap_buoy": _least(self.least_buoy),
            "end_vessel": self.end_vessel,
            "end_buoy": self.end_buoy,
            "near_vessel": near(self.least_vessel, score.near_miss),
            "near_buoy": near(self.least_buoy, score.near_miss_buoy),
            "path": self.path,
            "direct": torch.hypot(last.x - self.start.x, last.y - self.start.y),
            "time": (self.decisions - 1.0) * self.decision_time,
            **vessels,
        }
        packed = torch.stack([column.double() for column in columns.values()]).cpu()
        robot, world = self.start.present.cpu().nonzero(as_tuple=True)
        table = {name: row[robot, world] for name, row in zip(columns, packed, strict=True)}
        count = self.encounters.count.cpu()
        return Measures(
            worlds=last.x.shape[1],
            vessels={"world": world, "robot": robot, **table},
            encounters=_encounters(self.encounters.table[:SLOTS].cpu().double(), count),
            dropped=int((count - SLOTS).clamp(min=0).sum()),
            hull_radius=self.hull_radius,
            decision_time=self.decision_time,
        )


def _least(gaps: Tensor) -> Tensor:
    """Return the least of [R, B, W] over B, infinite where B is 0."""
    none = gaps.new_full((gaps.shape[0], 1, gaps.shape[2]), math.inf)
    return torch.cat((gaps, none), 1).amin(1)


def _encounters(table: Tensor, count: Tensor) -> dict[str, Tensor]:
    """Return the columns of the closed encounters in slots [K, F, R, R, W]."""
    slots = torch.arange(len(table)).view(-1, 1, 1, 1)
    slot, own, other, world = (slots < count).nonzero(as_tuple=True)
    columns = dict(zip(REGISTERS, table[slot, :, own, other, world].T, strict=True))
    mirrored = table[slot, :, other, own, world].T
    for alpha, beta in (("alpha0", "beta0"), ("alpha_closest", "beta_closest")):
        columns[alpha] = mirrored[REGISTERS.index(beta)]
    return {"world": world, "own": own, "other": other, "slot": slot, **columns}


def measure(
    motions: Iterable[Motion], buoys: Tensor, *, hull_radius: float, decision_time: float
) -> Measures:
    """Return the measures of recorded motions, the one after the reset first."""
    motions = iter(motions)
    scales = {"hull_radius": hull_radius, "decision_time": decision_time}
    monitor = Monitor(next(motions), buoys, **scales)
    for motion in motions:
        monitor.update(motion)
    return monitor.finish()
