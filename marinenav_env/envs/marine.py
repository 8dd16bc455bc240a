"""MarineNavEnv: several vessels among buoys and currents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from marinenav_env.config import EnvConfig, EpisodeConfig, RewardConfig, TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.checks import check_slots, check_stages
from marinenav_env.envs.observation import EGO_FEATURES, OBJECT_FEATURES
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage, labels_of
from marinenav_env.envs.scenes import AnyStage, stage_tables
from marinenav_env.envs.spec import ActionSpec, EntitySpec, EnvSpec, Features
from marinenav_env.envs.state import Layout, Slots, noise_table
from marinenav_env.kernel import ops
from marinenav_env.vessels import VesselConfig

DISCRETE_ACTIONS = ops.describe("marine").discrete
CONTINUOUS_ACTIONS = ops.describe("marine").continuous
SENSOR_ADDED = {"past": 0.0, "sensor": 1.0, "reach": 1.0}
"""Tensors of a sensor's faults, which older checkpoints lack."""
BODY_FRAME = "body frame, x forward, y starboard; velocities over ground"


def marine_spec(config: EnvConfig, *, discrete: bool, stack_k: int = 1) -> EnvSpec:
    """Return the description of `MarineNavEnv` with these arguments."""
    vessel, speed = config.vessel, speed_magnitude(config.vessel)
    size = one_digit(0.5 * (config.scenario.buoy_radius_max + vessel.radius))
    observation = EntitySpec(
        ego=ego_features(vessel),
        objects=Features(
            OBJECT_FEATURES,
            ("m", "m", "m/s", "m/s", "m"),
            (10.0, 10.0, speed, speed, size),
            BODY_FRAME,
        ),
        rows=int(ops.describe("marine").tensor("mask").shape[-1]),
        frames=stack_k,
        own_radius=vessel.radius,
        buoy_radius=config.scenario.buoy_radius_max,
    )
    return EnvSpec(observation, thrust_actions(vessel, discrete=discrete), "robots")


def ego_features(vessel: VesselConfig) -> Features:
    """Return the features of a robot with two thrusters; magnitudes follow from its abilities."""
    speed, thrust = speed_magnitude(vessel), 0.5 * max(vessel.max_thrust, -vessel.min_thrust)
    yaw_rate = one_digit(0.5 * vessel.top_yaw_rate)
    return Features(
        EGO_FEATURES,
        ("m", "m", "m/s", "m/s", "rad/s", "N", "N"),
        (20.0, 20.0, speed, speed, yaw_rate, thrust, thrust),
        BODY_FRAME,
    )


def speed_magnitude(vessel: VesselConfig) -> float:
    """Return a typical speed of a vessel, m/s."""
    return one_digit(0.3 * vessel.top_speed)


def one_digit(value: float) -> float:
    """Return a positive number rounded to its first digit; 1 if it is infinite or zero."""
    return float(f"{value:.0e}") if 0.0 < value < math.inf else 1.0


def thrust_actions(vessel: VesselConfig, *, discrete: bool) -> ActionSpec:
    """Return the description of thrust rates as actions."""
    meaning: dict[str, Any] = {"decision_s": vessel.dt * vessel.substeps}
    if discrete:
        left, right = vessel.left_thrust_rates, vessel.right_thrust_rates
        meaning |= {
            "index": f"left choice * {len(right)} + right choice",
            "left_thrust_rates_n_per_s": left,
            "right_thrust_rates_n_per_s": right,
        }
        return ActionSpec(True, DISCRETE_ACTIONS, meaning)
    meaning |= {"order": "left, right", "largest_rate_n_per_s": vessel.max_thrust_rate}
    return ActionSpec(False, CONTINUOUS_ACTIONS, meaning)


class MarineNavEnv(KernelEnv):
    """W worlds of several vessels among buoys and currents; batch size [W].

    TorchRL face: robots are the group ``"robots"`` with batch [W, R]: ``self`` [W, R, 7k],
    ``objects`` [W, R, 5k, 5], ``mask`` [W, R, 5k], ``alive`` [W, R] (bool), ``action``,
    ``reward`` [W, R, 1], and ``done``, ``terminated``, ``truncated`` [W, R, 1] of each robot; those
    of the root [W, 1] belong to the world. See `KernelEnv`.
    """

    kernel = "marine"
    info_fields: ClassVar[tuple[str, ...]] = ("phi", "step_energy", "progress", "contact")
    names_before: ClassVar = {"core": "vortex", "live": "alive"}
    config_type: ClassVar[type[TaskConfig]] = EnvConfig
    default_stages: ClassVar[tuple[Stage, ...]] = PUBLISHED_STAGES
    """Of the published training."""
    evaluation_stages: ClassVar[tuple[Stage, ...]] = PUBLISHED_STAGES
    evaluation_episode: ClassVar[EpisodeConfig] = EpisodeConfig(stop_on_collision=True)
    """How a published evaluation ends its episodes."""
    training_changes: ClassVar[Mapping[str, Any]] = {
        "episode": EpisodeConfig(max_steps=300),
        "reward": RewardConfig(collision=-10.0),
    }
    labels_of: ClassVar[Callable[..., list[str]]] = staticmethod(labels_of)
    describe: ClassVar[Callable[..., EnvSpec]] = staticmethod(marine_spec)
    sensor_tables: ClassVar[Callable[..., Mapping[str, Any]]] = staticmethod(noise_table)
    """Values of the sensor's tensors that only the configuration changes, by name."""
    names_added: ClassVar = {
        **dict.fromkeys(("wind", "stream", "wave", "thruster"), 0.0),
        **SENSOR_ADDED,
        "factor": 1.0,
    }

    def lay_out(
        self, stages: Sequence[AnyStage], slots: Slots | None, discrete: bool | None
    ) -> Layout:
        """Check stages and slots, whose maxima give R, B and C; see `KernelEnv.lay_out`."""
        stages = check_stages(stages, self.config)
        self.slots = check_slots(slots, stages)
        sizes = {**self.slots._asdict(), "stages": len(stages)}
        tables = {**stage_tables(stages, *self.slots), **self.sensor_tables(self.config)}
        return Layout(stages, bool(discrete), sizes, tables)
