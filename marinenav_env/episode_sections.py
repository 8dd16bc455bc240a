"""The sections of an episode file: the map, its cores and buoys, the robots and what they see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marinenav_env.json_fields import (
    BIT,
    COUNT,
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    JsonRecord,
    Rule,
    json_field,
)

THRUST_CHANGES = 5
"""Rates of change that one thruster can choose from; a discrete action is a pair of them."""

VIEW_ANGLE = Rule(
    "give an angle above 0, at most 2 pi rad", low=0.0, high=6.2831853072, open_low=True
)
RATIO = Rule("give a ratio from 0 to 1", low=0.0, high=1.0)


@dataclass(frozen=True, eq=False)
class EnvSettings(JsonRecord):
    """The map, the ranges scenarios are drawn from and the reward.

    ``v_rel_max`` and ``p`` bound how strongly neighbouring vortex cores may meet; ``clear_r`` is
    the clearance of starts and goals [m]; the angular speed penalty is carried and unused.
    """

    seed: int = json_field("seed", WHOLE)
    is_eval_env: bool = json_field("is_eval_env", None)
    width: float = json_field("width", POSITIVE)
    height: float = json_field("height", POSITIVE)
    core_radius: float = json_field("r", POSITIVE)
    v_rel_max: float = json_field("v_rel_max", POSITIVE)
    p: float = json_field("p", POSITIVE)
    v_range: np.ndarray = json_field("v_range", NOT_NEGATIVE, (2,))
    obs_r_range: np.ndarray = json_field("obs_r_range", POSITIVE, (2,))
    clear_r: float = json_field("clear_r", NOT_NEGATIVE)
    angular_speed_max: float = json_field("angular_speed_max")
    angular_speed_penalty: float = json_field("angular_speed_penalty")
    timestep_penalty: float = json_field("timestep_penalty")
    colregs_penalty: float = json_field("COLREGs_penalty")
    collision_penalty: float = json_field("collision_penalty")
    goal_reward: float = json_field("goal_reward")
    num_robots: int = json_field("num_robots", COUNT)


@dataclass(frozen=True, eq=False)
class Cores(JsonRecord):
    """Vortex cores: positions [C, 2] in m, clockwise [C] as 0 or 1, Gamma [C] in m2/s."""

    positions: np.ndarray = json_field("positions", FINITE, ("C", 2))
    clockwise: np.ndarray = json_field("clockwise", BIT, ("C",))
    gamma: np.ndarray = json_field("Gamma", POSITIVE, ("C",))


@dataclass(frozen=True, eq=False)
class Buoys(JsonRecord):
    """Static buoys (``obstacles`` in the file): positions [B, 2] and radii [B] in m."""

    positions: np.ndarray = json_field("positions", FINITE, ("B", 2))
    r: np.ndarray = json_field("r", POSITIVE, ("B",))


@dataclass(frozen=True, eq=False)
class Vessels(JsonRecord):
    """Parameters of R vessels, one entry each; symbols after Fossen, units as in the design.

    ``dt`` is the substep [s], ``n`` the substeps of a decision, ``r`` the collision radius [m],
    ``*_thrust_change`` the rates a discrete action chooses from [N/s].
    """

    dt: np.ndarray = json_field("dt", POSITIVE, ("R",))
    n: np.ndarray = json_field("N", COUNT, ("R",))
    length: np.ndarray = json_field("length", POSITIVE, ("R",))
    width: np.ndarray = json_field("width", POSITIVE, ("R",))
    detect_r: np.ndarray = json_field("detect_r", POSITIVE, ("R",))
    r: np.ndarray = json_field("r", POSITIVE, ("R",))
    goal_dis: np.ndarray = json_field("goal_dis", POSITIVE, ("R",))
    power_coefficient: np.ndarray = json_field("power_coefficient", NOT_NEGATIVE, ("R",))
    min_thrust: np.ndarray = json_field("min_thrust", FINITE, ("R",))
    max_thrust: np.ndarray = json_field("max_thrust", FINITE, ("R",))
    left_thrust_change: np.ndarray = json_field("left_thrust_change", FINITE, ("R", THRUST_CHANGES))
    right_thrust_change: np.ndarray = json_field(
        "right_thrust_change", FINITE, ("R", THRUST_CHANGES)
    )
    m: np.ndarray = json_field("m", POSITIVE, ("R",))
    izz: np.ndarray = json_field("Izz", POSITIVE, ("R",))
    x_dot_u: np.ndarray = json_field("xDotU", FINITE, ("R",))
    y_dot_v: np.ndarray = json_field("yDotV", FINITE, ("R",))
    y_dot_r: np.ndarray = json_field("yDotR", FINITE, ("R",))
    n_dot_r: np.ndarray = json_field("nDotR", FINITE, ("R",))
    n_dot_v: np.ndarray = json_field("nDotV", FINITE, ("R",))
    x_u: np.ndarray = json_field("xU", FINITE, ("R",))
    x_uu: np.ndarray = json_field("xUU", FINITE, ("R",))
    y_v: np.ndarray = json_field("yV", FINITE, ("R",))
    y_vv: np.ndarray = json_field("yVV", FINITE, ("R",))
    y_r: np.ndarray = json_field("yR", FINITE, ("R",))
    y_rv: np.ndarray = json_field("yRV", FINITE, ("R",))
    y_vr: np.ndarray = json_field("yVR", FINITE, ("R",))
    y_rr: np.ndarray = json_field("yRR", FINITE, ("R",))
    n_r: np.ndarray = json_field("nR", FINITE, ("R",))
    n_rr: np.ndarray = json_field("nRR", FINITE, ("R",))
    n_v: np.ndarray = json_field("nV", FINITE, ("R",))
    n_vv: np.ndarray = json_field("nVV", FINITE, ("R",))
    n_rv: np.ndarray = json_field("nRV", FINITE, ("R",))
    n_vr: np.ndarray = json_field("nVR", FINITE, ("R",))


@dataclass(frozen=True, eq=False)
class Missions(JsonRecord):
    """Where R robots start and where they go.

    Positions [R, 2] in m, heading [R] in rad, velocity relative to the water [R, 3] in the world
    frame, azimuth angles [R] in rad and thrusts [R] in N.
    """

    start: np.ndarray = json_field("start", FINITE, ("R", 2))
    goal: np.ndarray = json_field("goal", FINITE, ("R", 2))
    init_theta: np.ndarray = json_field("init_theta", FINITE, ("R",))
    init_velocity_r: np.ndarray = json_field("init_velocity_r", FINITE, ("R", 3))
    init_left_pos: np.ndarray = json_field("init_left_pos", FINITE, ("R",))
    init_right_pos: np.ndarray = json_field("init_right_pos", FINITE, ("R",))
    init_left_thrust: np.ndarray = json_field("init_left_thrust", FINITE, ("R",))
    init_right_thrust: np.ndarray = json_field("init_right_thrust", FINITE, ("R",))


@dataclass(frozen=True, eq=False)
class Perception(JsonRecord):
    """What R robots see: range [m], view angle [rad], most objects, and the noise on them."""

    range: np.ndarray = json_field("range", POSITIVE, ("R",))
    angle: np.ndarray = json_field("angle", VIEW_ANGLE, ("R",))
    max_obj_num: np.ndarray = json_field("max_obj_num", COUNT, ("R",))
    pos_std: np.ndarray = json_field("pos_std", NOT_NEGATIVE, ("R",))
    vel_std: np.ndarray = json_field("vel_std", NOT_NEGATIVE, ("R",))
    r_kappa: np.ndarray = json_field("r_kappa", NOT_NEGATIVE, ("R",))
    r_mean_ratio: np.ndarray = json_field("r_mean_ratio", RATIO, ("R",))

    @property
    def noisy(self) -> bool:
        """Return whether any robot's observations carry noise."""
        return bool(self.pos_std.any() or self.vel_std.any() or (self.r_mean_ratio != 1).any())
