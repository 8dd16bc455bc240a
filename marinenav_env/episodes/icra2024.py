"""What replays of the ICRA 2024 task need: its configuration, and how far they are off."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from marinenav_env.config import EpisodeConfig
from marinenav_env.envs.icra2024 import Icra2024Config
from marinenav_env.episodes.checks import TOO_LONG, Check
from marinenav_env.episodes.compare import Deviations, Tolerance, angle_between
from marinenav_env.episodes.config import (
    built,
    check_replayed,
    env_section,
    parameters_of,
    robots_section,
)
from marinenav_env.episodes.ends import Ends
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.icra2024_format import ENV, HISTORIES, PERCEPTION, ROBOTS, TRAJECTORY
from marinenav_env.episodes.tracks import reach_goal, states_of
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import Tracks

ICRA2024_RUN_THROUGH = Tolerance(1e-5, relative=False)
"""For a replay in float64 from the start: strong vortices multiply the error of ten digits."""
LACKING = ("thrust_n", "phi_rad")
"""What these vessels do not have, and these episodes do not say."""
START = slice(0, 2)
FULL_CIRCLE = 2.0 * math.pi
CARRIED = {"cooperative": True, "length": 1.0, "width": 0.5, "obs_dis": 5.0}
"""What published files say of a robot, and their simulator does not use."""
OBSERVED = ("ego", "static", "dynamic")


def icra2024_config_of(episode: Episode) -> Icra2024Config:
    """Return the configuration in which an episode took place.

    Raises:
        ConfigError: the robots differ in a parameter, or one has a value that is impossible.
    """
    source = f"episode file {episode.name!r}"
    config = _config_of_sections(episode.env, episode.robots, source)
    return replace(config, episode=EpisodeConfig(max_steps=episode.decisions + 1))


def check_icra2024_recordable(config: Icra2024Config, *, discrete: bool) -> None:
    """Check that episode files hold the actions, and every parameter that a replay depends on.

    Raises:
        ConfigError: they do not.
    """
    if not discrete:
        raise ConfigError(
            "discrete is False: episode files of the ICRA 2024 task hold indices of actions, record"
            " a policy that chooses among nine"
        )
    check_replayed(config, _config_of_sections(*_sections_of(config, 0, 1), "recording"))


def _config_of_sections(env: dict[str, Any], robots: dict[str, Any], source: str) -> Icra2024Config:
    """Return what the sections ``env`` and ``robots`` say of the configuration."""
    check = Check(source)
    groups = parameters_of(check, env, robots, (ENV, ROBOTS, PERCEPTION))
    for robot, angle in enumerate(robots["perception"]["angle"]):
        if not math.isclose(angle, FULL_CIRCLE, rel_tol=1e-9):
            check.fail(f"robots.perception.angle[{robot}]", angle, "give 2 pi, the full circle")
    # The published drag is the largest acceleration over the largest speed.
    vessel = groups["vessel"]
    vessel["max_acceleration"] = max(map(abs, vessel["accelerations"]))
    vessel["max_turn_rate"] = max(map(abs, vessel["turn_rates"]))
    vessel["drag"] = vessel["max_acceleration"] / vessel["max_speed"]
    return built(Icra2024Config, groups, check)


def _sections_of(
    config: Icra2024Config, seed: int, robots: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``env`` and ``robots`` say of the configuration, for R equal robots."""
    own = {key: entry for key, entry in ROBOTS.items() if entry.parameters}
    vessels = robots_section(config, own, robots, CARRIED)
    perception = robots_section(config, {"range": PERCEPTION["range"]}, robots, {})
    perception["angle"] = [FULL_CIRCLE] * robots
    return env_section(config, ENV, {"seed": seed}), {**vessels, "perception": perception}


def icra2024_data(
    config: Icra2024Config, seed: int, objects: dict[str, Any], rows: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the file of one world's episode.

    Args:
        config: of its environment.
        seed: for the file.
        objects: the sections ``cores`` and ``obstacles``.
        rows: [T + 1, R, ...] or [T, R, ...] of its robots, by the names of `Tracks`, of the robot's
            fields and of the observation's parts in one frame.
    """
    lengths = rows["acted"].sum(axis=0)
    env, robots = _sections_of(config, seed, len(lengths))
    states = np.stack([rows[name] for name in TRAJECTORY], axis=-1)
    start = states[0]
    robots |= {
        "start": start[:, START].tolist(),
        "goal": np.stack((rows["goal_x"][0], rows["goal_y"][0]), axis=-1).tolist(),
        "init_theta": start[:, TRAJECTORY.index("heading")].tolist(),
        "init_speed": start[:, TRAJECTORY.index("speed")].tolist(),
        "action_history": [rows["action"][:taken, i].tolist() for i, taken in enumerate(lengths)],
        "trajectory": [states[: taken + 1, i].tolist() for i, taken in enumerate(lengths)],
    }
    robots = {key: robots[key] for key in (*ROBOTS, "perception", *HISTORIES)}
    return {"env": {**env, **objects}, "robots": robots, "recorded": _recorded(config, rows)}


def _recorded(config: Icra2024Config, rows: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return what the simulator answered to the decisions in which a robot acted.

    For a robot already gone, reward is 0, done is true, and the others repeat their last values.
    """
    ends = Ends.of(rows, config.episode.max_steps)
    decisions, present = len(ends.acted), np.concatenate((np.ones_like(ends.acted[:1]), ends.acted))
    flat = [rows[name][: decisions + 1].reshape(*present.shape, -1) for name in OBSERVED]
    seen = np.concatenate(flat, axis=-1)
    before = np.zeros_like(ends.acted[:1])
    return {
        "obs": [
            [row.tolist() if there else None for there, row in zip(*step, strict=True)]
            for step in zip(present, seen, strict=True)
        ],
        "collision": np.concatenate((before, ends.collision)).tolist(),
        "reach_goal": np.concatenate((before, ends.reached)).tolist(),
        "rewards": rows["reward"][:decisions].tolist(),
        "dones": ends.done.tolist(),
        "infos": ends.infos.tolist(),
        "deactivated": (~ends.acted).tolist(),
        "energy": rows["step_energy"][1 : decisions + 1].tolist(),
    }


def compare_icra2024(episode: Episode, replayed: Tracks, tolerance: Tolerance) -> Deviations:
    """Compare a replay, one world of T decisions, with its recording."""
    acted = np.arange(episode.decisions)[:, None] < np.array(episode.lengths)

    def of(rows: torch.Tensor) -> np.ndarray:
        """Return [T, R, ...] of what decisions led to."""
        return rows[-episode.decisions :, 0].cpu().double().numpy()

    states = states_of(episode)[1:][acted]
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
        late = np.array(recorded["infos"]) == TOO_LONG  # by a limit that a replay does not have
        over = np.array(recorded["dones"]) != of(replayed.terminated)
        wrong += int((over & ~late)[acted].sum())
    return Deviations.of(
        parts, tolerance, wrong_flags=wrong, steps=episode.decisions, lacking=LACKING
    )
