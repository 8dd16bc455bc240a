"""What a replay holds: its configuration, the layout of a transition, and the memory it takes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.spec import ObservationTensors, tuple_like
from marinenav_env.fields import ConfigError, Settings, require, setting
from marinenav_env.kernel import memory
from train_RL_agents.replay.sum_tree import MOST_WEIGHTED_SLOTS, SumTree

MOST_ADVISED = 0.9
"""Share of the free memory that a replay is advised to take: the updates need some too."""


@dataclasses.dataclass(frozen=True)
class ReplayConfig(Settings):
    """What the replay holds and how it is sampled."""

    capacity: int = setting(1_000_000, unit="robot transitions", source="-", low=1)
    n_step: int = setting(1, unit="decisions", source="-", low=1)
    gamma: float = setting(0.99, unit="-", source="published training", low=0.0, high=1.0)
    prioritized: bool = setting(False, unit="-", source="-")
    alpha: float = setting(0.5, unit="-", source="Hessel et al. 2018, table 1", low=0.0, high=1.0)
    beta: float = setting(0.4, unit="-", source="Hessel et al. 2018, table 1", low=0.0, high=1.0)

    def check(self) -> None:
        """Refuse priorities whose sum could overflow."""
        require(
            not self.prioritized or self.capacity <= MOST_WEIGHTED_SLOTS,
            "replay.capacity",
            self.capacity,
            f"a prioritised replay holds at most {MOST_WEIGHTED_SLOTS} transitions; lower it, or"
            " set algorithm.prioritized=false",
        )


@dataclasses.dataclass(frozen=True)
class TransitionLayout:
    """Shapes and types of what is stored.

    Attributes:
        worlds: number of worlds W.
        robots: robot slots of a world R.
        observation: shapes of the observation's fields, without the leading [W, R]; samples have
            the type of this tuple.
        action: shape of an action, without the leading [W, R].
        action_dtype: type of an action.
        dtype: floating-point type of observations and rewards.
        choices: how many whole numbers an action may be, from 0; None for others, or if not known.
        keeps_next: whether what followed is kept, too; else samples have no `next_obs`.
    """

    worlds: int
    robots: int
    observation: tuple[Any, ...]
    action: tuple[int, ...]
    action_dtype: torch.dtype
    dtype: torch.dtype = torch.float32
    choices: int | None = None
    keeps_next: bool = True

    @classmethod
    def of(cls, obs: ObservationTensors, action: Tensor) -> TransitionLayout:
        """Return the layout of observations and actions [W, R, ...] like these."""
        worlds, robots = obs[0].shape[:2]
        shapes = tuple_like(obs, (tuple(field.shape[2:]) for field in obs))
        return cls(worlds, robots, shapes, tuple(action.shape[2:]), action.dtype, obs[0].dtype)

    @property
    def slots_per_row(self) -> int:
        """Transitions of one time row, W * R."""
        return self.worlds * self.robots

    @property
    def widths(self) -> list[int]:
        """Numbers in each field of an observation."""
        return [math.prod(shape) for shape in self.observation]

    @property
    def observations(self) -> tuple[str, ...]:
        """What a transition has of observations, by the names of a batch."""
        return ("obs", "next_obs") if self.keeps_next else ("obs",)


def ring_rows(config: ReplayConfig, layout: TransitionLayout) -> int:
    """Return the number of time rows T = capacity // (W * R).

    Raises:
        ConfigError: fewer than n_step + 1 rows fit.
    """
    rows = config.capacity // layout.slots_per_row
    if rows <= config.n_step:
        raise ConfigError(
            f"replay.capacity is {config.capacity}: {layout.worlds} worlds of {layout.robots} "
            f"robots with n_step {config.n_step} need at least "
            f"{(config.n_step + 1) * layout.slots_per_row}; raise replay.capacity or use fewer "
            "worlds"
        )
    return rows


def required_bytes(config: ReplayConfig, layout: TransitionLayout) -> int:
    """Return the bytes that a :class:`DeviceReplay` of this configuration allocates."""
    number = layout.dtype.itemsize
    action = math.prod(layout.action) * layout.action_dtype.itemsize
    transition = len(layout.observations) * sum(layout.widths) * number + action + number + 3
    slots = ring_rows(config, layout) * layout.slots_per_row
    counters = number * (config.n_step + 1) + 8 + 8 + 8 + 4
    return slots * transition + counters + SumTree.required_bytes(slots, layout.slots_per_row)


def check_memory(
    config: ReplayConfig, layout: TransitionLayout, device: torch.device, processes: int = 1
) -> None:
    """Check that the replay fits into the free memory of ``device``; allocates nothing.

    Args:
        config: the configuration.
        layout: shapes and types of a transition.
        device: where the replay is to live.
        processes: number of processes that will have a replay of this size there.

    Raises:
        ConfigError: it does not fit, or the capacity is below the smallest possible.
    """
    required, free = required_bytes(config, layout), memory.free_bytes(device) / processes
    if required > free:
        share = f" for each of {processes} processes" if processes > 1 else ""
        raise ConfigError(
            f"replay.capacity is {config.capacity}: it needs {required / 2**30:.2f} GiB and "
            f"{free / 2**30:.2f} GiB are free on {device}{share}; give at most "
            f"{int(MOST_ADVISED * config.capacity * free / required)}"
        )
