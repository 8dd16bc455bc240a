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
    COUNT,
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    STATE,
    WHOLE,
    Check,
    Entry,
    number,
)
from marinenav_env.episodes.schema import (
    BUOYS,
    MAP,
    VORTICES,
    check_steer,
    of_env,
    of_robots,
    steer_keys,
)

TRAJECTORY = ("x", "y", "heading", "speed", "vx", "vy")
"""The simulator's names of a row's columns [m, m, rad, m/s, m/s, m/s]."""
OBSERVATION = 39
"""Numbers in an observation: 4 of the robot, 5 times 3 of buoys, 5 times 4 of robots."""
CHOICES = 3
"""Accelerations, and turn rates, to choose from; an action is a pair of them."""


ENV = {
    "seed": of_env(WHOLE),
    **MAP,
    "timestep_penalty": of_env(FINITE, "reward.timestep"),
    "collision_penalty": of_env(FINITE, "reward.collision"),
    "goal_reward": of_env(FINITE, "reward.goal"),
}
ROBOTS = {
    "cooperative": of_robots(FLAG),
    "dt": of_robots(POSITIVE, "vessel.dt"),
    "N": of_robots(COUNT, "vessel.substeps"),
    "length": of_robots(POSITIVE),
    "width": of_robots(POSITIVE),
    "r": of_robots(POSITIVE, "vessel.radius"),
    "detect_r": of_robots(NOT_NEGATIVE, "vessel.detection_radius"),
    "goal_dis": of_robots(POSITIVE, "reward.goal_distance"),
    "obs_dis": of_robots(NOT_NEGATIVE),  # carried and unused, as the two before the radius
    "max_speed": of_robots(POSITIVE, "vessel.max_speed"),
    "a": of_robots(FINITE, "vessel.accelerations", CHOICES),
    "w": of_robots(FINITE, "vessel.turn_rates", CHOICES),
    "start": of_robots(FINITE, "", 2),
    "goal": of_robots(FINITE, "", 2),
    "init_theta": of_robots(FINITE),
    "init_speed": of_robots(NOT_NEGATIVE),
}
PERCEPTION = {
    "range": of_robots(POSITIVE, "perception.range"),
    "angle": of_robots(ANGLE),
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
    keys = ROBOTS | steer_keys(robots)
    check.section("robots", robots, keys, lengths, ("perception", *HISTORIES))
    check_steer(check, robots)
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
