"""Measures one row of the benchmark: the simulator alone, or with a policy.

A row is measured after a warm-up, in several repeats, whose median counts. Robot-steps are those of
active robots only, as the simulator itself counts them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch

from scripts.bench.case import Case, Effort, describe
from scripts.bench.machine import Memory, release_memory
from scripts.bench.simulation import NO_RESET_DECISIONS, Repeat, Simulation
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS


def measure_simulator(case: Case, effort: Effort) -> dict[str, Any]:
    """Return the row of a `step` or `inference` case."""
    release_memory(case.device)
    simulation = Simulation(case)
    decisions = warm_up(simulation, effort)
    before = Memory.now(case.device)
    repeats = [simulation.repeat(decisions) for _ in range(effort.repeats)]
    after = Memory.now(case.device)
    acted = sum(repeat.robot_steps for repeat in repeats)
    possible = case.worlds * case.robots * decisions * effort.repeats
    return {
        **row_of(case, repeats, before, after),
        "active_fraction": acted / possible,
        "decisions_per_repeat": decisions,
    }


def warm_up(simulation: Simulation, effort: Effort) -> int:
    """Place the worlds, capture and fill what is allocated lazily; return a repeat's decisions."""
    cycle = simulation.cycle
    simulation.place()
    simulation.run(cycle * (WARM_UP_CALLS + 1))
    seconds = simulation.repeat(cycle).seconds / cycle
    fitting = max(1, round(effort.seconds / seconds / cycle)) * cycle
    if simulation.case.resets == "none":
        return min(fitting, NO_RESET_DECISIONS)
    simulation.run(fitting)
    return fitting


def row_of(case: Case, repeats: Sequence[Repeat], before: Memory, after: Memory) -> dict[str, Any]:
    """Return what every row holds; the rates are medians over the repeats."""
    rates = [repeat.robot_steps / repeat.seconds for repeat in repeats]
    worlds = [case.worlds * repeat.decisions / repeat.seconds for repeat in repeats]
    return {
        **describe(case),
        "robot_steps_per_s": statistics.median(rates),
        "world_steps_per_s": statistics.median(worlds),
        "robot_steps_per_cpu_s": statistics.median(
            repeat.robot_steps / repeat.cpu_seconds for repeat in repeats
        ),
        "samples_per_insert": None,
        "memory_bytes": before.held,
        "memory_growth_bytes": after.growth_since(before),
        "slowest_repeat_robot_steps_per_s": min(rates),
        "fastest_repeat_robot_steps_per_s": max(rates),
        "repeats": len(rates),
    }


def compare_reset_skipping(device: torch.device, worlds: int, effort: Effort) -> dict[str, Any]:
    """Time a decision and its natural resets with `skip_reset_if_empty` and without, in turn."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    cases = {skip: Case("step", device, worlds, skip_reset_if_empty=skip) for skip in seconds}
    simulations = {skip: Simulation(case) for skip, case in cases.items()}
    lengths = [warm_up(simulation, effort) for simulation in simulations.values()]
    for _ in range(effort.repeats):
        for skip, simulation in simulations.items():
            seconds[skip].append(simulation.repeat(min(lengths)).seconds / min(lengths))
    skipping, launching = statistics.median(seconds[True]), statistics.median(seconds[False])
    return {
        "device": device.type,
        "worlds": worlds,
        "skipping_decision_s": skipping,
        "always_launching_decision_s": launching,
        "skipping_over_launching": skipping / launching,
    }
