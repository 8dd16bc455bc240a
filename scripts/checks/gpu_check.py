"""Checks the project on a machine with a GPU, in under ten minutes: scripts/gpu_check.sh [FOLDER].

Builds the CUDA operators with the torch that is there, runs the CUDA tests, compute-sanitizer's
tools and a short training of every agent, has one killed, resumed, evaluated and exported, trains
a quickstart and, where two GPUs are, on both, and measures. FOLDER (else $OUT, else
docs/benchmarks) gets gpu_check.json (device, clocks, commit, command, every check), gpu_bench.json,
gpu_turns.json, gpu_training.json, gpu_replay.json and gpu_check.log. Files of these names that lie
there go first; the new ones are written anew after every check and every row of bench.py, so that
what stops the program loses only what it was at.

What tells most comes first. A check may take all the time that is left but for what the later
groups need at least (`gpu_plan.py`).

Variables: PYTHONPATH may hold packages such as torchrl and tensordict; GPU_CHECK_LIMIT_S is the
time for everything; GPU_CHECK_ONLY="NAME ..." runs only these and `operators`, with the operators
that are built already unless `build` is named, to repeat what a first run had no time for, into a
folder of its own;
MARINENAV_COMMIT is the commit to record where the copy has no history.

Exit status: 0, and what was not checked is said; 1 if a check failed or a signal stopped the
program; 2 if this machine cannot run the checks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import itertools
import multiprocessing
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from marinenav_env.files import write_atomically, write_json
from scripts.bench import NO_MEMORY
from scripts.checks.gpu_plan import (
    ALWAYS,
    FIRST,
    LACKING,
    NEEDED,
    SANITIZERS,
    Check,
    agents,
    groups,
)

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 530
"""Time for everything."""
STOPPING_S = 5
"""What is asked to end has so long before it is killed."""
RECORDS = (
    *("gpu_check.json", "gpu_bench.json", "gpu_turns.json", "gpu_training.json"),
    "gpu_replay.json",
)
LOG = "gpu_check.log"
MARK = "MARINENAV_GPU_CHECK"
"""Environment variable by which the processes of a check are known."""
MISSING_ROWS = "but for rows that found too little memory"


class UnsuitableMachineError(Exception):
    """The checks cannot run here; the message says what helps."""


def problem() -> str | None:
    """Return why this machine cannot run the checks, and what helps; None if it can."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return f"torch cannot be imported ({error}): install a CUDA build, or set PYTHONPATH"
    if torch.version.cuda is None:
        return (
            f"torch {torch.__version__} is built without CUDA: on a machine with an NVIDIA GPU "
            "install a CUDA build of it (docs/scaling.md, Drivers and toolkits)"
        )
    if not torch.cuda.is_available():
        return "torch finds no CUDA device: run this on a machine with an NVIDIA GPU and its driver"
    for name in NEEDED[1:]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"{name} cannot be imported ({error}): install it, or set PYTHONPATH"
    return None


def describe() -> tuple[dict[str, Any], str]:
    """Return what the record begins with and the GPU's architecture, such as 9.0.

    Imports nothing that needs the operators, which may not be built yet.

    Raises:
        UnsuitableMachineError: the machine cannot run the checks.
    """
    found = problem()
    if found is not None:
        raise UnsuitableMachineError(found)
    import torch

    from scripts.bench.machine import record_head

    architecture = ".".join(map(str, torch.cuda.get_device_capability()))
    return record_head(torch.device("cuda")), architecture


def find_sanitizer() -> str | None:
    """Return the path of compute-sanitizer, or None."""
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    places = [os.environ.get("PATH", ""), *(f"{home}/bin" for home in homes if home)]
    return shutil.which("compute-sanitizer", path=os.pathsep.join(places))


