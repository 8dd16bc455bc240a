"""Curves of training runs, with intervals, from their metrics.

Bands: of a run, the 95% Wilson interval of its evaluation's episodes; of a sweep over seeds, the
span from the lowest to the highest seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from marinenav_env.fields import ConfigError
from marinenav_env.render.ink import colour_of
from train_RL_agents.metrics.reductions import wilson_interval
from train_RL_agents.metrics.writer import METRICS, Record, read_metrics

AXES = {
    "steps": ("steps", 1.0),
    "robot-steps": ("robot-steps", 1.0),
    "minutes": ("wall-clock time [min]", 60.0),
}
EVALUATION = "evaluation, "
SMOOTHED = 0.05
"""Share of a run's records over which its training curves are averaged."""


@dataclass(frozen=True)
class Curve:
    """A quantity over the course of a run or a sweep; all arrays [N].

    Attributes:
        x: course, in the unit of the axis.
        y: value.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Run:
    """One curve of the figure: a run, or the seeds of a sweep.

    Attributes:
        label: name in the legend.
        seeds: records of each seed, at least one.
    """

    label: str
    seeds: tuple[tuple[Record, ...], ...]


def read_run(folder: Path, label: str) -> Run:
    """Read the metrics of a run, or of every seed of a sweep.

    Args:
        folder: the run's folder, or one with folders of runs.
        label: name in the legend.

    Raises:
        ConfigError: there are no metrics, they are damaged, or they hold no record.
    """
    files = [folder / METRICS]
    if not files[0].is_file():
        files = sorted(folder.glob(f"*/{METRICS}"))
    if not files:
        raise ConfigError(
            f"run {str(folder)!r} has no {METRICS}, nor has a folder in it: give a run's folder"
        )
    return read_runs([file.parent for file in files], label)


def read_runs(folders: Sequence[Path], label: str) -> Run:
    """Read the metrics of runs that differ in their seed; arguments and errors as `read_run`."""
    return Run(label, tuple(_read_records(folder / METRICS) for folder in folders))


def _read_records(file: Path) -> tuple[Record, ...]:
    try:
        records = tuple(read_metrics(file))
    except OSError as error:
        raise ConfigError(f"metrics {str(file)!r} cannot be read ({error})") from error
    if not records:
        raise ConfigError(f"metrics {str(file)!r} hold no record: wait for the run's first one")
    return records


def plot_runs(runs: Sequence[Run], x: str = "steps") -> Figure:
    """Draw success, training return and throughput, and below them the success per stage.

    Args:
        runs: what to draw.
        x: course of the runs, a key of :data:`AXES`.
    """
    of_runs = [names for names in map(stages_of_run, runs) if names]  # of those evaluated so far
    stages = list(dict.fromkeys(name for names in of_runs for name in names))
    common = [name for name in stages if all(name in names for names in of_runs)]
    stage_rows = -(-len(stages) // 3)
    figure = Figure(figsize=(11.0, 3.4 + 2.5 * stage_rows), layout="constrained")
    grid = figure.add_gridspec(
        1 + stage_rows, 3, height_ratios=[1.35, *[1.0] * stage_rows], hspace=0.06
    )
    top = [figure.add_subplot(grid[0, column]) for column in range(3)]
    titles = (
        "success, all stages"
        if common == stages
        else f"success, stages of all runs: {len(common)}",
        "return of an episode in training",
        "robot-steps/s in training",
    )
    for axes, title in zip(top, titles, strict=True):
        axes.set_title(title, loc="left", fontsize=10)
    small = [figure.add_subplot(grid[1 + i // 3, i % 3]) for i in range(len(stages))]
    for axes, name in zip(small, stages, strict=True):
        axes.set_title(f"success, {name}", loc="left", fontsize=9)
    for index, run in enumerate(runs):
        ink = colour_of(index)
        _draw_band(top[0], success_curve(run, common, x), ink, _legend(run))
        for axes, name in zip(
            (top[1], top[2]), ("episode_return", "robot_steps_per_s"), strict=True
        ):
            for seed in run.seeds:
                _draw_training(axes, seed, name, x, ink)
        for axes, name in zip(small, stages, strict=True):
            _draw_band(axes, success_curve(run, [name], x), ink, _legend(run))
    for axes in (top[0], *small):
        axes.set_ylim(-0.02, 1.02)
    for axes in (*top, *small):
        axes.grid(color="#D5E1E8", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.margins(x=0.01)
        axes.set_xlim(left=0.0)
    top[2].set_ylim(bottom=0.0)
    figure.supxlabel(AXES[x][0], fontsize=10)
    handles, labels = top[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    return figure


def success_curve(run: Run, stages: Sequence[str], x: str) -> Curve:
    """Return the success of a run's evaluations, all episodes of the stages together.

    Args:
        run: the run or sweep; of a sweep, the steps that all seeds have evaluated at.
        stages: names of the stages, as in the labels of the records.
        x: course, a key of :data:`AXES`.
    """
    tables = [_pooled(records, stages) for records in run.seeds]
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    shares = np.array([[table[step][0] / table[step][1] for step in steps] for table in tables])
    course = np.mean([course_of(records, steps, x) for records in run.seeds], axis=0)
    if not steps:
        nothing = np.zeros(0)
        return Curve(nothing, nothing, nothing, nothing)
    if len(tables) > 1:
        return Curve(course, shares.mean(axis=0), shares.min(axis=0), shares.max(axis=0))
    intervals = [wilson_interval(*tables[0][step]) for step in steps]
    low, high = np.array(intervals).T
    return Curve(course, shares[0], low, high)


def course_of(records: Sequence[Record], steps: Sequence[int], x: str) -> np.ndarray:
    """Return where the given steps of a run lie on an axis."""
    requested = np.asarray(steps, dtype=float)
    if x == "steps":
        return requested
    train = [record for record in records if record["mode"] == "train"]
    known = np.array([0.0, *(record["step"] for record in train)])
    name = "robot_steps" if x == "robot-steps" else "elapsed_s"
    values = np.array([0.0, *(record.get(name) or 0.0 for record in train)])
    if x == "robot-steps":
        values = np.cumsum(values)
    return np.interp(requested, known, values) / AXES[x][1]


def _legend(run: Run) -> str:
    seeds = len(run.seeds)
    band = f"{seeds} seeds, lowest to highest" if seeds > 1 else "95% interval"
    return f"{run.label} ({band})"


def stages_of_run(run: Run) -> list[str]:
    """Return the names of the stages that a run has been evaluated on, in their order."""
    modes = (record["mode"] for records in run.seeds for record in records)
    names = (mode.removeprefix(EVALUATION) for mode in modes if mode.startswith(EVALUATION))
    return list(dict.fromkeys(names))


def _pooled(records: Sequence[Record], stages: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return successes and episodes per step, summed over stages, where all stages are there."""
    sums: dict[int, list[tuple[int, int]]] = {}
    modes = {EVALUATION + name for name in stages}
    for record in records:
        if record["mode"] in modes and record.get("success") is not None:
            episodes = round(record["episodes"])
            successes = round(record["success"] * episodes)
            sums.setdefault(record["step"], []).append((successes, episodes))
    return {
        step: (sum(part[0] for part in parts), sum(part[1] for part in parts))
        for step, parts in sums.items()
        if len(parts) == len(stages)
    }


