"""The simulator's tensors: state, step buffers, and what every operator needs besides."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marinenav_env.envs.observation import EGO_FEATURES, OBJECT_FEATURES, Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.kernel import ops

ROBOT_FIELDS = ops.field_names("robot")
WORLD_FIELDS = ops.field_names("world")
OUTCOME_FIELDS = ops.field_names("outcome")
STATS = ops.field_names("stats")
STAGE_FIELDS = ops.field_names("stage")
NEAREST_OBJECTS = 5

STATUS_ACTIVE, STATUS_COLLIDED, STATUS_REACHED = 1, 2, 4
WORLD_RUNNING, WORLD_TERMINATED, WORLD_TRUNCATED = 0, 1, 2


class Context(NamedTuple):
    """What an operator needs besides tensors.

    Attributes:
        params: from `ops.pack_params`.
        seed: 64 random-number key bits as a signed integer.
        first_world: global index of world 0, so that ranks and batches draw different numbers.
    """

    params: list[float]
    seed: int
    first_world: int


class Slots(NamedTuple):
    """Room for objects in every world; a world may use less."""

    robots: int
    buoys: int
    vortices: int


@functools.lru_cache(maxsize=16)
def radius_noise_table(kappa: float) -> np.ndarray:
    """Quantiles of the von Mises distribution (mean 0, concentration kappa) over pi.

    Returns:
        [NOISE_TABLE_SIZE] float64 at equally spaced probabilities 0..1; values in [-1, 1]. Kept and
        handed out again, so it cannot be written to.
    """
    angle = np.linspace(-np.pi, np.pi, 200_001)
    density = np.exp(kappa * (np.cos(angle) - 1.0))
    cumulative = np.concatenate(([0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))))
    probability = np.linspace(0.0, 1.0, ops.NOISE_TABLE_SIZE)
    table = np.interp(probability, cumulative / cumulative[-1], angle) / np.pi
    table.flags.writeable = False
    return table


@dataclass(frozen=True)
class SimulatorState:
    """All state of W worlds; rows [field, slot, world], padded (see `csrc/core/state.h`)."""

    robot: Tensor  # [len(ROBOT_FIELDS), R, stride] real
    status: Tensor  # [R, stride] int32, STATUS_* bits
    bad: Tensor  # [R, stride] int32, unusable actions since the statistics were cleared
    buoy: Tensor  # [3, B, stride] real: x, y, radius (m)
    # [3, C, stride] real: x, y (m), circulation (m^2/s). > 0 is published as "clockwise"; on a
    # chart with north up that water turns counter-clockwise (docs/physics.md).
    vortex: Tensor
    world: Tensor  # [len(WORLD_FIELDS), stride] int32
    outcome: Tensor  # [len(OUTCOME_FIELDS), stride] real, of each world's last finished episode
    stats: Tensor  # [S, len(STATS), stride] real, sums over finished episodes; empty if off
    stage: Tensor  # [S, len(STAGE_FIELDS)] real
    radius_noise: Tensor  # [NOISE_TABLE_SIZE] real

    @staticmethod
    def allocate(
        worlds: int,
        slots: Slots,
        stages: Sequence[Stage],
        kappa: float,
        *,
        statistics: bool,
        device: torch.device,
        dtype: torch.dtype,
    ) -> SimulatorState:
        """Zeroed state: no world has a robot, and every episode is over, until it is reset."""
        stride = -(-worlds // ops.ROW_ALIGNMENT) * ops.ROW_ALIGNMENT

        def real(*shape: int) -> Tensor:
            return torch.zeros(shape, device=device, dtype=dtype)

        def integer(*shape: int) -> Tensor:
            return torch.zeros(shape, device=device, dtype=torch.int32)

        world = integer(len(WORLD_FIELDS), stride)
        # A running world without a robot would end, and be booked, in its first step.
        world[WORLD_FIELDS.index("end")] = WORLD_TERMINATED
        table = [[getattr(stage, name) for name in STAGE_FIELDS] for stage in stages]
        return SimulatorState(
            robot=real(len(ROBOT_FIELDS), slots.robots, stride),
            status=integer(slots.robots, stride),
            bad=integer(slots.robots, stride),
            buoy=real(3, slots.buoys, stride),
            vortex=real(3, slots.vortices, stride),
            world=world,
            outcome=real(len(OUTCOME_FIELDS), stride),
            stats=real(len(stages), len(STATS), stride) if statistics else real(0),
            stage=torch.tensor(table, device=device, dtype=dtype),
            radius_noise=torch.tensor(radius_noise_table(kappa), device=device, dtype=dtype),
        )

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors in the operators' order."""
        return tuple(getattr(self, f.name) for f in fields(self))

    def robot_field(self, name: str) -> Tensor:
        """View [R, stride] of a robot field."""
        return self.robot[ROBOT_FIELDS.index(name)]

    def world_field(self, name: str) -> Tensor:
        """View [stride] of a world field."""
        return self.world[WORLD_FIELDS.index(name)]


@dataclass(frozen=True)
class StepBuffers:
    """What a step writes; two of them serve a training loop in turn.

    `frames` holds the observation as [W, R, frames, ...]; `obs` views the same memory with the
    frames folded into the features (ego) and rows (objects, mask).
    """

    frames: Observation
    obs: Observation
    reward: Tensor  # [W, R] real, 0 where the robot did not act
    acted: Tensor  # [W, R] bool, robots that acted in this step
    terminated: Tensor  # [W, R] bool, reached their goal or collided in this step
    truncated: Tensor  # [W, R] bool, acted, did not terminate, but their world ended
    done: Tensor  # [W] bool, the world's episode is over
    world_terminated: Tensor  # [W] bool
    world_truncated: Tensor  # [W] bool

    @staticmethod
    def allocate(
        worlds: int, robots: int, stack_k: int, *, device: torch.device, dtype: torch.dtype
    ) -> StepBuffers:
        """Zeroed buffers."""

        def real(*shape: int) -> Tensor:
            return torch.zeros((worlds, robots, *shape), device=device, dtype=dtype)

        def flag(*shape: int) -> Tensor:
            return torch.zeros((worlds, *shape), device=device, dtype=torch.bool)

        frames = Observation(
            ego=real(stack_k, len(EGO_FEATURES)),
            objects=real(stack_k, NEAREST_OBJECTS, len(OBJECT_FEATURES)),
            mask=real(stack_k, NEAREST_OBJECTS),
        )
        obs = Observation(
            ego=frames.ego.flatten(-2),
            objects=frames.objects.flatten(-3, -2),
            mask=frames.mask.flatten(-2),
        )
        return StepBuffers(
            frames, obs, real(), flag(robots), flag(robots), flag(robots), flag(), flag(), flag()
        )
