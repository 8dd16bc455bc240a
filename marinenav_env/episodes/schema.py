"""The keys of an episode file in their order: what each may hold, and which parameter it is."""

from __future__ import annotations

import re

from marinenav_env.episodes.checks import (
    ANGLE,
    BIT,
    COUNT,
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    RATIO,
    STATE,
    THRUST_CHANGES,
    TURN,
    WHOLE,
    Entry,
    Rule,
)
from marinenav_env.vessels import VESSELS as KNOWN_VESSELS


def _of_env(rule: Rule, *parameters: str) -> Entry:
    return Entry(rule, (len(parameters),) if len(parameters) > 1 else (), parameters)


def _of_robots(rule: Rule, parameter: str = "", *lengths: int) -> Entry:
    return Entry(rule, ("R", *lengths), (parameter,) if parameter else ())


def _snake_case(key: str) -> str:
    return re.sub("([a-z])([A-Z])", r"\1_\2", key).lower()


VESSEL = Rule(f"use only {', '.join(KNOWN_VESSELS)}", lambda value: value in [*KNOWN_VESSELS])

DERIVATIVES = (
    *("xDotU", "yDotV", "yDotR", "nDotR", "nDotV"),
    *("xU", "xUU", "yV", "yVV", "yR", "yRV", "yVR", "yRR"),
    *("nR", "nRR", "nV", "nVV", "nRV", "nVR"),
)
"""Hydrodynamic derivatives after Fossen: xDotU is `VesselConfig.x_dot_u`, and so on."""

ENV = {
    "seed": _of_env(WHOLE),
    "is_eval_env": _of_env(FLAG),
    "width": _of_env(POSITIVE, "scenario.width"),
    "height": _of_env(POSITIVE, "scenario.height"),
    "r": _of_env(POSITIVE, "current.core_radius"),
    "v_rel_max": _of_env(POSITIVE, "current.same_sense_speed"),
    "p": _of_env(POSITIVE, "current.opposite_ratio"),
    "v_range": _of_env(NOT_NEGATIVE, "current.edge_speed_min", "current.edge_speed_max"),
    "obs_r_range": _of_env(POSITIVE, "scenario.buoy_radius_min", "scenario.buoy_radius_max"),
    "clear_r": _of_env(NOT_NEGATIVE, "scenario.clear_radius"),
    "angular_speed_max": _of_env(FINITE),  # this and the next: carried and unused
    "angular_speed_penalty": _of_env(FINITE),
    "timestep_penalty": _of_env(FINITE, "reward.timestep"),
    "COLREGs_penalty": _of_env(FINITE, "reward.colregs"),
    "collision_penalty": _of_env(FINITE, "reward.collision"),
    "goal_reward": _of_env(FINITE, "reward.goal"),
    "num_robots": _of_env(COUNT),
}
VORTICES = {
    "positions": Entry(FINITE, ("C", 2)),
    "clockwise": Entry(BIT, ("C",)),
    "Gamma": Entry(POSITIVE, ("C",)),
}
BUOYS = {"positions": Entry(FINITE, ("B", 2)), "r": Entry(POSITIVE, ("B",))}
VESSELS = {
    "dt": _of_robots(POSITIVE, "vessel.dt"),
    "N": _of_robots(COUNT, "vessel.substeps"),
    "length": _of_robots(POSITIVE, "vessel.length"),
    "width": _of_robots(POSITIVE, "vessel.width"),
    "detect_r": _of_robots(POSITIVE, "vessel.radius"),
    "r": _of_robots(POSITIVE, "vessel.radius"),
    "goal_dis": _of_robots(POSITIVE, "reward.goal_distance"),
    "power_coefficient": _of_robots(NOT_NEGATIVE, "vessel.power_coefficient"),
    "min_thrust": _of_robots(FINITE, "vessel.min_thrust"),
    "max_thrust": _of_robots(FINITE, "vessel.max_thrust"),
    "left_thrust_change": _of_robots(FINITE, "vessel.left_thrust_rates", THRUST_CHANGES),
    "right_thrust_change": _of_robots(FINITE, "vessel.right_thrust_rates", THRUST_CHANGES),
    "m": _of_robots(POSITIVE, "vessel.mass"),
    "Izz": _of_robots(POSITIVE, "vessel.izz"),
    **{key: _of_robots(FINITE, f"vessel.{_snake_case(key)}") for key in DERIVATIVES},
}
"""Units as in `VesselConfig`."""

FURTHER = {
    "vessel": _of_robots(VESSEL, "vessel.name"),
    **{
        key: _of_robots(FINITE, f"vessel.{_snake_case(key)}")
        for key in ("xG", "xUUU", "crossFlow", "thrusterSpread", "maxThrustRate")
    },
    "transportTerm": _of_robots(FLAG, "vessel.transport_term"),
}
"""What files of another vessel than the WAM-V 16 hold too; the published format has no others."""

MISSIONS = {
    "start": _of_robots(FINITE, "", 2),
    "goal": _of_robots(FINITE, "", 2),
    "init_theta": _of_robots(FINITE),
    "init_velocity_r": _of_robots(FINITE, "", 3),  # relative to the water, world frame
    "init_left_pos": _of_robots(FINITE),
    "init_right_pos": _of_robots(FINITE),
    "init_left_thrust": _of_robots(FINITE),
    "init_right_thrust": _of_robots(FINITE),
}
PERCEPTION = {
    "range": _of_robots(POSITIVE, "perception.range"),
    "angle": _of_robots(ANGLE, "perception.angle"),
    "max_obj_num": _of_robots(COUNT),
    "pos_std": _of_robots(NOT_NEGATIVE, "perception.position_std"),
    "vel_std": _of_robots(NOT_NEGATIVE, "perception.velocity_std"),
    "r_kappa": _of_robots(NOT_NEGATIVE, "perception.radius_kappa"),
    "r_mean_ratio": _of_robots(RATIO, "perception.radius_mean_ratio"),
}
SELF_FEATURES, OBJECT_FEATURES = 7, 5
"""Numbers in an observation ``[self, objects]``: own, and of each object."""

HISTORIES = ("observation_history", "action_history", "trajectory")
RECORDED = {
    "continuous_action": Entry(FLAG),
    "rewards": Entry(FINITE, ("T", "R")),
    "dones": Entry(FLAG, ("T", "R")),
    "infos": Entry(STATE, ("T", "R")),
    "collision": Entry(FLAG, ("T", "R")),
    "reach_goal": Entry(FLAG, ("T", "R")),
    "apply_colregs": Entry(FLAG, ("T+1", "R")),
    "phi": Entry(TURN, ("T", "R")),  # [rad]; phi[t] belongs to apply_colregs[t + 1]
    "deactivated": Entry(FLAG, ("T", "R")),  # before the decision's ends
    "energy": Entry(FINITE, ("T", "R")),  # [N s]
}
"""All of the section but ``obs``, which comes last: an observation of each robot, or null."""


def vessel_keys(further: bool) -> dict[str, Entry]:
    """Return the keys of a vessel's parameters, with or without those of further vessels."""
    return VESSELS | (FURTHER if further else {})
