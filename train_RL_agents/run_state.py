"""Where a run stands on the host, and the errors that end it."""

from __future__ import annotations

import signal
from dataclasses import dataclass


class DivergedRunError(ArithmeticError):
    """A quantity is not finite, or actions are unusable; the message says which, and the dump."""


class InterruptedRunError(Exception):
    """A signal asked the run to end; it is saved.

    Args:
        message: what happened and how to go on.
        received: the signal, or None if another process received it.
    """

    def __init__(self, message: str, received: signal.Signals | None) -> None:
        super().__init__(message)
        self.received = received


@dataclass
class Counters:
    """All that a run knows on the host.

    Attributes:
        step: decisions, summed over worlds and processes.
        iteration: decisions of each world.
        updates: gradient updates.
        update_debt: updates that the replay ratio asks for and that are not done yet.
        stored: estimate of the transitions that this process has put into its replay.
        robot_rate: transitions of an iteration and process, as measured in the last interval.
        robot_steps: transitions as of the last log, summed over processes.
        logged_step: `step` at the last log.
        logged_iteration: `iteration` at the last log.
        logged_updates: `updates` at the last log.
        best_success: best mean success of an evaluation so far.
        elapsed_s: wall-clock time of the run [s].
        collecting_s: of that, time outside evaluations and saving [s].
        logged_collecting_s: `collecting_s` at the last log.
    """

    step: int = 0
    iteration: int = 0
    updates: int = 0
    update_debt: float = 0.0
    stored: float = 0.0
    robot_rate: float = 0.0
    robot_steps: float = 0.0
    logged_step: int = 0
    logged_iteration: int = 0
    logged_updates: int = 0
    best_success: float = -1.0
    elapsed_s: float = 0.0
    collecting_s: float = 0.0
    logged_collecting_s: float = 0.0
