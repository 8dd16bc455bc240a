"""Shows the benchmark's record as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def print_record(console: Console, record: dict[str, Any], title: str) -> None:
    """Print the rows, those for which the memory was too small, and the comparison of resets."""
    table = main_table(title)
    for row in record["rows"]:
        add_to(table, row)
    for entry in record["out_of_memory"]:
        names = ("mode", "agent", "worlds", "vortices", "resets")
        cells = ["" if entry[name] is None else f"{entry[name]}" for name in names]
        table.add_row(*cells, *[""] * 7, "out of memory")
    console.print(table)
    if record["skip_reset_if_empty"]:
        print_skipping(console, record["skip_reset_if_empty"])
    print_kernels(console, record["rows"])


def main_table(title: str) -> Table:
    """Return the empty table of rows."""
    table = Table(title=title)
    for name in ("mode", "agent", "worlds", "vortices", "resets"):
        table.add_column(name)
    for name in (
        "robot-steps/s",
        "per CPU s",
        "world-steps/s",
        "active",
        "samples per insert",
        "MiB",
        "growth KiB",
    ):
        table.add_column(name, justify="right")
    table.add_column("more")
    return table


def add_to(table: Table, row: dict[str, Any]) -> None:
    """Add a row of the record to the table."""
    ratio = row["samples_per_insert"]
    table.add_row(
        row["mode"],
        row["agent"] or "",
        f"{row['worlds']:,}",
        str(row["vortices"]),
        row["resets"],
        f"{row['robot_steps_per_s']:,.0f}",
        f"{row['robot_steps_per_cpu_s']:,.0f}" if row["device"] == "cpu" else "",
        f"{row['world_steps_per_s']:,.0f}",
        f"{row['active_fraction']:.0%}",
        "" if ratio is None else f"{ratio:.3g}",
        f"{row['memory_bytes'] / 2**20:,.0f}",
        f"{row['memory_growth_bytes'] / 2**10:,.0f}",
        remarks(row),
    )


def remarks(row: dict[str, Any]) -> str:
    """Return what only some rows have, in a few words."""
    parts = []
    if row.get("disturbances", "off") != "off":
        parts.append(f"disturbances: {row['disturbances']}")
    if row.get("turns", 1) != 1:
        parts.append(f"{row['turns']} decisions a launch")
    if row.get("shield") is not None:
        parts.append("shielded")
    if row.get("fraction_of_bound") is not None:
        parts.append(f"{row['fraction_of_bound']:.1%} of bound")
    if row["mode"] == "train":
        parts.append(f"{row['gradient_samples_per_s']:,.0f} samples/s")
        parts.append(f"{row['update_share_of_peak']:.0%} of {row['product_dtype']} matmul rate")
        parts.append(f"slowest 1%: {row['slowest_percent_over_median_of_equal']:.2f}x")
    if row.get("kernel_time_share") is not None:
        parts.append(f"kernels {row['kernel_time_share']:.0%} of time")
    return ", ".join(parts)


def print_skipping(console: Console, comparisons: Sequence[dict[str, Any]]) -> None:
    """Print the comparison of `skip_reset_if_empty` with always launching."""
    table = Table(title="skip_reset_if_empty: a decision and its natural resets")
    for name in ("worlds", "skipping, us", "always launching, us", "ratio"):
        table.add_column(name, justify="right")
    for entry in comparisons:
        table.add_row(
            f"{entry['worlds']:,}",
            f"{entry['skipping_decision_s'] * 1e6:,.1f}",
            f"{entry['always_launching_decision_s'] * 1e6:,.1f}",
            f"{entry['skipping_over_launching']:.2f}",
        )
    console.print(table)


def print_kernels(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print the costliest kernels of rows that have them."""
    for row in rows:
        for part, kernels in row.get("kernels", {}).items():
            names = [row["mode"], *([row["agent"]] if row["agent"] else [])]
            table = Table(title=f"{', '.join(names)}, {row['worlds']:,} worlds: {part}")
            table.add_column("kernel", overflow="fold")
            for name in ("calls", "us", "of kernels' time"):
                table.add_column(name, justify="right")
            for kernel in kernels:
                numbers = f"{kernel['calls']:.1f}", f"{kernel['us']:.1f}", f"{kernel['share']:.0%}"
                table.add_row(kernel["kernel"], *numbers)
            console.print(table)
