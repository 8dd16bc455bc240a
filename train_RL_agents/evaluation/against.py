"""Two policies in the same worlds: paired differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from train_RL_agents.evaluation.intervals import Estimate, WorldBootstrap, bootstrap_of, mcnemar
from train_RL_agents.evaluation.results import Result
from train_RL_agents.evaluation.score import V1

Parts = tuple[Tensor, Tensor]
"""Sums [W] over each world, and how many were added: their ratio is the number."""
SHARES = {
    "success",
    "collision",
    "robot_success",
    *(f"near_miss_{kind}" for kind in V1.near_miss_m),
}
"""Numbers that are shares."""


def compare(first: Result, second: Result) -> dict[str, Any]:
    """Return the differences, first minus second, as JSON values.

    Success is compared by McNemar's test; all differences have intervals of `intervals`, for which
    the same worlds are drawn for both.

    Args:
        first: of some worlds.
        second: of the same worlds.
    """
    won, lost = first.outcomes.success, second.outcomes.success
    bootstrap = bootstrap_of(first.measures.worlds)
    pairs = zip(
        _parts(first, second, bootstrap).items(),
        _parts(second, first, bootstrap).values(),
        strict=True,
    )
    only_first, only_second = int((won & ~lost).sum()), int((lost & ~won).sum())
    return {
        "both": int((won & lost).sum()),
        "only_first": only_first,
        "only_second": only_second,
        "neither": int((~won & ~lost).sum()),
        "mcnemar_p": mcnemar(only_first, only_second),
        "difference": {
            name: _difference(bootstrap, name)(own, other).as_json() for (name, own), other in pairs
        },
    }


def _difference(bootstrap: WorldBootstrap, name: str) -> Callable[[Parts, Parts], Estimate]:
    return bootstrap.difference_of_shares if name in SHARES else bootstrap.difference


def _parts(result: Result, other: Result, bootstrap: WorldBootstrap) -> dict[str, Parts]:
    """Return the numbers of ``result`` that are compared with those of ``other``."""
    outcomes, vessels = result.outcomes, result.measures.vessels
    world = vessels["world"]
    every_world = torch.ones(result.measures.worlds)
    both = (outcomes.success & other.outcomes.success).double()
    arrived = (vessels["reached"] > 0) & (other.measures.vessels["reached"] > 0)

    def of_vessels(values: Tensor, among: Tensor) -> Parts:
        kept = torch.where(among, values.double(), 0.0)
        return bootstrap.sums(world, kept), bootstrap.sums(world, among)

    everyone = torch.ones_like(arrived)
    near = {
        f"near_miss_{kind}": of_vessels(V1.near_misses(vessels[f"gap_{kind}"], kind), everyone)
        for kind in V1.near_miss_m
    }
    furthest = V1.grid_end * V1.length_m
    return {
        "success": (outcomes.success.double(), every_world),
        "collision": (outcomes.collision.double(), every_world),
        "robot_success": of_vessels(vessels["reached"] > 0, everyone),
        **near,
        "least_gap_vessel_m": of_vessels(vessels["gap_vessel"].clamp(max=furthest), everyone),
        "path_ratio": of_vessels(vessels["path"] / vessels["direct"], arrived),
        "time_s": (outcomes.time_s * both, both),
        "energy": (outcomes.energy * both, both),
        "return": (outcomes.episode_return.double(), every_world),
    }


def print_comparison(
    rows: Sequence[Result], compared: Sequence[dict[str, Any]], other: str, console: Console
) -> None:
    """Print the table of the differences."""
    caption = (
        "difference to the other policy in the same worlds with its 95% interval; time and energy "
        "where both succeed; only: worlds in which one of them succeeds; p: McNemar's test"
    )
    title = f"against {other}"
    table = Table(title=title, caption=caption, box=box.HORIZONTALS, padding=0)
    for name in ("", "only first", "only second", "p", "success", "near vessel", "time (s)"):
        table.add_column(name, justify="right")
    for result, row in zip(rows, compared, strict=True):
        shown = [row["difference"][name] for name in ("success", "near_miss_vessel", "time_s")]
        table.add_row(
            result.label,
            str(row["only_first"]),
            str(row["only_second"]),
            f"{row['mcnemar_p']:.2g}",
            *(signed(entry) for entry in shown),
        )
    console.print(table)


def signed(entry: dict[str, Any]) -> str:
    """Return a difference over its interval."""
    if entry["value"] is None:
        return "-"
    low, high = ("-" if number is None else f"{number:+.3f}" for number in entry["ci95"])
    return f"{entry['value']:+.3f}\n{low} {high}"
