"""Helps scripts/gpu_check.sh: whether this machine can run the checks, and the record of them.

torch is imported at the beginning only, so that noting a check takes a moment.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from marinenav_env.files import write_atomically

# What the build, scripts/bench.py, train.py and CUDA_TESTS import; pytest comes last.
NEEDED = (
    "torch",
    "torchrl",
    "tensordict",
    "numpy",
    "gymnasium",
    "omegaconf",
    "yaml",
    "rich",
    "tqdm",
    "tensorboard",
    "matplotlib",
    "PIL",
    "imageio",
    "scipy",
    "packaging",
    "setuptools",
    "pytest",
)
# The files with tests that `pytest -k cuda` selects; the others need more packages.
CUDA_TESTS = (
    "tests/test_build.py",
    "tests/marinenav_env",
    "tests/train_RL_agents/training/test_learner.py",
    "tests/train_RL_agents/replay/test_sum_tree.py",
    "tests/train_RL_agents/replay/test_buffer.py",
    "tests/train_RL_agents/run/test_resume.py",
    "tests/train_RL_agents/training/test_trainer.py",
)
HEAD, RESULTS = "head.json", "results.tsv"  # in the script's temporary folder


def problem() -> str | None:
    """Return why this machine cannot run the checks, and what helps; None if it can."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return f"torch cannot be imported ({error}): install a CUDA build, or set PYTHONPATH"
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA: install a CUDA build of it"
    if not torch.cuda.is_available():
        return "torch finds no CUDA device: run this on a machine with an NVIDIA GPU and its driver"
    for name in NEEDED[1:]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"{name} cannot be imported ({error}): install it, or set PYTHONPATH"
    return None


def architecture() -> str:
    """Return the GPU's compute capability in torch's notation, for instance 9.0."""
    import torch

    return ".".join(map(str, torch.cuda.get_device_capability()))


def agents() -> list[str]:
    """Return the names of the agents."""
    from train_RL_agents.agents.registry import AGENTS

    return list(AGENTS)


def describe(command: str) -> dict[str, object]:
    """Return what the record begins with: machine, commit, versions, command, time."""
    import torch

    from scripts.bench.machine import commit, describe_machine
    from train_RL_agents.run.provenance import versions

    return {
        "machine": describe_machine(torch.device("cuda" if torch.cuda.is_available() else "cpu")),
        **commit(),
        "versions": versions(),
        "command": command,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def begin(scratch: Path, command: str) -> int:
    """Note the machine and print what the script needs; return 2 where it cannot run.

    Prints the GPU's architecture, the agents and the paths of the CUDA tests, a line each.
    """
    found = problem()
    if found is not None:
        print(f"gpu_check: error: {found}", file=sys.stderr)
        return 2
    (scratch / HEAD).write_text(json.dumps(describe(command)))
    (scratch / RESULTS).touch()
    for line in ([architecture()], agents(), CUDA_TESTS):
        print(*line)
    return 0


def read_results(path: Path) -> list[dict[str, object]]:
    """Read the lines `name, status, seconds, text` that the script notes."""
    fields = ("name", "status", "seconds", "text")
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    checks = [dict(zip(fields, row, strict=True)) for row in rows]
    return [{**check, "seconds": int(check["seconds"])} for check in checks]


def write(scratch: Path, folder: Path, seconds: int, *, complete: bool) -> list[dict[str, object]]:
    """Write gpu_check.json and gpu_check.log as far as there is something; return the checks."""
    with (scratch / RESULTS).open() as results:
        fcntl.flock(results, fcntl.LOCK_EX)  # checks side by side end when they like
        checks = read_results(scratch / RESULTS)
        record = json.loads((scratch / HEAD).read_text())
        record |= {"seconds": seconds, "complete": complete, "checks": checks}
        content = (json.dumps(record, indent=1) + "\n").encode()
        write_atomically(folder / "gpu_check.json", lambda file: file.write(content))
        logs = sorted(scratch.glob("*.log"))
        text = b"".join(f"== {log.stem}\n".encode() + log.read_bytes() for log in logs)
        write_atomically(folder / "gpu_check.log", lambda file: file.write(text))
    return checks


def verdict(checks: Sequence[dict[str, object]], folder: Path, seconds: int, stopped: bool) -> int:
    """Print what came of the checks; return the exit status."""
    output = folder / "gpu_check.json"
    failed = [check["name"] for check in checks if check["status"] == "failed"]
    skipped = [check["name"] for check in checks if check["status"] == "skipped"]
    if skipped:
        print(f"gpu_check: not checked: {', '.join(skipped)}")
    if stopped:
        print(f"gpu_check: error: stopped by a signal after {seconds} s", file=sys.stderr)
    if failed:
        print(f"gpu_check: error: failed: {', '.join(failed)}; see {output}", file=sys.stderr)
    if failed or stopped:
        return 1
    print(f"gpu_check: passed in {seconds} s; see {output}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the part that the script asks for; return the exit status."""
    task, scratch, *rest = sys.argv[1:] if arguments is None else arguments
    if task == "begin":
        return begin(Path(scratch), *rest)
    folder, seconds = Path(rest[0]), int(rest[1])
    checks = write(Path(scratch), folder, seconds, complete=task == "finish")
    return 0 if task == "note" else verdict(checks, folder, seconds, stopped=task == "stop")


if __name__ == "__main__":
    sys.exit(main())