def _draw_band(axes: Axes, curve: Curve, ink: str, label: str) -> None:
    if len(curve.x) == 1:  # a band of one point would have no width
        axes.vlines(curve.x, curve.low, curve.high, color=ink, linewidth=1.2)
    axes.fill_between(curve.x, curve.low, curve.high, color=ink, alpha=0.18, linewidth=0.0)
    marker = "o" if len(curve.x) < 40 else None
    axes.plot(curve.x, curve.y, color=ink, linewidth=1.8, marker=marker, markersize=3, label=label)


def _draw_training(axes: Axes, records: Sequence[Record], name: str, x: str, ink: str) -> None:
    """Draw a quantity of the training records, thin as it is and thick as a running mean."""
    points = [
        (record["step"], number)
        for record in records
        if record["mode"] == "train" and (number := _number(record.get(name))) is not None
    ]
    if not points:
        return
    steps, values = np.array(points, dtype=float).T
    course = course_of(records, steps, x)
    width = max(1, round(SMOOTHED * len(values)))
    weights = np.convolve(np.ones(len(values)), np.ones(width), mode="same")
    smooth = np.convolve(values, np.ones(width), mode="same") / weights
    axes.plot(course, values, color=ink, alpha=0.25, linewidth=0.7)
    axes.plot(course, smooth, color=ink, linewidth=1.6)


def _number(value: Any) -> float | None:
    """Return a record's entry as a number: its mean if it is a distribution."""
    return value.get("mean") if isinstance(value, dict) else value
