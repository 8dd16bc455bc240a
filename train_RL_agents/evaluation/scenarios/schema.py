"""What a scenario is: vessels, buoys and vortices where they are wanted, and how often."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.episodes.schema import POLICY
from marinenav_env.faults import ThrusterConfig, VariationConfig
from marinenav_env.fields import ConfigError, Settings, require, setting
from marinenav_env.water import StreamConfig, WavesConfig, WindConfig

FILE = "scenario file"


@dataclass(frozen=True)
class Vessel(Settings):
    """A vessel, from its start to its goal."""

    start: tuple[float, float] = setting(unit="m, north and east", source=FILE)
    goal: tuple[float, float] = setting(unit="m, north and east", source=FILE)
    heading_deg: float = setting(0.0, unit="deg clockwise from north", source=FILE)
    speed: float = setting(0.0, unit="m/s through the water", source=FILE, low=0.0)
    """At the start, with the thrust that keeps it."""
    steer: str = setting(POLICY, unit="-", source=FILE)
    """"policy": by the policy that is evaluated; "straight": thrusts stay as they are; or by a
    baseline, by its name."""
    name: str | None = setting(None, unit="-", source=FILE)
    """As messages name it, besides its number."""

    def check(self) -> None:
        """Refuse an empty name."""
        named = self.name is None or bool(self.name.strip())
        self.require(named, "name", "give a text that is not empty, or leave it out")


@dataclass(frozen=True)
class Buoy(Settings):
    """A buoy."""

    position: tuple[float, float] = setting(unit="m, north and east", source=FILE)
    radius: float = setting(1.0, unit="m", source=FILE, above=0.0)


@dataclass(frozen=True)
class Vortex(Settings):
    """A vortex."""

    position: tuple[float, float] = setting(unit="m, north and east", source=FILE)
    circulation: float = setting(9.42, unit="m^2/s, above 0 as published clockwise", source=FILE)


@dataclass(frozen=True)
class Scenario(Settings):
    """One scenario, played several times; perception noise differs each time."""

    name: str
    vessels: tuple[Vessel, ...]
    buoys: tuple[Buoy, ...] = ()
    vortices: tuple[Vortex, ...] = ()
    repeats: int = setting(20, unit="episodes", source=FILE, low=1)
    offset_m: float = setting(0.0, unit="m", source=FILE, low=0.0)
    """Every start is moved by up to this, north and east, uniformly drawn in each episode."""
    offset_deg: float = setting(0.0, unit="deg", source=FILE, low=0.0, high=180.0)
    """Every heading is turned by up to this, uniformly drawn in each episode."""
    # Disturbances and the sensor, instead of those of the policy's settings (docs/physics.md).
    wind: WindConfig | None = None
    stream: StreamConfig | None = None
    waves: WavesConfig | None = None
    thrusters: ThrusterConfig | None = None
    variation: VariationConfig | None = None
    perception: PerceptionConfig | None = None

    @property
    def among_others(self) -> bool:
        """Whether the policy steers some of the vessels only."""
        return any(vessel.steer != POLICY for vessel in self.vessels)

    def disturbances(self) -> dict[str, Settings]:
        """Return the groups of the environment that the scenario gives, by their names."""
        given = {name: getattr(self, name) for name in DISTURBANCES}
        return {name: group for name, group in given.items() if group is not None}

    def env_config(self, config: EnvConfig) -> EnvConfig:
        """Return the environment that the scenario is played in, from that of a policy."""
        groups: dict = self.disturbances()
        return dataclasses.replace(config, **groups)

    def check(self) -> None:
        """Check that the policy steers a vessel, and that no two vessels have one name."""
        own = any(vessel.steer == POLICY for vessel in self.vessels)
        self.require(own, "vessels", f"give at least one that has steer: {POLICY}")
        names = [vessel.name for vessel in self.vessels]
        for i, name in enumerate(names):
            first = names.index(name)
            remedy = f"vessels[{first}] has it too; give another"
            require(name is None or first == i, f"Scenario.vessels[{i}].name", name, remedy)

    def place_of(self, index: int) -> str:
        """Return what a vessel is called in a message."""
        name = self.vessels[index].name
        return f"vessels[{index}]" if name is None else f"vessels[{index}] ({name})"

    def check_against(self, config: EnvConfig, steering: tuple[str, ...]) -> None:
        """Check that the scenario can be played.

        Args:
            config: gives the vessels' size and speed, and how near a goal counts.
            steering: what may steer a vessel.

        Raises:
            ConfigError: names the field, its value and the remedy.
        """
        where, hull = f"scenario {self.name!r}", config.vessel
        for i, vessel in enumerate(self.vessels):
            place = f"{where}: {self.place_of(i)}"
            if vessel.steer not in steering:
                raise ConfigError(
                    f"{place}.steer is {vessel.steer!r}: choose one of {', '.join(steering)}"
                )
            if math.dist(vessel.start, vessel.goal) <= config.reward.goal_distance:
                raise ConfigError(
                    f"{place}.goal is {vessel.goal}, within {config.reward.goal_distance} m of its "
                    "start: move one of them"
                )
            if thrust_for(vessel.speed, config) > hull.max_thrust:
                raise ConfigError(
                    f"{place}.speed is {vessel.speed}: it takes more than the greatest thrust of "
                    f"{hull.max_thrust} N a side; give less"
                )
        self._check_overlaps(where, hull.radius)
        self._check_goals(where, hull.radius - config.reward.goal_distance)

    def _check_overlaps(self, where: str, hull_radius: float) -> None:
        circles = [
            (f"{self.place_of(i)}.start", v.start, hull_radius) for i, v in enumerate(self.vessels)
        ]
        circles += [
            (f"buoys[{i}].position", b.position, b.radius) for i, b in enumerate(self.buoys)
        ]
        moved = 2.0 * math.sqrt(2.0) * self.offset_m
        for (name, at, radius), (other, there, other_radius) in itertools.combinations(circles, 2):
            if name.startswith("vessels") and math.dist(at, there) - moved <= radius + other_radius:
                raise ConfigError(
                    f"{where}: {other} is {there}, which touches {name} = {at}: give places more "
                    f"than {radius + other_radius + moved:.2f} m apart"
                )

    def _check_goals(self, where: str, in_reach: float) -> None:
        """Refuse a goal that nobody reaches without touching a buoy."""
        for (i, vessel), (j, buoy) in itertools.product(
            enumerate(self.vessels), enumerate(self.buoys)
        ):
            if math.dist(vessel.goal, buoy.position) <= buoy.radius + in_reach:
                raise ConfigError(
                    f"{where}: {self.place_of(i)}.goal is {vessel.goal}, where buoys[{j}] lies at "
                    f"{buoy.position}: move one of them"
                )


DISTURBANCES = ("wind", "stream", "waves", "thrusters", "variation", "perception")
"""Groups of the environment's configuration that a scenario may give."""


def thrust_for(speed: float, config: EnvConfig) -> float:
    """Return the thrust of each side that holds a speed through the water straight ahead [N]."""
    hull = config.vessel
    return -(hull.x_u + (hull.x_uu + hull.x_uuu * speed) * speed) * speed / 2.0
