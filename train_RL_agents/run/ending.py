"""How a command ends: what is said of whatever ended it, also when nobody listens any more."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, cast

import torch

from train_RL_agents.device.distributed import ProcessLostError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_MEMORY = ("can't allocate memory", "out of memory")
"""In messages of torch, which on a CPU raises a plain RuntimeError."""


class EndedRunError(RuntimeError):
    """The machine ended a run; the message says why, what is saved and how to resume."""


def failure_of_machine(error: Exception) -> str | None:
    """Return what to tell the user, with the remedy, if memory, disk or a process gave out."""
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in text for words in NO_MEMORY)
    ):
        first = text.splitlines()[0] if text else "no memory"
        return (
            f"the memory is full ({first}): lower worlds, replay.capacity, updates.batch_size or "
            "the episodes of evaluation"
        )
    if isinstance(error, OSError) and error.errno in FULL:
        return (
            f"the disk is full ({text}): make room, lower checkpoint.keep or replay.capacity, or "
            "leave the replay out of checkpoints with checkpoint.with_replay=false"
        )
    return text if isinstance(error, OSError | ProcessLostError) else None


class ClosableStream:
    """A text stream whose reader may go away: from then on nothing is written any more.

    Args:
        stream: the stream.
        failure: what it fails with then.
    """

    def __init__(self, stream: TextIO, failure: type[OSError]) -> None:
        self._stream, self._failure = stream, failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text if somebody reads it."""
        with self._may_fail():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if somebody reads it."""
        with self._may_fail():
            self._stream.flush()

    @contextmanager
    def _may_fail(self) -> Iterator[None]:
        try:
            yield
        except self._failure:  # its buffer would be tried again at the end of the program
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())


@contextmanager
def output_may_close(failure: type[OSError] = OSError) -> Iterator[None]:
    """While entered, such a failure of stdout and stderr ends nothing.

    Args:
        failure: any, such as that of a full device; or `BrokenPipeError`, where the output is what
            a command is for.
    """
    streams = (ClosableStream(stream, failure) for stream in (sys.stdout, sys.stderr))
    out, err = (cast(TextIO, stream) for stream in streams)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            yield
        finally:
            out.flush()
            err.flush()
