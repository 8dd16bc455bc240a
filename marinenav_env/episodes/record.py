"""Recording of simulated episodes: in memory for pictures, or for files that are to replay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.state import NEAREST_OBJECTS, ROBOT_FIELDS, WORLD_FIELDS
from marinenav_env.episodes.convert import check_recordable, perception_of, settings_of, vessels_of
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.recordings import STATES, ObservationLog, Recording
from marinenav_env.episodes.sections import Buoys, Cores, Missions
from marinenav_env.episodes.snapshots import Snapshot, snapshot
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper

Policy = Callable[[Observation], Tensor]


def record_episodes(
    env: MarineNavEnv,
    act: Policy,
    *,
    seed: int,
    policy_dtype: torch.dtype = torch.float32,
) -> list[Episode]:
    """Record episodes whose files replay here and in the published simulator.

    Arguments and result are those of `follow_episodes`.

    Raises:
        ConfigError: the environment has a parameter that the files cannot hold, or as
            `follow_episodes`.
    """
    check_recordable(env.config, NEAREST_OBJECTS)
    return follow_episodes(env, act, seed=seed, policy_dtype=policy_dtype)


def follow_episodes(
    env: MarineNavEnv,
    act: Policy,
    *,
    seed: int,
    policy_dtype: torch.dtype = torch.float32,
) -> list[Episode]:
    """Place all worlds anew, let a policy steer them to their end, and return the episodes.

    The environment may have parameters that the files lack, so that a file of such an episode would
    not replay: `record_episodes` refuses them.

    Args:
        env: in float64 (or the files would not replay to the last digits), with one frame in an
            observation; its stages, and its limit, decide the scenarios.
        act: the policy: observations [W, R] in, actions [W, R, 2] or [W, R] (int64) out.
        seed: of the environment, for the files.
        policy_dtype: of the observations that the policy gets.

    Returns:
        One episode per world.

    Raises:
        ConfigError: the environment is not in float64 or stacks several frames, or no robot found
            room in one of its worlds.
    """
    if env.real_dtype != torch.float64:
        raise ConfigError(f"dtype = {env.real_dtype}: make the environment with torch.float64")
    if env.stack_k != 1:
        raise ConfigError(f"stack_k = {env.stack_k}: make the environment with stack_k = 1")
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    _check_worlds(env)
    rows, actions = [snapshot(env, stepper.now)], []
    while rows[-1]["alive"].any():
        seen = Observation(*(part.to(policy_dtype) for part in stepper.now.obs))
        action = act(seen).to(torch.int64 if env.discrete else torch.float64)
        if not env.discrete:
            action = torch.where(action.isfinite(), action, 0.0).clamp(-1.0, 1.0)
        stepper.step(action)
        rows.append(snapshot(env, stepper.advance()))
        actions.append(action.cpu().numpy())
    table = {name: np.stack([row[name] for row in rows], axis=1) for name in rows[0]}
    steered = np.stack(actions, axis=1)
    return [
        _episode(
            env, world, {name: value[world] for name, value in table.items()}, steered[world], seed
        )
        for world in range(env.worlds)
    ]


def _check_worlds(env: MarineNavEnv) -> None:
    """Check that every world holds a robot; a file needs one."""
    placed = env.state.world_field("robots")[: env.worlds].tolist()
    if 0 in placed:
        world = placed.index(0)
        stage = env.stages[int(env.stage_of_worlds()[world])]
        raise ConfigError(
            f"world {world} (stage {stage}) has no robot, there was no room: use another seed, a"
            " shorter min_distance_m, a larger map or more scenario.placement_tries"
        )


def _episode(
    env: MarineNavEnv, world: int, table: Snapshot, actions: np.ndarray, seed: int
) -> Episode:
    """Return the episode of one world.

    Args:
        env: where it took place; the world has not been reset since.
        world: its index.
        table: snapshots [T + 1, R, ...], the start first.
        actions: [T, R] or [T, R, 2].
        seed: for the file.
    """
    state = env.state
    counts = dict(zip(WORLD_FIELDS, state.world[:, world].tolist(), strict=True))
    robots = counts["robots"]
    table = {name: value[:, :robots] for name, value in table.items()}
    acted = table["alive"][:-1]
    taken = acted.sum(axis=0)
    rows = state.robot[:, :robots, world].cpu().double().numpy()
    x, y, radius = state.buoy[:, : counts["buoys"], world].cpu().double().numpy()
    core_x, core_y, circulation = (
        state.vortex[:, : counts["vortices"], world].cpu().double().numpy()
    )
    start = table["states"][0]
    return Episode(
        env=settings_of(env.config, seed, robots),
        cores=Cores(
            positions=np.stack((core_x, core_y), axis=-1),
            clockwise=(circulation > 0.0).astype(np.int64),
            gamma=np.abs(circulation),
        ),
        buoys=Buoys(positions=np.stack((x, y), axis=-1), r=radius),
        vessels=vessels_of(env.config, robots),
        missions=Missions(
            start=start[:, :2],
            goal=np.stack(
                [rows[ROBOT_FIELDS.index(name)] for name in ("goal_x", "goal_y")], axis=-1
            ),
            init_theta=start[:, 2],
            init_velocity_r=start[:, 3:6],
            init_left_pos=start[:, 9],
            init_right_pos=start[:, 10],
            init_left_thrust=start[:, 11],
            init_right_thrust=start[:, 12],
        ),
        perception=perception_of(env.config, robots, NEAREST_OBJECTS),
        observation_history=(),
        action_history=tuple(actions[:length, robot] for robot, length in enumerate(taken)),
        trajectory=tuple(
            table["states"][: length + 1, robot] for robot, length in enumerate(taken)
        ),
        recorded=_recording(env, table, acted, int(taken.max())),
        name=f"world_{world}.json",
    )


def _recording(env: MarineNavEnv, table: Snapshot, acted: np.ndarray, decisions: int) -> Recording:
    """Return what the simulator answered to the T decisions in which a robot acted."""
    acted = acted[:decisions]
    table = {name: value[: decisions + 1] for name, value in table.items()}
    collision, reach_goal = table["collision"][1:], table["reach_goal"][1:]
    terminated = collision | reach_goal
    truncated = acted & ~terminated & ~table["alive"][1:]
    late = truncated & (np.arange(1, decisions + 1)[:, None] >= env.config.episode.max_steps)
    infos = np.full(acted.shape, "normal", dtype=f"<U{max(map(len, STATES))}")
    infos[late] = "too long episode"
    infos[acted & reach_goal] = "reach goal"
    infos[acted & collision] = "collision"
    infos[~acted & reach_goal] = "deactivated after reaching goal"
    infos[~acted & collision] = "deactivated after collision"
    present = np.concatenate((np.ones_like(acted[:1]), acted))
    phi = table["phi"]
    return Recording(
        continuous_action=not env.discrete,
        rewards=table["reward"][1:],
        dones=~acted | terminated | late,
        infos=infos,
        collision=collision,
        reach_goal=reach_goal,
        apply_colregs=phi > 0.0,
        phi=np.where(phi[1:] > 0.0, phi[1:], np.nan),
        deactivated=~acted,
        energy=table["energy"][1:],
        obs=ObservationLog(
            ego=np.where(present[..., None], table["ego"], np.nan),
            objects=table["objects"],
            count=np.where(present, table["mask"].sum(axis=-1), 0.0).astype(np.int64),
            present=present,
        ),
    )
