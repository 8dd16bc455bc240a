"""The simulator's configuration from an episode file and back, and its Tracks."""

from __future__ import annotations

import functools
import operator
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from marinenav_env.config import EnvConfig, EpisodeConfig, ScenarioConfig, VesselTaskConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.state import NEAREST_OBJECTS, ROBOT_FIELDS
from marinenav_env.episodes.checks import Check, Entry
from marinenav_env.episodes.format import TRAJECTORY_COLUMNS, Episode
from marinenav_env.episodes.icra2024_format import TRAJECTORY
from marinenav_env.episodes.schema import (
    ENV,
    OBJECT_FEATURES,
    PERCEPTION,
    SELF_FEATURES,
    vessel_keys,
)
from marinenav_env.fields import ConfigError, build
from marinenav_env.tracks import Tracks
from marinenav_env.vessels import VesselConfig

NOT_IN_A_REPLAY = (
    *("scenario.start_margin", "scenario.buoy_margin", "scenario.placement_tries"),
    *("episode.max_steps", "episode.stop_on_collision", "episode.stop_on_end"),
)
"""Parameters without effect on a replay: the file says what stands where and who acted how long."""

UNUSED = {"angular_speed_max": 0.5 * np.pi, "angular_speed_penalty": -1.0}
"""A published penalty that the published simulator does not apply; files carry it all the same."""

CONTACT_TOLERANCE_M = 1e-6
"""Surface distance that still counts as contact where the recording does not say [m]."""

ANSWER_FIELDS = ("step_energy", "phi", "contact")
CONTACT = 2
STATE_FIELDS = ROBOT_FIELDS[: len(TRAJECTORY_COLUMNS)]
"""The simulator's names of the columns of a trajectory."""

T = TypeVar("T")


# ---- configuration ----------------------------------------------------------------------------


def config_of(episode: Episode) -> EnvConfig:
    """Return the configuration in which an episode took place, its robots never cut by a limit.

    Raises:
        ConfigError: the robots differ in a parameter, or one has a value that this simulator does
            not know; the message names the file, the field, the value and the remedy.
    """
    check_first_task(episode)
    config = _config_of_sections(episode.env, episode.robots, f"episode file {episode.name!r}")
    return replace(config, episode=EpisodeConfig(max_steps=episode.decisions + 1))


def check_recordable(config: EnvConfig) -> None:
    """Check that episode files hold every parameter that a replay depends on.

    Raises:
        ConfigError: a replay of the file would run with another value of a parameter.
    """
    check_replayed(config, _config_of_sections(*sections_of(config, seed=0, robots=1), "recording"))


def check_replayed(config: VesselTaskConfig, read: VesselTaskConfig) -> None:
    """Check that a replay would take the same parameters.

    Args:
        config: in which episodes are recorded.
        read: what their files say of it.

    Raises:
        ConfigError: a parameter would be another one.
    """
    pairs = zip(config.named_numbers(), read.named_numbers(), strict=True)
    for (name, value), (_, replayed) in pairs:
        if value != replayed and name not in NOT_IN_A_REPLAY:
            key = re.sub(r"\.\d+$", "", name)  # an entry of a range is set with the others
            given, taken = map(operator.attrgetter(key), (config, read))
            raise ConfigError(
                f"env.{key} is {given!r}: the episode format has no place for it and a replay would"
                f" take {taken!r}; set env.{key} to that for the recording"
            )


def _config_of_sections(env: dict[str, Any], robots: dict[str, Any], source: str) -> EnvConfig:
    """Return what the sections ``env`` and ``robots`` say of the configuration."""
    check, most = Check(source), robots["perception"]["max_obj_num"]
    if robots["detect_r"] != robots["r"]:
        check.fail("robots.detect_r", robots["detect_r"], "give the collision radius r")
    if set(most) != {NEAREST_OBJECTS}:
        remedy = f"give {NEAREST_OBJECTS}, the number this simulator observes"
        check.fail("robots.perception.max_obj_num", most, remedy)
    tables = ENV, vessel_keys("vessel" in robots), PERCEPTION
    groups = parameters_of(check, env, robots, tables)
    # All in a file has its place, so it has no margins: the published ones, or what the map allows.
    within = 0.25 * min(env["width"], env["height"])
    for name in ("start_margin", "buoy_margin"):
        groups["scenario"][name] = min(getattr(ScenarioConfig, name), within)
    return built(EnvConfig, groups, check)


