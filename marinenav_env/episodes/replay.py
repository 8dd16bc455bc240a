"""Replays of recorded episodes in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import torch
from torch import Tensor

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.episodes.compare import (
    RUN_THROUGH,
    STEP_BY_STEP,
    VELOCITIES,
    Deviations,
    Replayed,
    compare,
)
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.snapshots import Snapshot, snapshot
from marinenav_env.episodes.worlds import env_for, place_worlds
from marinenav_env.stepper import Stepper

JITTER = 1e-4
"""How far states are moved [m, rad, m/s, rad/s] to see which flags are at their thresholds."""
JITTERED_COPIES = 16
SWAPPED = 0.1
"""An object further than this from the recorded one [m, m/s] is another one."""


def check(episode: Episode, dtype: torch.dtype, device: torch.device | str) -> Deviations:
    """Replay an episode and compare.

    In float64 it runs through with the recorded actions from the recorded start. In float32, whose
    rounding a close encounter would multiply, every decision starts from the recorded state, and
    flags at their thresholds are left out.

    Raises:
        ValueError: the episode has no actions, the simulator does not know its parameters, or the
            device is missing.
    """
    if episode.decisions == 0:
        raise ValueError(
            f"episode file {episode.name!r}: robots.action_history is empty: "
            "there is nothing to replay, record an episode first"
        )
    if dtype == torch.float64:
        return compare(episode, run_through(episode, dtype, device), RUN_THROUGH)
    replayed = step_by_step(episode, dtype, device)
    return compare(episode, replayed, STEP_BY_STEP, at_threshold(episode, device))


def run_through(episode: Episode, dtype: torch.dtype, device: torch.device | str) -> Replayed:
    """Replay an episode from its start, without a look at the recorded states.

    Raises:
        ValueError: as :func:`check`.
    """
    env = env_for([episode], 1, dtype=dtype, device=device)
    place_worlds(env, [(episode, 0)])
    stepper = Stepper(env, restarts=False)
    rows = [snapshot(env, stepper.observe())]
    for decision in range(episode.decisions):
        stepper.step(_actions(env, episode, [decision]))
        rows.append(snapshot(env, stepper.advance()))
    return _replayed({name: np.concatenate([row[name] for row in rows]) for name in rows[0]})


def step_by_step(episode: Episode, dtype: torch.dtype, device: torch.device | str) -> Replayed:
    """Replay every decision of an episode from the recorded state, all of them side by side.

    Raises:
        ValueError: as :func:`check`.
    """
    steps = range(episode.decisions)
    env = env_for([episode], len(steps), dtype=dtype, device=device)
    place_worlds(env, [(episode, step) for step in steps])
    start, end = _one_decision(env, episode, steps)
    return _replayed({name: np.concatenate((start[name][:1], end[name])) for name in end})


def at_threshold(episode: Episode, device: torch.device | str) -> np.ndarray:
    """Find the decisions whose flags, or whose order of objects, depend on the last digits.

    Every recorded state is moved a little, a few times, and simulated one decision in float64.

    Returns:
        Whether the moved copies disagree, at the start and after each decision [T + 1, R].

    Raises:
        ValueError: as :func:`check`.
    """
    steps = np.repeat(np.arange(episode.decisions), JITTERED_COPIES).tolist()
    env = env_for([episode], len(steps), dtype=torch.float64, device=device)
    place_worlds(env, [(episode, step) for step in steps])
    generator = torch.Generator().manual_seed(0)
    moved = env.state.robot[: VELOCITIES.stop, :, : env.worlds]
    shift = (2.0 * torch.rand(moved.shape, generator=generator, dtype=moved.dtype) - 1.0) * JITTER
    moved += shift.to(moved.device)
    start, end = _one_decision(env, episode, steps)
    return np.concatenate((_copies_disagree(start)[:1], _copies_disagree(end)))


def _copies_disagree(row: Snapshot) -> np.ndarray:
    """Return [T, R] where flags or objects differ among the copies of a decision."""
    copies = {
        name: value.reshape(-1, JITTERED_COPIES, *value.shape[1:]) for name, value in row.items()
    }
    seen = copies["mask"].sum(axis=-1)
    flags = (copies["collision"], copies["reach_goal"], copies["phi"] > 0.0, seen)
    uneven = np.any([(flag != flag[:, :1]).any(axis=1) for flag in flags], axis=0)
    return uneven | (np.ptp(copies["objects"], axis=1).max(axis=(-2, -1)) > SWAPPED)


def _actions(env: MarineNavEnv, episode: Episode, steps: Sequence[int]) -> Tensor:
    """Return the recorded actions [W, R(, 2)] of the given decisions, zero for robots gone."""
    shape = (env.worlds, env.robots) if env.discrete else (env.worlds, env.robots, 2)
    actions = np.zeros(shape, dtype=np.int64 if env.discrete else np.float64)
    for world, step in enumerate(steps):
        for robot, history in enumerate(episode.action_history):
            if step < len(history):
                actions[world, robot] = history[step]
    dtype = torch.int64 if env.discrete else env.real_dtype
    return torch.from_numpy(actions).to(env.device, dtype)


def _one_decision(
    env: MarineNavEnv, episode: Episode, steps: Sequence[int]
) -> tuple[Snapshot, Snapshot]:
    """Observe all worlds, take one decision in each, and return both snapshots."""
    stepper = Stepper(env, restarts=False)
    start = snapshot(env, stepper.observe())
    return start, snapshot(env, stepper.step(_actions(env, episode, steps)))


def _replayed(rows: Snapshot) -> Replayed:
    """Return the replay of T decisions from snapshots [T + 1, R, ...], the start first."""
    start = dict.fromkeys(("phi", "ego", "objects", "mask"), 0)
    names = (item.name for item in fields(Replayed))
    return Replayed(**{name: rows[name][start.get(name, 1) :] for name in names})
