"""Measures training by one process and by several, started as a user starts them.

    python scripts/bench/processes.py [SETTING=VALUE ...] [--processes 1 2] [--agent AC-IQN]

Every process has the same worlds, batch and steps of its own, so that N processes do N times the
work. The rows take turns, and a figure is the median of their repeats. What comes before the first
record of a run (start, warm-up of the replay) does not count.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from marinenav_env.files import write_json
from scripts.bench.machine import record_head
from train_RL_agents import train
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.parser import Parser, output_file
from train_RL_agents.config.files import load_config
from train_RL_agents.metrics.writer import METRICS, read_metrics

INTERVALS = 4
FIGURES = ("robot_steps_per_s", "gradient_samples_per_s", "samples_per_insert")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--processes",
        nargs="+",
        type=int,
        default=[1, 2],
        metavar="N",
        help="train with so many processes, one row each (default: 1 2)",
    )
    parser.add_argument(
        "--agent",
        choices=list(REPLAY_AGENTS),
        default="AC-IQN",
        help="train this algorithm (default %(default)s)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="train on this device (default %(default)s)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=80_000,
        help="let every process take so many decisions (default %(default)s)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="measure every row so many times (default %(default)s)",
    )
    parser.add_argument(
        "--json", type=output_file(), metavar="FILE", help="write the record to this file"
    )
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="SETTING=VALUE",
        help="settings of the training, as train.py takes them, such as threads=1",
    )
    options = parser.parse_args(arguments)
    if min(*options.processes, options.repeats) < 1:
        parser.error("--processes and --repeats take numbers from 1")
    if options.steps < INTERVALS:
        parser.error(f"--steps is {options.steps}: give {INTERVALS} or more")
    try:
        options.config, _, _ = load_config(agent=options.agent, overrides=options.settings)
    except ValueError as error:
        parser.error(str(error))
    return options


def command_for(options: argparse.Namespace, processes: int, folder: Path) -> list[str]:
    """Return the command that trains with a number of processes."""
    total = options.steps * processes
    program = [sys.executable]
    if processes > 1:
        program += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    settings = [
        f"total_steps={total}",
        f"log.interval_steps={total // INTERVALS}",
        f"evaluation.interval_steps={total}",
        f"checkpoint.interval_steps={total}",
        "checkpoint.with_replay=false",
        "evaluation.stages=[[1,0,0,30]]",
        "evaluation.episodes=1",
        "evaluation.final_episodes=1",
    ]
    arguments = ["--agent", options.agent, "--device", options.device, "--output", str(folder)]
    return [*program, str(train.__file__), *arguments, *settings, *options.settings]


def figures_of(records: Sequence[dict[str, Any]], samples_per_update: int) -> dict[str, float]:
    """Return the rates of a run's records of training, without the first.

    Args:
        records: of the label `train`, in order.
        samples_per_update: batch of all processes together.
    """
    first, *rest = records
    robot_steps = sum(record["robot_steps"] for record in rest)
    seconds = sum(record["robot_steps"] / record["robot_steps_per_s"] for record in rest)
    samples = (rest[-1]["updates"] - first["updates"]) * samples_per_update
    figures = (robot_steps / seconds, samples / seconds, samples / robot_steps)
    return dict(zip(FIGURES, figures, strict=True))


def measure(options: argparse.Namespace, processes: int) -> dict[str, float]:
    """Train once; return the figures.

    Raises:
        RuntimeError: the training failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        command = command_for(options, processes, folder)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        records = [r for r in read_metrics(folder / METRICS) if r["mode"] == "train"]
    return figures_of(records, options.config.updates.batch_size * processes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write the record after every run."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    record = {
        **record_head(torch.device(options.device)),
        "command": ["scripts/bench/processes.py", *arguments],
    }
    runs: dict[int, list[dict[str, float]]] = {number: [] for number in options.processes}
    rows: list[dict[str, Any]] = []
    for _ in range(options.repeats):
        for processes, done in runs.items():
            done.append(measure(options, processes))
            rows = [
                {
                    "processes": number,
                    **{name: statistics.median(run[name] for run in of) for name in FIGURES},
                    "repeats": of,
                }
                for number, of in runs.items()
                if of
            ]
            if options.json:
                write_json(options.json, {**record, "rows": rows})
    table = Table(title=f"{options.agent} on {options.device}")
    for name in ("processes", "robot-steps/s", "gradient samples/s", "samples per insert"):
        table.add_column(name, justify="right")
    for row in rows:
        rates = (f"{row[name]:,.0f}" for name in FIGURES[:2])
        table.add_row(str(row["processes"]), *rates, f"{row['samples_per_insert']:.2f}")
    open_console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
