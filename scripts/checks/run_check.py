"""Lives through trainings on a device, as users do: scripts/checks/run_check.py WHAT --device cuda.

WHAT is `life`: a training is killed (SIGKILL) after its first checkpoint and resumed to its end,
its policy evaluated, exported and evaluated again; it observes two decisions and adds noise to
its actions. Or `learns`: a quickstart cut short has to succeed in the first stage.

Exit status: 0; 1 if something failed, which is then said.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from train_RL_agents.commands.parser import Parser, tells
from train_RL_agents.run import checkpoint
from train_RL_agents.run.provenance import EVALUATION

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 45
"""For a first checkpoint."""
LIFE = (
    *("--agent", "DDPG", "stack_k=2", "exploration.action_noise=0.2", "worlds=512"),
    *("total_steps=400_000", "updates.samples_per_insert=0.25", "updates.batch_size=1024"),
    "replay.capacity=200_000",  # checkpoints hold it
    *("log.interval_steps=20_000", "checkpoint.interval_steps=40_000"),
    *("evaluation.interval_steps=400_000", "evaluation.episodes=5", "evaluation.final_episodes=5"),
)
LEARNS = (
    *("--preset", "quickstart", "total_steps=800_000", "evaluation.interval_steps=800_000"),
    "evaluation.final_episodes=100",
)
ENOUGH = 0.7
"""Success in the first stage."""


class FailedError(Exception):
    """Something did not go as it must."""


def program(name: str, *arguments: str | Path) -> list[str]:
    """Return the command that runs one of the programs."""
    return [sys.executable, str(ROOT / "train_RL_agents" / name), *map(str, arguments)]


def run(name: str, *arguments: str | Path) -> None:
    """Run a program to its end.

    Raises:
        FailedError: it fails.
    """
    done = subprocess.run(program(name, *arguments), cwd=ROOT, check=False)
    if done.returncode != 0:
        raise FailedError(f"{name} ended with status {done.returncode}")


def kill_early(command: Sequence[str], folder: Path) -> None:
    """Start a training and kill it once it has a checkpoint besides that of its beginning.

    Raises:
        FailedError: it ends by itself, or has none in time.
    """
    process = subprocess.Popen(command, cwd=ROOT)
    begun = time.monotonic()
    try:
        while len(list((folder / "checkpoints").glob("step_*.pt"))) < 2:
            if process.poll() is not None:
                raise FailedError(f"the training ended with status {process.returncode}")
            if time.monotonic() - begun > PATIENCE_S:
                raise FailedError(f"no checkpoint within {PATIENCE_S} s")
            time.sleep(0.02)
        if process.poll() is not None:
            raise FailedError("the training was over before it could be killed: give more steps")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def life(device: str, folder: Path, overrides: Sequence[str]) -> str:
    """Kill, resume, evaluate, export, evaluate; return what to say.

    Raises:
        FailedError: a part of it failed.
    """
    trained, exported = folder / "run", folder / "policy.pt"
    command = program("train.py", *LIFE, *overrides, "--device", device, "--output", trained)
    kill_early(command, trained)
    killed_at = checkpoint.load(checkpoint.newest(trained))["step"]
    run("train.py", "--resume", trained)
    newest = checkpoint.newest(trained)
    step = checkpoint.load(newest)["step"]
    if step <= killed_at or not (trained / EVALUATION).is_file():
        raise FailedError(f"killed at step {killed_at}, it was resumed to {step} and no further")
    how = ("--device", device, "--stage", "1", "--episodes", "5")
    among = ("--traffic", "straight", "--shield", "planned_share=0.125")
    run("evaluate.py", "--checkpoint", newest, *how, *among)
    run("export.py", "--checkpoint", newest, "--format", "torchscript", "--output", exported)
    run("evaluate.py", "--checkpoint", exported, *how)
    return f"killed at step {killed_at}, resumed to {step}, evaluated and exported"


def learns(device: str, folder: Path, overrides: Sequence[str]) -> str:
    """Train a short quickstart; return what to say.

    Raises:
        FailedError: it fails, or succeeds too seldom.
    """
    trained = folder / "run"
    run("train.py", *LEARNS, *overrides, "--device", device, "--output", trained)
    first, *_ = json.loads((trained / EVALUATION).read_text())["stages"]
    outcome = f"success {first['success']:.2f} in the first stage"
    if first["success"] < ENOUGH:
        raise FailedError(f"{outcome}, less than {ENOUGH}")
    return outcome


CHECKS = {"life": life, "learns": learns}


@tells(FailedError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the checks; return the exit status."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=CHECKS, help="what to check")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cuda", help="run on this device"
    )
    parser.add_argument(
        "--settings",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="train with these settings too, in the place of the check's own of the same name",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        outcome = CHECKS[options.what](options.device, Path(folder), options.settings)
    print(f"{options.what}: {outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
