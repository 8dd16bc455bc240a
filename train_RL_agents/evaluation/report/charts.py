"""The charts of the page, as plotly's figures; the page's script gives them its colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from train_RL_agents.evaluation.report.evaluated import Evaluated
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioResult, ScenarioResults
from train_RL_agents.evaluation.score import V1

COLOURS = ("#4c8bf5", "#e8833a", "#3aa76d", "#c05bd6", "#d9a514", "#e0557a", "#35a7b8", "#8a8f98")
"""Of the policies, in their order; seen on light and on dark."""
RED = "#e5383b"
TICK_S = 4.0
"""Between two marks of time on a trajectory."""
COLUMNS = 4
CLOCK, SWAP = "clock-", "swap-"
"""What the cases of Around the Clock and of circle swaps begin with."""


def colour_of(policy: int) -> str:
    """Return the colour of a policy."""
    return COLOURS[policy % len(COLOURS)]


def separation(policies: Sequence[Evaluated]) -> go.Figure:
    """Draw the distribution of the least gap to a vessel with its band, for each group."""
    groups = list(policies[0].groups)
    columns = min(len(groups), 3)
    rows = math.ceil(len(groups) / columns)
    figure = make_subplots(rows, columns, subplot_titles=groups, vertical_spacing=0.25 / rows)
    for number, group in enumerate(groups):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        for index, evaluated in enumerate(policies):
            cdf = evaluated.groups[group].safety["least_gap_vessel"]["cdf"]
            grid = np.arange(len(cdf["share"])) * cdf["grid_step_m"]
            band = {"line_width": 0, "hoverinfo": "skip", "showlegend": False}
            band |= {"legendgroup": str(index), "line_shape": "hv"}
            figure.add_scatter(x=grid, y=cdf["low"], **band, **place)
            fill = {"fill": "tonexty", "fillcolor": colour_of(index) + "30"}
            figure.add_scatter(x=grid, y=cdf["high"], **band, **fill, **place)
            figure.add_scatter(
                x=grid,
                y=cdf["share"],
                name=evaluated.name,
                line={"color": colour_of(index), "shape": "hv"},
                legendgroup=str(index),
                showlegend=not number,
                **place,
            )
        for limit in V1.separation_gaps:
            colour = RED if limit == V1.near_miss else "#8a8f98"
            line = {"line_dash": "dot", "line_color": colour, "line_width": 1}
            figure.add_vline(limit * V1.length_m, **line, **place)
    figure.update_xaxes(title="least gap to a vessel (m)", range=[0.0, 17.0])
    figure.update_yaxes(title="share of vessel-episodes", range=[0.0, 1.0])
    return finished(figure, 340 * rows)


def times_and_energies(policies: Sequence[Evaluated]) -> go.Figure:
    """Draw travel time and energy of the successful episodes of each group as boxes."""
    figure = make_subplots(1, 2, subplot_titles=("travel time (s)", "energy (N s)"))
    for index, evaluated in enumerate(policies):
        for column, name in ((1, "time_s"), (2, "energy")):
            parts = [
                (group, getattr(result.outcomes, name)[result.outcomes.success].tolist())
                for group, result in evaluated.groups.items()
            ]
            figure.add_box(
                x=[group for group, values in parts for _ in values],
                y=[float(f"{value:.4g}") for _, values in parts for value in values],
                name=evaluated.name,
                marker={"color": colour_of(index), "size": 3},
                legendgroup=str(index),
                showlegend=column == 1,
                row=1,
                col=column,
            )
    figure.update_layout(boxmode="group")
    figure.update_yaxes(rangemode="tozero")
    return finished(figure, 380)


def crowds(policies: Sequence[Evaluated]) -> go.Figure | None:
    """Draw success over the number of vessels, if circle swaps were played."""
    figure = go.Figure()
    for index, evaluated in enumerate(policies):
        cases = [row for row in evaluated.rows if row.label.startswith(SWAP)]
        if not cases:
            return None
        tables = [row.as_json() for row in cases]
        success = np.array([table["success"] for table in tables])
        low, high = np.array([table["success_ci95"] for table in tables]).T
        figure.add_scatter(
            x=[vessels_of(row) for row in cases],
            y=success,
            error_y={"array": high - success, "arrayminus": success - low},
            name=evaluated.name,
            line_color=colour_of(index),
        )
    figure.update_xaxes(title="vessels")
    figure.update_yaxes(title="success", range=[-0.02, 1.05])
    return finished(figure, 380)


def vessels_of(row: Any) -> int:
    """Return how many vessels a scenario has."""
    assert isinstance(row, ScenarioResult)
    return len(row.scenario.vessels)


def clock(policies: Sequence[Evaluated]) -> go.Figure | None:
    """Draw the least gap over the other's heading, if Around the Clock was played."""
    figure = go.Figure()
    for index, evaluated in enumerate(policies):
        cases = [row for row in evaluated.rows if row.label.startswith(CLOCK)]
        if not cases:
            return None
        headings, gaps = zip(*map(clock_point, cases), strict=True)
        figure.add_scatterpolar(
            theta=[*headings, headings[0]],
            r=[*gaps, gaps[0]],
            name=evaluated.name,
            mode="lines+markers",
            line_color=colour_of(index),
        )
    circle = list(range(0, 361, 5))
    figure.add_scatterpolar(
        theta=circle,
        r=[V1.near_miss] * len(circle),
        name="near miss",
        mode="lines",
        line={"color": RED, "dash": "dot"},
    )
    figure.update_polars(
        angularaxis={"direction": "clockwise", "rotation": 90, "dtick": 45},
        radialaxis={"rangemode": "tozero", "title": "hull lengths"},
    )
    return finished(figure, 560)


