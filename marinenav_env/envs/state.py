"""The marine environment's fields and tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from marinenav_env.config import EnvConfig
from marinenav_env.envs.scenes import AnyStage
from marinenav_env.kernel import ops

SPEC = ops.describe("marine")
ROBOT_FIELDS = SPEC.fields("robot")
OUTCOME_FIELDS = SPEC.fields("outcome")
STATS = SPEC.fields("stats")
STAGE_FIELDS = SPEC.fields("stage")
NEAREST_OBJECTS = int(SPEC.tensor("mask").shape[-1])

STATUS_ACTIVE, STATUS_COLLIDED, STATUS_REACHED = 1, 2, 4
"""Bits of a robot's status (`csrc/kernel/worlds.h`)."""

SPEC.pack(EnvConfig().named_numbers())  # fails at import, not at the first environment


class Slots(NamedTuple):
    """Room for objects in every world; a world may use less."""

    robots: int
    buoys: int
    vortices: int


class Layout(NamedTuple):
    """What an environment makes of the stages it is given.

    Attributes:
        stages: checked.
        discrete: whether it takes whole numbers as actions.
        sizes: extents that its specification leaves open, besides worlds and frames.
        tables: values of the tensors that only the configuration changes.
    """

    stages: tuple[AnyStage, ...]
    discrete: bool
    sizes: dict[str, int]
    tables: Mapping[str, Any]


def noise_table(config: EnvConfig) -> Mapping[str, Any]:
    """Return the table of the sensor's noise, by its name."""
    return {"radius_noise": radius_noise_table(config.perception.radius_kappa).copy()}


@functools.lru_cache(maxsize=16)
def radius_noise_table(kappa: float) -> np.ndarray:
    """Return quantiles of the von Mises distribution (mean 0, concentration kappa) over pi.

    Returns:
        [1025] float64 at equally spaced probabilities 0..1; values in [-1, 1]. Kept and handed out
        again, so it cannot be written to.
    """
    angle = np.linspace(-np.pi, np.pi, 200_001)
    density = np.exp(kappa * (np.cos(angle) - 1.0))
    angle, density = angle[density > 0.0], density[density > 0.0]  # it underflows at large kappa
    cumulative = np.concatenate(([0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))))
    probability = np.linspace(0.0, 1.0, int(SPEC.tensor("radius_noise").shape[0]))
    table = np.interp(probability, cumulative / cumulative[-1], angle) / np.pi
    table.flags.writeable = False
    return table
