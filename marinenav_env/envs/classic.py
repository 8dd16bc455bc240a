"""Classic control tasks of Gymnasium, to compare with other simulators and libraries."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from marinenav_env.config import EpisodeConfig, TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.scenes import AnyStage
from marinenav_env.envs.spec import ActionSpec, EnvSpec, Features, FlatSpec
from marinenav_env.envs.state import Layout, Slots
from marinenav_env.fields import Settings, require, setting
from marinenav_env.kernel import ops

gymnasium = functools.partial(setting, source="Gymnasium 1.4.0")

ONE_ROBOT = (Stage(robots=1, vortices=0, buoys=0, min_distance_m=0.0),)
"""The one stage of these tasks: a robot, and nothing else."""


@dataclass(frozen=True)
class CartPolePhysics(Settings):
    """A pole on a cart."""

    gravity: float = gymnasium(9.8, unit="m/s^2")
    cart_mass: float = gymnasium(1.0, unit="kg", above=0.0)
    pole_mass: float = gymnasium(0.1, unit="kg", above=0.0)
    half_length: float = gymnasium(0.5, unit="m", above=0.0)  # half the pole's
    force: float = gymnasium(10.0, unit="N", low=0.0)
    dt: float = gymnasium(0.02, unit="s", above=0.0)  # one step of Euler's method
    most_angle: float = gymnasium(12 * 2 * math.pi / 360, unit="rad", above=0.0)
    """Beyond it the pole has fallen."""
    most_position: float = gymnasium(2.4, unit="m", above=0.0)
    """Beyond it the cart has left the track."""
    start: float = gymnasium(0.05, unit="m, m/s, rad, rad/s", low=0.0)
    """Every number of the state begins within it."""


@dataclass(frozen=True)
class PendulumPhysics(Settings):
    """A pendulum on a motor that cannot lift it at once."""

    gravity: float = gymnasium(10.0, unit="m/s^2")
    mass: float = gymnasium(1.0, unit="kg", above=0.0)
    length: float = gymnasium(1.0, unit="m", above=0.0)
    dt: float = gymnasium(0.05, unit="s", above=0.0)
    max_torque: float = gymnasium(2.0, unit="N m", low=0.0)  # of the action 1
    max_turn: float = gymnasium(8.0, unit="rad/s", above=0.0)
    turn_cost: float = gymnasium(0.1, unit="s^2/rad^2", low=0.0)
    torque_cost: float = gymnasium(0.001, unit="1/(N m)^2", low=0.0)
    start_angle: float = gymnasium(math.pi, unit="rad", low=0.0)  # every start is within it
    start_turn: float = gymnasium(1.0, unit="rad/s", low=0.0)  # and within this


@dataclass(frozen=True)
class MountainCarPhysics(Settings):
    """A car that has to swing up to leave a valley; lengths and times are without units."""

    gravity: float = gymnasium(0.0025, unit="-")
    power: float = gymnasium(0.001, unit="-", low=0.0)  # of the action 1
    max_speed: float = gymnasium(0.07, unit="1/decision", above=0.0)
    min_position: float = gymnasium(-1.2, unit="-")
    max_position: float = gymnasium(0.6, unit="-")
    goal: float = gymnasium(0.5, unit="-")
    goal_speed: float = gymnasium(0.0, unit="1/decision")  # at least, to arrive
    step_reward: float = gymnasium(-1.0, unit="-")
    goal_reward: float = gymnasium(0.0, unit="-")
    action_cost: float = gymnasium(0.0, unit="-", low=0.0)  # of the squared action
    start_low: float = gymnasium(-0.6, unit="-")
    start_high: float = gymnasium(-0.4, unit="-")

    def check(self) -> None:
        """Refuse a valley without room, and starts outside it."""
        self.require_order("min_position", "max_position", strict=True)
        self.require(
            self.min_position <= self.start_low <= self.start_high <= self.max_position,
            "start_low",
            f"give min_position <= start_low <= start_high = {self.start_high} <= max_position",
        )


@dataclass(frozen=True)
class CartPoleConfig(TaskConfig):
    """CartPole-v1 (Barto, Sutton and Anderson 1983)."""

    physics: CartPolePhysics = field(default_factory=CartPolePhysics)
    episode: EpisodeConfig = field(default=EpisodeConfig(max_steps=500))


@dataclass(frozen=True)
class PendulumConfig(TaskConfig):
    """Pendulum-v1."""

    physics: PendulumPhysics = field(default_factory=PendulumPhysics)
    episode: EpisodeConfig = field(default=EpisodeConfig(max_steps=200))


@dataclass(frozen=True)
class MountainCarConfig(TaskConfig):
    """MountainCar-v0 (Moore 1990)."""

    physics: MountainCarPhysics = field(default_factory=MountainCarPhysics)
    episode: EpisodeConfig = field(default=EpisodeConfig(max_steps=200))


@dataclass(frozen=True)
class MountainCarContinuousConfig(TaskConfig):
    """MountainCarContinuous-v0."""

    physics: MountainCarPhysics = field(
        default_factory=lambda: MountainCarPhysics(
            power=0.0015, goal=0.45, step_reward=0.0, goal_reward=100.0, action_cost=0.1
        )
    )
    episode: EpisodeConfig = field(default=EpisodeConfig(max_steps=999))


class ClassicEnv(KernelEnv):
    """W worlds of a classic task; batch size [W].

    TorchRL face: ``observation`` [W, Fk], ``action`` [W] (int64) or [W, 1] in [-1, 1], ``reward``
    [W, 1]. In float64 states and rewards are Gymnasium's to the bit. See `KernelEnv`.
    """

    default_stages = ONE_ROBOT
    evaluation_stages = ONE_ROBOT
    gymnasium_id: ClassVar[str]
    """Of the environment that it equals."""
    units: ClassVar[tuple[str, ...]]
    magnitudes: ClassVar[tuple[float, ...]]
    """Typical ones of the observation's features."""
    action_words: ClassVar[Mapping[str, str]]
    """What an exported file says of an action."""
    action_numbers: ClassVar[Mapping[str, str]] = {}
    """Numbers it gives besides: its names, and fields of the physics."""

    def lay_out(
        self, stages: Sequence[AnyStage], slots: Slots | None, discrete: bool | None
    ) -> Layout:
        """Check that nothing is asked for but the task; see `KernelEnv.lay_out`."""
        stages, takes = tuple(stages), self.kernel_spec.discrete > 0
        remedy = f"the task {self.kernel!r} has one stage and no slots: leave this out"
        require(stages == ONE_ROBOT, "stages", stages, remedy)
        require(slots is None, "slots", slots, remedy)
        remedy = f"the task {self.kernel!r} takes the other kind of actions: leave discrete out"
        require(discrete in (None, takes), "discrete", discrete, remedy)
        return Layout(stages, takes, {"robots": 1, "stages": 1}, {"stage": [[1.0]]})

    @classmethod
    def describe(cls, config: Any, *, discrete: bool = False, stack_k: int = 1) -> EnvSpec:
        """Return the description of an environment with these arguments."""
        kernel = ops.describe(cls.kernel)
        (state,) = kernel.observation
        features = Features(state.fields, cls.units, cls.magnitudes)
        takes_index = kernel.discrete > 0
        size = kernel.discrete if takes_index else kernel.continuous
        numbers = {name: getattr(config.physics, key) for name, key in cls.action_numbers.items()}
        action = ActionSpec(takes_index, size, {**numbers, **cls.action_words})
        return EnvSpec(FlatSpec(features, stack_k), action)

    @staticmethod
    def labels_of(stages: Sequence[Stage]) -> list[str]:
        """Return the name of every stage in tables."""
        return ["all"] * len(stages)


