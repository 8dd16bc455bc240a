"""Worlds of the simulator set to the states of recorded episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import (
    NEAREST_OBJECTS,
    ROBOT_FIELDS,
    STATUS_ACTIVE,
    WORLD_FIELDS,
    Slots,
)
from marinenav_env.episodes.convert import config_of
from marinenav_env.episodes.format import TRAJECTORY_COLUMNS, Episode
from marinenav_env.kernel.state import WORLD_RUNNING

Placement = tuple[Episode, int]
"""An episode and the number of decisions after which a world takes up its state."""


def env_for(
    episodes: Sequence[Episode],
    worlds: int,
    *,
    dtype: torch.dtype,
    device: torch.device | str,
) -> MarineNavEnv:
    """Return an environment with room for the episodes, its worlds still empty.

    It observes without noise: what was drawn when an episode was recorded cannot be drawn again.

    Args:
        episodes: at least one; they have to share all parameters.
        worlds: W.
        dtype: of the simulation.
        device: of the simulation.

    Raises:
        ValueError: an episode has parameters that this simulator or the other episodes do not
            share, or the device is not there.
    """
    first = episodes[0]
    config = config_of(first, NEAREST_OBJECTS)
    for other in episodes[1:]:
        if _task(config_of(other, NEAREST_OBJECTS)) != _task(config):
            raise ValueError(
                f"episode files {first.name!r} and {other.name!r} differ in their parameters: "
                "simulate them one after the other"
            )
    steps = max(episode.decisions for episode in episodes) + 1
    config = replace(
        config,
        perception=config.perception.noiseless(),
        episode=replace(config.episode, max_steps=steps),
    )
    slots = Slots(
        robots=max(episode.robots for episode in episodes),
        buoys=max(len(episode.buoys.r) for episode in episodes),
        vortices=max(len(episode.cores.gamma) for episode in episodes),
    )
    return MarineNavEnv(
        worlds,
        stages=(Stage(robots=1, vortices=0, buoys=0, min_distance_m=0.0),),
        config=config,
        discrete=first.continuous is False,
        device=device,
        dtype=dtype,
        info_mode="none",
        slots=slots,
    )


def place_worlds(env: MarineNavEnv, placements: Sequence[Placement]) -> None:
    """Set world w to the state of the w-th placement; a robot without a further action is gone.

    Args:
        env: of as many worlds as there are placements, with room for their robots, buoys, cores.
        placements: episode and number of decisions taken, for every world.
    """
    state = env.state
    robot = np.zeros((len(ROBOT_FIELDS), env.slots.robots, env.worlds))
    buoy = np.zeros((3, env.slots.buoys, env.worlds))
    core = np.zeros((3, env.slots.vortices, env.worlds))
    world = np.zeros((len(WORLD_FIELDS), env.worlds), dtype=np.int32)
    active = np.zeros((env.slots.robots, env.worlds), dtype=bool)
    for index, (episode, step) in enumerate(placements):
        present = [len(actions) > step for actions in episode.action_history]
        active[: episode.robots, index] = present
        robot[:, : episode.robots, index] = _robot_rows(episode, step)
        buoy[:, : len(episode.buoys.r), index] = np.vstack(
            (episode.buoys.positions.T, episode.buoys.r)
        )
        sense = np.where(episode.cores.clockwise == 1, 1.0, -1.0)
        core[:, : len(sense), index] = np.vstack(
            (episode.cores.positions.T, episode.cores.gamma * sense)
        )
        counts = {
            "robots": episode.robots,
            "vortices": len(episode.cores.gamma),
            "buoys": len(episode.buoys.r),
            "step": step,
            "end": WORLD_RUNNING,
        }
        for name, value in counts.items():
            world[WORLD_FIELDS.index(name), index] = value
    for target, source in ((state.robot, robot), (state.buoy, buoy), (state.vortex, core)):
        target[..., : env.worlds].copy_(torch.from_numpy(source))
    state.world[:, : env.worlds].copy_(torch.from_numpy(world))
    state.status[:, : env.worlds].copy_(torch.from_numpy(active * np.int32(STATUS_ACTIVE)))
    env.alive.copy_(torch.from_numpy(active.T.copy()))


def _robot_rows(episode: Episode, step: int) -> np.ndarray:
    """Return the state [fields, R] of all robots after ``step`` decisions, or at their end."""
    rows = np.zeros((len(ROBOT_FIELDS), episode.robots))
    for index, states in enumerate(episode.trajectory):
        rows[: len(TRAJECTORY_COLUMNS), index] = states[min(step, len(states) - 1)]
    rows[ROBOT_FIELDS.index("goal_x")], rows[ROBOT_FIELDS.index("goal_y")] = episode.missions.goal.T
    return rows


def _task(config: EnvConfig) -> EnvConfig:
    """Return the configuration without the length of the episode."""
    return replace(config, episode=EnvConfig().episode)
