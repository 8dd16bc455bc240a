"""The tables of an evaluation, as the terminal shows them."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from marinenav_env.envs.scenarios import labels_of
from train_RL_agents.evaluation.results import ReturnResult, Row, StageResult
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioResults

LEAST_WIDTH = 72
"""Of a table with few columns [characters], so that its caption has lines to read."""


def print_table(results: Sequence[Row], title: str, console: Console) -> None:
    """Print the tables of the stages, those of their kind of task."""
    for table in TABLES[type(results[0])](results, title):
        console.print(table)


def _navigation(results: Sequence[StageResult], title: str) -> list[Table]:
    """Return how the episodes ended, and how safe they were."""
    return [_ends(results, title), _safety(results)]


def _returns(results: Sequence[ReturnResult], title: str) -> list[Table]:
    table = Table(title=title, caption="decisions; 95% CI of the mean", box=box.HORIZONTALS)
    for name in ("episodes", "return", "95% CI", "std", "timed out", "length"):
        table.add_column(name, justify="right")
    for row in (result.as_json() for result in results):
        low, high = row["mean_return_ci95"]
        table.add_row(
            str(row["episodes"]),
            _number(row["mean_return"], 2),
            f"{_number(low, 2)} to {_number(high, 2)}",
            _number(row["std_return"], 2),
            _number(row["timeout"], 3),
            _number(row["mean_length"], 1),
        )
    return [table]


TABLES: dict[type, Callable[..., list[Table]]] = {
    StageResult: _navigation,
    ReturnResult: _returns,
}
"""Tables of a kind of row."""


def _ends(results: Sequence[StageResult], title: str) -> Table:
    caption = (
        "time (s) and energy (N s, or shares of a largest choice): means of the successful episodes"
    )
    table = Table(title=title, caption=caption, box=box.HORIZONTALS, padding=0, pad_edge=False)
    with_vortices = any(result.stage.vortices for result in results)
    with_distance = len({result.stage.label for result in results}) < len(results)
    counts = ["robots", "buoys", *(["vortices"] if with_vortices else [])]
    counts += ["min_distance_m"] if with_distance else []
    shares = ["episodes", "success", "95% CI", "collided", "timed out"]
    for name in (*counts, *shares, "time", "energy"):
        table.add_column(name, justify="right")
    for result in results:
        row = result.as_json()
        table.add_row(
            *(str(getattr(result.stage, name)) for name in counts),
            *_how_they_ended(row),
            _number(row["mean_energy"], 0),
        )
    return table


def _how_they_ended(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how the episodes of a row ended, in the columns from ``episodes`` to ``time``."""
    low, high = row["success_ci95"]
    return (
        str(row["episodes"]),
        f"{row['success']:.3f}",
        f"{low:.3f}-{high:.3f}",
        f"{row['collision']:.3f}",
        f"{row['timeout']:.3f}",
        _number(row["mean_time_s"], 1),
    )


def print_scenarios(results: ScenarioResults, title: str, console: Console) -> None:
    """Print the tables of scenarios: how their episodes ended, and the scores of the rules."""
    caption = "time (s): mean of the successful episodes; gap: 5% quantile, to a vessel (m)"
    table = Table(title=title, caption=caption, box=box.HORIZONTALS, padding=0, pad_edge=False)
    for name in ("scenario", "episodes", "success", "95% CI", "collided", "timed out", "time"):
        table.add_column(name, justify="right")
    for name in ("near", "gap"):
        table.add_column(name, justify="right")
    for result in results.rows:
        row = result.as_json()
        table.add_row(
            row["scenario"],
            *_how_they_ended(row),
            _number(row["safety"]["near_miss_vessel"]["value"], 3),
            _number(row["safety"]["least_gap_vessel"]["p05_m"]["value"], 1),
        )
    console.print(table)
    console.print(_rules(results.rules))


def _rules(rules: dict[str, Any]) -> Table:
    head_on, give_way = rules["head_on"], rules["give_way"]
    shares = {
        f"{head_on['meetings']} head-on meetings, port to port": head_on["port_to_port"],
        f"{give_way['meetings']} give-way meetings, astern": give_way["astern"],
        "ahead": give_way["ahead"],
        "ambiguous encounters": rules["ambiguous"],
    }
    caption = "; ".join(f"{name} {_interval(entry)}" for name, entry in shares.items())
    table = Table(title=f"rules, score {rules['score']}", caption=caption, box=box.HORIZONTALS)
    for name in ("class", "encounters", "S_r", "R8", "its rule", "total"):
        table.add_column(name, justify="right")
    for name, row in rules["classes"].items():
        rule = next(key for key in row if key in ("R13", "R14", "R15", "R17"))
        cells = (_estimate(row[key], 2) for key in ("S_r", "R8", rule, "total"))
        table.add_row(f"{name} {rule}", str(row["encounters"]), *cells)
    return table


def _interval(entry: dict[str, Any]) -> str:
    """Return a number and its interval in one line."""
    value, low, high = (_number(number, 2) for number in (entry["value"], *entry["ci95"]))
    return f"{value} ({low}..{high})"


SAFETY_ROWS = {
    "robots arrived": ("robot_success",),
    "vessel hit": ("collision_vessel",),
    "buoy hit": ("collision_buoy",),
    "near vessel": ("near_miss_vessel",),
    "near buoy": ("near_miss_buoy",),
    "near, per hour": ("near_miss_vessel_per_hour",),
    "gap 5% (m)": ("least_gap_vessel", "p05_m"),
    "gap 50% (m)": ("least_gap_vessel", "median_m"),
    "path ratio": ("path_ratio",),
    "time astern": ("sternway",),
    "acts in (s)": ("first_action", "median_s"),
}
"""Rows of the safety table, and where their numbers stand among the safety numbers."""


def _safety(results: Sequence[StageResult]) -> Table:
    caption = (
        "shares of episodes with a hit and of robots with a near miss (vessel 2 m, buoy 1 m); "
        "quantiles of a robot's least gap to a vessel; share of the time astern through the "
        "heading; docs/evaluation.md. Below: 95% intervals"
    )
    version = results[0].safety["score"]
    looks: Any = {"box": box.HORIZONTALS, "padding": 0, "min_width": LEAST_WIDTH}
    table = Table(title=f"safety, score {version}", caption=caption, **looks)
    table.add_column("")
    for label in labels_of([result.stage for result in results]):
        table.add_column(label.replace(", ", "\n"), justify="right", overflow="fold")
    for name, path in SAFETY_ROWS.items():
        entries = (functools.reduce(operator.getitem, path, row.safety) for row in results)
        table.add_row(name, *(_estimate(entry) for entry in entries))
    return table


def _estimate(entry: dict[str, Any], digits: int | None = None) -> str:
    """Return a number above its interval, with so many digits or as many as suit its size."""
    suited = 1 if abs(entry["value"] or 0.0) >= 10.0 else 3
    low, high = (_number(number, digits or suited - 1) for number in entry["ci95"])
    return f"{_number(entry['value'], digits or suited)}\n{low}..{high}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"
