"""What may go wrong with a vessel and its sensor, and how vessels differ: off by default.

Ranges are drawn from uniformly; two equal ends fix the value.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from marinenav_env.fields import Settings, setting

project = functools.partial(setting, source="this project")
factor = functools.partial(
    setting, (1.0, 1.0), unit="-", source="this project", above=0.0, high=100.0, count=2
)


@dataclass(frozen=True)
class ThrusterConfig(Settings):
    """Thrusters that lag behind what they are told, and thrusters that are lost."""

    lag: float = project(0.0, unit="s", low=0.0)
    """Time in which a thrust makes up for 63 % of the difference to what it was told."""
    loss_probability: float = project(0.0, unit="-", low=0.0, high=1.0)
    """Of losing one of the two thrusters, for every robot and episode."""
    loss_time: tuple[float, ...] = project((0.0, 0.0), unit="s", low=0.0, count=2)
    """Range of the time into the episode at which it is lost."""


@dataclass(frozen=True)
class SensorFaultConfig(Settings):
    """What may go wrong with any sensor. A sensor's configuration derives from it."""

    miss: float = project(0.0, unit="-", low=0.0, high=1.0)
    """Probability of not seeing an object, or of a ray without return, each in every decision."""
    dropout: float = project(0.0, unit="-", low=0.0, high=1.0)
    """Probability of seeing nothing, for every robot and decision."""
    delay: float = project(0.0, unit="-", low=0.0, high=1.0)
    """Probability of seeing vessels as they were a decision ago, for every robot and decision."""
    noise_factor: tuple[float, ...] = project((1.0, 1.0), unit="-", low=0.0, count=2)
    """Range of a factor on standard deviations of the noise, for every world and episode."""
    range_factor: tuple[float, ...] = project((1.0, 1.0), unit="-", low=0.0, high=1.0, count=2)
    """Range of a factor on the range, for every world and episode."""

    without_noise: ClassVar[Mapping[str, Any]]
    """Fields of the sensor's noise, with the values that make none."""

    def noiseless(self) -> Self:
        """Return the same sensor without noise and faults, as in the recorded episodes."""
        none: dict[str, Any] = {field.name: field.default for field in fields(SensorFaultConfig)}
        return replace(self, **none, **self.without_noise)

    @property
    def noisy(self) -> bool:
        """Whether there is noise on which `noise_factor` could be."""
        return any(getattr(self, name) != value for name, value in self.without_noise.items())


@dataclass(frozen=True)
class VariationConfig(Settings):
    """Ranges of factors on a vessel, drawn for every world and episode."""

    mass: tuple[float, ...] = factor()  # and yaw inertia
    added_inertia: tuple[float, ...] = factor()  # of vessel.n_dot_r
    surge_damping: tuple[float, ...] = factor()
    sway_damping: tuple[float, ...] = factor()
    yaw_damping: tuple[float, ...] = factor()
    left_thrust: tuple[float, ...] = factor()
    right_thrust: tuple[float, ...] = factor()
    thrust_rate: tuple[float, ...] = factor()
