"""Simulator parameters as frozen dataclasses; every field states its unit and source.

"published" means the simulator of "Distributional Reinforcement Learning based Integrated Decision
Making and Control for Autonomous Surface Vehicles" (IEEE RA-L 2025, arXiv 2412.09466). The C++
core has a member of the same name for every parameter (`csrc/core/params.h`); the operators take
them packed by name, in the core's own order, and refuse to load if a name is missing on a side.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from marinenav_env.fields import ConfigError

THRUST_RATES = (0.0, -500.0, -1000.0, 500.0, 1000.0)
MOST_COUNTED = 2**24
"""Up to here every whole number is a float32, the type in which the core may hold a count."""
MOST_TRIES = 2**16 - 1
"""Placement tries have 16 bits of the random numbers' counter."""


def _require(condition: bool, name: str, value: object, remedy: str) -> None:
    if not condition:
        raise ConfigError(f"{name} = {value!r}: {remedy}")


def _require_count(name: str, value: object, most: int, what: str) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    _require(
        whole and 1 <= value <= most, name, value, f"give a whole number of {what}, 1 to {most}"
    )


@dataclass(frozen=True)
class VesselConfig:
    """WAM-V 16, 3-DOF manoeuvring model after Fossen ch. 6.5 (published values)."""

    dt: float = 0.05  # s, Euler substep
    substeps: int = 10  # substeps a decision
    length: float = 5.0  # m
    width: float = 2.5  # m
    radius: float = 0.5 * math.hypot(5.0, 2.5)  # m, collision and detection radius of the hull
    mass: float = 400.0  # kg, fully loaded
    izz: float = 450.0  # kg m^2, yaw inertia
    x_dot_u: float = 20.0  # kg, added mass (sign as published)
    y_dot_v: float = 0.0  # kg
    y_dot_r: float = 0.0  # kg m
    n_dot_r: float = -980.0  # kg m^2
    n_dot_v: float = 0.0  # kg m
    x_u: float = -100.0  # N s/m, linear damping
    x_uu: float = -150.0  # N s^2/m^2, quadratic damping
    y_v: float = -100.0  # N s/m
    y_vv: float = -150.0  # N s^2/m^2
    y_r: float = 0.0  # N s
    y_rv: float = 0.0  # N s^2/m
    y_vr: float = 0.0  # N s^2/m
    y_rr: float = 0.0  # N s^2
    n_r: float = -980.0  # N m s
    n_rr: float = -950.0  # N m s^2
    n_v: float = 0.0  # N s
    n_vv: float = 0.0  # N s^2/m
    n_rv: float = 0.0  # N s^2
    n_vr: float = 0.0  # N s^2
    min_thrust: float = -500.0  # N, each thruster
    max_thrust: float = 1000.0  # N
    max_thrust_rate: float = 1000.0  # N/s at continuous action 1
    power_coefficient: float = 1.0  # energy (N s) per |thrust| and second
    left_thrust_rates: tuple[float, ...] = THRUST_RATES  # N/s, discrete choices, outer index
    right_thrust_rates: tuple[float, ...] = THRUST_RATES  # N/s, inner index

    def __post_init__(self) -> None:
        """Raises ConfigError for a vessel that cannot be simulated."""
        _require(self.dt > 0, "vessel.dt", self.dt, "give a positive time in seconds")
        _require_count("vessel.substeps", self.substeps, MOST_COUNTED, "substeps")
        _require(self.radius > 0, "vessel.radius", self.radius, "give a positive radius in metres")
        _require(
            self.mass > max(self.x_dot_u, self.y_dot_v),
            "vessel.mass",
            self.mass,
            "the mass must exceed x_dot_u and y_dot_v, or the mass matrix is singular",
        )
        _require(self.izz > self.n_dot_r, "vessel.izz", self.izz, "the inertia must exceed n_dot_r")
        sway_yaw = (self.mass - self.y_dot_v) * (self.izz - self.n_dot_r)
        _require(
            sway_yaw > self.y_dot_r * self.n_dot_v,
            "vessel.y_dot_r",
            self.y_dot_r,
            f"y_dot_r * n_dot_v (n_dot_v = {self.n_dot_v!r}) must be below (mass - y_dot_v) *"
            f" (izz - n_dot_r) = {sway_yaw!r}, or the mass matrix is singular or indefinite",
        )
        _require(
            self.min_thrust < self.max_thrust,
            "vessel.min_thrust",
            self.min_thrust,
            f"must be below max_thrust = {self.max_thrust}",
        )
        for name in ("left_thrust_rates", "right_thrust_rates"):
            _require(
                len(getattr(self, name)) == len(THRUST_RATES),
                f"vessel.{name}",
                getattr(self, name),
                f"give {len(THRUST_RATES)} thrust rates in N/s",
            )


