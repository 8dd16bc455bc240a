"""What replays of the ICRA 2024 task need: its configuration, and how far they are off."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from marinenav_env.config import EpisodeConfig
from marinenav_env.envs.icra2024 import Icra2024Config
from marinenav_env.episodes.checks import Check
from marinenav_env.episodes.compare import Deviations, Tolerance, angle_between
from marinenav_env.episodes.convert import built, parameters_of, reach_goal, states_of
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.icra2024_format import ENV, PERCEPTION, ROBOTS, TRAJECTORY
from marinenav_env.tracks import Tracks

ICRA2024_RUN_THROUGH = Tolerance(1e-5, relative=False)
"""For a replay in float64 from the start: strong vortices multiply the error of ten digits."""
LACKING = ("thrust_n", "phi_rad")
"""What these vessels do not have, and these episodes do not say."""
START = slice(0, 2)


def icra2024_config_of(episode: Episode) -> Icra2024Config:
    """Return the configuration in which an episode took place.

    Raises:
        ConfigError: the robots differ in a parameter, or one has a value that is impossible.
    """
    check = Check(f"episode file {episode.name!r}")
    groups = parameters_of(check, episode.env, episode.robots, (ENV, ROBOTS, PERCEPTION))
    for robot, angle in enumerate(episode.robots["perception"]["angle"]):
        if not math.isclose(angle, 2.0 * math.pi, rel_tol=1e-9):
            check.fail(f"robots.perception.angle[{robot}]", angle, "give 2 pi, the full circle")
    # The published drag is the largest acceleration over the largest speed.
    vessel = groups["vessel"]
    vessel["max_acceleration"] = max(map(abs, vessel["accelerations"]))
    vessel["max_turn_rate"] = max(map(abs, vessel["turn_rates"]))
    vessel["drag"] = vessel["max_acceleration"] / vessel["max_speed"]
    config = built(Icra2024Config, groups, check)
    return replace(config, episode=EpisodeConfig(max_steps=episode.decisions + 1))


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
        wrong += int((np.array(recorded["dones"]) != of(replayed.terminated))[acted].sum())
    return Deviations.of(
        parts, tolerance, wrong_flags=wrong, steps=episode.decisions, lacking=LACKING
    )
