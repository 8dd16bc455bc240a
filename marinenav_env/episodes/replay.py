"""Replays of recorded episodes in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marinenav_env.envs.icra2024 import Icra2024Env
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.spec import tuple_like
from marinenav_env.envs.state import Slots
from marinenav_env.episodes.compare import (
    RUN_THROUGH,
    STEP_BY_STEP,
    VELOCITIES,
    Deviations,
    compare,
)
from marinenav_env.episodes.config import config_of
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.icra2024 import (
    ICRA2024_RUN_THROUGH,
    compare_icra2024,
    icra2024_config_of,
)
from marinenav_env.episodes.icra2024_format import TRAJECTORY
from marinenav_env.episodes.tracks import (
    STATE_FIELDS,
    actions_of,
    objects_of,
    reach_goal,
    states_of,
)
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import Tracks, place_worlds, record_tracks

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
        ConfigError: the episode has no actions, the simulator does not know its parameters, or the
            device is missing.
    """
    if episode.decisions == 0:
        raise ConfigError(
            f"episode file {episode.name!r}: robots.action_history is empty: "
            "there is nothing to replay, record an episode first"
        )
    whole = dtype == torch.float64
    replayed = (run_through if whole else step_by_step)(episode, dtype, device)
    if episode.of_icra2024:
        return compare_icra2024(episode, replayed, ICRA2024_RUN_THROUGH if whole else STEP_BY_STEP)
    if whole:
        return compare(episode, replayed, RUN_THROUGH)
    return compare(episode, replayed, STEP_BY_STEP, at_threshold(episode, device))


def run_through(episode: Episode, dtype: torch.dtype, device: torch.device | str) -> Tracks:
    """Replay an episode from its start, without a look at the recorded states.

    Raises:
        ConfigError: as :func:`check`.
    """
    env = env_at(episode, [0], dtype=dtype, device=device)
    actions = iter(torch.from_numpy(actions_of(episode)).unsqueeze(1).to(device))
    return record_tracks(
        env, lambda _: next(actions), episode.decisions, reset=False, observations=True
    )


def step_by_step(episode: Episode, dtype: torch.dtype, device: torch.device | str) -> Tracks:
    """Replay every decision of an episode from the recorded state, all of them side by side.

    Raises:
        ConfigError: as :func:`check`.
    """
    steps = range(episode.decisions)
    tracks = _one_decision(env_at(episode, steps, dtype=dtype, device=device), episode, steps)

    def in_turn(rows: Tensor) -> Tensor:
        """Rows of one world, its start before them if there is one, of those of T worlds."""
        start = rows[:1, :1] if len(rows) > 1 else rows[:0, :1]
        return torch.cat((start, rows[-1].unsqueeze(1)))

    by_time = ("robot", "acted", "action", "reward", "terminated", "truncated")
    parts: dict[str, Any] = {name: in_turn(getattr(tracks, name)) for name in by_time}
    seen = _seen(tracks)
    return replace(tracks.worlds([0]), **parts, observation=tuple_like(seen, map(in_turn, seen)))


def at_threshold(episode: Episode, device: torch.device | str) -> np.ndarray:
    """Find the decisions whose flags, or whose order of objects, depend on the last digits.

    Every recorded state is moved a little, a few times, and simulated one decision in float64.

    Returns:
        Whether the moved copies disagree, at the start and after each decision [T + 1, R].

    Raises:
        ConfigError: as :func:`check`.
    """
    steps = [step for step in range(episode.decisions) for _ in range(JITTERED_COPIES)]
    env = env_at(episode, steps, dtype=torch.float64, device=device)
    generator = torch.Generator().manual_seed(0)
    moved = env.state.robot[: VELOCITIES.stop, :, : env.worlds]
    shift = (2.0 * torch.rand(moved.shape, generator=generator, dtype=moved.dtype) - 1.0) * JITTER
    moved += shift.to(moved.device)
    tracks = _one_decision(env, episode, steps)

    def copies(rows: Tensor) -> Tensor:
        return rows.unflatten(1, (-1, JITTERED_COPIES))

    ends = torch.stack((tracks.collision, reach_goal(tracks, env.config.reward.goal_distance)))
    flags = [
        *torch.cat((torch.zeros_like(ends), ends), dim=1),
        tracks.field("phi") > 0.0,
        _seen(tracks).mask.sum(-1),
    ]
    uneven = [(flag != flag[:, :, :1]).any(2) for flag in map(copies, flags)]
    objects = copies(_seen(tracks).objects).flatten(-2)
    swapped = (objects.amax(2) - objects.amin(2)).amax(-1) > SWAPPED
    unsure = torch.stack([*uneven, swapped]).any(0)  # [2, T, R]
    return torch.cat((unsure[0, :1], unsure[1])).cpu().numpy()


def env_at(
    episode: Episode, steps: Sequence[int], *, dtype: torch.dtype, device: torch.device | str
) -> MarineNavEnv:
    """Return an environment whose world w stands where the episode does after ``steps[w]`` of T.

    It observes without noise: what was drawn when an episode was recorded cannot be drawn again. A
    robot without a further action is gone.

    Raises:
        ConfigError: the episode has parameters that this simulator does not know, or the device is
            not there.
    """
    kind, config, columns = task_of_episode(episode)
    buoys, vortices = objects_of(episode)
    slots = Slots(len(episode.lengths), buoys.shape[1], vortices.shape[1])
    env = kind(
        len(steps),
        stages=(Stage(robots=1, vortices=0, buoys=0, min_distance_m=0.0),),
        config=config,
        discrete=episode.continuous is False,
        device=device,
        dtype=dtype,
        info_mode="none",
        slots=slots,
    )
    fields = env.kernel_spec.fields("robot")
    robot = np.zeros((len(steps), slots.robots, len(fields)))
    robot[..., [fields.index(name) for name in columns]] = states_of(episode)[list(steps)]
    robot[..., [fields.index("goal_x"), fields.index("goal_y")]] = episode.robots["goal"]
    alive = np.array(steps)[:, None] < np.array(episode.lengths)
    each = (len(steps), -1, -1)
    given = torch.from_numpy(robot), torch.from_numpy(alive)
    place_worlds(env, *given, buoys.expand(each), vortices.expand(each))
    return env


def task_of_episode(episode: Episode) -> tuple[type[MarineNavEnv], Any, tuple[str, ...]]:
    """Return the environment, its configuration without noise, and a trajectory's columns.

    Raises:
        ConfigError: the episode has parameters that this simulator does not know.
    """
    if episode.of_icra2024:
        return Icra2024Env, icra2024_config_of(episode), TRAJECTORY
    config = config_of(episode)
    return MarineNavEnv, replace(config, perception=config.perception.noiseless()), STATE_FIELDS


def _one_decision(env: MarineNavEnv, episode: Episode, steps: Sequence[int]) -> Tracks:
    """Take the decision after ``steps[w]`` in world w."""
    action = torch.from_numpy(actions_of(episode)[list(steps)]).to(env.device)
    return record_tracks(env, lambda _: action, 1, reset=False, observations=True)


def _seen(tracks: Tracks) -> Observation:
    assert tracks.observation is not None
    return tracks.observation