class Run:
    """Runs checks, and writes the record anew after each.

    Args:
        head: what the record begins with.
        words: what stands for the words in braces in a command; None for what is not there.
        only: names of the checks to run beside `ALWAYS`; empty for all.
        limit_s: time for everything.
    """

    def __init__(
        self,
        head: Mapping[str, object],
        words: Mapping[str, Any],
        only: Sequence[str],
        limit_s: int,
    ) -> None:
        self.head, self.words, self.only, self.limit_s = head, words, only, limit_s
        self.folder, self.scratch = Path(words["folder"]), Path(words["scratch"])
        self.begun = time.monotonic()
        self.results: list[dict[str, Any]] = []

    def seconds(self) -> int:
        """Return the time since the beginning [s]."""
        return int(time.monotonic() - self.begun)

    def named(self, status: str) -> list[str]:
        """Return the names of the checks that ended with this status."""
        return [result["name"] for result in self.results if result["status"] == status]

    async def all(self, planned: Sequence[Sequence[Check]]) -> None:
        """Run the groups one after another; where one of `FIRST` fails the rest is skipped."""
        for number, group in enumerate(planned, 1):
            later = sum(map(self.least, planned[number:]))
            await asyncio.gather(*(self.one(check, later) for check in group))
            missing = FIRST & set(self.named("failed")) or ALWAYS & set(self.named("skipped"))
            if missing:
                for check in itertools.chain(*planned[number:]):
                    self.note(check.name, "skipped", 0, f"it needs {', '.join(missing)}")
                return

    async def one(self, check: Check, later: int) -> None:
        """Run one check within the time left, and note what came of it.

        Args:
            check: what to run.
            later: time that other groups need after it [s]; if too little is left, it gets its
                least share of it all the same.
        """
        left = self.limit_s - self.seconds()
        why = self.left_out(check)
        if why is None and left < 1:
            why = f"no time was left of {self.limit_s} s"
        if why is not None:
            self.note(check.name, "skipped", 0, why)
        else:
            await self._start(check, max(left - later, min(check.least_s, left)))

    def least(self, group: Sequence[Check]) -> int:
        """Return what a group needs at least [s], whose checks run side by side."""
        return max((check.least_s for check in group if not self.left_out(check)), default=0)

    def left_out(self, check: Check) -> str | None:
        """Return why a check is not to run, or what it needs and this machine lacks, in words."""
        if self.only and check.name not in {*self.only, *ALWAYS}:
            return "GPU_CHECK_ONLY leaves it out"
        absent = (word for word in LACKING if self.words[word] is None)
        return next((LACKING[word] for word in absent if f"{{{word}}}" in check.command), None)

    async def _start(self, check: Check, limit: int) -> None:
        log, begun = self.scratch / f"{check.name}.log", self.seconds()
        command = [word.format(**self.words) for word in shlex.split(check.command)]
        why, mark = "stopped by a signal", str(log)
        with log.open("w") as output:
            print("$", shlex.join(command), file=output, flush=True)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                process_group=0,
                env={**os.environ, MARK: mark},
            )
            try:
                status = await asyncio.wait_for(process.wait(), limit)
                why = f"exit status {status}" if status else ""
            except TimeoutError:
                why = f"not finished within {limit} s"
            finally:
                await end(process, mark)
                self._conclude(check.name, self.seconds() - begun, why, log)

    def _conclude(self, name: str, seconds: int, why: str, log: Path) -> None:
        text = log.read_text(errors="replace")
        unsupported = "Device not supported" in text or "not supported on this device" in text
        if not why and " skipped" in text and " passed" not in text:
            self.note(name, "skipped", seconds, "its tests are skipped on this machine")
        elif not why:
            self.note(name, "passed", seconds, MISSING_ROWS if NO_MEMORY in text else "")
        elif name in SANITIZERS and unsupported:
            self.note(name, "skipped", seconds, "compute-sanitizer does not support this device")
        else:
            self.note(name, "failed", seconds, why)
            tail = "\n".join(text.splitlines()[-25:])
            print(f"gpu_check: the end of what {name} printed:\n{tail}", file=sys.stderr)

    def note(self, name: str, status: str, seconds: int, text: str = "") -> None:
        """Take a result, passed, failed or skipped, with its reason."""
        self.results.append({"name": name, "status": status, "seconds": seconds, "text": text})
        print(f"gpu_check: {name} {status} ({seconds} s){text and f': {text}'}", flush=True)
        self.write(complete=False)

    def write(self, *, complete: bool) -> None:
        """Write gpu_check.json and gpu_check.log as far as there is something."""
        record = {**self.head, "seconds": self.seconds(), "complete": complete}
        write_json(self.folder / RECORDS[0], record | {"checks": self.results})
        logs = sorted(self.scratch.glob("*.log"))
        text = b"".join(f"== {log.stem}\n".encode() + log.read_bytes() for log in logs)
        write_atomically(self.folder / LOG, lambda file: file.write(text))

    def verdict(self, *, stopped: bool) -> int:
        """Print what came of the checks; return the exit status."""
        output, failed, skipped = (
            self.folder / RECORDS[0],
            self.named("failed"),
            self.named("skipped"),
        )
        if skipped:
            print(f"gpu_check: not checked: {', '.join(skipped)}")
        if stopped:
            print(
                f"gpu_check: error: stopped by a signal after {self.seconds()} s", file=sys.stderr
            )
        if failed:
            print(f"gpu_check: error: failed: {', '.join(failed)}; see {output}", file=sys.stderr)
        if failed or stopped:
            return 1
        print(f"gpu_check: passed in {self.seconds()} s; see {output}")
        return 0


