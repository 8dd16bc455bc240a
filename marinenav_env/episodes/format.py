"""Reading and writing of episodes in the published JSON format.

A file holds ``env`` (the map and the reward), ``robots`` (one list entry per robot: parameters,
start, goal, actions, trajectory) and, where an episode was recorded in full, ``recorded`` (what the
simulator answered). The keys and their order are those of the published simulator, so its files
replay here and files written here replay there. World frame: x north, y east, yaw clockwise.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from marinenav_env.episodes.json_fields import (
    FINITE,
    UNIT,
    JsonSection,
    Rule,
    SameValues,
    load_json,
)
from marinenav_env.episodes.recordings import (
    ObservationLog,
    Recording,
    observations_to_json,
    parse_observations,
    parse_recording,
    recording_to_json,
)
from marinenav_env.episodes.sections import (
    THRUST_CHANGES,
    Buoys,
    Cores,
    EnvSettings,
    Missions,
    Perception,
    Vessels,
)
from marinenav_env.files import write_atomically

TRAJECTORY_COLUMNS = (
    "x",
    "y",
    "theta",
    "vx_r",
    "vy_r",
    "r_r",
    "vx",
    "vy",
    "r",
    "left_pos",
    "right_pos",
    "left_thrust",
    "right_thrust",
)
"""Meaning of a trajectory row: pose [m, m, rad], velocity relative to the water and over ground in
the world frame [m/s, m/s, rad/s], azimuth angles [rad], thrusts [N]."""

ACTION_INDEX = Rule(
    f"give a whole number from 0 to {THRUST_CHANGES**2 - 1}",
    low=0,
    high=THRUST_CHANGES**2 - 1,
    whole=True,
)
START_COLUMNS = {
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

WHAT = "episode file"


@dataclass(frozen=True, eq=False)
class Episode(SameValues):
    """One episode of R robots, as the file has it.

    Attributes:
        env: the map and the reward.
        cores: C vortex cores.
        buoys: B static buoys.
        vessels: parameters of the robots.
        missions: start, goal and initial state of the robots.
        perception: what the robots see.
        observation_history: observations of each robot, or an empty tuple where none were kept.
        action_history: actions of each robot, ``[T_i]`` indices (int64) or ``[T_i, 2]`` pairs in
            [-1, 1]; T_i is the number of decisions up to the robot's own end.
        trajectory: states of each robot ``[T_i + 1, 13]``, the start first, columns as in
            :data:`TRAJECTORY_COLUMNS`.
        recorded: what the simulator answered, if it was kept.
        name: the file's own name; no part of the comparison of two episodes.
    """

    env: EnvSettings
    cores: Cores
    buoys: Buoys
    vessels: Vessels
    missions: Missions
    perception: Perception
    observation_history: tuple[ObservationLog, ...]
    action_history: tuple[np.ndarray, ...]
    trajectory: tuple[np.ndarray, ...]
    recorded: Recording | None = None
    name: str = field(default="", compare=False)

    @property
    def robots(self) -> int:
        """Return the number of robots, R."""
        return len(self.trajectory)

    @property
    def decisions(self) -> int:
        """Return T, the number of decisions of the robot that acted longest."""
        return max(len(actions) for actions in self.action_history)

    @property
    def continuous(self) -> bool | None:
        """Return whether actions are pairs rather than indices; None if nobody acted."""
        acted = [actions for actions in self.action_history if len(actions)]
        return acted[0].ndim == 2 if acted else None

    @property
    def decision_s(self) -> float:
        """Return the duration of one decision [s]."""
        return float(self.vessels.dt[0] * self.vessels.n[0])


def read_episode(path: str | os.PathLike[str]) -> Episode:
    """Read an episode file and check all of it.

    Raises:
        ValueError: the file cannot be read or is damaged, a key is missing or unknown, a list has a
            wrong length, or a value is of no use. The message names the file, the field, the value
            and the remedy.
    """
    path = Path(path)
    return episode_from_json(load_json(path, WHAT), f"{WHAT} {str(path)!r}", path.name)


def write_episode(episode: Episode, path: str | os.PathLike[str]) -> None:
    """Write an episode file, checked first and then put in place in one atomic step.

    Raises:
        ValueError: the episode is inconsistent, or the place cannot be written; the message says
            how. A file that was there before is then untouched.
    """
    path = Path(path)
    data = episode_to_json(episode)
    episode_from_json(data, f"episode for {str(path)!r}", path.name)
    content = json.dumps(data, allow_nan=False).encode()
    try:
        write_atomically(path, lambda file: file.write(content))
    except OSError as error:
        raise ValueError(
            f"{WHAT} {str(path)!r} cannot be written ({error.strerror}): "
            "give a file in a writable directory that exists"
        ) from error


def episode_from_json(data: object, source: str, name: str = "") -> Episode:
    """Build an episode from parsed JSON.

    Args:
        data: the parsed file.
        source: the file, as messages name it.
        name: the file's own name.

    Raises:
        ValueError: as :func:`read_episode`.
    """
    root = JsonSection(data, source)
    root.expect_keys(("env", "robots"), ("recorded",))
    env_section = root.section("env")
    env_section.expect_keys((*EnvSettings.keys(), "cores", "obstacles"))
    env = EnvSettings.from_section(env_section)
    cores_section, buoys_section = env_section.section("cores"), env_section.section("obstacles")
    cores_section.expect_keys(Cores.keys())
    buoys_section.expect_keys(Buoys.keys())

    robots_section = root.section("robots")
    histories = ("perception", "observation_history", "action_history", "trajectory")
    robots_section.expect_keys((*Vessels.keys(), *Missions.keys(), *histories))
    perception_section = robots_section.section("perception")
    perception_section.expect_keys(Perception.keys())
    robots = env.num_robots
    perception = Perception.from_section(perception_section, R=robots)
    capacity = int(perception.max_obj_num.max())
    actions = _parse_actions(robots_section, robots)
    episode = Episode(
        env=env,
        cores=Cores.from_section(cores_section, C=_length(cores_section, "positions")),
        buoys=Buoys.from_section(buoys_section, B=_length(buoys_section, "positions")),
        vessels=Vessels.from_section(robots_section, R=robots),
        missions=Missions.from_section(robots_section, R=robots),
        perception=perception,
        observation_history=_parse_histories(robots_section, robots, capacity),
        action_history=actions,
        trajectory=_parse_trajectories(robots_section, actions),
        name=name,
    )
    _check_vessels(robots_section, episode.vessels)
    _check_starts(robots_section, episode)
    if "recorded" not in root.data:
        return episode
    recorded = parse_recording(root.section("recorded"), episode.decisions, robots, capacity)
    if recorded.continuous_action != episode.continuous:
        root.fail(
            "recorded.continuous_action",
            recorded.continuous_action,
            "give true for actions in pairs, false for indices, as robots.action_history has them",
        )
    _check_presence(root, recorded, actions)
    return replace(episode, recorded=recorded)


def episode_to_json(episode: Episode) -> dict[str, object]:
    """Return the JSON object of an episode, keys in the published order."""
    env = episode.env.to_json()
    env["cores"] = episode.cores.to_json()
    env["obstacles"] = episode.buoys.to_json()
    robots = episode.vessels.to_json() | episode.missions.to_json()
    robots["perception"] = episode.perception.to_json()
    robots["observation_history"] = [
        observations_to_json(log) for log in episode.observation_history
    ]
    robots["action_history"] = [actions.tolist() for actions in episode.action_history]
    robots["trajectory"] = [states.tolist() for states in episode.trajectory]
    data: dict[str, object] = {"env": env, "robots": robots}
    if episode.recorded is not None:
        data["recorded"] = recording_to_json(episode.recorded)
    return data


def _length(section: JsonSection, key: str) -> int:
    value = section.data[key]
    if not isinstance(value, list):
        section.fail(key, value, "give a list")
    return len(value)


def _rows_per_robot(section: JsonSection, key: str, robots: int) -> list[object]:
    length = _length(section, key)
    if length != robots:
        section.fail(
            f"{key} (length {length})",
            section.data[key],
            f"give {robots} entries, one for each robot of env.num_robots",
        )
    return section.data[key]


def _parse_actions(section: JsonSection, robots: int) -> tuple[np.ndarray, ...]:
    """Read the actions; pairs if the first action of the file is a list, indices otherwise."""
    rows = _rows_per_robot(section, "action_history", robots)
    firsts = [row[0] for row in rows if isinstance(row, list) and row]
    pairs = bool(firsts) and isinstance(firsts[0], list)
    shape, rule = ((None, 2), UNIT) if pairs else ((None,), ACTION_INDEX)
    return tuple(
        section.array_of(f"action_history[{robot}]", row, shape, rule)
        for robot, row in enumerate(rows)
    )


def _parse_trajectories(
    section: JsonSection, actions: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """Read the states; each robot has one more than it has actions."""
    rows = _rows_per_robot(section, "trajectory", len(actions))
    trajectories = []
    for robot, (row, acted) in enumerate(zip(rows, actions, strict=True)):
        place = f"trajectory[{robot}]"
        if not isinstance(row, list) or len(row) != len(acted) + 1:
            length = len(row) if isinstance(row, list) else "none"
            section.fail(
                f"{place} (length {length})",
                row,
                f"give {len(acted) + 1} states, the start and one for each of the "
                f"{len(acted)} actions in action_history[{robot}]",
            )
        trajectories.append(
            section.array_of(place, row, (len(row), len(TRAJECTORY_COLUMNS)), FINITE)
        )
    return tuple(trajectories)


def _parse_histories(
    section: JsonSection, robots: int, capacity: int
) -> tuple[ObservationLog, ...]:
    """Read the observations that were kept; an empty list where none were."""
    if section.data["observation_history"] == []:
        return ()
    rows = _rows_per_robot(section, "observation_history", robots)
    return tuple(
        parse_observations(section, f"observation_history[{robot}]", row, capacity)
        for robot, row in enumerate(rows)
    )


def _check_vessels(section: JsonSection, vessels: Vessels) -> None:
    """Check what no single field shows: the order of the thrust limits and the mass matrix."""
    limits = zip(vessels.min_thrust.tolist(), vessels.max_thrust.tolist(), strict=True)
    for robot, (low, high) in enumerate(limits):
        if low >= high:
            remedy = f"give less than max_thrust[{robot}], which is {high}"
            section.fail(f"min_thrust[{robot}]", low, remedy)
    masses = ("x_dot_u", "m"), ("y_dot_v", "m"), ("n_dot_r", "izz")
    keys = {name: place.key for name, place in vessels.json_fields().items()}
    for added_name, name in masses:
        pairs = zip(getattr(vessels, added_name), getattr(vessels, name), strict=True)
        for robot, (added, mass) in enumerate(pairs):
            if added >= mass:
                remedy = f"give less than {keys[name]}[{robot}], which is {mass}"
                section.fail(f"{keys[added_name]}[{robot}]", added.item(), remedy)
    sway_yaw = (vessels.m - vessels.y_dot_v) * (vessels.izz - vessels.n_dot_r)
    for robot in np.flatnonzero(sway_yaw <= vessels.y_dot_r * vessels.n_dot_v):
        section.fail(
            f"yDotR[{robot}]",
            vessels.y_dot_r[robot].item(),
            f"yDotR * nDotV (nDotV[{robot}] is {vessels.n_dot_v[robot]}) must be below "
            f"(m - yDotV) * (Izz - nDotR) = {sway_yaw[robot]}, or the mass matrix is singular or "
            "indefinite",
        )


def _check_starts(section: JsonSection, episode: Episode) -> None:
    """Check that every trajectory begins where ``start`` and ``init_*`` say."""
    first = np.stack([states[0] for states in episode.trajectory])
    for key, columns in START_COLUMNS.items():
        given = getattr(episode.missions, key)
        apart = np.abs(given - first[:, columns]).reshape(episode.robots, -1).max(axis=1)
        for robot in np.flatnonzero(apart > START_TOLERANCE):
            section.fail(
                f"{key}[{robot}]",
                given[robot].tolist(),
                f"give {first[robot, columns].tolist()} as at the start of trajectory[{robot}], or "
                "mend that",
            )


def _check_presence(
    root: JsonSection, recorded: Recording, actions: tuple[np.ndarray, ...]
) -> None:
    """Check that a robot was observed before and after every decision it took."""
    for robot, acted in enumerate(actions):
        needed = len(acted) + 1 if len(acted) else 0
        for decision in np.flatnonzero(~recorded.obs.present[:needed, robot]):
            root.fail(
                f"recorded.obs[{decision}][{robot}]",
                None,
                f"give the observation [self, objects]: robot {robot} took {len(acted)} decisions",
            )
