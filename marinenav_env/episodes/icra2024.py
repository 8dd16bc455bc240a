"""Replays of recorded episodes of the ICRA 2024 task."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from marinenav_env.config import EpisodeConfig
from marinenav_env.envs.icra2024 import Icra2024Config, Icra2024Env
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import Slots
from marinenav_env.episodes.checks import Check
from marinenav_env.episodes.compare import Deviations, Tolerance, angle_between
from marinenav_env.episodes.convert import reach_goal
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.icra2024_format import ENV, PERCEPTION, ROBOTS, TRAJECTORY
from marinenav_env.fields import ConfigError, build
from marinenav_env.tracks import Tracks, place_worlds, record_tracks

RUN_THROUGH = Tolerance(1e-5, relative=False)
"""For a replay in float64 from the start: strong vortices multiply the error of ten digits."""
STEP_BY_STEP = Tolerance(1e-4, relative=True)
"""For a replay in float32, one decision from each recorded state."""
LACKING = ("thrust_n", "phi_rad")
"""What these vessels do not have, and these episodes do not say."""
START = slice(0, 2)


def check_icra2024_replay(
    episode: Episode, dtype: torch.dtype, device: torch.device | str
) -> Deviations:
    """Replay an episode and compare, as `replay.check` does.

    Raises:
        ConfigError: the robots differ in a parameter, or the device is missing.
    """
    whole = dtype == torch.float64
    starts = [0] if whole else list(range(episode.decisions))
    env = _env_at(episode, starts, dtype, device)
    actions = _actions(episode).to(env.device)
    if whole:
        in_turn = iter(actions.unsqueeze(1))
        tracks = record_tracks(
            env, lambda _: next(in_turn), episode.decisions, reset=False, observations=True
        )
    else:
        tracks = record_tracks(env, lambda _: actions, 1, reset=False, observations=True)
    return _compare(episode, tracks, RUN_THROUGH if whole else STEP_BY_STEP)


def icra2024_config_of(episode: Episode) -> Icra2024Config:
    """Return the configuration in which an episode took place.

    Raises:
        ConfigError: the robots differ in a parameter, or one has a value that is impossible.
    """
    check = Check(f"episode file {episode.name!r}")
    env, robots = episode.env, episode.robots
    values: dict[str, Any] = {}
    for key, entry in ENV.items():
        values |= zip(entry.parameters, env[key] if entry.lengths else [env[key]], strict=False)
    own = {key: (robots[key], entry) for key, entry in ROBOTS.items() if entry.parameters}
    seen = robots["perception"]
    own |= {f"perception.{key}": (seen[key], entry) for key, entry in PERCEPTION.items()}
    for key, (of_robots, entry) in own.items():
        if any(value != of_robots[0] for value in of_robots):
            check.fail(f"robots.{key}", of_robots, "give all robots one value")
        values |= zip(entry.parameters, of_robots, strict=False)
    for robot, angle in enumerate(seen["angle"]):
        if not math.isclose(angle, 2.0 * math.pi, rel_tol=1e-9):
            check.fail(f"robots.perception.angle[{robot}]", angle, "give 2 pi, the full circle")
    groups: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for parameter, value in values.items():
        group, _, name = parameter.partition(".")
        groups[group][name] = value
    # The published drag is the largest acceleration over the largest speed.
    vessel = groups["vessel"]
    vessel["max_acceleration"] = max(map(abs, vessel["accelerations"]))
    vessel["max_turn_rate"] = max(map(abs, vessel["turn_rates"]))
    vessel["drag"] = vessel["max_acceleration"] / vessel["max_speed"]
    try:
        config = build(Icra2024Config, groups)
    except ConfigError as error:
        raise ConfigError(f"{check.source}: {error}") from error
    return replace(config, episode=EpisodeConfig(max_steps=episode.decisions + 1))


def _env_at(
    episode: Episode, steps: list[int], dtype: torch.dtype, device: torch.device | str
) -> Icra2024Env:
    """Return an environment whose world w stands where the episode does after ``steps[w]``."""
    cores, buoys = episode.env["cores"], episode.env["obstacles"]
    turning = np.where(cores["clockwise"], 1.0, -1.0) * np.array(cores["Gamma"], dtype=float)
    slots = Slots(len(episode.lengths), len(buoys["r"]), len(turning))
    env = Icra2024Env(
        len(steps),
        stages=(Stage(robots=1, vortices=0, buoys=0, min_distance_m=0.0),),
        config=icra2024_config_of(episode),
        discrete=True,
        device=device,
        dtype=dtype,
        info_mode="none",
        slots=slots,
    )
    states = _states(episode)[steps]
    goals = np.array(episode.robots["goal"], dtype=float)
    fields = env.kernel_spec.fields("robot")
    robot = np.zeros((*states.shape[:2], len(fields)))
    robot[..., : len(TRAJECTORY)] = states
    at = fields.index("goal_x")
    robot[..., at : at + 2] = goals
    alive = np.array(steps)[:, None] < np.array(episode.lengths)
    objects = [
        np.column_stack((np.array(where, dtype=float).reshape(-1, 2), last))
        for where, last in ((buoys["positions"], buoys["r"]), (cores["positions"], turning))
    ]
    each = (len(steps), -1, -1)
    given = [torch.from_numpy(rows.astype(float)).expand(each) for rows in objects]
    place_worlds(env, torch.from_numpy(robot), torch.from_numpy(alive), *given)
    return env


def _states(episode: Episode) -> np.ndarray:
    """Return the recorded states [T + 1, R, 6]; robots gone repeat their last one."""
    steps = np.arange(episode.decisions + 1)
    rows = [np.array(rows, dtype=float) for rows in episode.robots["trajectory"]]
    return np.stack([row[np.minimum(steps, len(row) - 1)] for row in rows], axis=1)


def _actions(episode: Episode) -> torch.Tensor:
    """Return the indices [T, R], 0 for robots gone."""
    actions = torch.zeros(episode.decisions, len(episode.lengths), dtype=torch.int64)
    for robot, history in enumerate(episode.robots["action_history"]):
        actions[: len(history), robot] = torch.tensor(history, dtype=torch.int64)
    return actions


def _compare(episode: Episode, replayed: Tracks, tolerance: Tolerance) -> Deviations:
    """Compare a replay with its recording: one world of T decisions, or T worlds of one."""
    acted = np.arange(episode.decisions)[:, None] < np.array(episode.lengths)

    def of(rows: torch.Tensor) -> np.ndarray:
        """Return [T, R, ...] of what decisions led to."""
        rows = rows[-episode.decisions :, 0] if len(rows) >= episode.decisions else rows[-1]
        return rows.cpu().double().numpy()

    states = _states(episode)[1:][acted]
    found = np.stack([of(replayed.field(name))[acted] for name in TRAJECTORY], axis=-1)
    parts = {
        "position_m": (np.abs(found - states)[:, START], states[:, START]),
        "heading_rad": (angle_between(found[:, 2], states[:, 2]), states[:, 2]),
        "velocity": (np.abs(found - states)[:, 3:], states[:, 3:]),
    }
    wrong = int((of(replayed.acted)[acted] != 1.0).sum())
    recorded = episode.recorded
    if recorded is not None:
        reward = np.array(recorded["rewards"])[acted]
        parts["reward"] = (np.abs(of(replayed.reward)[acted] - reward), reward)
        seen = replayed.observation
        assert seen is not None
        flat = np.concatenate([of(part).reshape(*acted.shape, -1) for part in seen], axis=-1)[acted]
        rows = [row[robot] for row in recorded["obs"][1:] for robot in range(acted.shape[1])]
        known = np.array([row for row, there in zip(rows, acted.ravel(), strict=True) if there])
        parts["observation"] = (np.abs(flat - known), known)
        near = reach_goal(replayed, episode.robots["goal_dis"][0])
        flags = {"collision": replayed.collision, "reach_goal": near}
        for name, flag in flags.items():
            wrong += int((np.array(recorded[name])[1:] != of(flag))[acted].sum())
        wrong += int((np.array(recorded["dones"]) != of(replayed.terminated))[acted].sum())
    largest: dict[str, Any] = dict.fromkeys(("observation", "reward", *LACKING))
    largest |= {name: float(np.max(part[0], initial=0.0)) for name, part in parts.items()}
    share = float(np.max([tolerance.share(*part) for part in parts.values()]))
    return Deviations(
        **largest, wrong_flags=wrong, steps=episode.decisions, share=share, lacking=LACKING
    )
