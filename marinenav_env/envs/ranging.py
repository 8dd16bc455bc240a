"""The first task's vessels with a range finder: sectors of many rays all around, or a few beams."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from marinenav_env.config import RewardConfig, ThrustTaskConfig
from marinenav_env.envs.icra2024 import ReachGoalConfig
from marinenav_env.envs.marine import (
    BODY_FRAME,
    SENSOR_ADDED,
    MarineNavEnv,
    ego_features,
    speed_magnitude,
    thrust_actions,
)
from marinenav_env.envs.spec import EnvSpec, Features, RaySpec
from marinenav_env.faults import SensorFaultConfig
from marinenav_env.fields import setting
from marinenav_env.kernel import ops

SECTORS = int(ops.describe("marine_sectors").tensor("rays").shape[-2])
MOST_RAYS = int(ops.describe("marine_sectors").tensor("ray").shape[-1])
BEAMS = int(ops.describe("marine_beams").tensor("rays").shape[-2])

gym_auv = functools.partial(setting, source="gym-auv (EivMeyer/gym-auv 7956acd)")
iros = functools.partial(setting, source="IROS 2023")
project = functools.partial(setting, source="this project")


@dataclass(frozen=True)
class RangeFinderConfig(SensorFaultConfig):
    """What may go wrong with a range finder, and the noise of what it measures."""

    range_std: float = project(0.0, unit="m", low=0.0)
    """Of the normal noise on the distance that a ray measures, which stays within the range."""

    without_noise: ClassVar = {"range_std": 0.0}


@dataclass(frozen=True)
class SectorConfig(RangeFinderConfig):
    """Rays all around, pooled into nine sectors."""

    range: float = project(20.0, unit="m", above=0.0)  # to a surface; gym-auv: 150, on a larger map
    rays: int = gym_auv(180, unit="rays", low=20, high=MOST_RAYS)
    """The first points astern, the others follow clockwise."""
    pooling: str = gym_auv("feasible", unit="-", choices=("nearest", "feasible"))
    """Of a sector's rays: the shortest, or how far a vessel fits through between them."""
    passage_margin: float = project(1.0, unit="m", low=0.0)
    """What a vessel needs to fit through besides the diameter of its hull circle."""
    closeness: str = gym_auv("log", unit="-", choices=("log", "linear"))
    """1 - ln(1 + d) / ln(1 + range), or 1 - d / range."""


@dataclass(frozen=True)
class BeamConfig(RangeFinderConfig):
    """Eleven beams ahead."""

    range: float = iros(10.0, unit="m", above=0.0)  # to a surface
    angle: float = iros(2.0 * math.pi / 3.0, unit="rad", above=0.0, high=2.0 * math.pi)
    """Between the outermost beams."""


def _reward(first: RewardConfig | None = None) -> ReachGoalConfig:
    first = first or RewardConfig()
    return ReachGoalConfig(first.timestep, first.collision, first.goal, first.goal_distance)


@dataclass(frozen=True)
class RangingConfig(ThrustTaskConfig):
    """All parameters but the sensor's. Values of `reward` are those of the first task."""

    reward: ReachGoalConfig = field(default_factory=_reward)


@dataclass(frozen=True)
class SectorsConfig(RangingConfig):
    """All parameters of `SectorsEnv`."""

    perception: SectorConfig = field(default_factory=SectorConfig)


@dataclass(frozen=True)
class BeamsConfig(RangingConfig):
    """All parameters of `BeamsEnv`."""

    perception: BeamConfig = field(default_factory=BeamConfig)


