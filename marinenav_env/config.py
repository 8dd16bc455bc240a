"""The simulator's parameters as frozen dataclasses; every field states its unit and source.

"published" means the simulator of "Distributional Reinforcement Learning based Integrated Decision
Making and Control for Autonomous Surface Vehicles" (IEEE RA-L 2025, arXiv 2412.09466). The C++
core has a member of the same name for every parameter (in the lists of `csrc/marine`); the
operators take them packed by name, and refuse to load if a name is missing on a side.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from marinenav_env.faults import SensorFaultConfig, ThrusterConfig, VariationConfig
from marinenav_env.fields import PUBLISHED, ConfigError, Settings, setting
from marinenav_env.vessels import VesselConfig
from marinenav_env.water import CurrentConfig, StreamConfig, WavesConfig, WindConfig

MOST_DECISIONS = 2**24
"""Up to here every whole number is a float32, the type in which the core may hold a count."""
MOST_TRIES = 2**16 - 1
"""Placement tries have 16 bits of the random numbers' counter."""

published = functools.partial(setting, source=PUBLISHED)
project = functools.partial(setting, source="this project")


@dataclass(frozen=True)
class PerceptionConfig(SensorFaultConfig):
    """Sensor range and noise of objects."""

    range: float = published(20.0, unit="m", above=0.0)  # plus the object's radius
    angle: float = published(2.0 * math.pi, unit="rad", above=0.0, high=2.0 * math.pi + 1e-9)
    """Field of view, centred on the bow."""
    position_std: float = published(0.05, unit="m", low=0.0)  # per world-frame coordinate
    velocity_std: float = published(0.05, unit="m/s", low=0.0)  # per world-frame coordinate
    radius_mean_ratio: float = published(0.8, unit="-", low=0.5, high=1.0)
    """Seen / true radius on average; a seen one is (2 ratio - 1) to 1 times the true one."""
    radius_kappa: float = published(1.0, unit="-", low=0.0)
    """Concentration of the von Mises radius noise."""

    without_noise: ClassVar = {
        "position_std": 0.0,
        "velocity_std": 0.0,
        "radius_mean_ratio": 1.0,
    }


@dataclass(frozen=True)
class ColregsConfig(Settings):
    """Zones of the encounters that COLREGs regulate, in the other vessel's velocity frame."""

    min_speed: float = published(0.5, unit="m/s", low=0.0)  # below it a vessel counts as static
    margin: float = published(1.0, unit="m", low=0.0)  # kept from the other vessel's hull circle
    crossing_x_min: float = published(-9.0, unit="m")
    crossing_x_max: float = published(12.0, unit="m", above=0.0)
    crossing_y_min: float = published(-17.0, unit="m")
    crossing_y_corner: float = published(-7.0, unit="m")  # where the cut front corner begins
    head_on_x_max: float = published(17.0, unit="m")
    head_on_y_half: float = published(4.5, unit="m")


@dataclass(frozen=True)
class RewardConfig(Settings):
    """Reward of a decision; progress toward the goal counts 1 a metre."""

    timestep: float = published(-0.1, unit="-")  # a decision
    colregs: float = published(-0.1, unit="1/rad")  # of the angle phi
    collision: float = published(-5.0, unit="-")
    goal: float = published(10.0, unit="-")
    goal_distance: float = published(2.0, unit="m", above=0.0)  # within it the goal is reached
    fringe: float = project(0.0, unit="m", low=0.0)  # of a hull, a random share each decision


@dataclass(frozen=True)
class ScenarioConfig(Settings):
    """Placement of starts, goals, vortices and buoys."""

    width: float = published(55.0, unit="m")  # map extent along x (north)
    height: float = published(55.0, unit="m")  # along y (east)
    start_margin: float = published(2.0, unit="m", low=0.0)  # of starts, goals to the map's edge
    clear_radius: float = published(10.0, unit="m", low=0.0)  # free around every start and goal
    buoy_margin: float = published(5.0, unit="m", low=0.0)  # of buoys to the map's edge
    buoy_radius_min: float = published(1.0, unit="m", above=0.0)
    buoy_radius_max: float = published(1.0, unit="m")
    placement_tries: int = published(500, unit="tries", low=1, high=MOST_TRIES)
    """A kind; what could not be placed is left out."""

    def check(self) -> None:
        """Refuse a map in which nothing can be placed."""
        for name in ("width", "height"):
            self.require(
                getattr(self, name) > 2 * max(self.start_margin, self.buoy_margin),
                name,
                "the map must be wider than twice start_margin and twice buoy_margin",
            )
        self.require_order("buoy_radius_min", "buoy_radius_max")


