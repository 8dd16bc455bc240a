"""Ctrl-C, SIGTERM and a closed terminal: the loop is asked to save and leave.

A second Ctrl-C leaves at once; what a scheduler sends again changes nothing. Work that has nothing
to save ends at the first one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any

from train_RL_agents.device.distributed import ProcessLostError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STDERR = 2
MESSAGE = b"\nstopping after this iteration, saving ...\n"  # on a line of its own, below the bar


class Interruption:
    """While entered, remembers a signal and says so, instead of dying of it.

    Attributes:
        received: the signal, or None.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        self._before = _handled_by(self._remember)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()
        if isinstance(error, ProcessLostError):
            # The launcher ends the others as soon as one is gone: this one has yet to say why.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            return
        self.received = signal.Signals(number)
        before = self._before.get(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGINT, before)
        # Past Python's buffer: the signal may have come in the middle of a write to it.
        with suppress(OSError):  # nobody reads it any more; the run is saved all the same
            os.write(STDERR, MESSAGE)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _handled_by(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Handle the signals, but not a hang-up that `nohup` ignores; return the handlers before."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    numbers = [number for number in SIGNALS if number != signal.SIGHUP or not ignored]
    return {number: signal.signal(number, handler) for number in numbers}


class SignalError(Exception):
    """A signal came; the argument is it."""


@contextmanager
def signals_raised() -> Iterator[None]:
    """While entered, a signal raises `SignalError` where it comes."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SignalError(signal.Signals(number))

    before = _handled_by(stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
