"""Trainings across seeds on the page: learning curves, and what rliable reports of their ends.

IQM, performance profiles and probabilities of improvement are those of Agarwal et al., "Deep
reinforcement learning at the edge of the statistical precipice" (NeurIPS 2021), with the success of
a stage as the score of a task.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy import stats

from marinenav_env.fields import ConfigError
from marinenav_env.files import parse_json, read_parsed
from train_RL_agents.evaluation.report.charts import colour_of, finished
from train_RL_agents.metrics.curves import Run, read_runs, stages_of_run, success_curve
from train_RL_agents.run.provenance import EVALUATION

RESAMPLES = 2_000
SEED = 1
"""Of the resampling."""
FEW = 5
"""Seeds below which an IQM says little (Agarwal et al. 2021)."""


class Training(NamedTuple):
    """A run, or a sweep over seeds.

    Attributes:
        run: records of its complete seeds.
        success: [S, K] of S seeds in K stages, of their final evaluations.
        stages: [K] the stages' counts, to compare only the same ones.
    """

    run: Run
    success: np.ndarray
    stages: list[tuple[float, ...]]


def read_training(folder: Path) -> Training:
    """Read a run's folder, or one with a run for each seed.

    Raises:
        ConfigError: there is no complete run, or its seeds were evaluated in different stages.
        ValueError: records are missing or damaged.
    """
    own = folder / EVALUATION
    files = [own] if own.is_file() else sorted(folder.glob(f"*/{EVALUATION}"))
    tables = [read_parsed(file, _rows, "give a run's folder") for file in files]
    stages = [[stage for stage, _ in table] for table in tables]
    if not tables or any(one != stages[0] for one in stages):
        raise ConfigError(
            f"report-runs is {str(folder)!r}, which holds {len(tables)} complete runs of the same "
            "stages: give a complete run, or a sweep over seeds"
        )
    success = np.array([[value for _, value in table] for table in tables])
    run = read_runs([file.parent for file in files], folder.name)
    return Training(run, success, stages[0])


def _rows(text: str) -> list[tuple[tuple[float, ...], float]]:
    """Return stage and success of each row of an evaluation.

    Raises:
        ValueError: it is none, or of a task without success.
    """
    names = ("robots", "vortices", "buoys", "min_distance_m")
    try:
        rows = parse_json(text)["stages"]
        return [(tuple(row.get(name, 0) for name in names), float(row["success"])) for row in rows]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no table of stages with their success") from error


def interquartile_mean(success: np.ndarray) -> float:
    """Return the mean of the middle half of all scores [S, K]."""
    return float(stats.trim_mean(success, 0.25, axis=None))


def iqm_interval(success: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of the IQM, for which whole seeds are drawn anew.

    The stages of a seed are scores of one training, unlike the tasks of Agarwal et al. (2021), on
    each of which other runs were trained.
    """
    seeds = len(success)
    if seeds < 2:
        return math.nan, math.nan
    drawn = np.random.default_rng(SEED).integers(seeds, size=(RESAMPLES, seeds))
    means = [interquartile_mean(success[rows]) for rows in drawn]
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def improvement(first: np.ndarray, second: np.ndarray) -> float:
    """Return the probability that a seed of the first beats one of the second, mean over stages."""
    above = first[:, None] > second[None]
    equal = first[:, None] == second[None]
    return float((above + 0.5 * equal).mean())


def rows_of(trainings: Sequence[Training]) -> list[tuple[str, ...]]:
    """Return name, seeds, IQM with its interval and P(improvement) over the first of each."""
    rows: list[tuple[str, ...]] = []
    for training in trainings:
        low, high = iqm_interval(training.success)
        interval = "–" if math.isnan(low) else f"{low:.3f} to {high:.3f}"  # noqa: RUF001
        same = training.stages == trainings[0].stages and training is not trainings[0]
        better = improvement(training.success, trainings[0].success) if same else None
        rows.append(
            (
                training.run.label,
                str(len(training.success)),
                f"{interquartile_mean(training.success):.3f}",
                interval,
                "–" if better is None else f"{better:.2f}",  # noqa: RUF001
            )
        )
    return rows


def curves(trainings: Sequence[Training]) -> go.Figure:
    """Draw success over the steps with its band, and the share of scores above each success."""
    titles = ("success over the training", "performance profile of the ends")
    figure = make_subplots(1, 2, subplot_titles=titles)
    levels = np.linspace(0.0, 1.0, 101)
    for index, (run, success, _) in enumerate(trainings):
        course = success_curve(run, stages_of_run(run), "steps")
        colour, group = colour_of(index), str(index)
        band = {"line_width": 0, "hoverinfo": "skip", "showlegend": False, "legendgroup": group}
        figure.add_scatter(x=course.x, y=course.low, **band, row=1, col=1)
        fill = {"fill": "tonexty", "fillcolor": colour + "30"}
        figure.add_scatter(x=course.x, y=course.high, **band, **fill, row=1, col=1)
        line = {"line_color": colour, "legendgroup": group, "name": run.label}
        figure.add_scatter(x=course.x, y=course.y, **line, row=1, col=1)
        above = (success.ravel() > levels[:, None]).mean(1)
        figure.add_scatter(x=levels, y=above, **line, showlegend=False, row=1, col=2)
    figure.update_xaxes(title="decisions", row=1, col=1)
    figure.update_xaxes(title="success", row=1, col=2)
    figure.update_yaxes(range=[-0.02, 1.02])
    return finished(figure, 380)
