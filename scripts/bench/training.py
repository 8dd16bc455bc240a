"""Measures one row of the benchmark with training: the trainer's own iteration, any agent."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from scripts.bench.case import Case, Effort
from scripts.bench.machine import Laps, Memory, format_name, release_memory, timed
from scripts.bench.modes import row_of
from scripts.bench.simulation import Repeat, stagger
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS
from train_RL_agents.training.replay_learner import UPDATES_IN_A_GRAPH, ReplayLearner
from train_RL_agents.training.trainer import TorchRLTrainer

# Rows of the replay: few enough to fill it before measuring, so that it does not grow.
FEWEST_ROWS, MOST_ROWS = 8, 512
LOG_EVERY, TRIAL = 100, 10  # iterations
NEVER = 10**12  # steps


class Lap(NamedTuple):
    """One iteration of a training."""

    seconds: float
    updates: int


class Training:
    """The trainer's own iteration: collection, replay, updates, and the log now and then."""

    def __init__(self, case: Case, folder: Path) -> None:
        """Build a trainer; nothing is placed yet."""
        self.device = case.device
        self.trainer = TorchRLTrainer(training_config(case), folder, case.device)

    @classmethod
    @contextmanager
    def running(cls, case: Case) -> Iterator[Training]:
        """Give a training whose replay is full and whose graphs are captured."""
        with tempfile.TemporaryDirectory() as folder:
            training = cls(case, Path(folder))
            with training.trainer.records():
                training.trainer.start()
                stagger(training.trainer.learner.env)
                while training.trainer.counters.updates <= WARM_UP_CALLS + 1:
                    training.iterate()
                if case.device.type == "cuda":
                    training.capture()
                yield training

    def capture(self) -> None:
        """Capture the graphs of the numbers of updates that come: up to those of all robots."""
        config, env = self.trainer.config, self.trainer.learner.env
        samples = config.updates.samples_per_insert * env.worlds * env.robots
        most = math.ceil(samples / config.updates.batch_size)
        for updates in range(1, min(most, UPDATES_IN_A_GRAPH) + 1):
            for _ in range(WARM_UP_CALLS + 1):
                self.trainer.learner.learn(updates)

    def iterate(self) -> int:
        """Do one iteration, and log when it is time, as `TorchRLTrainer.train` does.

        Returns:
            The number of updates in it.
        """
        before = self.trainer.counters.updates
        self.trainer.iterate()
        if self.trainer.report_due():
            self.trainer.report()
        return self.trainer.counters.updates - before

    def robot_steps(self) -> int:
        """Return the robot-steps so far; reads the device."""
        trainer = self.trainer
        return round(trainer.counters.robot_steps) + int(trainer.learner.env.robot_steps())

    def repeat(self, iterations: int) -> tuple[Repeat, list[Lap]]:
        """Time a number of iterations; return the whole, and each of them."""
        before, begun = self.robot_steps(), time.process_time()
        laps, updates = Laps(self.device), []
        laps.mark()
        for _ in range(iterations):
            updates.append(self.iterate())
            laps.mark()
        seconds, cpu_seconds = laps.seconds(), time.process_time() - begun
        acted = self.robot_steps() - before
        whole = Repeat(sum(seconds), cpu_seconds, acted, iterations)
        return whole, [Lap(*lap) for lap in zip(seconds, updates, strict=True)]


def training_config(case: Case) -> TrainConfig:
    """Return the agent's own settings, at the case's size, with a replay that is soon full."""
    slots = case.worlds * case.robots
    rows = 2**23 if case.device.type == "cuda" else 2**17
    capacity = min(max(rows, FEWEST_ROWS * slots), MOST_ROWS * slots)
    overrides = {
        "worlds": case.worlds,
        "total_steps": NEVER,
        "updates.samples_per_insert": case.samples_per_insert,
        "updates.batch_size": case.batch_size,
        "updates.warmup_transitions": capacity,
        "replay.capacity": capacity,
        "log.interval_steps": LOG_EVERY * case.worlds,
        "evaluation.interval_steps": NEVER,
        "checkpoint.interval_steps": NEVER,
    }
    return case.agent_config([f"{key}={value}" for key, value in overrides.items()])


