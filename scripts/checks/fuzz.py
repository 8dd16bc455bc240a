"""Plays random configurations, damaged files and interrupted runs, and sorts what comes of them.

    python scripts/checks/fuzz.py [--configurations N] [--files N] [--interruptions N] [--json FILE]

Outcomes: accepted, clear error (it names the setting or the file, and a remedy), unclear error,
traceback, crash, hang, silent change (something else than given is taken without a word). Exit
status 1 if there is any but the first two. The defaults take about a quarter of an hour on two
cores. The same seed plays the same configurations and damage; where a signal hits is chance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot  # noqa: F401 - loaded here, once for all workers
import torch

from marinenav_env.files import write_json
from scripts.bench.machine import record_head
from scripts.checks.fuzzing import configurations, files, interruptions
from scripts.checks.fuzzing.outcomes import BAD, KINDS, Result, play_all
from train_RL_agents.commands.parser import Parser, output_file
from train_RL_agents.evaluation import episodes

DECISION_LIMIT = 50
"""Of evaluated episodes here, instead of 1,000."""
SAVED_EVERY = 200


def play_configurations(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    """Yield what comes of configurations."""
    configurations.prepare()
    for batch, begin in enumerate(range(0, options.configurations, configurations.BATCH)):
        count = min(configurations.BATCH, options.configurations - begin)
        yield from play_all(
            partial(
                configurations.play,
                seed=options.seed,
                batch=batch,
                count=count,
                train_every=options.train_every,
                folder=folder,
            ),
            options.patience,
        )


def play_files(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    """Yield what comes of damaged files."""
    samples, copies = folder / "samples", folder / "copies"
    samples.mkdir()
    files.make_samples(samples)
    whole = files.read_whole(samples, copies)
    yield from play_all(
        lambda player: files.play(player, options.seed, options.files, samples, whole, copies),
        options.patience,
    )


def play_interruptions(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    """Yield what comes of interrupted runs."""
    lifetimes = {
        agent: interruptions.make_reference(agent, folder / agent)
        for agent in interruptions.AGENTS[: options.interruptions]
    }
    yield from play_all(
        lambda player: interruptions.play(
            player, options.seed, options.interruptions, lifetimes, folder
        ),
        10 * interruptions.PATIENCE_S,
    )


FAMILIES = {
    "configurations": play_configurations,
    "files": play_files,
    "interruptions": play_interruptions,
}


class Tally:
    """Outcomes of a family, by their kinds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.bad: list[dict[str, str]] = []
        self.begun = self.latest = time.monotonic()

    def add(self, result: Result) -> None:
        """Count a result, and keep it if it is a bad one."""
        self.latest = time.monotonic()
        kind, message = result.outcome
        self.counts[kind] += 1
        if kind in BAD:
            self.bad.append({"outcome": kind, "case": result.case, "message": message})

    def as_json(self) -> dict[str, Any]:
        """Return the tally as JSON values."""
        return {
            "cases": self.counts.total(),
            "seconds": round(self.latest - self.begun, 1),
            "outcomes": {kind: self.counts[kind] for kind in KINDS},
            "bad": self.bad,
        }


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = Parser(description=__doc__.partition("\n")[0])
    for name, default in {"configurations": 10_000, "files": 1_000, "interruptions": 200}.items():
        parser.add_argument(
            f"--{name}",
            type=int,
            default=default,
            metavar="N",
            help=f"try so many {name} (default %(default)s)",
        )
    parser.add_argument(
        "--train-every",
        type=int,
        default=25,
        metavar="N",
        help="train for a moment with one of so many configurations (default %(default)s)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=120.0,
        metavar="S",
        help="give a case so many seconds before it counts as hanging",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="draw the cases from this seed (default %(default)s)"
    )
    parser.add_argument(
        "--json", type=output_file(), metavar="FILE", help="write the outcomes to this file"
    )
    options = parser.parse_args(arguments)
    for name in FAMILIES:
        if getattr(options, name) < 0:
            parser.error(f"--{name} is {getattr(options, name)}: give 0 or more")
    if options.train_every < 1:
        parser.error(f"--train-every is {options.train_every}: give 1 or more")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all families; return 1 if any outcome is a bad one."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    torch.set_num_threads(1)
    episodes.DECISION_LIMIT = DECISION_LIMIT
    record: dict[str, Any] = {
        **record_head(torch.device("cpu")),
        "command": ["scripts/checks/fuzz.py", *arguments],
    }
    tallies: dict[str, Tally] = {}

    def save() -> None:
        if options.json:
            families = {name: tally.as_json() for name, tally in tallies.items()}
            write_json(options.json, {**record, "families": families})

    for name, family in FAMILIES.items():
        if not getattr(options, name):
            continue
        tally = tallies[name] = Tally()
        with tempfile.TemporaryDirectory() as folder:
            for number, result in enumerate(family(options, Path(folder)), 1):
                tally.add(result)
                if result.outcome.kind in BAD:
                    print(f"{result.outcome.kind}: {result.case}: {result.outcome.message}")
                if number % SAVED_EVERY == 0:
                    save()
        save()
        counts = ", ".join(f"{kind} {count}" for kind, count in tally.counts.items())
        print(f"{name}, {tally.as_json()['seconds']} s: {counts}", flush=True)
    return int(any(tally.bad for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