@dataclass(frozen=True)
class PerceptionConfig:
    """Sensor range and noise (published values)."""

    range: float = 20.0  # m, plus the object's radius
    angle: float = 2.0 * math.pi  # rad, field of view centred on the bow
    position_std: float = 0.05  # m, per world-frame coordinate
    velocity_std: float = 0.05  # m/s, per world-frame coordinate
    radius_mean_ratio: float = 0.8  # seen / true radius on average; seen: (2 ratio - 1) to 1 times
    radius_kappa: float = 1.0  # concentration of the von Mises radius noise

    def __post_init__(self) -> None:
        """Raises ConfigError for an impossible sensor."""
        _require(self.range > 0, "perception.range", self.range, "give a positive range in metres")
        _require(
            0 < self.angle <= 2.0 * math.pi + 1e-9,
            "perception.angle",
            self.angle,
            "give an angle in (0, 2 pi] rad",
        )
        for name in ("position_std", "velocity_std", "radius_kappa"):
            value = getattr(self, name)
            _require(value >= 0, f"perception.{name}", value, "must not be negative")
        _require(
            0.5 <= self.radius_mean_ratio <= 1,
            "perception.radius_mean_ratio",
            self.radius_mean_ratio,
            "give a ratio in [0.5, 1]; below 0.5 the noise makes seen radii negative",
        )

    def noiseless(self) -> PerceptionConfig:
        """The same sensor without noise, as in the recorded episodes."""
        return dataclasses.replace(self, position_std=0.0, velocity_std=0.0, radius_mean_ratio=1.0)


@dataclass(frozen=True)
class ColregsConfig:
    """Zones of the encounters that COLREGs regulate, in the other vessel's velocity frame."""

    min_speed: float = 0.5  # m/s, below which a vessel counts as static (published)
    margin: float = 1.0  # m, kept from the other vessel's hull circle (published)
    crossing_x_min: float = -9.0  # m
    crossing_x_max: float = 12.0  # m
    crossing_y_min: float = -17.0  # m
    crossing_y_corner: float = -7.0  # m, where the cut front corner begins
    head_on_x_max: float = 17.0  # m
    head_on_y_half: float = 4.5  # m

    def __post_init__(self) -> None:
        """Raises ConfigError for zones that cannot be told apart."""
        for name in ("min_speed", "margin"):
            value = getattr(self, name)
            _require(value >= 0, f"colregs.{name}", value, "must not be negative")
        _require(
            self.crossing_x_max > 0,
            "colregs.crossing_x_max",
            self.crossing_x_max,
            "give a positive distance in metres, or the zone's front corner has no slope",
        )


@dataclass(frozen=True)
class RewardConfig:
    """Reward of a decision (published values); progress toward the goal counts 1 a metre."""

    timestep: float = -0.1  # a decision
    colregs: float = -0.1  # per rad of phi
    collision: float = -5.0
    goal: float = 10.0
    goal_distance: float = 2.0  # m, within which the goal counts as reached

    def __post_init__(self) -> None:
        """Raises ConfigError for a goal that cannot be reached."""
        _require(
            self.goal_distance > 0,
            "reward.goal_distance",
            self.goal_distance,
            "give a positive distance in metres",
        )


