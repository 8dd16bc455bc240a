"""What a robot-step must move and compute, and so the fastest that a GPU could do it.

Bytes: every number of the state that a step needs or changes, every action and every result,
counted once each way, as if the phases of a step were one and all caches perfect. Operations:
float32 and integer arithmetic of the core as one thread executes it, a fused multiply-add counting
once; address arithmetic, loads and stores are left out. Both are lower limits of the work, so the
bound is an upper limit of the rate.
"""

from __future__ import annotations

from typing import NamedTuple

from scripts.bench.machine import Peaks

NUMBER, FLAG, CONTINUOUS_ACTION = 4, 1, 8  # bytes

# Numbers of a robot that a step reads: pose 3, velocity through the water and over ground 6,
# thruster angles 2, thrusts 2, goal 2, sums over the episode 3, status, count of bad actions.
ROBOT_READ = 20
# and writes: pose 3, velocities 6, thrusts 2, progress, energy, phi, contact, sums 3, status, and
# that count.
ROBOT_WRITTEN = 20
OBSERVATION = 37
REWARD = 1
ROBOT_FLAGS = 4  # acted, terminated, truncated, alive
# Numbers of a world: episode, step, end, robot-steps read; step, end, robot-steps written.
WORLD_NUMBERS = 7
WORLD_FLAGS = 3
OBJECT_NUMBERS = 3  # of a buoy or a vortex

# Operations of a robot-step, by what they grow with.
MOTION = 1250  # ten substeps of 118 (sine and cosine 24, accelerations 57), thrusts, progress
LOOK = 550  # own frame 50, five COLREGs angles 405, five observed objects 50, judge 45
PER_OBJECT = 337  # Philox 80, five noise numbers 152, detection and contact 35, sorting in 70
PER_CORE = 140  # ten substeps of 14


class Work(NamedTuple):
    """Work of one robot-step."""

    bytes: float
    operations: float


def work_of_robot_step(robots: int, buoys: int, vortices: int) -> Work:
    """Count the work of one robot-step in a world of so many things, with sensor noise."""
    per_robot = NUMBER * (ROBOT_READ + ROBOT_WRITTEN + OBSERVATION + REWARD)
    per_robot += CONTINUOUS_ACTION + ROBOT_FLAGS * FLAG
    per_world = NUMBER * (WORLD_NUMBERS + OBJECT_NUMBERS * (buoys + vortices)) + WORLD_FLAGS * FLAG
    objects = robots - 1 + buoys
    operations = MOTION + LOOK + PER_OBJECT * objects + PER_CORE * vortices
    return Work(per_robot + per_world / robots, operations)


def bound_of(work: Work, peaks: Peaks) -> dict[str, float | None]:
    """Return the fastest possible rate [robot-steps/s] by memory, by arithmetic, and by both."""
    by_memory = peaks.bytes_per_s / work.bytes
    by_arithmetic = None
    if peaks.operations_per_s is not None:
        by_arithmetic = peaks.operations_per_s / work.operations
    return {
        "bytes_per_robot_step": work.bytes,
        "operations_per_robot_step": work.operations,
        "bound_by_memory": by_memory,
        "bound_by_arithmetic": by_arithmetic,
        "bound": by_memory if by_arithmetic is None else min(by_memory, by_arithmetic),
    }
