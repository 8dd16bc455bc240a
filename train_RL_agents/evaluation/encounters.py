"""Encounters of pairs of vessels: when they open and close, and what happens in between.

Everything is batched over pairs and worlds, on one device, without a host read. A pair's fields
have the shape [R own, R other, W]. The definitions are those of docs/evaluation.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.evaluation.motion import Motion
from train_RL_agents.evaluation.score import V1, Score

SLOTS = 4
"""Encounters of one pair in an episode that are kept; later ones are counted as dropped."""
NEVER = -1.0
"""The decision of an action that never came."""


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
    closing = dvx * dvx + dvy * dvy
    moving = closing > score.least_relative_speed**2
    tcpa = -(dx * dvx + dy * dvy) / torch.where(moving, closing, 1.0)
    tcpa = torch.where(moving, tcpa, 0.0)
    ahead = tcpa.clamp(min=0.0)
    return Approach(torch.hypot(dx, dy), tcpa, torch.hypot(dx + ahead * dvx, dy + ahead * dvy))


def least_distance(dx0: Tensor, dy0: Tensor, dx1: Tensor, dy1: Tensor) -> Tensor:
    """Return the least distance while a relative position moves straight from (0) to (1) [m]."""
    ex, ey = dx1 - dx0, dy1 - dy0
    share = -(dx0 * ex + dy0 * ey) / (ex * ex + ey * ey).clamp(min=1e-12)
    share = share.clamp(0.0, 1.0)
    return torch.hypot(dx0 + share * ex, dy0 + share * ey)


def wrap180(angle: Tensor) -> Tensor:
    """Return an angle in degrees in [-180, 180)."""
    return torch.remainder(angle + 180.0, 360.0) - 180.0


class Pairs(NamedTuple):
    """Geometry of all pairs at one instant, each field [R own, R other, W].

    Attributes:
        dx: position of the other minus own, north [m].
        dy: the same, east.
        approach: the closest point of approach.
        bearing: of the other from the own course, beta, to starboard [deg].
        both: bool, two different vessels, both under way.
    """

    dx: Tensor
    dy: Tensor
    approach: Approach
    bearing: Tensor
    both: Tensor


def pairs_of(motion: Motion, score: Score = V1) -> Pairs:
    """Return the geometry of all pairs."""
    dx, dy, dvx, dvy = (
        field.unsqueeze(0) - field.unsqueeze(1)
        for field in (motion.x, motion.y, motion.vx, motion.vy)
    )
    vx, vy = motion.vx.unsqueeze(1), motion.vy.unsqueeze(1)
    bearing = torch.rad2deg(torch.atan2(vx * dy - vy * dx, vx * dx + vy * dy))
    other = ~torch.eye(len(motion.x), dtype=torch.bool, device=dx.device).unsqueeze(-1)
    both = motion.present.unsqueeze(0) & motion.present.unsqueeze(1) & other
    return Pairs(dx, dy, closest_approach(dx, dy, dvx, dvy, score), bearing, both)


START = ("start", "beta0", "distance0", "tcpa0", "heading0", "speed0")
MANOEUVRE = ("turn", "loss", "early_turn", "early_loss", "late_turn")
ACTION = ("action", "action_distance", "action_tcpa")
CLOSEST = ("closest_distance", "closest", "beta_closest")
REGISTERS = (
    *START,
    *ACTION,
    *CLOSEST,
    *(f"{name}_to_closest" for name in MANOEUVRE),
    "least_distance",
    "end",
)
"""What a row of a closed encounter holds; decisions are counted from the reset."""


class EncounterRegisters:
    """Follows the encounters of all pairs, decision by decision.

    Args:
        robots: R.
        worlds: W.
        hull_radius: of every vessel [m].
        like: gives device and dtype.
        score: the constants.
    """

    def __init__(
        self, robots: int, worlds: int, *, hull_radius: float, like: Tensor, score: Score = V1
    ) -> None:
        self.score, self.hull_radius = score, hull_radius
        shape = (robots, robots, worlds)
        self.rows = like.new_zeros(len(REGISTERS), *shape)
        self.running = like.new_zeros(len(MANOEUVRE), *shape)
        self.open = torch.zeros(shape, dtype=torch.bool, device=like.device)
        self.receding = torch.zeros_like(self.open)
        self.count = torch.zeros(shape, dtype=torch.int64, device=like.device)
        self.table = like.new_zeros(SLOTS + 1, len(REGISTERS), *shape)

    def update(self, step: int, motion: Motion, pairs: Pairs, passed: Tensor) -> None:
        """Take up the motion after a decision.

        Args:
            step: number of decisions taken.
            motion: then.
            pairs: of the motion.
            passed: [R, R, W] least distance since the decision before [m].
        """
        gone = self.open & ~pairs.both
        self.open &= pairs.both
        opening = self._opening(motion, pairs)
        self._start(step, opening, motion, pairs)
        passed = torch.where(opening, pairs.approach.distance, passed)
        self.open |= opening
        self._follow(step, motion, pairs, passed)
        receding = self.open & (pairs.approach.tcpa < 0.0)
        limit = self.score.detection_range_m + self.hull_radius
        far = pairs.approach.distance > self.score.release_ratio * limit
        closing = gone | (self.open & ((receding & self.receding) | far))
        self.receding = receding
        self._store(closing)
        self.open &= ~closing

    def finish(self) -> None:
        """Close what is open, at the end of the episodes."""
        self._store(self.open)
        self.open = torch.zeros_like(self.open)

    def _opening(self, motion: Motion, pairs: Pairs) -> Tensor:
        score, approach = self.score, pairs.approach
        fast = torch.hypot(motion.vx, motion.vy) >= score.min_speed
        gap = approach.dcpa - 2.0 * self.hull_radius
        return (
            ~self.open
            & pairs.both
            & (approach.distance <= score.detection_range_m + self.hull_radius)
            & (approach.tcpa > 0.0)
            & (approach.tcpa <= score.horizon_s)
            & (gap <= score.separation_gaps[-1] * score.length_m)
            & fast.unsqueeze(0)
            & fast.unsqueeze(1)
        )

    def _start(self, step: int, opening: Tensor, motion: Motion, pairs: Pairs) -> None:
        speed = torch.hypot(motion.vx, motion.vy).unsqueeze(1)
        heading = torch.rad2deg(motion.heading).unsqueeze(1)
        approach = pairs.approach
        values = (step, pairs.bearing, approach.distance, approach.tcpa, heading, speed)
        for name, value in zip(START, values, strict=True):
            self._latch(name, opening, value)
        self._latch("action", opening, NEVER)
        self._latch("closest_distance", opening, math.inf)
        self._latch("least_distance", opening, math.inf)
        self.running.masked_fill_(opening, 0.0)
        self.receding &= ~opening

    def _follow(self, step: int, motion: Motion, pairs: Pairs, passed: Tensor) -> None:
        score, approach = self.score, pairs.approach
        turn = wrap180(torch.rad2deg(motion.heading).unsqueeze(1) - self.row("heading0"))
        speed = torch.hypot(motion.vx, motion.vy).unsqueeze(1)
        loss = 1.0 - speed / self.row("speed0").clamp(min=score.min_speed)
        early = approach.tcpa > score.stage_4_s
        most, most_loss, early_turn, early_loss, late_turn = self.running
        for register, among in ((most, None), (early_turn, early), (late_turn, ~early)):
            larger = turn.abs() > register.abs()
            larger = larger if among is None else larger & among
            register.copy_(torch.where(larger, turn, register))
        torch.maximum(most_loss, loss, out=most_loss)
        early_loss.copy_(torch.where(early, torch.maximum(early_loss, loss), early_loss))

        acts = (turn.abs() >= score.turn_noticed) | (loss >= score.loss_noticed)
        first = self.open & acts & (self.row("action") == NEVER)
        for name, value in zip(ACTION, (step, approach.distance, approach.tcpa), strict=True):
            self._latch(name, first, value)

        closer = self.open & (approach.distance < self.row("closest_distance"))
        for name, value in zip(CLOSEST, (approach.distance, step, pairs.bearing), strict=True):
            self._latch(name, closer, value)
        for name, value in zip(MANOEUVRE, self.running, strict=True):
            self._latch(f"{name}_to_closest", closer, value)
        least = self.row("least_distance")
        self._latch("least_distance", self.open, torch.minimum(least, passed))
        self._latch("end", self.open, step)

    def row(self, name: str) -> Tensor:
        """View [R, R, W] of a register."""
        return self.rows[REGISTERS.index(name)]

    def _latch(self, name: str, where: Tensor, value: Tensor | float) -> None:
        row = self.row(name)
        row.copy_(torch.where(where, value, row))

    def _store(self, closing: Tensor) -> None:
        """Write the rows of closing encounters; all others go to the slot after the last."""
        slot = torch.where(closing, self.count.clamp(max=SLOTS), SLOTS)
        index = slot.expand(1, len(REGISTERS), *slot.shape)
        self.table.scatter_(0, index, self.rows.unsqueeze(0))
        self.count += closing
