"""The task of the ICRA 2024 paper: vessels of kinematics alone among strong vortices and buoys.

"ICRA 2024" is Lin et al., "Decentralized Multi-Robot Navigation for Autonomous Surface Vehicles
with Distributional Reinforcement Learning" (arXiv 2402.11799), and its published simulator. World
frame as there: x right, y up, angles counter-clockwise; the equations are those of north, east and
clockwise, number for number.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from marinenav_env.config import EpisodeConfig, ScenarioConfig, VesselTaskConfig, check_range
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.spec import ActionSpec, EnvSpec, Features, TwoListSpec
from marinenav_env.fields import Settings, setting
from marinenav_env.kernel import ops
from marinenav_env.vessels import MOST_SUBSTEPS
from marinenav_env.water import CurrentConfig

icra = functools.partial(setting, source="ICRA 2024")


@dataclass(frozen=True)
class KinematicVesselConfig(Settings):
    """A vessel that chooses acceleration and turn rate."""

    length: ClassVar[float] = 1.0  # m, as drawn, and width
    width: ClassVar[float] = 0.5
    dt: float = icra(0.05, unit="s", above=0.0)  # Euler substep
    substeps: int = icra(10, unit="substeps", low=1, high=MOST_SUBSTEPS)  # a decision
    radius: float = icra(0.8, unit="m", above=0.0)  # of collision
    detection_radius: float = icra(0.5 * math.hypot(length, width), unit="m", low=0.0)
    """As others detect the vessel: half the diagonal of its hull."""
    max_speed: float = icra(2.0, unit="m/s", above=0.0)
    drag: float = icra(0.2, unit="1/s", low=0.0)  # deceleration per speed
    max_acceleration: float = icra(0.4, unit="m/s^2", above=0.0)  # at continuous action 1
    max_turn_rate: float = icra(math.pi / 6.0, unit="rad/s", above=0.0)  # at continuous action 1
    # Discrete choices: accelerations are the outer index of an action, turn rates the inner.
    accelerations: tuple[float, ...] = icra((-0.4, 0.0, 0.4), unit="m/s^2", count=3)
    turn_rates: tuple[float, ...] = icra(
        (-math.pi / 6.0, 0.0, math.pi / 6.0), unit="rad/s", count=3
    )

    def check(self) -> None:
        """Refuse choices beyond the largest, of which energy is a share, and whole turns."""
        for name, most in (
            ("accelerations", self.max_acceleration),
            ("turn_rates", self.max_turn_rate),
        ):
            largest = max(map(abs, getattr(self, name)))
            self.require(
                largest <= most, name, f"give choices within the largest, {most:g} to either side"
            )
        self.require(
            self.max_turn_rate * self.dt < 2.0 * math.pi,
            "max_turn_rate",
            f"a substep of {self.dt:g} s would turn the vessel around; give less",
        )


@dataclass(frozen=True)
class RangeConfig(Settings):
    """Sensor range; there is no noise, and the field of view is a full circle."""

    range: float = icra(15.0, unit="m", above=0.0)  # plus the object's radius


@dataclass(frozen=True)
class ReachGoalConfig(Settings):
    """Reward of a decision; progress toward the goal counts 1 a metre."""

    timestep: float = icra(-1.0, unit="-")  # a decision
    collision: float = icra(-50.0, unit="-")
    goal: float = icra(100.0, unit="-")
    goal_distance: float = icra(2.0, unit="m", above=0.0)  # within it the goal is reached
    # Of a hull, a random share each decision.
    fringe: float = setting(0.0, unit="m", source="this project", low=0.0)


@dataclass(frozen=True)
class Icra2024Config(VesselTaskConfig):
    """All parameters of the task. Values of `scenario` and `current` are ICRA 2024's too."""

    vessel: KinematicVesselConfig = field(default_factory=KinematicVesselConfig)
    perception: RangeConfig = field(default_factory=RangeConfig)
    reward: ReachGoalConfig = field(default_factory=ReachGoalConfig)
    current: CurrentConfig = field(
        default_factory=lambda: CurrentConfig(edge_speed_min=5.0, edge_speed_max=10.0)
    )
    scenario: ScenarioConfig = field(
        default_factory=lambda: ScenarioConfig(width=50.0, height=50.0, clear_radius=5.0)
    )
    episode: EpisodeConfig = field(default_factory=EpisodeConfig)

    def check(self) -> None:
        """Refuse overlapping starts, and a range within which contacts would be missed."""
        super().check()
        check_range(self)


