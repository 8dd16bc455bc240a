"""Tracks from an episode file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from marinenav_env.envs.state import ROBOT_FIELDS
from marinenav_env.episodes.format import TRAJECTORY_COLUMNS, Episode
from marinenav_env.episodes.icra2024_format import TRAJECTORY
from marinenav_env.episodes.schema import OBJECT_FEATURES, POLICY, SELF_FEATURES
from marinenav_env.tracks import Tracks

CONTACT_TOLERANCE_M = 1e-6
"""Surface distance that still counts as contact where the recording does not say [m]."""

ANSWER_FIELDS = ("step_energy", "phi", "contact")
ENERGY, CONTACT = 0, 2
STATE_FIELDS = ROBOT_FIELDS[: len(TRAJECTORY_COLUMNS)]
"""The simulator's names of the columns of a trajectory."""


def tracks_of(episode: Episode) -> Tracks:
    """Return an episode as tracks of one world, on the CPU in float64.

    Rewards, phi, energy and observations are those recorded, and 0, NaN (energy) or None where
    nothing was; of the ICRA 2024 task observations are left out. How a robot ended is as recorded,
    else as its last state shows.
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
        answers[..., ENERGY] = np.nan
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
        own=own_of([robots["steer"]]) if "steer" in robots else None,
    )


def own_of(steer: Sequence[Sequence[str]], device: torch.device | str = "cpu") -> Tensor | None:
    """Return the robots that are judged [W, R] bool, from what steers them [W][R]; None for all."""
    own = torch.tensor([[name == POLICY for name in row] for row in steer])
    return None if own.all() else own.to(device)


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
