"""Helps scripts/gpu_check.sh: whether this machine can run the checks, and the record of them."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

NEEDED = ("torch", "torchrl", "tensordict", "numpy", "gymnasium", "omegaconf", "rich", "tqdm")


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


def read_results(path: Path) -> list[dict[str, object]]:
    """Read the lines `name, status, seconds, text` that the script notes."""
    fields = ("name", "status", "seconds", "text")
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    checks = [dict(zip(fields, row, strict=True)) for row in rows]
    return [{**check, "seconds": int(check["seconds"])} for check in checks]


def write(results: Path, output: Path, command: str, seconds: str) -> int:
    """Write the record and print the verdict; return the exit status."""
    import torch

    from scripts.bench_machine import commit, describe_machine, versions

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    checks = read_results(results)
    record = {
        "machine": describe_machine(device),
        **commit(),
        "versions": versions(),
        "command": command,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": int(seconds),
        "checks": checks,
    }
    output.write_text(json.dumps(record, indent=1) + "\n")
    failed = [check["name"] for check in checks if check["status"] == "failed"]
    skipped = [check["name"] for check in checks if check["status"] == "skipped"]
    if skipped:
        print(f"gpu_check: not checked: {', '.join(skipped)}")
    if failed:
        print(f"gpu_check: error: failed: {', '.join(failed)}; see {output}", file=sys.stderr)
        return 1
    print(f"gpu_check: passed in {seconds} s; see {output}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the part that the script asks for; return the exit status."""
    task, *rest = sys.argv[1:] if arguments is None else arguments
    if task == "ready":
        found = problem()
        if found is not None:
            print(f"gpu_check: error: {found}", file=sys.stderr)
        return 0 if found is None else 2
    if task == "architecture":
        print(architecture())
        return 0
    if task == "agents":
        from train_RL_agents.agents.registry import AGENTS

        print("\n".join(AGENTS))
        return 0
    results, output, command, seconds = rest
    return write(Path(results), Path(output), command, seconds)


if __name__ == "__main__":
    sys.exit(main())
