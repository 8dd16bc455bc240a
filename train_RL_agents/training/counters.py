"""Where a run stands on the host, and the errors that end it."""

from __future__ import annotations

import functools
import math
import signal
from dataclasses import dataclass

from marinenav_env.fields import Settings, setting
from train_RL_agents.config.schema import UpdateConfig
from train_RL_agents.evaluation.results import Standing


class DivergedRunError(ArithmeticError):
    """A quantity is not finite, or actions are unusable; the message says which, and the dump."""


class InterruptedRunError(Exception):
    """A signal asked the run to end; it is saved.

    Args:
        message: what happened and how to resume.
        received: the signal, or None if another process received it.
    """

    def __init__(self, message: str, received: signal.Signals | None) -> None:
        super().__init__(message)
        self.received = received


count = functools.partial(setting, 0, unit="-", source="the run", low=0)
amount = functools.partial(setting, 0.0, unit="-", source="the run")


@dataclass
class Counters(Settings):
    """All that a run knows on the host.

    Attributes:
        step: decisions, summed over worlds and processes.
        iteration: decisions of each world.
        updates: gradient updates.
        update_debt: updates that the samples per insert ask for and that are not done yet.
        stored: estimate of the transitions that this process has put into its replay.
        counted: transitions of a process, estimated, that the updates were counted for.
        robot_rate: estimate of the transitions that an iteration and process stores.
        robot_steps: decisions of robots as of the last log, summed over processes.
        stored_transitions: of these, transitions that were stored.
        logged_step: `step` at the last log.
        logged_iteration: `iteration` at the last log.
        logged_updates: `updates` at the last log.
        best_success: best mean score of an evaluation so far: success, or return where a task has
            no success.
        best_error: standard error of it.
        kept_success: mean score of the policy kept as the best.
        kept_error: standard error of it.
        kept_time_s: mean travel time of that policy [s].
        elapsed_s: wall-clock time of the run [s].
        collecting_s: of that, time outside evaluations and saving [s].
        logged_collecting_s: `collecting_s` at the last log.
    """

    step: int = count()
    iteration: int = count()
    updates: int = count()
    update_debt: float = amount()
    stored: float = amount(low=0.0)
    counted: float = amount(low=0.0)
    robot_rate: float = amount(low=0.0)
    robot_steps: float = amount(low=0.0)
    stored_transitions: float = amount(low=0.0)
    logged_step: int = count()
    logged_iteration: int = count()
    logged_updates: int = count()
    best_success: float = -math.inf
    best_error: float = amount(low=0.0)
    kept_success: float = -math.inf
    kept_error: float = amount(low=0.0)
    kept_time_s: float = math.inf
    elapsed_s: float = amount(low=0.0)
    collecting_s: float = amount(low=0.0)
    logged_collecting_s: float = amount(low=0.0)

    def check(self) -> None:
        """Refuse what no run comes to."""
        for name in ("step", "iteration", "updates"):
            logged = f"logged_{name}"
            least = getattr(self, logged)
            self.require(getattr(self, name) >= least, name, f"{logged} is {least}, which is more")
        moved = self.step > self.logged_step, self.iteration > self.logged_iteration
        self.require(moved[0] == moved[1], "iteration", "it does not go with step")

    def advance(self, steps: int, settings: UpdateConfig) -> int:
        """Count one iteration.

        Args:
            steps: decisions of all worlds and processes in it.
            settings: of the updates.

        Returns:
            Number of updates that the samples per insert ask for now; who does them counts them.
        """
        self.step += steps
        self.iteration += 1
        self.stored += self.robot_rate
        self.counted += self.robot_rate
        if self.stored < settings.warmup_transitions:
            return 0
        self.update_debt += settings.samples_per_insert * self.robot_rate / settings.batch_size
        due = int(self.update_debt)
        self.update_debt -= due
        return due

    def becomes_best(self, standing: Standing) -> bool:
        """Whether a policy is the best of the run so far; if so, it counts as kept.

        The best is the quickest of those whose score is within one standard error of the highest
        (as in the one-standard-error rule of Breiman et al. 1984, "Classification and Regression
        Trees", sec. 3.4.3): so many episodes cannot tell them apart by success. Of those that take
        as long, for example since none succeeds in some stage, it is the one of the highest score.
        """
        if standing.score > self.best_success:
            self.best_success, self.best_error = standing.score, standing.error
        least = self.best_success - self.best_error
        kept = (self.kept_time_s, -self.kept_success)
        better = (standing.time_s, -standing.score) < kept or self.kept_success < least
        if standing.score < least or not better:
            return False
        self.keep(standing)
        return True

    def keep(self, standing: Standing) -> None:
        """Count a policy as kept."""
        self.kept_success, self.kept_error, self.kept_time_s = standing

    def ends_best(self, standing: Standing) -> bool:
        """Whether the last policy takes the place of the kept one, by the final evaluation.

        It does unless the kept one was better by more than two standard errors of the difference:
        the rates have fallen by then, and the kept one was the luckiest of many evaluations.
        """
        error = math.hypot(self.kept_error, standing.error)
        return standing.score >= self.kept_success - 2.0 * error

    def forget_best(self) -> None:
        """Count no policy as kept."""
        for name in ("best_success", "best_error", "kept_success", "kept_error", "kept_time_s"):
            setattr(self, name, getattr(Counters(), name))

    def close_interval(
        self, robot_steps: float, stored: float, processes: int, coming: float
    ) -> None:
        """Begin a new log interval.

        Its iterations count as many stored transitions as those of the interval before had, and
        together make up for what was counted wrongly so far: the samples per insert lag, and are
        right over the run. An interval cut short leaves the rest of that to the next.

        Args:
            robot_steps: decisions of robots in the interval that ends, summed over processes.
            stored: of these, transitions that were stored.
            processes: number of processes.
            coming: iterations of a whole interval.
        """
        iterations = self.iteration - self.logged_iteration
        self.robot_steps += robot_steps
        self.stored_transitions += stored
        missed = self.stored_transitions / processes - self.counted
        self.robot_rate = max(0.0, stored / processes / iterations + missed / coming)
        self.logged_step, self.logged_iteration = self.step, self.iteration
        self.logged_updates = self.updates
        self.logged_collecting_s = self.collecting_s

    def passed(self, interval: int) -> bool:
        """Whether a multiple of ``interval`` steps was passed since the last log."""
        return self.step // interval > self.logged_step // interval
