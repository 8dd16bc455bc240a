"""Episode files of what a policy does: recorded as Tracks, and written to replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.icra2024 import Icra2024Config
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.spec import tuple_like
from marinenav_env.episodes.config import check_recordable, sections_of
from marinenav_env.episodes.ends import Ends
from marinenav_env.episodes.format import START_COLUMNS, Episode
from marinenav_env.episodes.icra2024 import check_icra2024_recordable, icra2024_data
from marinenav_env.episodes.schema import MISSIONS, POLICY
from marinenav_env.episodes.tracks import STATE_FIELDS, own_of, reach_goal
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import Policy, Tracks, record_tracks

LOOK_INTERVAL = 10
"""Decisions between two looks whether all worlds are over."""


def record_episodes(
    env: MarineNavEnv,
    act: Policy,
    *,
    seed: int,
    placed: bool = False,
    steer: Sequence[Sequence[str]] | None = None,
) -> list[Episode]:
    """Record episodes whose files replay here and in the published simulator.

    Args:
        env: in float64 (or the files would not replay to the last digits); its stages, and its
            limit, decide the scenarios. Of stacked frames the files hold the newest.
        act: the policy: observations [W, R] float32 in, actions [W, R, 2] or [W, R] (int64) out.
        seed: of the environment, for the files.
        placed: whether the worlds stand ready; else they are reset first.
        steer: [W][R] names of what steers the robots, ``policy`` those that are judged: a world's
            episode ends with the last of these. None: all are.

    Returns:
        One episode per world.

    Raises:
        ConfigError: the environment has a parameter or actions that the files cannot hold, is not
            in float64, or no robot found room in one of its worlds.
    """
    if isinstance(env.config, Icra2024Config):
        check_icra2024_recordable(env.config, discrete=env.discrete)
    else:
        check_recordable(env.config)
    if env.real_dtype != torch.float64:
        raise ConfigError(f"dtype = {env.real_dtype}: make the environment with torch.float64")
    tracks = record_policy(env, act, placed=placed, steer=steer, observations=True)
    tracks = replace(tracks, observation=_newest(tracks.observation, env.stack_k))
    return episodes_of(tracks, env.config, seed, steer)


def record_policy(
    env: MarineNavEnv,
    act: Policy,
    *,
    placed: bool = False,
    steer: Sequence[Sequence[str]] | None = None,
    observations: bool = False,
) -> Tracks:
    """Record what a policy does, in an environment of any parameters.

    Args:
        env: its stages, and its limit, decide the scenarios.
        act: as `record_episodes` takes it; so are the next two.
        placed: whether the worlds stand ready.
        steer: names of what steers the robots.
        observations: keep them too.

    Raises:
        ConfigError: no robot found room in one of the worlds.
    """

    def usable(seen: Any) -> Tensor:
        action = act(tuple_like(seen, (part.float() for part in seen)))
        if env.discrete:
            return action
        return torch.where(action.isfinite(), action, 0.0).clamp(-1.0, 1.0)

    limit = env.config.episode.max_steps
    tracks = record_tracks(
        env,
        usable,
        limit,
        reset=not placed,
        observations=observations,
        look_interval=LOOK_INTERVAL,
        own=None if steer is None else own_of(steer, env.device),
    )
    judged = tracks.placed if tracks.own is None else tracks.placed & tracks.own
    kind = "robot" if tracks.own is None else "robot of the policy"
    for world, found in enumerate(judged.any(-1).tolist()):
        if not found:
            stage = env.stages[int(env.stage_of_worlds()[world])]
            raise ConfigError(
                f"world {world} (stage {stage}) has no {kind}, there was no room: use another seed,"
                " a shorter min_distance_m, a larger map or more scenario.placement_tries"
            )
    return tracks


def _newest(seen: Any, frames: int) -> Any:
    """Return the newest frame of observations [N + 1, W, R, ...]."""
    return tuple_like(seen, (part[:, :, :, : part.shape[3] // frames] for part in seen))


def episodes_of(
    tracks: Tracks,
    config: EnvConfig | Icra2024Config,
    seed: int,
    steer: Sequence[Sequence[str]] | None = None,
) -> list[Episode]:
    """Return the episode of every world.

    Args:
        tracks: in float64 and with observations of one frame; with a robot in every world.
        config: of their environment.
        seed: for the files.
        steer: as `record_episodes` takes it; a file of the policy's own robots alone leaves it out.
    """
    assert tracks.observation is not None
    parts = {name: getattr(tracks, name) for name in ("robot", "acted", "action", "reward")}
    parts |= {"truncated": tracks.truncated, "collision": tracks.collision}
    parts["reach_goal"] = reach_goal(tracks, config.reward.goal_distance)
    parts |= tracks.observation._asdict()
    host = {name: part.cpu().numpy() for name, part in parts.items()}
    buoys, vortices = tracks.buoys.cpu().numpy(), tracks.vortices.cpu().numpy()
    counts = tracks.placed.sum(-1).tolist()
    episodes = []
    for world, robots in enumerate(counts):
        rows = {name: part[:, world, :robots] for name, part in host.items()}
        rows |= dict(zip(tracks.fields, np.moveaxis(rows["robot"], -1, 0), strict=True))
        *position, radius = buoys[world][buoys[world, :, 2] > 0.0].T
        *centre, circulation = vortices[world][vortices[world, :, 2] != 0.0].T
        objects = {
            "cores": {
                "positions": np.stack(centre, axis=-1).tolist(),
                "clockwise": (circulation > 0.0).astype(int).tolist(),
                "Gamma": np.abs(circulation).tolist(),
            },
            "obstacles": {"positions": np.stack(position, axis=-1).tolist(), "r": radius.tolist()},
        }
        if isinstance(config, Icra2024Config):
            data = icra2024_data(config, seed, objects, rows)
        else:
            data = _data(config, seed, objects, rows)
        steered = list(steer[world][:robots]) if steer else []
        if {*steered} - {POLICY}:
            data["robots"]["steer"] = steered
        episodes.append(Episode(data, f"world_{world}.json"))
    return episodes


def _data(
    config: EnvConfig, seed: int, objects: dict[str, Any], rows: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the file of one world's episode; see `icra2024_data`."""
    env, vessels = sections_of(config, seed=seed, robots=rows["acted"].shape[1])
    return {
        "env": {**env, **objects},
        "robots": _robots_section(vessels, rows),
        "recorded": _recorded_section(config, rows),
    }


