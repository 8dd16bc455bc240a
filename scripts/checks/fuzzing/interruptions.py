"""Runs that a signal ends at a random moment, and that are resumed.

A run that a signal ends has to say so and no more, and once resumed it has to come to the same
weights and records as one that was left alone. The parts are those of `kill_check.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from random import Random

from scripts.checks import kill_check
from scripts.checks.fuzzing.outcomes import (
    ACCEPTED,
    CRASH,
    HANG,
    SILENT,
    TRACEBACK,
    UNCLEAR,
    Outcome,
    Player,
)
from train_RL_agents.run.provenance import EVALUATION

AGENTS = ("DQN", "AC-IQN", "Rainbow")
"""A discrete one, one with an actor, and one with priorities."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SHORTER = ("total_steps=1024", "evaluation.interval_steps=512", "evaluation.stages=[[1,0,0,30]]")
PATIENCE_S = 60.0
STARTS = 4
"""Starts after the signal in which a run has to be complete."""


def make_reference(agent: str, folder: Path) -> float:
    """Train without a signal; return how long that takes [s]."""
    return kill_check.undisturbed(agent, folder, *SHORTER)


def begin(agent: str, run: Path) -> int:
    """Start or resume a run; return its process."""
    return kill_check.begin(kill_check.arguments_for(agent, run, *SHORTER), run.with_suffix(".log"))


def ended(process: int) -> int | None:
    """Wait for a process; return its status, or None if it hangs and had to be killed."""
    return kill_check.wait(process, time.monotonic() + PATIENCE_S)


def judge(
    agent: str, number: signal.Signals, moment_s: float, reference: Path, run: Path
) -> Outcome:
    """Interrupt a run, resume it until it is complete, and compare."""
    shutil.rmtree(run, ignore_errors=True)
    log = run.with_suffix(".log")
    log.unlink(missing_ok=True)
    process = begin(agent, run)
    time.sleep(moment_s)
    os.kill(process, number)  # one that has ended is there until it is waited for
    status = ended(process)
    if status is None:
        return Outcome(HANG, f"{PATIENCE_S} s after {number.name}")
    if status not in (0, -number, 128 + number):
        return Outcome(CRASH if status < 0 else UNCLEAR, f"status {status} after {number.name}")
    for _ in range(STARTS):
        status = ended(begin(agent, run)) if status else 0
        if status is None:
            return Outcome(HANG, "resumed")
    output = log.read_text()
    if "Traceback" in output:
        return Outcome(TRACEBACK, output[-600:])
    if status or not (run / EVALUATION).exists():
        return Outcome(UNCLEAR, f"status {status}: {output[-600:]}")
    differences = kill_check.differences(run, reference)
    return Outcome(SILENT, "; ".join(differences)) if differences else Outcome(ACCEPTED)


def play(player: Player, seed: int, count: int, lifetimes: dict[str, float], folder: Path) -> None:
    """Play interrupted runs.

    Args:
        player: plays them.
        seed: of signals and moments; a moment falls on another instruction each time.
        count: number of runs.
        lifetimes: by algorithm, from `make_reference` in a folder of its name.
        folder: of the references, and for the runs.
    """
    for number in range(count):
        draw = Random(f"{seed} {number}")
        agent, sent = AGENTS[number % len(AGENTS)], draw.choice(SIGNALS)
        moment = draw.uniform(kill_check.EARLIEST_S, lifetimes[agent])
        player.play(
            f"{number}: {agent}, {sent.name} after {moment:.2f} s",
            partial(judge, agent, sent, moment, folder / agent, folder / "run"),
        )
