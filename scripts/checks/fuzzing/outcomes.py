"""What comes of a case, and workers that play cases: a crash or a hang is one outcome, not the end.

A worker is forked from this process, which has loaded torch. It writes a line to a pipe when a case
begins and when it ends. Who dies between the two has crashed, who is silent for too long hangs; the
next worker continues behind that case.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch

ACCEPTED, ERROR = "accepted", "clear error"
UNCLEAR, TRACEBACK, CRASH = "unclear error", "traceback", "crash"
HANG, SILENT = "hang", "silent change"
BAD = (UNCLEAR, TRACEBACK, CRASH, HANG, SILENT)
KINDS = (ACCEPTED, ERROR, *BAD)

MOST_MEMORY = 8 * 2**30
"""Address space that a worker may take beyond what it was forked with [bytes]."""
LONGEST_MESSAGE = 600


class Outcome(NamedTuple):
    """What came of a case, of `KINDS`, and what was said."""

    kind: str
    message: str = ""


class Result(NamedTuple):
    """A case in words, and what came of it."""

    case: str
    outcome: Outcome


@dataclass
class Player:
    """Plays the cases of a worker, one after another.

    Attributes:
        pipe: where it reports.
        skipped: cases that an earlier worker has played.
        played: cases so far, those that were skipped included.
    """

    pipe: int
    skipped: int
    played: int = 0

    def play(self, case: str, act: Callable[[], Outcome]) -> None:
        """Play a case; what it raises is a traceback."""
        self.played += 1
        if self.played <= self.skipped:
            return
        self.report("begin", case)
        try:
            outcome = act()
        except Exception as error:  # noqa: BLE001 - every other end is what is looked for
            outcome = Outcome(TRACEBACK, last_frames(error))
        self.report(outcome.kind, outcome.message[-LONGEST_MESSAGE:])

    def report(self, what: str, text: str = "") -> None:
        """Send a line to the supervisor."""
        os.write(self.pipe, (json.dumps([what, text]) + "\n").encode())


def last_frames(error: BaseException) -> str:
    """Return an error with the last places that it came through."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    shown = " < ".join(f"{os.path.basename(p.filename)}:{p.lineno}" for p in reversed(places))
    return f"{type(error).__name__}: {str(error)[:300]} ({shown})"


def play_all(work: Callable[[Player], None], patience_s: float) -> Iterator[Result]:
    """Play all cases of ``work`` in workers, and yield what came of each.

    Args:
        work: plays its cases on the player it is given, always the same ones in the same order.
        patience_s: seconds after which a case hangs.
    """
    done, complete = 0, False
    while not complete:
        for result in _life(work, done, patience_s):
            if result is None:
                complete = True
                break
            done += 1
            yield result


def _life(
    work: Callable[[Player], None], skipped: int, patience_s: float
) -> Iterator[Result | None]:
    """Yield the results of one worker; None at the end if it has played all."""
    out, into = os.pipe()
    torch.set_num_threads(1)  # a forked process must not inherit a pool of threads
    process = os.fork()
    if not process:
        os.close(out)
        _work(work, into, skipped)
    os.close(into)
    case = None
    with os.fdopen(out, "rb", buffering=0) as pipe:
        for line in _lines(pipe.fileno(), patience_s):
            if line is None:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                yield Result(str(case), Outcome(HANG, f"{patience_s:.0f} s without an end"))
                return
            what, text = json.loads(line)
            if what == "begin":
                case = text
            elif what == "complete":
                os.waitpid(process, 0)
                yield None
                return
            else:
                yield Result(str(case), Outcome(what, text))
                case = None
    _, status = os.waitpid(process, 0)
    if case is None:
        raise RuntimeError(f"a worker ended between two cases, with status {status}")
    code = os.waitstatus_to_exitcode(status)
    yield Result(
        case, Outcome(CRASH, f"ended with {signal.Signals(-code).name if code < 0 else code}")
    )


def _work(work: Callable[[Player], None], pipe: int, skipped: int) -> None:
    """Be a worker."""
    status = 1
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        with open("/proc/self/statm", encoding="ascii") as file:
            held = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MOST_MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        player = Player(pipe, skipped)
        work(player)
        player.report("complete")
        status = 0
    finally:
        os._exit(status)


def _lines(pipe: int, patience_s: float) -> Iterator[bytes | None]:
    """Yield what comes through a pipe line by line, and None if nothing comes for too long."""
    rest = b""
    deadline = time.monotonic() + patience_s
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            yield None
            return
        read = os.read(pipe, 65536)
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        yield from lines
        deadline = time.monotonic() + patience_s