@dataclass(frozen=True)
class EpisodeConfig(Settings):
    """When a world's episode ends."""

    max_steps: int = published(1000, unit="decisions", low=1, high=MOST_DECISIONS)
    """Decisions until truncation; training uses fewer."""
    stop_on_collision: bool = published(False, unit="-")
    """End the world at its first collision, as evaluation does."""
    stop_on_end: bool = project(False, unit="-")
    """End the world as soon as one of its robots ends; the others' episodes are truncated. A world
    of several then counts as no success, collision or time-out: look at returns."""


@dataclass(frozen=True)
class TaskConfig(Settings):
    """All parameters of a task, in groups; `episode` is in every task."""

    not_numbers: ClassVar[tuple[str, ...]] = ("vessel.name",)
    """Parameters that the operators do not take, or in another form."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def named_numbers(self) -> Iterator[tuple[str, float]]:
        """(group.name, value) of every parameter that the operators take."""
        for group in dataclasses.fields(self):
            part = getattr(self, group.name)
            for entry in dataclasses.fields(part):
                value = getattr(part, entry.name)
                name = f"{group.name}.{entry.name}"
                if name in self.not_numbers:
                    continue
                if isinstance(value, str):  # the core counts choices from 0
                    value = entry.metadata["choices"].index(value)
                if isinstance(value, tuple):
                    yield from ((f"{name}.{i}", float(x)) for i, x in enumerate(value))
                else:
                    yield name, float(value)


@dataclass(frozen=True)
class VesselTaskConfig(TaskConfig):
    """Those of a task with vessels, which has `vessel`, `scenario` and `reward` besides."""

    def check(self) -> None:
        """Refuse starts that overlap."""
        self.require(
            self.scenario.clear_radius >= 2.0 * self.vessel.radius + self.reward.fringe,
            "scenario.clear_radius",
            f"robots would start inside each other; give two of vessel.radius "
            f"{self.vessel.radius:.2f} and reward.fringe {self.reward.fringe:g} or more",
        )


def check_range(config: Any) -> None:
    """Refuse a range of the sensor within the own hull: only what is detected can be hit.

    Raises:
        ConfigError: it is.
    """
    needed = config.vessel.radius + config.reward.fringe
    config.require(
        config.perception.range >= needed,
        "perception.range",
        f"contacts would be missed; give the hull and its fringe, {needed:.2f} m, or more",
    )


@dataclass(frozen=True)
class ThrustTaskConfig(VesselTaskConfig):
    """Those of a task whose vessels have two thrusters: all but what they see and strive for."""

    vessel: VesselConfig = field(default_factory=VesselConfig)
    current: CurrentConfig = field(default_factory=CurrentConfig)
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)
    wind: WindConfig = field(default_factory=WindConfig)
    stream: StreamConfig = field(default_factory=StreamConfig)
    waves: WavesConfig = field(default_factory=WavesConfig)
    thrusters: ThrusterConfig = field(default_factory=ThrusterConfig)
    variation: VariationConfig = field(default_factory=VariationConfig)

    def check(self) -> None:
        """Refuse variations with which a vessel could not be stepped either."""
        super().check()
        vessel, by = self.vessel, self.variation
        damping: dict[str, Any] = {
            "x_u": vessel.x_u * by.surge_damping[1],
            "y_v": vessel.y_v * by.sway_damping[1],
            "n_r": vessel.n_r * by.yaw_damping[1],
        }
        for mass, added in itertools.product({*by.mass}, {*by.added_inertia}):
            varied: dict[str, Any] = {"mass": vessel.mass * mass, "izz": vessel.izz * mass}
            varied["n_dot_r"] = vessel.n_dot_r * added
            try:
                dataclasses.replace(vessel, **varied, **damping)
            except ConfigError as error:
                raise ConfigError(
                    f"variation with mass times {mass:g}, added_inertia times {added:g} and the "
                    f"greatest dampings gives a vessel whose {str(error).partition('.')[2]}"
                ) from error


@dataclass(frozen=True)
class EnvConfig(ThrustTaskConfig):
    """All parameters of the first task."""

    not_numbers = ("vessel.name", "perception.radius_kappa")  # of the latter a table of quantiles
    perception: PerceptionConfig = field(default_factory=PerceptionConfig)
    colregs: ColregsConfig = field(default_factory=ColregsConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)

    def check(self) -> None:
        """Refuse what its parts refuse, and a range within which contacts would be missed."""
        super().check()
        check_range(self)
