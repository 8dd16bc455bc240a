"""The tables of the page, as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from train_RL_agents.evaluation.against import compare
from train_RL_agents.evaluation.report.evaluated import Evaluated
from train_RL_agents.evaluation.results import Result
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioResults

ENDS = (
    *("", "policy", "episodes", "success", "collision with a vessel", "with a buoy"),
    *("time-out", "time (s)", "energy (N s)", "return", "path ratio"),
)
NEAR = (
    *("", "policy", "near vessel", "near buoy", "near vessels per hour"),
    *("gap 5% (m)", "gap 50% (m)", "first action (s)"),
)
PASSING = (
    *("policy", "head-on meetings", "port to port", "starboard to starboard"),
    *("not passed", "contact"),
    *("give-way meetings", "astern", "ahead", "not passed", "contact", "ambiguous encounters"),
)
PAIRED = (
    *("", "policy", "only it succeeds", "only the first", "McNemar's p"),
    *("success", "near vessel", "time (s)"),
)
SEEDS = ("training", "seeds", "IQM of success", "its 95% interval", "P(improvement) over the first")
MACHINES = ("record", "machine", "commit")
SHIELDS = ("policy", "settings", "decisions", "unsafe as planned", "changed", "without a safe plan")
RULES = ("policy", "class", "encounters", "S_r", "R8", "rule", "its score", "total")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells, which are text."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n{body}</table></div>\n'


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many digits behind the point."""
    return "–" if value is None else f"{value:.{digits}f}"  # noqa: RUF001


def estimate(entry: Mapping[str, Any], digits: int = 3) -> str:
    """Return a number and its interval."""
    low, high = (number(end, digits) for end in entry["ci95"])
    return f"{number(entry['value'], digits)} ({low} to {high})"


def ends(policies: Sequence[Evaluated], *, single: bool = False) -> str:
    """Return how the episodes ended, by group; ``single`` gives every scenario instead."""
    rows = [
        (group, evaluated.name, *_ends(result))
        for group, results in grouped(policies, single)
        for evaluated, result in zip(policies, results, strict=True)
    ]
    return table(ENDS, rows)


def near_misses(policies: Sequence[Evaluated]) -> str:
    """Return how near vessels came, by group."""
    rows = [
        (group, evaluated.name, *_near(result.safety))
        for group, results in grouped(policies, single=False)
        for evaluated, result in zip(policies, results, strict=True)
    ]
    return table(NEAR, rows)


def paired(policies: Sequence[Evaluated]) -> str:
    """Return how every further policy differs from the first in the same episodes, by group.

    Episodes of scenarios repeat the same encounters, which McNemar's test takes for independent.
    """
    first, *others = policies
    repeated = isinstance(first.results, ScenarioResults)
    rows = []
    for group, reference in first.groups.items():
        for evaluated in others:
            compared = compare(evaluated.groups[group], reference)
            differences = compared["difference"]
            cells = [differences[name] for name in ("success", "near_miss_vessel", "time_s")]
            rows.append(
                (
                    group,
                    evaluated.name,
                    str(compared["only_first"]),
                    str(compared["only_second"]),
                    "–" if repeated else f"{compared['mcnemar_p']:.2g}",  # noqa: RUF001
                    *(estimate(cell) for cell in cells),
                )
            )
    return table(PAIRED, rows)


def rules(policies: Sequence[Evaluated]) -> str:
    """Return the rule scores of scenarios by class."""
    rows = []
    for evaluated in policies:
        assert isinstance(evaluated.results, ScenarioResults)
        for name, row in evaluated.results.rules["classes"].items():
            rule = next(key for key in row if key in ("R13", "R14", "R15", "R17"))
            scores = [estimate(row[key], 2) for key in ("S_r", "R8", rule, "total")]
            cells = (*scores[:2], rule, *scores[2:])
            rows.append((evaluated.name, name, str(row["encounters"]), *cells))
    return table(RULES, rows)


def passing(policies: Sequence[Evaluated]) -> str:
    """Return the plain shares beside the rule scores."""
    rows = []
    for evaluated in policies:
        assert isinstance(evaluated.results, ScenarioResults)
        score = evaluated.results.rules
        cells = [evaluated.name]
        for sides in (score["head_on"], score["give_way"]):
            meetings, *shares = sides.values()
            cells += [str(meetings), *(estimate(share, 2) for share in shares)]
        rows.append((*cells, estimate(score["ambiguous"], 2)))
    return table(PASSING, rows)


def shields(policies: Sequence[Evaluated]) -> str:
    """Return what the shields of those policies that have one did; nothing if none has."""
    rows = []
    for evaluated in policies:
        if did := evaluated.shield:
            settings = (f"{name} {value}" for name, value in did["settings"].items())
            shares = (f"{did[name]:.2%}" for name in ("unsafe", "changed", "no_safe_plan"))
            rows.append((evaluated.name, ", ".join(settings), str(did["decisions"]), *shares))
    return table(SHIELDS, rows) if rows else ""


def provenance(facts: Mapping[str, Any]) -> str:
    """Return names and values."""
    return table(("", ""), [(name, str(value)) for name, value in facts.items()])


def grouped(policies: Sequence[Evaluated], single: bool) -> list[tuple[str, list[Result]]]:
    """Return the results of all policies for each group, or for each single row."""
    if single:
        columns = [evaluated.rows for evaluated in policies]
        return [(row[0].label, list(row)) for row in zip(*columns, strict=True)]
    names = policies[0].groups
    return [(name, [evaluated.groups[name] for evaluated in policies]) for name in names]


def _ends(result: Result) -> tuple[str, ...]:
    row, safety = result.as_json(), result.safety
    success = {"value": row["success"], "ci95": row["success_ci95"]}
    return (
        str(row["episodes"]),
        estimate(success),
        estimate(safety["collision_vessel"]),
        estimate(safety["collision_buoy"]),
        number(row["timeout"]),
        number(row["mean_time_s"], 1),
        number(row["mean_energy"], 0),
        estimate({"value": row["mean_return"], "ci95": row["mean_return_ci95"]}, 1),
        estimate(safety["path_ratio"]),
    )


def _near(safety: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        estimate(safety["near_miss_vessel"]),
        estimate(safety["near_miss_buoy"]),
        estimate(safety["near_miss_vessel_per_hour"], 1),
        estimate(safety["least_gap_vessel"]["p05_m"], 2),
        estimate(safety["least_gap_vessel"]["median_m"], 2),
        estimate(safety["first_action"]["median_s"], 1),
    )