async def end(process: asyncio.subprocess.Process, mark: str) -> None:
    """End all that has the mark: a process and what it started, also what outlives it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)
        await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=STOPPING_S)


def marked(mark: str) -> list[int]:
    """Return the numbers of the processes that inherited a mark.

    torchrun gives each worker a session of its own, so neither groups nor parents tell them.
    """
    entry = f"{MARK}={mark}\0".encode()
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has just ended, or is another user's
            if entry in environment.read_bytes():
                found.append(int(environment.parent.name))
    return found


async def run(checks: Run, planned: Sequence[Sequence[Check]]) -> int:
    """Run the checks until they end or a signal comes; return the exit status."""
    work = asyncio.ensure_future(checks.all(planned))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # by nohup
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    await asyncio.wait([work])
    stopped = work.cancelled()
    if not stopped:
        work.result()
    checks.write(complete=not stopped)
    return checks.verdict(stopped=stopped)


def absolute(paths: str) -> str:
    """Return a search path as it reads from any folder."""
    return os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep) if path)


def seconds_of(text: str) -> int:
    """Read the time for everything [s].

    Raises:
        UnsuitableMachineError: it is no whole number above 0.
    """
    if not (text.isdecimal() and int(text)):
        raise UnsuitableMachineError(f"GPU_CHECK_LIMIT_S is {text!r}: give whole seconds")
    return int(text)


def clear(folder: Path, only: Sequence[str], planned: Sequence[Sequence[Check]]) -> None:
    """Remove an earlier run's records.

    Raises:
        UnsuitableMachineError: a name in GPU_CHECK_ONLY is unknown, or it would lose the records.
    """
    known = [check.name for group in planned for check in group if check.name not in ALWAYS]
    for name in only:
        if name not in known:
            raise UnsuitableMachineError(
                f"GPU_CHECK_ONLY names {name}: give some of {' '.join(known)}"
            )
    if only and (folder / RECORDS[0]).exists():
        raise UnsuitableMachineError(
            f"{folder} holds a run's records, which GPU_CHECK_ONLY would replace: name another"
            " folder"
        )
    for name in (*RECORDS, LOG):
        (folder / name).unlink(missing_ok=True)


def main() -> int:
    """Run the checks; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Path(os.environ.get("OUT") or ROOT / "docs" / "benchmarks")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=default, help="folder that gets the records"
    )
    folder = parser.parse_args().folder.resolve()
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    only = os.environ.get("GPU_CHECK_ONLY", "").split()
    os.environ["PYTHONPATH"] = absolute(os.environ.get("PYTHONPATH", ""))
    try:
        limit_s = seconds_of(os.environ.get("GPU_CHECK_LIMIT_S") or str(LIMIT_S))
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as child:
            head, architecture = child.submit(describe).result()
        planned = groups(agents())
        clear(folder, only, planned)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, UnsuitableMachineError) as error:
        print(f"gpu_check: error: {error}", file=sys.stderr)
        return 2
    head |= {"command": shlex.join(("scripts/gpu_check.sh", *sys.argv[1:])), "time": begun}
    with tempfile.TemporaryDirectory(prefix="gpu_check.") as scratch:
        python = os.environ.get("PYTHON") or sys.executable
        words = {
            "python": python,
            "architecture": architecture,
            "sanitizer": find_sanitizer(),
            "two_gpus": python if head["machine"]["gpus"] > 1 else None,
            "folder": folder,
            "scratch": scratch,
        }
        return asyncio.run(run(Run(head, words, only, limit_s), planned))


if __name__ == "__main__":
    sys.exit(main())