def clock_point(row: Any) -> tuple[float, float]:
    """Return the other's heading [deg] and the median least gap [hull lengths] of a case.

    A gap beyond what a vessel sees stands at the end of the score's grid.
    """
    assert isinstance(row, ScenarioResult)
    gap = row.safety["least_gap_vessel"]["median_m"]["value"]
    heading = row.scenario.vessels[1].heading_deg % 360.0
    return heading, V1.grid_end if gap is None else max(gap, 0.0) / V1.length_m


def trajectories(evaluated: Evaluated, policy: int) -> go.Figure | None:
    """Draw the first episode of every scenario, with gaps below a near miss in red."""
    if not isinstance(evaluated.results, ScenarioResults):
        return None
    rows = math.ceil(len(evaluated.rows) / COLUMNS)
    titles = [row.label for row in evaluated.rows]
    figure = make_subplots(rows, COLUMNS, subplot_titles=titles, vertical_spacing=0.25 / rows)
    world = 0
    for number, result in enumerate(evaluated.rows):
        place = {"row": number // COLUMNS + 1, "col": number % COLUMNS + 1}
        for line in paths_of(evaluated, world, policy):
            figure.add_scatter(showlegend=False, hoverinfo="skip", **line, **place)
        world += len(result.outcomes.success)
    figure.update_xaxes(showticklabels=False, zeroline=False)
    figure.update_yaxes(showticklabels=False, zeroline=False)
    figure.for_each_yaxis(lambda axis: axis.update(scaleanchor=axis.anchor))
    return finished(figure, 270 * rows)


def paths_of(evaluated: Evaluated, world: int, policy: int) -> list[dict[str, Any]]:
    """Return the lines of one episode: paths, marks of time, near misses.

    The path of the first vessel that the policy steers is bold, and in its colour.

    East is drawn to the right, north up.
    """
    tracks = evaluated.recording.tracks(world)
    north, east = (tracks.field(name)[:, 0].numpy() for name in ("x", "y"))
    present = tracks.present[:, 0].numpy()
    step = max(round(TICK_S / tracks.decision_time), 1)
    near = near_rows(north, east, present, tracks.hull_radius)
    judged = present[0] if tracks.own is None else present[0] & tracks.own[0].numpy()
    first, lines = int(judged.argmax()), []
    for robot in np.flatnonzero(present[0]):
        there = present[:, robot]
        x, y = east[there, robot], north[there, robot]
        colour, width = (colour_of(policy), 3) if robot == first else ("#8a8f98", 2)
        lines.append({"x": x, "y": y, "mode": "lines", "line": {"color": colour, "width": width}})
        marks = {"color": colour, "size": 4}
        lines.append({"x": x[::step], "y": y[::step], "mode": "markers", "marker": marks})
        red = near[there, robot]
        if red.any():
            gaps = {"x": np.where(red, x, np.nan), "y": np.where(red, y, np.nan)}
            lines.append({**gaps, "mode": "lines+markers", "line": {"color": RED, "width": 4}})
            lines[-1]["marker"] = {"color": RED, "size": 4}
    buoys = tracks.buoys[0].numpy()
    if len(buoys):
        signs = {"color": "#d9a514", "size": 5, "symbol": "diamond"}
        lines.append({"x": buoys[:, 1], "y": buoys[:, 0], "mode": "markers", "marker": signs})
    return lines


def near_rows(
    north: np.ndarray, east: np.ndarray, present: np.ndarray, hull_radius: float
) -> np.ndarray:
    """Return [T, R] bool: the gap to another vessel was below a near miss at that decision."""
    distance = np.hypot(north[:, :, None] - north[:, None], east[:, :, None] - east[:, None])
    both = present[:, :, None] & present[:, None] & ~np.eye(present.shape[1], dtype=bool)
    limit = V1.near_miss * V1.length_m + 2.0 * hull_radius
    return (both & (distance < limit)).any(-1)


def finished(figure: go.Figure, height: int) -> go.Figure:
    """Return a figure with the page's margins."""
    margin = {"l": 55, "r": 15, "t": 40, "b": 45}
    return figure.update_layout(template="none", height=height, margin=margin)