def _robots_section(vessels: dict[str, Any], rows: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return ``robots`` from what the configuration says and the rows [T + 1, R, ...]."""
    perception = vessels.pop("perception")
    states = np.stack([rows[name] for name in STATE_FIELDS], axis=-1)
    lengths = rows["acted"].sum(axis=0)
    missions = {key: states[0][:, columns].tolist() for key, columns in START_COLUMNS.items()}
    missions["goal"] = np.stack((rows["goal_x"][0], rows["goal_y"][0]), axis=-1).tolist()
    return {
        **vessels,
        **{key: missions[key] for key in MISSIONS},
        "perception": perception,
        "observation_history": [],
        "action_history": [rows["action"][:taken, i].tolist() for i, taken in enumerate(lengths)],
        "trajectory": [states[: taken + 1, i].tolist() for i, taken in enumerate(lengths)],
    }


def _recorded_section(config: EnvConfig, rows: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return what the simulator answered to the T decisions in which a robot acted.

    For a robot already gone, reward is 0, done is true, and collision, reach_goal, apply_colregs,
    phi and energy repeat their last values.
    """
    ends = Ends.of(rows, config.episode.max_steps)
    acted, decisions = ends.acted, len(ends.acted)
    phi = rows["phi"][: decisions + 1]
    present = np.concatenate((np.ones_like(acted[:1]), acted))
    seen = zip(present, rows["ego"], rows["objects"], rows["mask"], strict=False)
    return {
        "continuous_action": rows["action"].ndim == 3,
        "rewards": rows["reward"][:decisions].tolist(),
        "dones": ends.done.tolist(),
        "infos": ends.infos.tolist(),
        "collision": ends.collision.tolist(),
        "reach_goal": ends.reached.tolist(),
        "apply_colregs": (phi > 0.0).tolist(),
        "phi": [[angle if angle > 0.0 else None for angle in row] for row in phi[1:].tolist()],
        "deactivated": (~acted).tolist(),
        "energy": rows["step_energy"][1 : decisions + 1].tolist(),
        "obs": [
            [
                [ego.tolist(), objects[mask > 0.0].tolist()] if there else None
                for there, ego, objects, mask in zip(*step, strict=True)
            ]
            for step in seen
        ],
    }