def sector_rays(rays: int) -> np.ndarray:
    """Return the table of rays: cosine and sine of their directions, and their sectors.

    Ray i points to -pi + (i + 1) 2 pi / rays. Its sector is floor(s(i) - s(0)) with
    s(x) = 9 / (1 + exp((rays / 2 - x) / (rays / 10))): narrow ahead, wide astern (gym-auv).

    Returns:
        [3, 180] float64; columns beyond `rays` are zero.
    """
    index = np.arange(rays)
    angle = -np.pi + (index + 1) * (2.0 * np.pi / rays)
    edge = SECTORS / (1.0 + np.exp((0.5 * rays - index) / (0.1 * rays)))
    table = np.zeros((3, MOST_RAYS))
    table[:, :rays] = np.cos(angle), np.sin(angle), np.floor(edge - edge[0])
    return table


def beam_directions(angle: float) -> np.ndarray:
    """Return cosine and sine of the beams' directions, [2, 11] float64, from port to starboard."""
    spread = np.linspace(-0.5 * angle, 0.5 * angle, BEAMS)
    return np.stack((np.cos(spread), np.sin(spread)))


def ranging_spec(
    config: RangingConfig, rays: Features, rows: int, order: str, *, discrete: bool, stack_k: int
) -> EnvSpec:
    """Return the description of an environment with a range finder of these rows."""
    observation = RaySpec(ego_features(config.vessel), rays, rows, order, stack_k)
    return EnvSpec(observation, thrust_actions(config.vessel, discrete=discrete), "robots")


def sectors_spec(config: SectorsConfig, *, discrete: bool, stack_k: int = 1) -> EnvSpec:
    """Return the description of `SectorsEnv` with these arguments."""
    names = ops.describe("marine_sectors").fields("rays")
    speed = speed_magnitude(config.vessel)
    rays = Features(names, ("-", "m/s", "m/s"), (1.0, speed, speed), BODY_FRAME)
    order = "clockwise from astern"
    return ranging_spec(config, rays, SECTORS, order, discrete=discrete, stack_k=stack_k)


def beams_spec(config: BeamsConfig, *, discrete: bool, stack_k: int = 1) -> EnvSpec:
    """Return the description of `BeamsEnv` with these arguments."""
    half = 0.5 * config.perception.range
    rays = Features(
        ops.describe("marine_beams").fields("rays"), ("m", "m"), (half, half), BODY_FRAME
    )
    order = "from port to starboard"
    return ranging_spec(config, rays, BEAMS, order, discrete=discrete, stack_k=stack_k)


class RangingEnv(MarineNavEnv):
    """What environments with a range finder share; a subclass names its sensor."""

    info_fields = ("step_energy", "progress", "contact")
    names_before: ClassVar = {}
    names_added: ClassVar = SENSOR_ADDED
    training_changes: ClassVar = {
        **MarineNavEnv.training_changes,
        "reward": _reward(MarineNavEnv.training_changes["reward"]),
    }


class SectorsEnv(RangingEnv):
    """W worlds of vessels that see nine sectors, as in gym-auv; batch size [W].

    TorchRL face: as `MarineNavEnv`, with the observation ``self`` [W, R, 7k], ``rays``
    [W, R, 9k, 3] and ``hits`` [W, R, 9k], see `RayObservation`. The reward knows no COLREGs: a ray
    does not tell a vessel from a buoy.

    Args and errors: as `MarineNavEnv`.
    """

    kernel = "marine_sectors"
    config_type = SectorsConfig
    describe: ClassVar = staticmethod(sectors_spec)
    sensor_tables: ClassVar = staticmethod(
        lambda config: {"ray": sector_rays(config.perception.rays)}
    )


class BeamsEnv(RangingEnv):
    """W worlds of vessels that see eleven beams ahead, as in IROS 2023; batch size [W].

    TorchRL face: as `SectorsEnv`, with ``rays`` [W, R, 11k, 2] and ``hits`` [W, R, 11k].

    Args and errors: as `MarineNavEnv`.
    """

    kernel = "marine_beams"
    config_type = BeamsConfig
    describe: ClassVar = staticmethod(beams_spec)
    sensor_tables: ClassVar = staticmethod(
        lambda config: {"beam": beam_directions(config.perception.angle)}
    )
