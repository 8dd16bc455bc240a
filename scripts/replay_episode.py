"""Replay episode files with their recorded actions and print how far the simulator is from them.

In float64 an episode runs through from its start and may be off by 1e-6; in float32 every decision
starts from the recorded state and may be off by 1e-4 times max(1, |x|). Exit status: 0 if all files
replay within that and without a wrong flag, 1 if not, 2 if a file or an option is of no use.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import torch

from marinenav_env.episodes.compare import QUANTITIES, Deviations
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.replay import check

DTYPES = {"float64": torch.float64, "float32": torch.float32}
COLUMNS = (*QUANTITIES, "wrong_flags", "steps")


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the files named on the command line.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status, see the module.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file (published format)")
    parser.add_argument("--dtype", choices=DTYPES, default="float64", help="of the simulation")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="of the simulation"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        episodes = [read_episode(file) for file in options.files]
        names = [episode.name for episode in episodes]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(
                f"files {sorted(twice)} are named twice: give files of different names"
            )
        found = {
            episode.name: check(episode, DTYPES[options.dtype], options.device)
            for episode in episodes
        }
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    overall = Deviations.worst(list(found.values()))
    if options.json:
        files = {name: as_json(deviations) for name, deviations in found.items()}
        try:
            text = json.dumps(
                {"overall": as_json(overall), "files": files}, indent=1, allow_nan=False
            )
        except ValueError:
            diverged = [name for name, part in found.items() if not math.isfinite(part.share)]
            print(
                f"error: deviations of {diverged} are not finite, which JSON cannot hold: leave "
                "out --json to see which, and look for parameters that make the simulation diverge",
                file=sys.stderr,
            )
            return 1
        print(text)
    else:
        print_table(found, overall)
    return 0 if overall.within() else 1


def as_json(deviations: Deviations) -> dict[str, float | int | None]:
    """Return the quantities that other programs read; null for one that was not recorded."""
    values = asdict(deviations)
    return {name: values[name] for name in COLUMNS}


def print_table(found: Mapping[str, Deviations], overall: Deviations) -> None:
    """Print the largest deviations, a row per file and one for all."""
    rows = {**found, "overall": overall}
    width = max(map(len, rows))
    print("file".ljust(width), *(name.rjust(11) for name in COLUMNS), "verdict", sep="  ")
    for name, deviations in rows.items():
        cells = [_cell(value).rjust(11) for value in as_json(deviations).values()]
        verdict = "ok" if deviations.within() else "OFF"
        print(name.ljust(width), *cells, verdict, sep="  ")
    print(f"largest deviation: {overall.share:.2g} of its tolerance")


def _cell(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
