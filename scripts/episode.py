"""Record, replay, plot and score episodes of the published format.

``record`` writes the files that the others read.
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
from marinenav_env.episodes.config import check_first_task
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.replay import check
from marinenav_env.episodes.tracks import tracks_of
from scripts.episodes.plot import PLOT, define_plot, plot
from scripts.episodes.record import RECORD, define_record, record
from train_RL_agents.commands.options import split_settings
from train_RL_agents.commands.parser import Parser, tells
from train_RL_agents.evaluation.recorded import score_recorded

DTYPES = {"float64": torch.float64, "float32": torch.float32}
COLUMNS = (*QUANTITIES, "wrong_flags", "steps")

# ---- replay -----------------------------------------------------------------------------------

REPLAY = """Replay episode files with their recorded actions and print the simulator's deviations.

In float64 an episode runs through from its start and may be off by 1e-6; in float32 every decision
starts from the recorded state and may be off by 1e-4 times max(1, |x|). Exit status: 0 if all files
replay within that and without a wrong flag, 1 if not, 2 if a file or an option is of no use.
"""


def define_replay(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``replay``."""
    parser.set_defaults(run=replay)
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file (published format)")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float64", help="precision of the simulation"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="device of the simulation"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


@tells(ValueError, status=2)
def replay(options: argparse.Namespace) -> int:
    """Replay the files and print the deviations."""
    episodes = [read_episode(file) for file in options.files]
    names = [episode.name for episode in episodes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"files {sorted(twice)} are named twice: give files of different names")
    found = {
        episode.name: check(episode, DTYPES[options.dtype], options.device) for episode in episodes
    }
    overall = Deviations.worst(list(found.values()))
    if not options.json:
        print_table(found, overall)
        return 0 if overall.within() else 1
    files = {name: as_json(deviations) for name, deviations in found.items()}
    try:
        print(json.dumps({"overall": as_json(overall), "files": files}, indent=1, allow_nan=False))
    except ValueError:
        diverged = [name for name, part in found.items() if not math.isfinite(part.share)]
        print(
            f"error: deviations of {diverged} are not finite, which JSON cannot hold: leave "
            "out --json to see which, and look for parameters that make the simulation diverge",
            file=sys.stderr,
        )
        return 1
    return 0 if overall.within() else 1


def as_json(deviations: Deviations) -> dict[str, float | int | None]:
    """Return the quantities that other programs read; null for one that was not recorded.

    What the task lacks is left out.
    """
    values = asdict(deviations)
    return {name: values[name] for name in COLUMNS if name not in deviations.lacking}


def print_table(found: Mapping[str, Deviations], overall: Deviations) -> None:
    """Print the largest deviations, a row per file and one for all."""
    rows = {**found, "overall": overall}
    width = max(map(len, rows))
    print("file".ljust(width), *(name.rjust(11) for name in COLUMNS), "verdict", sep="  ")
    for name, deviations in rows.items():
        values = as_json(deviations)
        cells = [_cell(values.get(name)).rjust(11) for name in COLUMNS]
        verdict = "ok" if deviations.within() else "OFF"
        print(name.ljust(width), *cells, verdict, sep="  ")
    print(f"largest deviation: {overall.share:.2g} of its tolerance")


def _cell(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if isinstance(value, float) else str(value)


# ---- score ------------------------------------------------------------------------------------

SCORE = """Print safety numbers and COLREGs scores of episode files, all together, as JSON.

The files may be any program's; docs/evaluation.md says what the numbers are. Exit status: 0, or 2
if a file is of no use.
"""


def define_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``score``."""
    parser.set_defaults(run=score)
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file (published format)")


@tells(ValueError, status=2)
def score(options: argparse.Namespace) -> int:
    """Score the files and print the numbers."""
    episodes = [read_episode(file) for file in options.files]
    for episode in episodes:
        check_first_task(episode)
    numbers = score_recorded([tracks_of(episode) for episode in episodes])
    print(json.dumps(numbers, indent=1, allow_nan=False))
    return 0


COMMANDS = {
    "record": (RECORD, define_record),
    "replay": (REPLAY, define_replay),
    "plot": (PLOT, define_plot),
    "score": (SCORE, define_score),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status, see the commands.
    """
    style = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (text, define) in COMMANDS.items():
        headline = text.partition("\n")[0]
        define(commands.add_parser(name, help=headline, description=text, formatter_class=style))
    rest, settings = split_settings(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(rest, argparse.Namespace(settings=settings))
    if settings and options.run not in (record, plot):
        parser.error(f"{settings[0]} is for record and plot: leave it out")
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
