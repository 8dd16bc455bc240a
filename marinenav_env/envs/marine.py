"""MarineNavEnv: several vessels among buoys and currents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from marinenav_env.config import EnvConfig, EpisodeConfig, RewardConfig, TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.checks import InfoMode, check_slots, check_stages
from marinenav_env.envs.observation import EGO_FEATURES, OBJECT_FEATURES, Observation
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage, labels_of
from marinenav_env.envs.scenes import AnyStage
from marinenav_env.envs.spec import ActionSpec, EntitySpec, EnvSpec, Features
from marinenav_env.envs.state import Slots, marine_tables
from marinenav_env.fields import build
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
    ``objects`` [W, R, 5k, 5], ``mask`` [W, R, 5k], ``alive`` and ``robot_terminated`` [W, R]
    (bool), ``action`` and ``reward`` [W, R, 1]; ``done``, ``terminated``, ``truncated`` [W, 1]
    belong to the world. See `KernelEnv`.

    Args:
        worlds: W.
        stages: random maps or scenes; their maxima give the slots R, B and C. None takes the
            published ones.
        config: physical and task parameters, an `EnvConfig`; None takes the published ones.
        discrete: 25 thrust choices (int64 [W, R]) instead of thrust rates in [-1, 1] ([W, R, 2]).
        device: "cpu" or "cuda".
        dtype: float32 or float64.
        seed: of the counter-based random numbers.
        first_world: global index of world 0; ranks give each its own range.
        info_mode: "stats" sums finished episodes on the device; "full" also reports per robot
            (``("robots", "info", info_fields)``); "none" neither.
        stack_k: observation frames, newest first.
        skip_reset_if_empty: see `ops.reset`.
        slots: more slots than the stages need (for scenarios loaded from files).

    Raises:
        ConfigError: a parameter is impossible; the message names it, its value and the remedy.
    """

    kernel = "marine"
    observation_type: ClassVar[Callable[..., Any]] = Observation
    entry_keys: ClassVar = {"ego": "self", "objects": "objects", "mask": "mask"}
    group = "robots"
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
    tables_of: ClassVar[Callable[..., Mapping[str, Any]]] = staticmethod(marine_tables)
    names_added: ClassVar = {
        **dict.fromkeys(("wind", "stream", "wave", "thruster"), 0.0),
        **SENSOR_ADDED,
        "factor": 1.0,
    }

    def __init__(
        self,
        worlds: int,
        *,
        stages: Sequence[AnyStage] | None = None,
        config: Any = None,
        discrete: bool = False,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        first_world: int = 0,
        info_mode: InfoMode = "stats",
        stack_k: int = 1,
        skip_reset_if_empty: bool = True,
        slots: Slots | None = None,
    ) -> None:
        """See the class."""
        kind = self.config_type
        config = kind() if config is None else build(kind, config, where="config")
        stages = check_stages(self.default_stages if stages is None else stages, config)
        slots = check_slots(slots, stages)
        super().__init__(
            worlds,
            robots=slots.robots,
            params=config.named_numbers(),
            sizes={"buoys": slots.buoys, "vortices": slots.vortices, "stages": len(stages)},
            tables=self.tables_of(stages, slots, config),
            discrete=discrete,
            device=device,
            dtype=dtype,
            seed=seed,
            first_world=first_world,
            info_mode=info_mode,
            stack_k=stack_k,
            skip_reset_if_empty=skip_reset_if_empty,
        )
        self.config, self.stages, self.slots = config, stages, slots
