"""Records of success with one thing changed, on the page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from marinenav_env.fields import ConfigError
from train_RL_agents.evaluation.report.charts import colour_of, finished
from train_RL_agents.evaluation.report.records import read_rows

COLUMNS = 3
NEEDED = ("policy", "quantity", "level", "success", "success_ci95")


def read_robustness(path: Path) -> dict[str, Any]:
    """Read a record of ``scripts/robustness.py``.

    Raises:
        ConfigError: it cannot be read, or is no such record.
    """
    record = read_rows(path, "report-robustness", "robustness.py", NEEDED)
    if not isinstance(record.get("calm"), dict):
        raise ConfigError(
            f"report-robustness is {str(path)!r}, which has no undisturbed levels: give a record "
            "that robustness.py --json wrote"
        )
    if all(row["quantity"] is None for row in record["rows"]):
        raise ConfigError(
            f"report-robustness is {str(path)!r}, which has no disturbed level yet: let "
            "robustness.py go on"
        )
    return record


def curves_of(record: dict[str, Any]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the rows of each policy by quantity that was changed, by level.

    The undisturbed row is among them where it is a level of the quantity.
    """
    changed = {row["quantity"] for row in record["rows"]}
    curves: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, calm in record["calm"].items():
        if name not in changed:
            continue
        of_policies = curves.setdefault(name, {})
        for row in record["rows"]:
            if row["quantity"] == name or (row["quantity"] is None and calm is not None):
                level = calm if row["quantity"] is None else row["level"]
                of_policies.setdefault(row["policy"], []).append({**row, "level": level})
        for rows in of_policies.values():
            rows.sort(key=lambda row: row["level"])
    return curves


def robustness(record: dict[str, Any]) -> go.Figure:
    """Draw success over each quantity; dotted: the interval without any disturbance."""
    curves = curves_of(record)
    undisturbed = {row["policy"]: row for row in record["rows"] if row["quantity"] is None}
    rows = math.ceil(len(curves) / COLUMNS)
    figure = make_subplots(
        rows, COLUMNS, subplot_titles=list(curves), shared_yaxes=True, vertical_spacing=0.3 / rows
    )
    for number, policies in enumerate(curves.values()):
        place = {"row": number // COLUMNS + 1, "col": number % COLUMNS + 1}
        for index, (policy, points) in enumerate(policies.items()):
            success = [point["success"] for point in points]
            low, high = zip(*(point["success_ci95"] for point in points), strict=True)
            figure.add_scatter(
                x=[point["level"] for point in points],
                y=success,
                error_y={
                    "array": [top - value for top, value in zip(high, success, strict=True)],
                    "arrayminus": [value - end for end, value in zip(low, success, strict=True)],
                },
                name=policy,
                legendgroup=policy,
                showlegend=number == 0,
                mode="lines+markers",
                line={"color": colour_of(index)},
                **place,
            )
            for edge in undisturbed[policy]["success_ci95"]:
                figure.add_hline(
                    y=edge, line={"color": colour_of(index), "dash": "dot", "width": 1}, **place
                )
    figure.update_yaxes(range=[0.0, 1.02])
    return finished(figure, 240 * rows)
