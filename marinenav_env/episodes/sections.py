"""The sections of an episode file: the map, its cores and buoys, the robots and what they see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from marinenav_env.episodes.json_fields import (
    BIT,
    COUNT,
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    JsonField,
    JsonRecord,
    Rule,
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

    seed: Annotated[int, JsonField("seed", WHOLE)]
    is_eval_env: Annotated[bool, JsonField("is_eval_env", None)]
    width: Annotated[float, JsonField("width", POSITIVE)]
    height: Annotated[float, JsonField("height", POSITIVE)]
    core_radius: Annotated[float, JsonField("r", POSITIVE)]
    v_rel_max: Annotated[float, JsonField("v_rel_max", POSITIVE)]
    p: Annotated[float, JsonField("p", POSITIVE)]
    v_range: Annotated[np.ndarray, JsonField("v_range", NOT_NEGATIVE, (2,))]
    obs_r_range: Annotated[np.ndarray, JsonField("obs_r_range", POSITIVE, (2,))]
    clear_r: Annotated[float, JsonField("clear_r", NOT_NEGATIVE)]
    angular_speed_max: Annotated[float, JsonField("angular_speed_max")]
    angular_speed_penalty: Annotated[float, JsonField("angular_speed_penalty")]
    timestep_penalty: Annotated[float, JsonField("timestep_penalty")]
    colregs_penalty: Annotated[float, JsonField("COLREGs_penalty")]
    collision_penalty: Annotated[float, JsonField("collision_penalty")]
    goal_reward: Annotated[float, JsonField("goal_reward")]
    num_robots: Annotated[int, JsonField("num_robots", COUNT)]


@dataclass(frozen=True, eq=False)
class Cores(JsonRecord):
    """Vortex cores: positions [C, 2] in m, clockwise [C] as 0 or 1, Gamma [C] in m2/s."""

    positions: Annotated[np.ndarray, JsonField("positions", FINITE, ("C", 2))]
    clockwise: Annotated[np.ndarray, JsonField("clockwise", BIT, ("C",))]
    gamma: Annotated[np.ndarray, JsonField("Gamma", POSITIVE, ("C",))]


@dataclass(frozen=True, eq=False)
class Buoys(JsonRecord):
    """Static buoys (``obstacles`` in the file): positions [B, 2] and radii [B] in m."""

    positions: Annotated[np.ndarray, JsonField("positions", FINITE, ("B", 2))]
    r: Annotated[np.ndarray, JsonField("r", POSITIVE, ("B",))]


@dataclass(frozen=True, eq=False)
class Vessels(JsonRecord):
    """Parameters of R vessels, one entry each; symbols after Fossen, units as in the design.

    ``dt`` is the substep [s], ``n`` the substeps of a decision, ``r`` the collision radius [m],
    ``*_thrust_change`` the rates a discrete action chooses from [N/s].
    """

    dt: Annotated[np.ndarray, JsonField("dt", POSITIVE, ("R",))]
    n: Annotated[np.ndarray, JsonField("N", COUNT, ("R",))]
    length: Annotated[np.ndarray, JsonField("length", POSITIVE, ("R",))]
    width: Annotated[np.ndarray, JsonField("width", POSITIVE, ("R",))]
    detect_r: Annotated[np.ndarray, JsonField("detect_r", POSITIVE, ("R",))]
    r: Annotated[np.ndarray, JsonField("r", POSITIVE, ("R",))]
    goal_dis: Annotated[np.ndarray, JsonField("goal_dis", POSITIVE, ("R",))]
    power_coefficient: Annotated[np.ndarray, JsonField("power_coefficient", NOT_NEGATIVE, ("R",))]
    min_thrust: Annotated[np.ndarray, JsonField("min_thrust", FINITE, ("R",))]
    max_thrust: Annotated[np.ndarray, JsonField("max_thrust", FINITE, ("R",))]
    left_thrust_change: Annotated[
        np.ndarray, JsonField("left_thrust_change", FINITE, ("R", THRUST_CHANGES))
    ]
    right_thrust_change: Annotated[
        np.ndarray, JsonField("right_thrust_change", FINITE, ("R", THRUST_CHANGES))
    ]
    m: Annotated[np.ndarray, JsonField("m", POSITIVE, ("R",))]
    izz: Annotated[np.ndarray, JsonField("Izz", POSITIVE, ("R",))]
    x_dot_u: Annotated[np.ndarray, JsonField("xDotU", FINITE, ("R",))]
    y_dot_v: Annotated[np.ndarray, JsonField("yDotV", FINITE, ("R",))]
    y_dot_r: Annotated[np.ndarray, JsonField("yDotR", FINITE, ("R",))]
    n_dot_r: Annotated[np.ndarray, JsonField("nDotR", FINITE, ("R",))]
    n_dot_v: Annotated[np.ndarray, JsonField("nDotV", FINITE, ("R",))]
    x_u: Annotated[np.ndarray, JsonField("xU", FINITE, ("R",))]
    x_uu: Annotated[np.ndarray, JsonField("xUU", FINITE, ("R",))]
    y_v: Annotated[np.ndarray, JsonField("yV", FINITE, ("R",))]
    y_vv: Annotated[np.ndarray, JsonField("yVV", FINITE, ("R",))]
    y_r: Annotated[np.ndarray, JsonField("yR", FINITE, ("R",))]
    y_rv: Annotated[np.ndarray, JsonField("yRV", FINITE, ("R",))]
    y_vr: Annotated[np.ndarray, JsonField("yVR", FINITE, ("R",))]
    y_rr: Annotated[np.ndarray, JsonField("yRR", FINITE, ("R",))]
    n_r: Annotated[np.ndarray, JsonField("nR", FINITE, ("R",))]
    n_rr: Annotated[np.ndarray, JsonField("nRR", FINITE, ("R",))]
    n_v: Annotated[np.ndarray, JsonField("nV", FINITE, ("R",))]
    n_vv: Annotated[np.ndarray, JsonField("nVV", FINITE, ("R",))]
    n_rv: Annotated[np.ndarray, JsonField("nRV", FINITE, ("R",))]
    n_vr: Annotated[np.ndarray, JsonField("nVR", FINITE, ("R",))]


@dataclass(frozen=True, eq=False)
class Missions(JsonRecord):
    """Where R robots start and where they go.

    Positions [R, 2] in m, heading [R] in rad, velocity relative to the water [R, 3] in the world
    frame, azimuth angles [R] in rad and thrusts [R] in N.
    """

    start: Annotated[np.ndarray, JsonField("start", FINITE, ("R", 2))]
    goal: Annotated[np.ndarray, JsonField("goal", FINITE, ("R", 2))]
    init_theta: Annotated[np.ndarray, JsonField("init_theta", FINITE, ("R",))]
    init_velocity_r: Annotated[np.ndarray, JsonField("init_velocity_r", FINITE, ("R", 3))]
    init_left_pos: Annotated[np.ndarray, JsonField("init_left_pos", FINITE, ("R",))]
    init_right_pos: Annotated[np.ndarray, JsonField("init_right_pos", FINITE, ("R",))]
    init_left_thrust: Annotated[np.ndarray, JsonField("init_left_thrust", FINITE, ("R",))]
    init_right_thrust: Annotated[np.ndarray, JsonField("init_right_thrust", FINITE, ("R",))]


@dataclass(frozen=True, eq=False)
class Perception(JsonRecord):
    """What R robots see: range [m], view angle [rad], most objects, and the noise on them."""

    range: Annotated[np.ndarray, JsonField("range", POSITIVE, ("R",))]
    angle: Annotated[np.ndarray, JsonField("angle", VIEW_ANGLE, ("R",))]
    max_obj_num: Annotated[np.ndarray, JsonField("max_obj_num", COUNT, ("R",))]
    pos_std: Annotated[np.ndarray, JsonField("pos_std", NOT_NEGATIVE, ("R",))]
    vel_std: Annotated[np.ndarray, JsonField("vel_std", NOT_NEGATIVE, ("R",))]
    r_kappa: Annotated[np.ndarray, JsonField("r_kappa", NOT_NEGATIVE, ("R",))]
    r_mean_ratio: Annotated[np.ndarray, JsonField("r_mean_ratio", RATIO, ("R",))]

    @property
    def noisy(self) -> bool:
        """Return whether any robot's observations carry noise."""
        return bool(self.pos_std.any() or self.vel_std.any() or (self.r_mean_ratio != 1).any())
