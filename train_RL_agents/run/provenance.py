"""``run.json``: what a later reader needs to repeat a run."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from marinenav_env.fields import ConfigError, plain
from marinenav_env.files import parse_json, read_parsed, set_aside, write_json
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.metrics.writer import METRICS
from train_RL_agents.run.checkpoint import CHECKPOINTS, saved_steps
from train_RL_agents.run.source import device_name, source_commit, source_diff, versions

EVALUATION = "evaluation.json"
"""The final table; a run that has it is complete."""
RUN = "run.json"


def write_run_record(
    output_dir: Path, config: TrainConfig, device: torch.device, processes: int, *, resumed: bool
) -> None:
    """Write ``run.json``; a resumed run adds its start to the list of starts.

    A damaged record of the starts before stops no run: it is set aside, and said.

    Args:
        output_dir: the run's folder.
        config: all settings.
        device: what the run runs on.
        processes: number of processes.
        resumed: whether the run resumes from a checkpoint.
    """
    path, starts = output_dir / RUN, []
    if resumed and path.exists():
        try:
            starts = read_run_record(output_dir)["starts"]
        except ConfigError as error:
            print(f"warning: {error}; it is now {set_aside(path)}", file=sys.stderr)
    record = {
        "config": plain(config),
        "seed": config.seed,
        "starts": [*starts, _start(device, processes)],
    }
    write_json(path, record)


def facts_of_run(config: TrainConfig, step: int) -> dict[str, Any]:
    """Return what the final table says of its run; ``run.json`` beside it has all settings.

    Args:
        config: all settings.
        step: of the weights that were evaluated.
    """
    facts = {"agent": config.agent, "task": config.task, "seed": config.seed, "step": step}
    return {**facts, "commit": source_commit()}


def read_run_record(output_dir: Path) -> dict[str, Any]:
    """Return ``run.json``, with at least its `config` and `starts`.

    Raises:
        ConfigError: it is missing, damaged or incomplete.
    """

    def parse(text: str) -> dict[str, Any]:
        record = parse_json(text)
        commits = [start["commit"] for start in record["starts"]]
        if not isinstance(record["config"], dict) or not commits:
            raise ValueError("no settings, or no start")
        return record

    return read_parsed(output_dir / RUN, parse, "put the run's own file back, or remove it")


def ended_at_once(output_dir: Path) -> bool:
    """Whether a run began here and ended before it saved or recorded anything."""
    if not (output_dir / RUN).exists() or saved_steps(output_dir / CHECKPOINTS):
        return False
    metrics = output_dir / METRICS
    return not metrics.exists() or metrics.stat().st_size == 0


def run_record_of(checkpoint: Path) -> dict[str, Any] | None:
    """Return ``run.json`` of the run that a checkpoint lies in; None if there is none to be read.

    Args:
        checkpoint: in the run's folder, or in a folder of it.
    """
    for folder in checkpoint.resolve().parents[:2]:
        try:
            return read_run_record(folder)
        except ConfigError:
            continue
    return None


def commit_of_run(checkpoint: Path) -> str | None:
    """Return the commit that last worked on the run of a checkpoint, where it is known."""
    record = run_record_of(checkpoint)
    return record["starts"][-1]["commit"] if record else None


def _start(device: torch.device, processes: int) -> dict[str, Any]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [sys.executable, *sys.argv],
        "commit": source_commit(),
        "diff": source_diff(),
        "versions": versions(),
        "device": device_name(device),
        "processes": processes,
        "cpu_threads": torch.get_num_threads(),
        "cpu_count": os.cpu_count(),
        "platform": platform.platform(),
    }
