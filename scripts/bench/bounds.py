"""What a robot-step must move and compute, and so the fastest that a GPU could do it.

Bytes: every number of the state that a step needs or changes, every action and every result,
counted once each way, as if the phases of a step were one and all caches perfect. Operations:
float32 and integer arithmetic of the core as one thread executes it, a fused multiply-add counting
once; address arithmetic, loads and stores are left out. Both are lower limits of the work, so the
bound is an upper limit of the rate. A policy adds the products of its network, an update those of
its batch, at the rate of a matrix product: float32's for a policy as deployed, the fastest in
training.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from marinenav_env.envs.base import KernelEnv
from scripts.bench.case import Case
from scripts.bench.machine import Peaks
from scripts.bench.simulation import Simulation, chooser_of

BOOKS = ("stats", "outcome")
"""Tensors of the state that change at the end of an episode alone."""
FEW_WORLDS = 16
"""Of an environment whose tensors are counted."""

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
    """Work of one robot-step; operations are None where they were not counted."""

    bytes: float
    operations: float | None


def work_of_robot_step(robots: int, buoys: int, vortices: int) -> Work:
    """Count the work of one robot-step in a world of so many things, with sensor noise."""
    per_robot = NUMBER * (ROBOT_READ + ROBOT_WRITTEN + OBSERVATION + REWARD)
    per_robot += CONTINUOUS_ACTION + ROBOT_FLAGS * FLAG
    per_world = NUMBER * (WORLD_NUMBERS + OBJECT_NUMBERS * (buoys + vortices)) + WORLD_FLAGS * FLAG
    objects = robots - 1 + buoys
    operations = MOTION + LOOK + PER_OBJECT * objects + PER_CORE * vortices
    return Work(per_robot + per_world / robots, operations)


def tensors_of_robot_step(env: KernelEnv, turns: int) -> Work:
    """Count an environment's tensors: state both ways in a launch; action and results every time.

    A step of vessels leaves some of the state alone, so for them this is an estimate, not a limit.
    """
    both = (x for name, x in env.state.named().items() if name not in BOOKS)
    out = env.make_buffers()
    once = (env.make_action(), *out.frame_list, *out.result_list)
    counted = 2 * sum(x.nbytes for x in both) / turns + sum(x.nbytes for x in once)
    return Work(counted / (env.worlds * env.robots), None)


def work_of(case: Case) -> Work:
    """Count the work of one robot-step of a case."""
    env = Simulation(dataclasses.replace(case, worlds=FEW_WORLDS, shield=None, turns=1)).env
    if case.task == "marine" and env.stack_k == 1:
        return work_of_robot_step(case.robots, case.buoys, case.vortices)
    return tensors_of_robot_step(env, case.turns)


def products_of(case: Case, row: Mapping[str, Any]) -> float:
    """Count the operations of matrix products that a robot-step of a case takes.

    Args:
        case: what was measured.
        row: of it; that of a training says what an update and its batch take.
    """
    few = dataclasses.replace(case, worlds=FEW_WORLDS, shield=None)
    chooser = chooser_of(few)
    if chooser is None:
        return 0.0
    simulation = Simulation(dataclasses.replace(few, mode="inference"))
    simulation.place()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        chooser.act(simulation.observed)
    acting = counter.get_total_flops() / (FEW_WORLDS * case.robots)
    if case.mode != "train":
        return acting
    return acting + row["flops_per_update"] / case.batch_size * row["samples_per_insert"]


def product_rate_of(case: Case, rates: Mapping[str, float]) -> float:
    """Return the rate [FLOP/s] of a case's matrix products, out of those of number formats.

    A policy as deployed multiplies in float32. In training the fastest format counts.
    """
    return max(rates.values()) if case.mode == "train" else rates["float32"]


def bound_of(
    work: Work, peaks: Peaks, products: float = 0.0, product_rate: float = 1.0
) -> dict[str, float | None]:
    """Return the fastest possible rate [robot-steps/s] by memory, by arithmetic, and by all.

    Args:
        work: of the simulator.
        peaks: of the device.
        products: operations of matrix products in a robot-step, which come on top.
        product_rate: of these a second.
    """
    by_memory = peaks.bytes_per_s / work.bytes
    by_arithmetic = None
    if peaks.operations_per_s is not None and work.operations is not None:
        by_arithmetic = peaks.operations_per_s / work.operations
    simulated = by_memory if by_arithmetic is None else min(by_memory, by_arithmetic)
    return {
        "bytes_per_robot_step": work.bytes,
        "operations_per_robot_step": work.operations,
        "bound_by_memory": by_memory,
        "bound_by_arithmetic": by_arithmetic,
        "products_per_robot_step": products,
        "bound": 1.0 / (1.0 / simulated + products / product_rate),
    }
