"""Rollouts for the simulator's tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.marine import CONTINUOUS_ACTIONS, DISCRETE_ACTIONS, MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.faults import ThrusterConfig, VariationConfig
from marinenav_env.kernel import ops
from marinenav_env.kernel.state import StepBuffers
from marinenav_env.stepper import Stepper
from marinenav_env.water import StreamConfig, WavesConfig, WindConfig

EPISODES = Path(__file__).parents[1] / "reference" / "episodes"
FILES = sorted(EPISODES.glob("*.json"))
"""Episodes recorded from the published simulator."""
CROWDED = Stage(robots=5, vortices=2, buoys=3, min_distance_m=12.0)
SPARSE = Stage(robots=2, vortices=0, buoys=0, min_distance_m=20.0)


def eventful(max_steps: int = 30) -> EnvConfig:
    """Short episodes in a narrow space: random actions reach goals, collide and run out of time."""
    config = EnvConfig()
    return replace(
        config,
        reward=replace(config.reward, goal_distance=9.0),
        scenario=replace(config.scenario, clear_radius=6.5),
        episode=replace(config.episode, max_steps=max_steps),
    )


def quiet(config: EnvConfig) -> EnvConfig:
    """The same without sensor noise."""
    return replace(config, perception=config.perception.noiseless())


def rough(config: Any) -> Any:
    """The same with every disturbance; a range finder is noisy."""
    noise = {"range_std": 0.2} if hasattr(config.perception, "range_std") else {}
    return replace(
        config,
        wind=WindConfig(speed=(1.0, 6.0), gust_std=2.0),
        stream=StreamConfig(speed=(0.1, 0.3)),
        waves=WavesConfig(height=0.2),
        thrusters=ThrusterConfig(lag=0.3, loss_probability=0.2, loss_time=(0.0, 10.0)),
        variation=VariationConfig(mass=(0.8, 1.2), yaw_damping=(0.7, 1.3), left_thrust=(0.8, 1.0)),
        perception=replace(
            config.perception,
            miss=0.1,
            dropout=0.05,
            delay=0.25,
            noise_factor=(0.5, 2.0),
            range_factor=(0.5, 1.0),
            **noise,
        ),
    )


def actions(env: MarineNavEnv, step: int, key: int = 5) -> Tensor:
    """Random actions that depend on the global world index, the robot and the step only."""
    place = {"device": env.device, "dtype": torch.int64}
    world = torch.arange(env.worlds, **place) + env.state.context.first_world
    counter = torch.zeros(env.worlds, env.robots, 4, **place)
    counter[..., 0] = world[:, None]
    counter[..., 1] = torch.arange(env.robots, **place)
    counter[..., 2] = step
    words = ops.philox(counter.flatten(0, 1), (key, 0)).unflatten(0, (env.worlds, env.robots))
    share = words[..., :CONTINUOUS_ACTIONS].to(torch.float64) / 2**32
    if env.discrete:
        return (share[..., 0] * DISCRETE_ACTIONS).long()
    return (2.0 * share - 0.8).clamp(-1.0, 1.0).to(env.real_dtype)


def snapshot(out: StepBuffers) -> dict[str, Tensor]:
    """Copies of everything in step buffers."""
    rows = {f"obs.{name}": value for name, value in out.obs._asdict().items()}
    for field in dataclasses.fields(out):
        if field.name not in ("frames", "frame_list", "result_list", "obs", "alive"):
            rows[field.name] = getattr(out, field.name)
    return {name: value.clone() for name, value in rows.items()}


def decide(env: KernelEnv, action: Tensor) -> StepBuffers:
    """Take a decision from the state as it is, whatever was observed before."""
    out = env.make_buffers()
    env.step_into(action, out, out)
    return out


def roll(env: MarineNavEnv, decisions: int) -> Iterator[StepBuffers]:
    """Place all worlds and act at random; yield what is seen first and what every step wrote.

    Finished worlds stay as they are.
    """
    stepper = Stepper(env, restarts=False)
    yield stepper.reset()
    for step in range(decisions):
        yield stepper.step(actions(env, step))
        stepper.advance()


def episodes(env: MarineNavEnv, steps: int) -> Iterator[dict[str, Tensor]]:
    """Resets, then yields what every step wrote, and under `current.*` what the resets left.

    The first item holds the observation after the first reset, as `current.*`.
    """
    stepper = Stepper(env)
    yield _current(env, stepper.reset())
    for t in range(steps):
        row = snapshot(stepper.step(actions(env, t)))
        row["stage"] = env.stage_of_worlds().clone()
        for name in env.info_fields:
            row[f"info.{name}"] = env.state.robot_field(name)[:, : env.worlds].T.clone()
        yield row | _current(env, stepper.advance())


def _current(env: MarineNavEnv, out: StepBuffers) -> dict[str, Tensor]:
    rows = {f"current.{name}": value.clone() for name, value in out.obs._asdict().items()}
    return rows | {"current.alive": env.alive.clone()}


def record(env: MarineNavEnv, steps: int) -> dict[str, Tensor]:
    """`episodes` stacked: [T, W, ...] per name."""
    first, *rows = episodes(env, steps)
    stacked = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    return stacked | {f"first.{name}": value for name, value in first.items()}


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equality that also tells -0 from 0 and takes a NaN as equal to itself."""
    if a.dtype.is_floating_point:
        integer = torch.int32 if a.dtype == torch.float32 else torch.int64
        a, b = a.contiguous().view(integer), b.contiguous().view(integer)
    return a.shape == b.shape and torch.equal(a, b)


def assert_same_worlds(
    whole: dict[str, Tensor], part: dict[str, Tensor], start: int, stop: int
) -> None:
    """Worlds start..stop of a record have the bits of another one, which holds them alone."""
    for name, rows in part.items():
        worlds_first = name.startswith("first.")
        expected = whole[name][start:stop] if worlds_first else whole[name][:, start:stop]
        assert same_bits(rows, expected), name


def lone_vessel(config: EnvConfig, **fields: float) -> MarineNavEnv:
    """A vessel alone at the origin, heading north at rest unless `fields` say otherwise; float64.

    A decision is one substep of 0.05 s, so that a hand can follow it.
    """
    config = replace(config, vessel=replace(config.vessel, substeps=1))
    alone = Stage(robots=1, vortices=0, buoys=0, min_distance_m=30.0)
    env = MarineNavEnv(1, stages=(alone,), config=config, dtype=torch.float64)
    env.reset_into(env.make_buffers())
    rest = dict.fromkeys(("x", "y", "heading", "vx", "vy"), 0.0)
    for name, value in (rest | fields).items():
        env.state.robot_field(name)[0, 0] = value
    return env


def motion_after_a_decision(env: MarineNavEnv) -> tuple[float, float, float]:
    """Velocity through the water [m/s, m/s, rad/s], world frame, after one without thrust."""
    decide(env, torch.zeros(env.worlds, env.robots, 2, dtype=env.real_dtype))
    names = ("vx_water", "vy_water", "yaw_water")
    return tuple(env.state.robot_field(name)[0, 0].item() for name in names)
