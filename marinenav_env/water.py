"""What water and air do to a vessel: vortices, and disturbances that are off by default.

Ranges are drawn from uniformly in every episode; two equal ends fix the value.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

from marinenav_env.fields import PUBLISHED, Settings, setting

ONE_TURN = 2.0 * math.pi


def direction_range() -> Any:
    """Return a field with a range of directions, any by default."""
    return project((0.0, ONE_TURN), unit="rad", count=2, low=-ONE_TURN, high=ONE_TURN)


project = functools.partial(setting, source="this project")
vrx = functools.partial(setting, source="VRX, USVWind.cc and its WAM-V worlds (osrf/vrx 93ae8d0)")
fossen = functools.partial(setting, source="Fossen 2021, ch. 10.1")


@dataclass(frozen=True)
class CurrentConfig(Settings):
    """Vortices."""

    core_radius: float = setting(0.5, unit="m", source=PUBLISHED, above=0.0)
    edge_speed_min: float = setting(3.0, unit="m/s", source=PUBLISHED, above=0.0)
    """At the edge of a vortex, from here to edge_speed_max."""
    edge_speed_max: float = setting(3.0, unit="m/s", source=PUBLISHED)
    same_sense_speed: float = setting(1.0, unit="m/s", source=PUBLISHED, above=0.0)
    """Greatest opposing speed between vortices of the same sense."""
    opposite_ratio: float = setting(0.8, unit="-", source=PUBLISHED, above=0.0)
    """Between vortices of opposite sense: greatest share of the weaker one's edge speed."""

    def check(self) -> None:
        """Refuse speeds without a range."""
        self.require_order("edge_speed_min", "edge_speed_max")


@dataclass(frozen=True)
class WindConfig(Settings):
    """Wind with gusts, and its force on a hull."""

    speed: tuple[float, ...] = project((0.0, 0.0), unit="m/s", low=0.0, high=60.0, count=2)
    """Range of an episode's mean speed."""
    direction: tuple[float, ...] = direction_range()
    """Toward which it blows, clockwise from north."""
    gust_std: float = vrx(0.0, unit="m/s", low=0.0, high=20.0)
    gust_time: float = vrx(2.0, unit="s", above=0.0)  # in which a gust falls to 1/e
    model: str = project("vrx", unit="-", choices=("vrx", "fossen"))
    """Of the force: by squared components of the relative wind, or by Fossen's coefficients."""
    surge: float = vrx(0.5, unit="N s^2/m^2", low=0.0)
    sway: float = vrx(0.5, unit="N s^2/m^2", low=0.0)
    yaw: float = vrx(0.33, unit="N s^2/m", low=0.0)
    air_density: float = fossen(1.224, unit="kg/m^3", low=0.0)
    c_x: float = fossen(0.7, unit="-", low=0.0)
    c_y: float = fossen(0.8, unit="-", low=0.0)
    c_n: float = fossen(0.1, unit="-", low=0.0)
    front_area: float = project(1.5, unit="m^2", low=0.0)  # no published value was found
    side_area: float = project(3.0, unit="m^2", low=0.0)  # no published value was found


@dataclass(frozen=True)
class StreamConfig(Settings):
    """A current that is the same everywhere."""

    speed: tuple[float, ...] = project((0.0, 0.0), unit="m/s", low=0.0, high=10.0, count=2)
    """Range of an episode's speed."""
    direction: tuple[float, ...] = direction_range()
    """Toward which it flows, clockwise from north."""


@dataclass(frozen=True)
class WavesConfig(Settings):
    """Long-crested waves, and their horizontal force on a hull."""

    height: float = project(0.0, unit="m", low=0.0, high=0.3)
    """Significant height; the force of higher ones would not stay a disturbance."""
    period: float = project(3.0, unit="s", low=1.0)  # of the spectrum's peak
    direction: tuple[float, ...] = direction_range()
    """In which they run, clockwise from north."""
    draught: float = project(0.16, unit="m", low=0.0)  # of the hull