def _stages(*rows: tuple[int, int, int, float]) -> tuple[Stage, ...]:
    return tuple(Stage(*row) for row in rows)


ICRA2024_STAGES = _stages(
    (3, 4, 0, 30.0),
    (5, 6, 0, 35.0),
    (7, 8, 0, 40.0),
    (7, 8, 6, 40.0),
    (7, 8, 8, 40.0),
    (7, 8, 10, 40.0),
)
"""The curriculum of the published training, one stage per sixth of the run."""
ICRA2024_EXPERIMENTS = _stages(*((n, n + 1, n + 1, 40.0) for n in range(3, 8)))
"""The settings of the published experiments."""


def icra2024_spec(config: Icra2024Config, *, discrete: bool, stack_k: int = 1) -> EnvSpec:
    """Return the description of `Icra2024Env` with these arguments."""
    kernel, vessel = ops.describe("icra2024"), config.vessel
    frame = "body frame, x forward; velocities over ground"
    static, dynamic = kernel.tensor("static"), kernel.tensor("dynamic")
    observation = TwoListSpec(
        Features(kernel.fields("ego"), ("m", "m", "m/s", "m/s"), (20.0, 20.0, 1.0, 1.0), frame),
        Features(static.fields, ("m", "m", "m"), (10.0, 10.0, 1.0), frame),
        Features(dynamic.fields, ("m", "m", "m/s", "m/s"), (10.0, 10.0, 1.0, 1.0), frame),
        rows=int(static.shape[-2]),
        frames=stack_k,
        own_radius=vessel.radius,
    )
    meaning: dict[str, Any] = {"decision_s": vessel.dt * vessel.substeps}
    if discrete:
        meaning |= {
            "index": f"{len(vessel.turn_rates)} * acceleration choice + turn rate choice",
            "accelerations_m_per_s2": vessel.accelerations,
            "turn_rates_rad_per_s": vessel.turn_rates,
        }
        return EnvSpec(observation, ActionSpec(True, kernel.discrete, meaning), "robots")
    meaning |= {
        "order": "acceleration, turn rate",
        "largest": (vessel.max_acceleration, vessel.max_turn_rate),
    }
    return EnvSpec(observation, ActionSpec(False, kernel.continuous, meaning), "robots")


class Icra2024Env(MarineNavEnv):
    """W worlds of the ICRA 2024 task; batch size [W].

    TorchRL face: as `MarineNavEnv`, with the observation ``self`` [W, R, 4k], ``static``
    [W, R, 5k, 3] and ``dynamic`` [W, R, 5k, 4], see `TwoListObservation`. Discrete actions are 9,
    3 * acceleration + turn rate; continuous ones are shares of the largest of both.

    Args and errors: as `MarineNavEnv`.
    """

    return_range = (-500.0, 150.0)
    value_range = (-120.0, 110.0)  # -1 a decision adds up to -100, and the goal is worth 100

    kernel = "icra2024"
    info_fields = ("step_energy", "progress", "contact")
    names_before: ClassVar = {}
    names_added: ClassVar = {}
    config_type = Icra2024Config
    default_stages = ICRA2024_STAGES
    evaluation_stages = ICRA2024_EXPERIMENTS
    evaluation_episode = EpisodeConfig(max_steps=361)
    training_changes: ClassVar = {"episode": EpisodeConfig(max_steps=300)}
    describe: ClassVar = staticmethod(icra2024_spec)
    sensor_tables: ClassVar = staticmethod(lambda config: dict[str, Any]())
