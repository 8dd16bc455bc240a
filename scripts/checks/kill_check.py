"""Kills short trainings at random moments, resumes them, and checks that nothing was lost.

    python scripts/checks/kill_check.py --kills 100 [--agent AC-IQN ...] [--json FILE]

Each agent first trains once undisturbed. Then the same run is started again and again, and killed
(SIGKILL) at a random moment each time, from its first instructions to its last record; after each
kill it is resumed. A run that comes to its end must hold the same weights and the same records as
the undisturbed one, bit for bit. After each kill every checkpoint must load, and the newest may lie
at most one interval behind the last record.

The processes are forked from one that has loaded torch, so that a life is short and the kills fall
into training and saving, not into the import of libraries.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib.pyplot  # noqa: F401 - loaded here, once for all processes
import torch

from marinenav_env.files import write_json
from scripts.bench.machine import record_head
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.commands.parser import Parser, output_file
from train_RL_agents.metrics.writer import METRICS, read_metrics
from train_RL_agents.run import checkpoint
from train_RL_agents.run.provenance import EVALUATION, RUN

INTERVAL = 256  # steps between checkpoints, and between records
WORLDS = 8
SETTINGS = (
    "device=cpu",
    f"worlds={WORLDS}",
    "threads=1",
    "total_steps=2560",
    "updates.batch_size=16",
    "updates.samples_per_insert=0.1",
    "updates.warmup_transitions=100",
    "replay.capacity=3000",
    f"log.interval_steps={INTERVAL}",
    f"checkpoint.interval_steps={INTERVAL}",
    "evaluation.interval_steps=1024",
    "evaluation.episodes=1",
    "evaluation.final_episodes=1",
    "env.episode.max_steps=40",
)
CLOCK = ("robot_steps_per_s", "world_steps_per_s", "elapsed_s")  # what may differ between runs
EARLIEST_S = 0.05


@dataclass
class Tally:
    """What happened to one agent.

    Attributes:
        agent: its name.
        kills: processes killed before their run was complete.
        before_first_checkpoint: of those, before the run had a checkpoint; it then began again.
        resumed: processes that went on from a checkpoint after a kill.
        completed: runs that came to their end in spite of the kills.
        most_lost_steps: largest distance of a last record from the newest checkpoint.
        problems: what was not as it must be; empty if all is well.
    """

    agent: str
    kills: int = 0
    before_first_checkpoint: int = 0
    resumed: int = 0
    completed: int = 0
    most_lost_steps: int = 0
    problems: list[str] = field(default_factory=list)


def begin(arguments: Sequence[str], log: Path) -> int:
    """Fork a process that trains with these arguments, writing to ``log``; return its number."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        status = train.main(list(arguments))
    finally:
        os._exit(status)


def arguments_for(agent: str, folder: Path, *more: str) -> list[str]:
    """Return the command line that starts a run (with more settings), or resumes a begun one."""
    if (folder / RUN).exists():
        return ["--resume", str(folder)]
    idle = AGENTS[agent].idle_settings
    settings = [setting for setting in SETTINGS if not setting.startswith(idle)]
    return ["--agent", agent, "--output", str(folder), *settings, *more]


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, oldest first."""
    return sorted((folder / "checkpoints").glob("step_*.pt"))


def undisturbed(agent: str, folder: Path, *more: str) -> float:
    """Train once without a kill, with more settings; return how long that takes [s].

    Raises:
        RuntimeError: the training failed.
    """
    begun = time.monotonic()
    log = folder.with_suffix(".log")
    _, status = os.waitpid(begin(arguments_for(agent, folder, *more), log), 0)
    if status != 0:
        raise RuntimeError(f"training {agent} failed:\n{log.read_text()[-2000:]}")
    return time.monotonic() - begun


def outcome(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the last weights and the records of a complete run, without those of the clock."""
    state = checkpoint.load(checkpoints(folder)[-1])
    records = [
        {key: value for key, value in record.items() if key not in CLOCK}
        for record in read_metrics(folder / METRICS)
    ]
    return state["model"], records


