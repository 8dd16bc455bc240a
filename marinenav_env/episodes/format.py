"""Reading and writing of episodes in the published JSON format.

A file holds ``env`` (the map and the reward), ``robots`` (one list entry per robot: parameters,
start, goal, actions, trajectory) and, where an episode was recorded in full, ``recorded`` (what the
simulator answered). The keys and their order are those of the published simulator, so its files
replay here and files written here replay there. World frame: x north, y east, yaw clockwise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from marinenav_env.episodes.checks import ACTION_INDEX, ANYTHING, FINITE, UNIT, Check
from marinenav_env.episodes.icra2024_format import check_icra2024, is_icra2024
from marinenav_env.episodes.schema import (
    BUOYS,
    ENV,
    HISTORIES,
    MISSIONS,
    OBJECT_FEATURES,
    PERCEPTION,
    RECORDED,
    SELF_FEATURES,
    VESSELS,
    VORTICES,
    check_steer,
    steer_keys,
    vessel_keys,
)
from marinenav_env.fields import ConfigError
from marinenav_env.files import parse_json, read_parsed, write_atomically

TRAJECTORY_COLUMNS = (
    *("x", "y", "theta"),
    *("vx_r", "vy_r", "r_r"),
    *("vx", "vy", "r"),
    *("left_pos", "right_pos"),
    *("left_thrust", "right_thrust"),
)
"""Meaning of a trajectory row: pose [m, m, rad], velocity relative to the water and over ground in
the world frame [m/s, m/s, rad/s], azimuth angles [rad], thrusts [N]."""

START_COLUMNS: dict[str, int | slice] = {
    "start": slice(0, 2),
    "init_theta": 2,
    "init_velocity_r": slice(3, 6),
    "init_left_pos": 9,
    "init_right_pos": 10,
    "init_left_thrust": 11,
    "init_right_thrust": 12,
}
"""Where a trajectory's first row repeats what ``robots`` says of the start."""

START_TOLERANCE = 1e-6
"""Largest difference between the two, in their units: rounding to the files' ten digits passes."""

BELOW = (("min_thrust", "max_thrust"), ("xDotU", "m"), ("yDotV", "m"), ("nDotR", "Izz"))
"""Pairs of a vessel's parameters: the first is less than the second."""

WHAT = "episode file"


@dataclass(frozen=True)
class Episode:
    """One episode of R robots, as the file has it and checked.

    Attributes:
        data: the JSON object; keys as in `schema`.
        name: the file's own name; no part of the comparison of two episodes.
    """

    data: dict[str, Any]
    name: str = field(default="", compare=False)

    @property
    def env(self) -> dict[str, Any]:
        """The map and the reward."""
        return self.data["env"]

    @property
    def robots(self) -> dict[str, Any]:
        """Lists with one entry per robot."""
        return self.data["robots"]

    @property
    def of_icra2024(self) -> bool:
        """Whether it is an episode of the ICRA 2024 task."""
        return is_icra2024(self.data)

    @property
    def recorded(self) -> dict[str, Any] | None:
        """What the simulator answered, if it was kept."""
        return self.data.get("recorded")

    @property
    def lengths(self) -> list[int]:
        """T_i, the number of decisions up to each robot's own end."""
        return [len(actions) for actions in self.robots["action_history"]]

    @property
    def decisions(self) -> int:
        """T, the number of decisions of the robot that acted longest."""
        return max(self.lengths)

    @property
    def continuous(self) -> bool | None:
        """Whether actions are pairs rather than indices; None if nobody acted."""
        first = [actions[0] for actions in self.robots["action_history"] if actions]
        return isinstance(first[0], list) if first else None

    @property
    def noisy(self) -> bool:
        """Whether any robot's observations carry noise."""
        perception = self.robots["perception"]
        exact = {"pos_std": 0.0, "vel_std": 0.0, "r_mean_ratio": 1.0}
        return any(value != exact[key] for key in exact for value in perception[key])


