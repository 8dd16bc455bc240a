"""What an evaluation follows while episodes run, and what it makes of them: by the kind of task.

The outcomes that a task's specification lists decide: a task whose episodes succeed or collide is
navigation, with vessels whose motion is measured; any other one has returns and lengths alone.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.state import STATUS_COLLIDED, STATUS_REACHED
from marinenav_env.kernel.spec import KernelSpec
from train_RL_agents.evaluation.measures import Measures, measure
from train_RL_agents.evaluation.motion import MotionLog
from train_RL_agents.evaluation.results import (
    Outcomes,
    Parts,
    ReturnResult,
    Returns,
    StageResult,
)


class Watch(Protocol):
    """Follows the episodes in an environment's worlds; made after their reset.

    Attributes:
        outcomes: fields of the task's outcome that it needs.
        row: of the table.
    """

    outcomes: ClassVar[tuple[str, ...]]
    row: ClassVar[type[Any]]

    def follow(self, worlds: Tensor) -> None:
        """Follow only these worlds [N] from now on, in ascending order."""

    def note(self, acted: Tensor) -> None:
        """Note what a decision has led to; ``acted`` [W, R]."""

    def parts(self) -> Parts:
        """Return what `row` is made of, on the host, for all worlds."""


def _copied(env: KernelEnv, names: tuple[str, ...]) -> Tensor:
    """Return fields [N, W] of the outcome, on the host."""
    return torch.stack([env.outcome[name] for name in names]).cpu()


class NavigationWatch:
    """Follows the motion of vessels."""

    outcomes = ("success", "collision", "timeout", "mean_time_s", "mean_energy", "mean_return")
    row = StageResult

    def __init__(self, env: MarineNavEnv) -> None:
        self._env, self._log = env, MotionLog(env)
        self.follow, self.note = self._log.follow, self._log.note

    def parts(self) -> tuple[Outcomes, Measures]:
        """Return how the episodes ended, and what happened in them."""
        outcome = _copied(self._env, self.outcomes)
        return Outcomes(*(outcome[:3] > 0), *outcome[3:]), self._measure()

    def _measure(self) -> Measures:
        state, vessel = self._env.state, self._env.config.vessel
        status = state.status[:, : self._env.worlds]
        return measure(
            self._log.read(),
            state.buoy[..., : self._env.worlds],
            hull_radius=vessel.radius,
            decision_time=vessel.dt * vessel.substeps,
            reached=(status & (STATUS_REACHED | STATUS_COLLIDED)) == STATUS_REACHED,
            collided=status & STATUS_COLLIDED,
            energy=state.robot_field("energy")[:, : self._env.worlds],
        )


class ReturnWatch:
    """Follows nothing: the core sums returns and lengths."""

    outcomes = ("timeout", "mean_return", "length")
    row = ReturnResult

    def __init__(self, env: KernelEnv) -> None:
        self._env = env

    def follow(self, worlds: Tensor) -> None:
        """Do nothing."""

    def note(self, acted: Tensor) -> None:
        """Do nothing."""

    def parts(self) -> tuple[Returns]:
        """Return how the episodes ended."""
        outcome = _copied(self._env, self.outcomes)
        return (Returns(outcome[0] > 0, *outcome[1:]),)


WATCHES: tuple[type[Any], ...] = (NavigationWatch, ReturnWatch)
"""In order of what they need; the first that a task has all outcomes for is taken."""


def watch_of(spec: KernelSpec) -> type[Any]:
    """Return the class of `Watch` that follows the episodes of this task."""
    known = set(spec.fields("outcome"))
    return next(watch for watch in WATCHES if known.issuperset(watch.outcomes))