def differences(folder: Path, reference: Path) -> list[str]:
    """Say in what a complete run differs from the undisturbed one."""
    model, records = outcome(folder)
    expected_model, expected_records = outcome(reference)
    found = []
    if not equal(model, expected_model):
        found.append("other weights than the undisturbed run")
    if records != expected_records:
        found.append("other records than the undisturbed run")
    return found


def equal(first: Any, second: Any) -> bool:
    """Whether nested dictionaries and lists of tensors and scalars are the same, bit for bit."""
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(equal, first, second))
    return first == second


def inspect(folder: Path, tally: Tally) -> list[str]:
    """Check what a kill left behind; return what is wrong."""
    for file in (folder / "checkpoints").glob("*.pt"):
        try:
            checkpoint.load(file)
        except checkpoint.CheckpointError as error:
            return [str(error)]
    steps = [checkpoint.load(file)["step"] for file in checkpoints(folder)]
    if not steps:
        tally.before_first_checkpoint += 1
        return []
    metrics = folder / METRICS
    logged = [record["step"] for record in read_metrics(metrics)] if metrics.exists() else []
    lost = max(logged, default=0) - max(steps)
    tally.most_lost_steps = max(tally.most_lost_steps, lost)
    if lost > INTERVAL + WORLDS:
        return [f"{lost} steps lost, more than an interval of {INTERVAL}"]
    return []


def check(agent: str, kills: int, folder: Path, random_moments: random.Random) -> Tally:
    """Kill trainings of one agent ``kills`` times, resuming after each; the last run ends."""
    tally, reference, run = Tally(agent), folder / "undisturbed", folder / "killed"
    lifetime = undisturbed(agent, reference)
    lifetime -= time.time() - (reference / EVALUATION).stat().st_mtime  # complete, it only draws
    log = run.with_suffix(".log")
    while (tally.kills < kills or run.exists()) and not tally.problems:
        arguments = arguments_for(agent, run)
        tally.resumed += bool(checkpoints(run))
        process = begin(arguments, log)
        spared = tally.kills == kills
        patience = math.inf if spared else random_moments.uniform(EARLIEST_S, lifetime)
        status = wait(process, time.monotonic() + patience)
        complete = (run / EVALUATION).exists()
        if status is None and not complete:
            tally.kills += 1
            tally.problems += inspect(run, tally)
        elif status or not complete:  # it ended by itself
            tally.problems.append(f"ended with status {status}:\n{log.read_text()[-2000:]}")
        if complete and not tally.problems:
            tally.problems += differences(run, reference)
            tally.completed += 1
            shutil.rmtree(run)
    return tally


def wait(process: int, deadline: float) -> int | None:
    """Wait for a process until ``deadline``; return its status, or kill it and return None."""
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = Parser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--agent",
        choices=list(AGENTS),
        nargs="+",
        default=list(AGENTS),
        help="check these algorithms (default: all)",
    )
    parser.add_argument(
        "--kills",
        type=int,
        default=100,
        metavar="N",
        help="kill the training of each algorithm so many times (default %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="draw the moments from this seed (default %(default)s)"
    )
    parser.add_argument(
        "--json", type=output_file(), metavar="FILE", help="write the tallies to this file"
    )
    options = parser.parse_args(arguments)
    if options.kills < 1:
        parser.error(f"--kills is {options.kills}: give 1 or more")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the agents one after another; return 1 if anything was lost or damaged."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    torch.set_num_threads(1)  # a forked process must not inherit a pool of threads
    moments = random.Random(options.seed)
    tallies: list[Tally] = []
    record = {
        **record_head(torch.device("cpu")),
        "command": ["scripts/checks/kill_check.py", *arguments],
        "settings": SETTINGS,
    }
    for agent in options.agent:
        with tempfile.TemporaryDirectory() as folder:
            tally = check(agent, options.kills, Path(folder), moments)
        tallies.append(tally)
        print(
            f"{agent}: {tally.kills} kills, {tally.resumed} resumed, {tally.completed} runs "
            f"completed as if undisturbed, at most {tally.most_lost_steps} steps lost",
            flush=True,
        )
        for problem in tally.problems:
            print(f"{agent}: {problem}", file=sys.stderr)
        if options.json:
            write_json(options.json, {**record, "agents": [vars(t) for t in tallies]})
    return int(any(tally.problems for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
