"""Keys of episode files of the ICRA 2024 task, in the format of its published simulator.

``trajectory`` rows are `TRAJECTORY` in the world frame, the start first. What was ``recorded`` is
as in the first task's files, with observations of 39 numbers and without COLREGs; ``collision`` and
``reach_goal`` have an entry for the reset too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marinenav_env.episodes.checks import (
    ANGLE,
    ANYTHING,
    BIT,
    COUNT,
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    STATE,
    WHOLE,
    Check,
    Entry,
    Rule,
    number,
)

TRAJECTORY = ("x", "y", "heading", "speed", "vx", "vy")
"""The simulator's names of a row's columns [m, m, rad, m/s, m/s, m/s]."""
OBSERVATION = 39
"""Numbers in an observation: 4 of the robot, 5 times 3 of buoys, 5 times 4 of robots."""
CHOICES = 3
"""Accelerations, and turn rates, to choose from; an action is a pair of them."""


def _of_env(rule: Rule, *parameters: str) -> Entry:
    return Entry(rule, (len(parameters),) if len(parameters) > 1 else (), parameters)


def _of_robots(rule: Rule, parameter: str = "", *lengths: int) -> Entry:
    return Entry(rule, ("R", *lengths), (parameter,) if parameter else ())


ENV = {
    "seed": _of_env(WHOLE),
    "width": _of_env(POSITIVE, "scenario.width"),
    "height": _of_env(POSITIVE, "scenario.height"),
    "r": _of_env(POSITIVE, "current.core_radius"),
    "v_rel_max": _of_env(POSITIVE, "current.same_sense_speed"),
    "p": _of_env(POSITIVE, "current.opposite_ratio"),
    "v_range": _of_env(NOT_NEGATIVE, "current.edge_speed_min", "current.edge_speed_max"),
    "obs_r_range": _of_env(POSITIVE, "scenario.buoy_radius_min", "scenario.buoy_radius_max"),
    "clear_r": _of_env(NOT_NEGATIVE, "scenario.clear_radius"),
    "timestep_penalty": _of_env(FINITE, "reward.timestep"),
    "collision_penalty": _of_env(FINITE, "reward.collision"),
    "goal_reward": _of_env(FINITE, "reward.goal"),
}
VORTICES = {
    "positions": Entry(FINITE, ("C", 2)),
    "clockwise": Entry(BIT, ("C",)),
    "Gamma": Entry(POSITIVE, ("C",)),
}
BUOYS = {"positions": Entry(FINITE, ("B", 2)), "r": Entry(POSITIVE, ("B",))}
ROBOTS = {
    "cooperative": _of_robots(FLAG),
    "dt": _of_robots(POSITIVE, "vessel.dt"),
    "N": _of_robots(COUNT, "vessel.substeps"),
    "length": _of_robots(POSITIVE),
    "width": _of_robots(POSITIVE),
    "r": _of_robots(POSITIVE, "vessel.radius"),
    "detect_r": _of_robots(NOT_NEGATIVE, "vessel.detection_radius"),
    "goal_dis": _of_robots(POSITIVE, "reward.goal_distance"),
    "obs_dis": _of_robots(NOT_NEGATIVE),  # carried and unused, as the two before the radius
    "max_speed": _of_robots(POSITIVE, "vessel.max_speed"),
    "a": _of_robots(FINITE, "vessel.accelerations", CHOICES),
    "w": _of_robots(FINITE, "vessel.turn_rates", CHOICES),
    "start": _of_robots(FINITE, "", 2),
    "goal": _of_robots(FINITE, "", 2),
    "init_theta": _of_robots(FINITE),
    "init_speed": _of_robots(NOT_NEGATIVE),
}
PERCEPTION = {
    "range": _of_robots(POSITIVE, "perception.range"),
    "angle": _of_robots(ANGLE),
}
RECORDED = {
    "obs": Entry(ANYTHING, ("T+1", "R")),
    "collision": Entry(FLAG, ("T+1", "R")),
    "reach_goal": Entry(FLAG, ("T+1", "R")),
    "rewards": Entry(FINITE, ("T", "R")),
    "dones": Entry(FLAG, ("T", "R")),
    "infos": Entry(STATE, ("T", "R")),
    "deactivated": Entry(FLAG, ("T", "R")),
    "energy": Entry(FINITE, ("T", "R")),
}
HISTORIES = ("action_history", "trajectory")
INDEX = number(f"give a whole number from 0 to {CHOICES**2 - 1}", 0, CHOICES**2 - 1, whole=True)


def is_icra2024(data: Any) -> bool:
    """Return whether parsed JSON is of this task: its vessels have a speed and no thrusters."""
    robots = data.get("robots") if isinstance(data, Mapping) else None
    return isinstance(robots, Mapping) and "init_speed" in robots


def check_icra2024(check: Check, data: Mapping[str, Any]) -> None:
    """Check all of a file.

    Raises:
        ConfigError: a key is missing or unknown, or a value is of no use.
    """
    check.keys("", data, ("env", "robots"), ("recorded",))
    env, robots = data["env"], data["robots"]
    check.section("env", env, ENV, {}, ("cores", "obstacles"))
    for key, table, length in (("cores", VORTICES, "C"), ("obstacles", BUOYS, "B")):
        check.section(f"env.{key}", env[key], table, {length: None})
    check.values("robots.start", robots.get("start"), ANYTHING, None)
    lengths = {"R": len(robots["start"])}
    check.section("robots", robots, ROBOTS, lengths, ("perception", *HISTORIES))
    check.section("robots.perception", robots["perception"], PERCEPTION, lengths)
    for key in HISTORIES:
        check.values(f"robots.{key}", robots[key], ANYTHING, lengths["R"])
    for robot, actions in enumerate(robots["action_history"]):
        check.values(f"robots.action_history[{robot}]", actions, INDEX, None)
        place = f"robots.trajectory[{robot}]"
        states = robots["trajectory"][robot]
        check.values(place, states, FINITE, len(actions) + 1, len(TRAJECTORY))
    if "recorded" in data:
        decisions = max(map(len, robots["action_history"]))
        of_time = {"T": decisions, "T+1": decisions + 1, **lengths}
        check.section("recorded", data["recorded"], RECORDED, of_time)
        _check_observations(check, data["recorded"]["obs"], robots["action_history"])


def _check_observations(check: Check, table: Any, actions: Any) -> None:
    """Check that a robot saw something at its start and after each of its decisions."""
    for step, row in enumerate(table):
        for robot, seen in enumerate(row):
            place = f"recorded.obs[{step}][{robot}]"
            if seen is not None:
                check.values(place, seen, FINITE, OBSERVATION)
            elif step <= len(actions[robot]):
                check.fail(place, seen, f"give the {OBSERVATION} numbers of the observation")
