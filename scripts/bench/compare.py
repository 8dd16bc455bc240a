"""Measures two checkouts in turn, so that the ratio of their rates holds on a noisy machine.

    python scripts/bench/compare.py BEFORE AFTER [--rounds 5] [--json FILE] -- OPTION ...

BEFORE and AFTER are folders of the project at two commits, each with its operators built. What
comes after `--` goes to scripts/bench.py in both, and has to name the same rows there. Every round
measures both, in an order that alternates. A ratio is that of the two rates of one round; the last
column compares the fastest repeats of all rounds, which other work on the machine slows least.
Few and short rows a round keep the two close in time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from tqdm import tqdm

from marinenav_env.files import write_json
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.parser import Parser, output_file, tells

KIND = (
    *("mode", "task", "agent", "shield", "worlds", "robots", "buoys", "vortices"),
    *("settings", "disturbances", "resets", "turns", "batch_size"),
)
"""What two rows in the same place have to share, as far as both say it."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "before", type=Path, metavar="BEFORE", help="folder of the checkout to compare with"
    )
    parser.add_argument("after", type=Path, metavar="AFTER", help="folder of the checkout to judge")
    parser.add_argument(
        "--rounds", type=int, default=5, help="measure both this often (default %(default)s)"
    )
    parser.add_argument(
        "--json", type=output_file(), metavar="FILE", help="write the record to this file"
    )
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    options.options = arguments[end + 1 :]
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}: give 1 or more")
    for checkout in (options.before, options.after):
        if not (checkout / "scripts" / "bench.py").is_file():
            parser.error(f"{checkout} has no scripts/bench.py: name a checkout of this project")
    return options


def measure(checkout: Path, options: Sequence[str]) -> dict[str, Any]:
    """Run the benchmark of a checkout; return its record.

    Raises:
        RuntimeError: the benchmark failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch) / "record.json"
        command = [sys.executable, "scripts/bench.py", *options, "--json", str(record)]
        paths = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        done = subprocess.run(
            command, cwd=checkout, env=paths, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed in {checkout}:\n{done.stderr[-2000:]}")
        return json.loads(record.read_text())


def kind_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return what kind of row it is.

    Records from before the words of today say `cores`; those from before settings have none.
    """
    row = {"settings": [], **row}
    named = {"vortices" if name == "cores" else name: value for name, value in row.items()}
    return {name: named[name] for name in KIND if name in named}


def check_same(records: Sequence[dict[str, Any]]) -> None:
    """Check that the records hold the same rows in the same places.

    Raises:
        ValueError: one of them does not; a row may have lacked memory.
    """
    expected = [kind_of(row) for row in records[-1]["rows"]]
    for record in records:
        found = [kind_of(row) for row in record["rows"]]
        if len(found) != len(expected):
            counts = f"{len(found)} rows in one checkout or round, {len(expected)} in another"
            raise ValueError(f"{counts}: name options that both have room for")
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            differ = [name for name in one if name in other and one[name] != other[name]]
            if differ:
                raise ValueError(
                    f"row {place} has {differ[0]} {one[differ[0]]!r} in one checkout or round,"
                    f" {other[differ[0]]!r} in another: name it among the options"
                )


def compared(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return for every row of the benchmark the median rates and the ratios of the rounds.

    Args:
        before: the records of one checkout, a round each.
        after: those of the other, in the same order.

    Raises:
        ValueError: the two checkouts measured different rows.
    """
    check_same([*before, *after])
    rows = []
    for place, row in enumerate(after[0]["rows"]):
        slow, fast = (
            [record["rows"][place]["robot_steps_per_s"] for record in records]
            for records in (before, after)
        )
        ratios = [dividend / divisor for dividend, divisor in zip(fast, slow, strict=True)]
        best_slow, best_fast = (
            max(record["rows"][place]["fastest_repeat_robot_steps_per_s"] for record in records)
            for records in (before, after)
        )
        rows.append(
            {
                **kind_of(row),
                "before_robot_steps_per_s": statistics.median(slow),
                "after_robot_steps_per_s": statistics.median(fast),
                "ratio": statistics.median(ratios),
                "ratios": ratios,
                "ratio_of_fastest_repeats": best_fast / best_slow,
            }
        )
    return rows


@tells(RuntimeError, ValueError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write the record after every round.

    Returns:
        Exit status: 0, or 1 if a benchmark failed or the two measured different rows.
    """
    options = parse(arguments)
    records: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    rows: list[dict[str, Any]] = []
    checkouts = list(zip((options.before, options.after), records, strict=True))
    for turn in tqdm(range(options.rounds), unit="round", disable=None):
        for checkout, of in checkouts if turn % 2 == 0 else reversed(checkouts):
            of.append(measure(checkout, options.options))
        rows = compared(*records)
        if options.json:
            write_json(options.json, {**head_of(*records, options.options), "rows": rows})
    print_rows(rows, options.rounds)
    return 0


def head_of(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], options: Sequence[str]
) -> dict[str, Any]:
    """Return what the record says of the machine, the two commits and the rounds so far."""
    first, second = before[0], after[0]
    return {
        "machine": second["machine"],
        "versions": second["versions"],
        "commit": second["commit"],
        "uncommitted_changes": second["uncommitted_changes"],
        "commit_before": first["commit"],
        "uncommitted_changes_before": first["uncommitted_changes"],
        "rounds": len(after),
        "options": options,
    }


def print_rows(rows: Sequence[dict[str, Any]], rounds: int) -> None:
    """Print what `compared` returns as a table."""
    table = Table(title=f"medians of {rounds} rounds, robot-steps/s")
    for name in ("mode", "agent", "worlds", "vortices", "resets"):
        table.add_column(name)
    for name in ("before", "after", "ratio", "least", "most", "of fastest"):
        table.add_column(name, justify="right")
    for row in rows:
        cells = [row["mode"], row["agent"] or "", f"{row['worlds']:,}", str(row["vortices"])]
        rates = (f"{row[f'{name}_robot_steps_per_s']:,.0f}" for name in ("before", "after"))
        ratios = [row["ratio"], min(row["ratios"]), max(row["ratios"])]
        ratios.append(row["ratio_of_fastest_repeats"])
        table.add_row(*cells, row["resets"], *rates, *(f"{ratio:.3f}" for ratio in ratios))
    open_console().print(table)


if __name__ == "__main__":
    sys.exit(main())
