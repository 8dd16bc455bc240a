"""Schedules: pure functions of the number of steps done."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.config.worlds import CurriculumConfig


@dataclass(frozen=True)
class Ramp:
    """A line from ``start`` to ``end`` between two steps, constant before and after.

    Attributes:
        start: value up to step ``begin``.
        end: value from step ``finish`` on.
        begin: first step of the line.
        finish: last step of the line.
    """

    start: float
    end: float
    begin: float
    finish: float

    def __call__(self, step: int) -> float:
        """Return the value at ``step``."""
        if step >= self.finish:
            return self.end
        if step <= self.begin:
            return self.start
        share = (step - self.begin) / (self.finish - self.begin)
        return self.start + share * (self.end - self.start)


class Curriculum:
    """Which stage each world draws its next scenario from.

    Args:
        config: the stages and the mode.
        total_steps: length of the run, in steps.
        scenarios: share of the worlds that take the stage after these, of named scenarios.
    """

    def __init__(self, config: CurriculumConfig, total_steps: int, scenarios: float = 0.0) -> None:
        self.mode, self.scenarios = config.mode, scenarios
        self.count = len(config.stages)
        evenly = tuple(total_steps * stage // self.count for stage in range(self.count))
        self.starts = config.starts or evenly

    def check_worlds(self, worlds: int) -> None:
        """Check that every stage has a world.

        Args:
            worlds: number of worlds of all processes.

        Raises:
            ConfigError: the mode is mixed, and there are fewer worlds than stages.
        """
        given = math.floor(worlds * self.scenarios)
        if self.scenarios and not given:
            raise ConfigError(
                f"scenarios.share is {self.scenarios} of {worlds} worlds, which is none: raise it, "
                "or worlds"
            )
        if self.mode == "mixed" and worlds - given < self.count:
            raise ConfigError(
                f"curriculum.stages has {self.count} stages for {worlds - given} worlds: the last "
                "ones would never be trained; raise worlds, give fewer stages, or "
                "curriculum.mode=sequential"
            )

    def stage_at(self, step: int) -> int:
        """Return the stage of the sequential curriculum at ``step``."""
        return bisect_right(self.starts, step) - 1

    def stages(
        self,
        step: int,
        worlds: int,
        first_world: int = 0,
        device: torch.device | str = "cpu",
    ) -> Tensor:
        """Return the stage of every world at ``step``.

        Args:
            step: steps done, summed over worlds.
            worlds: number of worlds W of this process.
            first_world: global index of the first of them.
            device: where the result is made.

        Returns:
            int64 [W]. In the mixed mode neighbouring worlds have neighbouring stages, so that any
            six of them hold all six. Worlds of named scenarios lie evenly among them.
        """
        world = torch.arange(first_world, first_world + worlds, device=device)
        given, with_this = (
            torch.floor(number * self.scenarios).long()
            for number in (world.double(), world.double() + 1.0)
        )
        if self.mode == "mixed":
            stage = (world - given) % self.count
        else:
            stage = torch.full_like(world, self.stage_at(step))
        return torch.where(with_this > given, self.count, stage)


class Rates(NamedTuple):
    """What the schedules give at one step.

    Attributes:
        epsilon: share of random actions.
        learning_rate_scale: factor of the learning rates.
        beta: exponent of the importance weights.
    """

    epsilon: float
    learning_rate_scale: float
    beta: float


class Schedules:
    """All that depends on the step of a run.

    Args:
        config: all settings.
    """

    def __init__(self, config: TrainConfig) -> None:
        total, updates, replay = config.total_steps, config.updates, config.replay
        explore = config.exploration
        self._epsilon = Ramp(
            explore.epsilon_start, explore.epsilon_end, 0, explore.ramp_share * total
        )
        rate = updates.rate_factor
        self._rate = Ramp(rate, updates.decay_to * rate, updates.decay_from * total, total)
        self._beta = Ramp(replay.beta_start, replay.beta_end, 0, total)
        self.curriculum = Curriculum(config.curriculum, total, config.scenarios.share)

    def rates(self, step: int) -> Rates:
        """Return the rates at ``step``."""
        return Rates(self._epsilon(step), self._rate(step), self._beta(step))