@dataclass(frozen=True)
class CurrentConfig:
    """Vortex cores (published values)."""

    core_radius: float = 0.5  # m
    edge_speed_min: float = 3.0  # m/s at the core's edge
    edge_speed_max: float = 3.0  # m/s
    same_sense_speed: float = 1.0  # m/s, greatest opposing speed between same-sense cores
    opposite_ratio: float = 0.8  # greatest share of the weaker core's edge speed

    def __post_init__(self) -> None:
        """Raises ConfigError for vortices that have no size or speed."""
        for name in ("core_radius", "edge_speed_min", "same_sense_speed", "opposite_ratio"):
            value = getattr(self, name)
            _require(value > 0, f"current.{name}", value, "must be positive")
        _require(
            self.edge_speed_min <= self.edge_speed_max,
            "current.edge_speed_min",
            self.edge_speed_min,
            f"must not exceed edge_speed_max = {self.edge_speed_max}",
        )


@dataclass(frozen=True)
class ScenarioConfig:
    """Placement of starts, goals, cores and buoys (published values)."""

    width: float = 55.0  # m, map extent along x (north)
    height: float = 55.0  # m, along y (east)
    start_margin: float = 2.0  # m, starts and goals keep from the map's edge
    clear_radius: float = 10.0  # m, free of others around every start and goal
    buoy_margin: float = 5.0  # m, buoys keep from the map's edge
    buoy_radius_min: float = 1.0  # m
    buoy_radius_max: float = 1.0  # m
    placement_tries: int = 500  # a kind; what could not be placed is left out

    def __post_init__(self) -> None:
        """Raises ConfigError for a map in which nothing can be placed."""
        for name in ("start_margin", "clear_radius", "buoy_margin"):
            value = getattr(self, name)
            _require(value >= 0, f"scenario.{name}", value, "must not be negative")
        for name in ("width", "height"):
            value = getattr(self, name)
            _require(
                value > 2 * max(self.start_margin, self.buoy_margin),
                f"scenario.{name}",
                value,
                "the map must be wider than twice start_margin and twice buoy_margin",
            )
        _require(
            0 < self.buoy_radius_min <= self.buoy_radius_max,
            "scenario.buoy_radius_min",
            self.buoy_radius_min,
            "give 0 < buoy_radius_min <= buoy_radius_max",
        )
        _require_count("scenario.placement_tries", self.placement_tries, MOST_TRIES, "tries")


@dataclass(frozen=True)
class EpisodeConfig:
    """When a world's episode ends."""

    max_steps: int = 1000  # decisions until truncation (published; training uses fewer)
    stop_on_collision: bool = False  # end the world at its first collision (evaluation)

    def __post_init__(self) -> None:
        """Raises ConfigError for an episode without a decision."""
        _require_count("episode.max_steps", self.max_steps, MOST_COUNTED, "decisions")


@dataclass(frozen=True)
class EnvConfig:
    """All parameters of the simulator."""

    vessel: VesselConfig = field(default_factory=VesselConfig)
    perception: PerceptionConfig = field(default_factory=PerceptionConfig)
    colregs: ColregsConfig = field(default_factory=ColregsConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    current: CurrentConfig = field(default_factory=CurrentConfig)
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)

    def __post_init__(self) -> None:
        """Raises ConfigError if a number is not finite."""
        for name, value in self.named_numbers():
            _require(math.isfinite(value), name, value, "give a finite number")

    def named_numbers(self) -> Iterator[tuple[str, float]]:
        """(name, value) of every parameter that the operators take."""
        for group in dataclasses.fields(self):
            part = getattr(self, group.name)
            for entry in dataclasses.fields(part):
                if (group.name, entry.name) == ("perception", "radius_kappa"):
                    continue  # reaches the core as a table of quantiles
                value = getattr(part, entry.name)
                name = f"{group.name}.{entry.name}"
                if isinstance(value, tuple):
                    yield from ((f"{name}.{i}", float(x)) for i, x in enumerate(value))
                else:
                    yield name, float(value)
