"""The keys of an episode file in their order: what each may hold, and which parameter it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
    Check,
    Entry,
    Rule,
)
from marinenav_env.vessels import VESSELS as KNOWN_VESSELS


def of_env(rule: Rule, *parameters: str) -> Entry:
    """Return an entry of the environment, which is a parameter, a range of two, or carried only."""
    return Entry(rule, (len(parameters),) if len(parameters) > 1 else (), parameters)


def of_robots(rule: Rule, parameter: str = "", *lengths: int) -> Entry:
    """Return an entry with a value, or a list of these lengths, for each robot."""
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

MAP = {
    "width": of_env(POSITIVE, "scenario.width"),
    "height": of_env(POSITIVE, "scenario.height"),
    "r": of_env(POSITIVE, "current.core_radius"),
    "v_rel_max": of_env(POSITIVE, "current.same_sense_speed"),
    "p": of_env(POSITIVE, "current.opposite_ratio"),
    "v_range": of_env(NOT_NEGATIVE, "current.edge_speed_min", "current.edge_speed_max"),
    "obs_r_range": of_env(POSITIVE, "scenario.buoy_radius_min", "scenario.buoy_radius_max"),
    "clear_r": of_env(NOT_NEGATIVE, "scenario.clear_radius"),
}
"""What the map is, and how it is drawn."""

ENV = {
    "seed": of_env(WHOLE),
    "is_eval_env": of_env(FLAG),
    **MAP,
    "angular_speed_max": of_env(FINITE),  # this and the next: carried and unused
    "angular_speed_penalty": of_env(FINITE),
    "timestep_penalty": of_env(FINITE, "reward.timestep"),
    "COLREGs_penalty": of_env(FINITE, "reward.colregs"),
    "collision_penalty": of_env(FINITE, "reward.collision"),
    "goal_reward": of_env(FINITE, "reward.goal"),
    "num_robots": of_env(COUNT),
}
VORTICES = {
    "positions": Entry(FINITE, ("C", 2)),
    "clockwise": Entry(BIT, ("C",)),
    "Gamma": Entry(POSITIVE, ("C",)),
}
BUOYS = {"positions": Entry(FINITE, ("B", 2)), "r": Entry(POSITIVE, ("B",))}
VESSELS = {
    "dt": of_robots(POSITIVE, "vessel.dt"),
    "N": of_robots(COUNT, "vessel.substeps"),
    "length": of_robots(POSITIVE, "vessel.length"),
    "width": of_robots(POSITIVE, "vessel.width"),
    "detect_r": of_robots(POSITIVE, "vessel.radius"),
    "r": of_robots(POSITIVE, "vessel.radius"),
    "goal_dis": of_robots(POSITIVE, "reward.goal_distance"),
    "power_coefficient": of_robots(NOT_NEGATIVE, "vessel.power_coefficient"),
    "min_thrust": of_robots(FINITE, "vessel.min_thrust"),
    "max_thrust": of_robots(FINITE, "vessel.max_thrust"),
    "left_thrust_change": of_robots(FINITE, "vessel.left_thrust_rates", THRUST_CHANGES),
    "right_thrust_change": of_robots(FINITE, "vessel.right_thrust_rates", THRUST_CHANGES),
    "m": of_robots(POSITIVE, "vessel.mass"),
    "Izz": of_robots(POSITIVE, "vessel.izz"),
    **{key: of_robots(FINITE, f"vessel.{_snake_case(key)}") for key in DERIVATIVES},
}
"""Units as in `VesselConfig`."""

FURTHER = {
    "vessel": of_robots(VESSEL, "vessel.name"),
    **{
        key: of_robots(FINITE, f"vessel.{_snake_case(key)}")
        for key in ("xG", "xUUU", "crossFlow", "thrusterSpread", "maxThrustRate")
    },
    "transportTerm": of_robots(FLAG, "vessel.transport_term"),
}
"""What files hold too of a vessel that differs in any of it from the published one."""

POLICY = "policy"
"""What steers the robots that are judged, by its name in files."""
NAME = Rule("give the name of what steers it", lambda value: isinstance(value, str) and value != "")
STEER = {"steer": of_robots(NAME)}
"""What files hold too where other controllers steer some of the robots."""

MISSIONS = {
    "start": of_robots(FINITE, "", 2),
    "goal": of_robots(FINITE, "", 2),
    "init_theta": of_robots(FINITE),
    "init_velocity_r": of_robots(FINITE, "", 3),  # relative to the water, world frame
    "init_left_pos": of_robots(FINITE),
    "init_right_pos": of_robots(FINITE),
    "init_left_thrust": of_robots(FINITE),
    "init_right_thrust": of_robots(FINITE),
}
PERCEPTION = {
    "range": of_robots(POSITIVE, "perception.range"),
    "angle": of_robots(ANGLE, "perception.angle"),
    "max_obj_num": of_robots(COUNT),
    "pos_std": of_robots(NOT_NEGATIVE, "perception.position_std"),
    "vel_std": of_robots(NOT_NEGATIVE, "perception.velocity_std"),
    "r_kappa": of_robots(NOT_NEGATIVE, "perception.radius_kappa"),
    "r_mean_ratio": of_robots(RATIO, "perception.radius_mean_ratio"),
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


def steer_keys(robots: Mapping[str, Any]) -> dict[str, Entry]:
    """Return the key that says what steers whom, if a file's section ``robots`` has it."""
    return STEER if "steer" in robots else {}


def check_steer(check: Check, robots: Mapping[str, Any]) -> None:
    """Check that a policy steers a robot, where a file says what steers them.

    Raises:
        ConfigError: none is steered by it.
    """
    steer = robots.get("steer", [POLICY])
    if POLICY not in steer:
        check.fail("robots.steer", steer, f"give {POLICY!r} at least once")


def vessel_keys(further: bool) -> dict[str, Entry]:
    """Return the keys of a vessel's parameters, with or without those of further vessels."""
    return VESSELS | (FURTHER if further else {})