def parameters_of(
    check: Check,
    env: dict[str, Any],
    robots: dict[str, Any],
    tables: tuple[dict[str, Entry], dict[str, Entry], dict[str, Entry]],
) -> dict[str, dict[str, Any]]:
    """Return the values of parameters by group and name.

    Args:
        check: fails with the file's name.
        env: the section.
        robots: the section.
        tables: keys of ``env``, of ``robots``, and of ``robots.perception``.

    Raises:
        ConfigError: the robots differ in a parameter.
    """
    of_env, of_robots, of_perception = tables
    own = {key: (robots[key], entry) for key, entry in of_robots.items() if entry.parameters}
    seen = robots["perception"]
    own |= {f"perception.{key}": (seen[key], entry) for key, entry in of_perception.items()}
    values: dict[str, Any] = {}
    for key, entry in of_env.items():
        values |= zip(entry.parameters, env[key] if entry.lengths else [env[key]], strict=False)
    for key, (given, entry) in own.items():
        if any(value != given[0] for value in given):
            remedy = "give all robots one value, this simulator knows no other"
            check.fail(f"robots.{key}", given, remedy)
        values |= zip(entry.parameters, given, strict=False)
    groups: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for parameter, value in values.items():
        group, _, name = parameter.partition(".")
        groups[group][name] = value
    return groups


def built(kind: type[T], groups: dict[str, dict[str, Any]], check: Check) -> T:
    """Return a configuration of these values.

    Raises:
        ConfigError: one is impossible; the message names the file too.
    """
    try:
        return build(kind, groups)
    except ConfigError as error:
        raise ConfigError(f"{check.source}: {error}") from error


