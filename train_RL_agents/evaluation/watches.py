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

    def parts(self, own: Tensor | None) -> Parts:
        """Return what `row` is made of, on the host, for all worlds.

        Args:
            own: [W, R] bool, the robots that are judged; None for all.
        """


def _copied(env: KernelEnv, names: tuple[str, ...]) -> Tensor:
    """Return fields [N, W] of the outcome, on the host."""
    return torch.stack([env.outcome[name] for name in names]).cpu()


OF_ROBOTS = ("steps", "energy", "return")
"""Sums of a robot's episode, of which an outcome has the means."""


class NavigationWatch:
    """Follows the motion of vessels."""

    outcomes = ("success", "collision", "timeout", "mean_time_s", "mean_energy", "mean_return")
    row = StageResult

    def __init__(self, env: MarineNavEnv) -> None:
        self._env, self._log = env, MotionLog(env)
        self.follow, self.note = self._log.follow, self._log.note

    def parts(self, own: Tensor | None) -> tuple[Outcomes, Measures]:
        """Return how the episodes ended, and what happened in them."""
        measures = self._measure()
        if own is None:
            outcome = _copied(self._env, self.outcomes)
            return Outcomes(*(outcome[:3] > 0), *outcome[3:]), measures
        return self._outcomes_of(own), measures.of_robots(own.T.cpu())

    def _measure(self) -> Measures:
        state, vessel = self._env.state, self._env.config.vessel
        reached, collided = self._ends()
        return measure(
            self._log.read(),
            state.buoy[..., : self._env.worlds],
            hull_radius=vessel.radius,
            decision_time=vessel.dt * vessel.substeps,
            reached=reached,
            collided=collided,
            energy=state.robot_field("energy")[:, : self._env.worlds],
        )

    def _ends(self) -> tuple[Tensor, Tensor]:
        """Return who has reached the goal, and who has collided, [R, W] bool."""
        status = self._env.state.status[:, : self._env.worlds]
        reached = (status & (STATUS_REACHED | STATUS_COLLIDED)) == STATUS_REACHED
        return reached, (status & STATUS_COLLIDED) > 0

    def _outcomes_of(self, own: Tensor) -> Outcomes:
        """Return how the episodes ended for some robots [W, R], as the core has it for all.

        Where none of them found room, neither way, and with means of 0.
        """
        env, vessel = self._env, self._env.config.vessel
        robots = env.state.world_field("robots")[: env.worlds]
        own = own.T & (torch.arange(env.robots, device=env.device).unsqueeze(1) < robots)
        reached, collided = self._ends()
        judged, count = own.any(0), own.sum(0).clamp(min=1)
        success, collision = (reached | ~own).all(0) & judged, (collided & own).any(0)
        fields = (env.state.robot_field(name)[:, : env.worlds] for name in OF_ROBOTS)
        means = [torch.where(own, field, 0).sum(0) / count for field in fields]
        means[0] *= vessel.dt * vessel.substeps
        ends = (success, collision, judged & ~(success | collision))
        return Outcomes(*(field.cpu() for field in (*ends, *means)))


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

    def parts(self, own: Tensor | None) -> tuple[Returns]:
        """Return how the episodes ended, for all robots."""
        outcome = _copied(self._env, self.outcomes)
        return (Returns(outcome[0] > 0, *outcome[1:]),)


WATCHES: tuple[type[Any], ...] = (NavigationWatch, ReturnWatch)
"""In order of what they need; the first that a task has all outcomes for is taken."""


def watch_of(spec: KernelSpec) -> type[Any]:
    """Return the class of `Watch` that follows the episodes of this task."""
    known = set(spec.fields("outcome"))
    return next(watch for watch in WATCHES if known.issuperset(watch.outcomes))