class CartPoleEnv(ClassicEnv):
    """CartPole-v1: x, x_dot, theta, theta_dot; 0 pushes to the left, 1 to the right."""

    kernel = "cartpole"
    gymnasium_id = "CartPole-v1"
    config_type = CartPoleConfig
    evaluation_episode = EpisodeConfig(max_steps=500)
    return_range = (0.0, 500.0)
    value_range = (0.0, 100.0)
    units = ("m", "m/s", "rad", "rad/s")
    magnitudes = (2.4, 2.0, 0.2, 2.0)
    action_words: ClassVar = {"index": "0 pushes left, 1 right"}
    action_numbers: ClassVar = {"decision_s": "dt"}


class PendulumEnv(ClassicEnv):
    """Pendulum-v1: cosine and sine of the angle, theta_dot; the action is a share of 2 N m."""

    kernel = "pendulum"
    gymnasium_id = "Pendulum-v1"
    config_type = PendulumConfig
    evaluation_episode = EpisodeConfig(max_steps=200)
    return_range = (-2000.0, 0.0)
    value_range = (-1500.0, 0.0)
    units = ("-", "-", "rad/s")
    magnitudes = (1.0, 1.0, 4.0)
    action_words: ClassVar = {"order": "torque"}
    action_numbers: ClassVar = {"decision_s": "dt", "largest_n_m": "max_torque"}


class MountainCarEnv(ClassicEnv):
    """MountainCar-v0: position, velocity; 0 accelerates to the left, 1 not at all, 2 right."""

    kernel = "mountain_car"
    gymnasium_id = "MountainCar-v0"
    config_type = MountainCarConfig
    evaluation_episode = EpisodeConfig(max_steps=200)
    return_range = (-200.0, 0.0)
    value_range = (-100.0, 0.0)
    units = ("-", "1/decision")
    magnitudes = (1.0, 0.05)
    action_words: ClassVar = {"index": "0 accelerates left, 1 not, 2 right"}


class MountainCarContinuousEnv(ClassicEnv):
    """MountainCarContinuous-v0: position, velocity; the action is a share of the power."""

    kernel = "mountain_car_continuous"
    gymnasium_id = "MountainCarContinuous-v0"
    config_type = MountainCarContinuousConfig
    evaluation_episode = EpisodeConfig(max_steps=999)
    return_range = (-100.0, 100.0)
    value_range = (-100.0, 100.0)
    units = ("-", "1/decision")
    magnitudes = (1.0, 0.05)
    action_words: ClassVar = {"order": "acceleration"}
    action_numbers: ClassVar = {"largest": "power"}


CLASSIC: tuple[type[ClassicEnv], ...] = (
    CartPoleEnv,
    PendulumEnv,
    MountainCarEnv,
    MountainCarContinuousEnv,
)