def sections_of(
    config: EnvConfig, *, seed: int, robots: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``env`` and ``robots`` say of the configuration, for R equal robots."""
    env = {"seed": seed, "is_eval_env": True, "num_robots": robots, **UNUSED}
    keys = vessel_keys(config.vessel.name != VesselConfig.name)
    vessels = robots_section(config, keys, robots, {})
    perception = robots_section(config, PERCEPTION, robots, {"max_obj_num": NEAREST_OBJECTS})
    return env_section(config, ENV, env), {**vessels, "perception": perception}


def env_section(
    config: VesselTaskConfig, table: Mapping[str, Entry], others: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the section ``env`` of a configuration; ``others`` holds what it does not say."""
    section = {}
    for key, entry in table.items():
        known = _values(config, entry) or [others[key]]
        section[key] = known if entry.lengths else known[0]
    return section


def robots_section(
    config: VesselTaskConfig, table: Mapping[str, Entry], robots: int, others: Mapping[str, Any]
) -> dict[str, Any]:
    """Return keys of ``robots`` for R equal robots; ``others`` holds more of them."""
    section = {key: _values(config, entry) * robots for key, entry in table.items()}
    return section | {key: [value] * robots for key, value in others.items()}


def _values(config: VesselTaskConfig, entry: Entry) -> list[Any]:
    found = [functools.reduce(getattr, name.split("."), config) for name in entry.parameters]
    return [list(value) if isinstance(value, tuple) else value for value in found]


def check_first_task(episode: Episode) -> None:
    """Refuse an episode of the ICRA 2024 task.

    Raises:
        ConfigError: it is one.
    """
    if episode.of_icra2024:
        raise ConfigError(
            f"episode file {episode.name!r} is of the ICRA 2024 task: it can be replayed and drawn;"
            " give a file of the first task"
        )


# ---- Tracks from files ------------------------------------------------------------------------


def tracks_of(episode: Episode) -> Tracks:
    """Return an episode as tracks of one world, on the CPU in float64.

    Rewards, phi, energy and observations are those recorded, and 0 or None where nothing was; of
    the ICRA 2024 task observations are left out. How a robot ended is as recorded, else as its last
    state shows.
    """
    robots, recorded = episode.robots, episode.recorded
    lengths, steps = np.array(episode.lengths), np.arange(episode.decisions + 1)
    acted = steps[:-1, None] < lengths
    states = states_of(episode)
    goals = np.broadcast_to(np.array(robots["goal"], dtype=float), (*states.shape[:2], 2))
    answers = np.zeros((*states.shape[:2], len(ANSWER_FIELDS)))
    reward = np.zeros(acted.shape)
    if recorded is None:
        answers[..., CONTACT], terminated = _ends_by_position(episode, states)
    else:
        phi = reward
        if "phi" in recorded:
            applies = np.array(recorded["apply_colregs"])[1:]
            phi = np.where(applies, np.array(recorded["phi"], dtype=float), 0.0)
        # Some files have these two for the reset as well.
        collision, reached = (
            np.array(recorded[name])[-episode.decisions :] for name in ("collision", "reach_goal")
        )
        answers[1:] = np.stack((recorded["energy"], phi, collision), axis=-1)
        terminated = acted & (collision | reached)
        reward = np.array(recorded["rewards"], dtype=float)
    last = steps[1:, None] == lengths
    buoys, vortices = objects_of(episode)
    columns = TRAJECTORY if episode.of_icra2024 else STATE_FIELDS
    seen = None if recorded is None or episode.of_icra2024 else _observation(episode)
    return Tracks(
        fields=(*columns, "goal_x", "goal_y", *ANSWER_FIELDS),
        robot=_of_one_world(np.concatenate((states, goals, answers), axis=-1)),
        acted=_of_one_world(acted),
        action=_of_one_world(actions_of(episode)),
        reward=_of_one_world(reward),
        terminated=_of_one_world(terminated),
        truncated=_of_one_world(last & acted & ~terminated),
        buoys=buoys,
        vortices=vortices,
        decision_time=robots["dt"][0] * robots["N"][0],
        hull_radius=robots["r"][0],
        observation=seen,
    )


def _of_one_world(rows: np.ndarray) -> Tensor:
    """Return [T, 1, R, ...] of [T, R, ...]."""
    return torch.from_numpy(np.ascontiguousarray(rows)).unsqueeze(1)


def states_of(episode: Episode) -> np.ndarray:
    """Return the recorded states [T + 1, R, columns]; robots gone repeat their last one."""
    steps = np.arange(episode.decisions + 1)
    rows = [np.array(rows, dtype=float) for rows in episode.robots["trajectory"]]
    return np.stack([row[np.minimum(steps, len(row) - 1)] for row in rows], axis=1)


def objects_of(episode: Episode) -> tuple[Tensor, Tensor]:
    """Return the buoys [1, B, 3] and the vortices [1, C, 3]: x, y, radius or circulation."""
    buoys, cores = episode.env["obstacles"], episode.env["cores"]
    circulation = np.where(cores["clockwise"], 1.0, -1.0) * np.array(cores["Gamma"], dtype=float)

    def rows(positions: list[list[float]], last: Any) -> Tensor:
        places = np.array(positions, dtype=float).reshape(-1, 2)
        return torch.from_numpy(np.column_stack((places, last)).astype(float)).unsqueeze(0)

    return rows(buoys["positions"], buoys["r"]), rows(cores["positions"], circulation)


def actions_of(episode: Episode) -> np.ndarray:
    """Return [T, R, 2] pairs or [T, R] indices, 0 for robots gone."""
    pairs = episode.continuous is not False
    shape = (episode.decisions, len(episode.lengths), *((2,) if pairs else ()))
    actions = np.zeros(shape, dtype=np.float64 if pairs else np.int64)
    for robot, history in enumerate(episode.robots["action_history"]):
        if history:
            actions[: len(history), robot] = history
    return actions


def _observation(episode: Episode) -> Observation:
    """Return what was recorded as seen, with leading dimensions [T + 1, 1, R]."""
    table = episode.data["recorded"]["obs"]
    shape = (len(table), 1, len(episode.lengths))
    capacity = max(episode.robots["perception"]["max_obj_num"])
    ego = np.zeros((*shape, SELF_FEATURES))
    objects = np.zeros((*shape, capacity, OBJECT_FEATURES))
    mask = np.zeros((*shape, capacity))
    for step, row in enumerate(table):
        for robot, seen in enumerate(row):
            if seen is not None:
                ego[step, 0, robot] = seen[0]
                if seen[1]:
                    objects[step, 0, robot, : len(seen[1])] = seen[1]
                mask[step, 0, robot, : len(seen[1])] = 1.0
    return Observation(*map(torch.from_numpy, (ego, objects, mask)))


def _ends_by_position(episode: Episode, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return who touched something [T + 1, R], and who ended [T, R], at each robot's last state.

    A robot touches a buoy, or another robot that is there.
    """
    robots, buoys = episode.robots, episode.env["obstacles"]
    lengths, radii = np.array(episode.lengths), np.array(robots["r"])
    contact = np.zeros(states.shape[:2])
    terminated = np.zeros((len(states) - 1, len(lengths)), dtype=bool)
    for robot, last in enumerate(lengths):
        position = states[last, robot, :2]
        others = (lengths >= last) & (np.arange(len(lengths)) != robot)
        places = np.array([*states[last, others, :2], *buoys["positions"]]).reshape(-1, 2)
        reach = np.array([*radii[others], *buoys["r"]]) + radii[robot]
        gaps = np.linalg.norm(places - position, axis=1) - reach
        contact[last, robot] = (gaps <= CONTACT_TOLERANCE_M).any()
        distance = np.linalg.norm(position - robots["goal"][robot])
        arrived = distance <= robots["goal_dis"][robot]
        terminated[last - 1 : last, robot] = contact[last, robot] or arrived
    return contact, terminated


def reach_goal(tracks: Tracks, goal_distance: float) -> Tensor:
    """[N, W, R] bool, robots that reached their goal in the decision, in a collision or not."""
    away = [tracks.field(f"goal_{axis}")[1:] - tracks.field(axis)[1:] for axis in "xy"]
    near = torch.hypot(*away) <= goal_distance
    return tracks.terminated & (near | ~tracks.collision)