def measure_training(
    case: Case, effort: Effort, matmul_rates: Mapping[str, float]
) -> dict[str, Any]:
    """Return the row of a `train` case.

    Args:
        case: what to measure.
        effort: how long.
        matmul_rates: rate of a large matrix product on this device [FLOP/s], by number format.
    """
    release_memory(case.device)
    with Training.running(case) as training:
        trial, _ = training.repeat(TRIAL)
        iterations = max(2, round(effort.seconds / (trial.seconds / trial.decisions)))
        training.repeat(iterations)
        updates, before = training.trainer.counters.updates, Memory.now(case.device)
        repeats, laps = [], []
        for _ in range(effort.repeats):
            repeat, its_laps = training.repeat(iterations)
            repeats.append(repeat)
            laps += its_laps
        after, updates = Memory.now(case.device), training.trainer.counters.updates - updates
        row = row_of(case, repeats, before, after)
        row |= _learning(case, repeats, updates) | jitter(laps)
        row |= _update_cost(case, training, matmul_rates)
    return row


def _learning(case: Case, repeats: Sequence[Repeat], updates: int) -> dict[str, Any]:
    samples, seconds = updates * case.batch_size, sum(repeat.seconds for repeat in repeats)
    acted = sum(repeat.robot_steps for repeat in repeats)
    decisions = sum(repeat.decisions for repeat in repeats)
    return {
        "samples_per_insert": samples / acted,
        "samples_per_insert_asked": case.samples_per_insert,
        "batch_size": case.batch_size,
        "gradient_samples_per_s": samples / seconds,
        "updates_per_iteration": updates / decisions,
        "active_fraction": acted / (decisions * case.worlds * case.robots),
    }


def jitter(laps: Sequence[Lap]) -> dict[str, Any]:
    """Compare the slowest percent of iterations, at least one, with the median.

    Once with the median of all iterations, and once each with that of those with equally many
    updates, between which the number alternates.
    """
    median = statistics.median(lap.seconds for lap in laps)
    equal: dict[int, list[float]] = {}
    for lap in laps:
        equal.setdefault(lap.updates, []).append(lap.seconds)
    medians = {updates: statistics.median(seconds) for updates, seconds in equal.items()}
    return {
        "iterations": len(laps),
        "median_iteration_s": median,
        "slowest_percent_over_median": _slowest([lap.seconds / median for lap in laps]),
        "slowest_percent_over_median_of_equal": _slowest(
            [lap.seconds / medians[lap.updates] for lap in laps]
        ),
    }


def _slowest(ratios: Sequence[float]) -> float:
    """Return the mean of the largest percent, at least one."""
    return statistics.fmean(sorted(ratios)[-max(1, len(ratios) // 100) :])


def _update_cost(
    case: Case, training: Training, matmul_rates: Mapping[str, float]
) -> dict[str, Any]:
    """Time updates alone, and count the matrix products' operations of one.

    Their share of the peak is that of the format which the agent's heads multiply in.
    """
    learner = training.trainer.learner
    assert isinstance(learner, ReplayLearner)  # `--agents` takes no other
    seconds = statistics.median(timed(case.device, learner.learn) for _ in range(10))
    batch = learner.replay.sample(case.batch_size)
    with FlopCounterMode(display=False) as counter:
        learner.agent.update(batch)
    flops = counter.get_total_flops()
    dtype = format_name(torch.bfloat16 if learner.agent.uses_bfloat16 else torch.float32)
    return {
        "update_s": seconds,
        "flops_per_update": flops,
        "product_dtype": dtype,
        "update_share_of_peak": flops / seconds / matmul_rates[dtype],
    }
