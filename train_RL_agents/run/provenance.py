"""``run.json``: what a later reader needs to repeat a run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from marinenav_env.fields import ConfigError, plain
from marinenav_env.files import parse_json, read_parsed, set_aside, write_json
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.config.shipped import INSTALLED
from train_RL_agents.metrics.writer import METRICS
from train_RL_agents.run.checkpoint import CHECKPOINTS, saved_steps

EVALUATION = "evaluation.json"
"""The final table; a run that has it is complete."""
RUN = "run.json"
SOURCES = ("*.py", "*.yaml", "*.h", "*.cuh", "*.cpp", "*.cu")
PLAIN = (
    *("--binary", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
"""Options of `git diff` for a patch that can be applied, whatever the user has configured."""
COMMIT_VARIABLE = "MARINENAV_COMMIT"
PACKAGES = ("marinenav", "torchrl", "tensordict", "numpy")
ROOT = Path(__file__).resolve().parents[2]


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


def source_commit() -> str | None:
    """Return the commit of this source tree.

    Outside a repository that of the environment variable `MARINENAV_COMMIT`, for copies that travel
    without their history, or None.
    """
    answer = _git("rev-parse", "HEAD")
    return os.environ.get(COMMIT_VARIABLE) if answer is None else answer.strip()


def source_diff() -> str | None:
    """Return what to `git apply` to the commit for this source tree, new source files included.

    None outside a repository. Bytes that are no UTF-8 are replaced.
    """
    listed = _git("ls-files", "-z", "--others", "--exclude-standard", "--", *SOURCES)
    if listed is None:
        return None
    new = [name for name in listed.split("\0") if name]
    with tempfile.TemporaryDirectory() as folder:
        # A copy of the index, in which the new files are announced: git's own stays as it is.
        index = Path(folder) / "index"
        own = _git("rev-parse", "--path-format=absolute", "--git-path", "index")
        if new and own is not None:
            shutil.copy(own.strip(), index)
            _git("add", "--intent-to-add", "--", *new, index=index)
        return _git("diff", *PLAIN, "HEAD", index=index if index.exists() else None)


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


def device_name(device: torch.device) -> str:
    """Return the device in words, for example ``cuda: NVIDIA H200``."""
    if device.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(device)}"
    return f"cpu: {platform.processor() or platform.machine()}"


def versions() -> dict[str, str | None]:
    """Return versions of Python, CUDA and the packages that matter; None for what is not there."""
    found = {
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,  # names the build too, as the installed package may not
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _git(*arguments: str, index: Path | None = None) -> str | None:
    """Return git's answer about this source tree, or None outside a repository."""
    if INSTALLED:  # in an environment that may lie in another project's repository
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            env={**os.environ, **({"GIT_INDEX_FILE": str(index)} if index else {})},
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.decode(errors="replace")