def read_episode(path: str | os.PathLike[str]) -> Episode:
    """Read an episode file and check all of it.

    Raises:
        ConfigError: the file cannot be read or is damaged, a key is missing or unknown, a list has
            a wrong length, or a value is of no use. The message names the file, the field, the
            value and the remedy.
    """
    path = Path(path)
    shown = f"{WHAT} {str(path)!r}"
    data = read_parsed(path, parse_json, "give the path of a readable file", WHAT)
    return checked_episode(data, shown, path.name)


def write_episode(episode: Episode, path: str | os.PathLike[str]) -> None:
    """Write an episode file, checked first and then put in place in one atomic step.

    Raises:
        ConfigError: the episode is inconsistent, or the place cannot be written; the message says
            how. A file that was there before is then untouched.
    """
    path = Path(path)
    checked_episode(episode.data, f"episode for {str(path)!r}")
    content = json.dumps(episode.data, allow_nan=False).encode()
    put_in_place(path, lambda file: file.write(content))


def put_in_place(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file of episodes in one atomic step.

    Args:
        path: the file.
        write: puts the content into an open binary file.

    Raises:
        ConfigError: the place cannot be written; a file that was there before is then untouched.
    """
    try:
        write_atomically(path, write)
    except OSError as error:
        raise ConfigError(
            f"{WHAT} {str(path)!r} cannot be written ({error.strerror}): "
            "give a file in a writable directory that exists"
        ) from error


def checked_episode(data: Any, source: str, name: str = "") -> Episode:
    """Return the episode of parsed JSON.

    Args:
        data: the parsed file.
        source: the file, as messages name it.
        name: the file's own name.

    Raises:
        ConfigError: as :func:`read_episode`.
    """
    check = _EpisodeCheck(source)
    if is_icra2024(data):
        check_icra2024(check, data)
        return Episode(data, name)
    check.keys("", data, ("env", "robots"), ("recorded",))
    env, robots = data["env"], data["robots"]
    check.section("env", env, ENV, {}, ("cores", "obstacles"))
    for key, table, length in (("cores", VORTICES, "C"), ("obstacles", BUOYS, "B")):
        check.section(f"env.{key}", env[key], table, {length: None})
    lengths = {"R": env["num_robots"]}
    given = robots if isinstance(robots, dict) else {}
    keys = vessel_keys("vessel" in given) | MISSIONS | steer_keys(given)
    check.section("robots", robots, keys, lengths, ("perception", *HISTORIES))
    check_steer(check, robots)
    check.section("robots.perception", robots["perception"], PERCEPTION, lengths)
    check.histories(robots, env["num_robots"])
    check.vessels(robots)
    check.starts(robots)
    episode = Episode(data, name)
    if "recorded" in data:
        check.recorded(episode)
    return episode


class _EpisodeCheck(Check):
    """Checks of what several keys say together."""

    def observations(self, place: str, rows: Any, capacity: int, *shape: int | None) -> None:
        """Check nested lists of observations ``[self, objects]``, null for a robot gone."""
        self.values(place, rows, ANYTHING, shape[0])
        for index, row in enumerate(rows):
            inner = f"{place}[{index}]"
            if shape[1:]:
                self.observations(inner, row, capacity, *shape[1:])
            elif row is not None:
                if not isinstance(row, list) or len(row) != 2:
                    self.fail(inner, row, "give [self, objects], or null for a robot already gone")
                self.values(f"{inner}[0]", row[0], FINITE, SELF_FEATURES)
                self.values(f"{inner}[1]", row[1], FINITE, None, OBJECT_FEATURES)
                if len(row[1]) > capacity:
                    remedy = f"give at most the {capacity} objects of robots.perception.max_obj_num"
                    self.fail(f"{inner}[1] (length {len(row[1])})", row[1], remedy)

    def histories(self, robots: dict[str, Any], count: int) -> None:
        """Check actions, one more state than those, and the observations that were kept."""
        actions, states = robots["action_history"], robots["trajectory"]
        for key, rows in (("action_history", actions), ("trajectory", states)):
            self.values(f"robots.{key}", rows, ANYTHING, count)
        firsts = [row[0] for row in actions if isinstance(row, list) and row]
        pairs = bool(firsts) and isinstance(firsts[0], list)
        for robot, (acted, reached) in enumerate(zip(actions, states, strict=True)):
            place = f"action_history[{robot}]"
            if pairs:
                self.values(f"robots.{place}", acted, UNIT, None, 2)
            else:
                self.values(f"robots.{place}", acted, ACTION_INDEX, None)
            if not isinstance(reached, list) or len(reached) != len(acted) + 1:
                length = len(reached) if isinstance(reached, list) else "none"
                self.fail(
                    f"robots.trajectory[{robot}] (length {length})",
                    reached,
                    f"give {len(acted) + 1} states, the start and one for each of the "
                    f"{len(acted)} actions in {place}",
                )
            columns = len(TRAJECTORY_COLUMNS)
            self.values(f"robots.trajectory[{robot}]", reached, FINITE, None, columns)
        kept = robots["observation_history"]
        if kept != []:
            capacity = max(robots["perception"]["max_obj_num"])
            self.observations("robots.observation_history", kept, capacity, count, None)

    def vessels(self, robots: dict[str, Any]) -> None:
        """Check what no single key shows: the order of thrust limits and the mass matrix."""
        for robot in range(len(robots["m"])):
            of = {key: robots[key][robot] for key in VESSELS}
            for low, high in BELOW:
                if of[low] >= of[high]:
                    remedy = f"give less than {high}[{robot}], which is {of[high]}"
                    self.fail(f"robots.{low}[{robot}]", of[low], remedy)
            sway_yaw = (of["m"] - of["yDotV"]) * (of["Izz"] - of["nDotR"])
            if sway_yaw <= of["yDotR"] * of["nDotV"]:
                self.fail(
                    f"robots.yDotR[{robot}]",
                    of["yDotR"],
                    f"yDotR * nDotV (nDotV[{robot}] is {of['nDotV']}) must be below "
                    f"(m - yDotV) * (Izz - nDotR) = {sway_yaw}, or the mass matrix is singular or "
                    "indefinite",
                )

    def starts(self, robots: dict[str, Any]) -> None:
        """Check that every trajectory begins where ``start`` and ``init_*`` say."""
        for robot, states in enumerate(robots["trajectory"]):
            for key, columns in START_COLUMNS.items():
                given, first = robots[key][robot], states[0][columns]
                if np.abs(np.subtract(given, first)).max() > START_TOLERANCE:
                    remedy = f"give {first} as at the start of trajectory[{robot}], or fix that"
                    self.fail(f"robots.{key}[{robot}]", given, remedy)

    def recorded(self, episode: Episode) -> None:
        """Check what the simulator answered: of every decision, and of the reset where it says."""
        recorded, robots = episode.data["recorded"], len(episode.lengths)
        lengths = {"T": episode.decisions, "T+1": episode.decisions + 1, "R": robots}
        self.section("recorded", recorded, RECORDED, lengths, ("obs",))
        capacity = max(episode.robots["perception"]["max_obj_num"])
        self.observations("recorded.obs", recorded["obs"], capacity, lengths["T+1"], robots)
        if recorded["continuous_action"] != episode.continuous:
            self.fail(
                "recorded.continuous_action",
                recorded["continuous_action"],
                "give true for actions in pairs, false for indices, as robots.action_history has "
                "them",
            )
        for robot, taken in enumerate(episode.lengths):
            for decision in range(episode.decisions):
                applies = recorded["apply_colregs"][decision + 1][robot]
                if applies and recorded["phi"][decision][robot] is None:
                    self.fail(
                        f"recorded.phi[{decision}][{robot}]",
                        None,
                        "give the turn in rad that the rule asks for, or false at apply_colregs"
                        f"[{decision + 1}][{robot}]",
                    )
            for decision in range(taken + 1 if taken else 0):
                if recorded["obs"][decision][robot] is None:
                    self.fail(
                        f"recorded.obs[{decision}][{robot}]",
                        None,
                        f"give the observation [self, objects]: robot {robot} took {taken} "
                        "decisions",
                    )
