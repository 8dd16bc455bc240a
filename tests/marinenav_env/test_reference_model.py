"""The core against an independent statement of its equations, at random parameters."""

import dataclasses

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from tests.marinenav_env.reference_model import NEAREST, Hull, move, observe, turn

WORLDS, STEPS = 24, 3
STAGE = Stage(robots=4, vortices=2, buoys=3, min_distance_m=20.0)
PLACEMENT = ("scenario", "episode")
"""Groups without a part in a decision. Noise is compared in `envs/test_noise.py`."""
DISTURBANCES = ("wind", "stream", "waves", "thrusters", "variation")
"""Groups that stay off here; each has a test of its own in `envs`."""
FAULTS = ("miss", "dropout", "delay", "noise_factor")
"""Fields of the sensor that stay off."""
ZEROS = {"N s": 60.0, "N s^2/m": 90.0, "N s^2": 90.0, "kg m": 40.0}
"""By unit, the size of what is 0 as published."""


def varied(draw: np.random.Generator) -> EnvConfig:
    """Return parameters that all differ from the published ones, and from each other."""
    config = EnvConfig()
    while True:
        groups = {}
        for group in dataclasses.fields(config):
            part = getattr(config, group.name)
            if group.name in (*PLACEMENT, *DISTURBANCES):
                continue
            values = {}
            for field in dataclasses.fields(part):
                value = getattr(part, field.name)
                if group.name == "perception" and field.name in FAULTS:
                    continue
                if isinstance(value, tuple):
                    values[field.name] = tuple(draw.uniform(-900.0, 900.0, len(value)))
                elif isinstance(value, int):
                    values[field.name] = int(draw.integers(3, 15))
                elif value == 0.0:
                    size = ZEROS.get(field.metadata["unit"], 20.0)
                    values[field.name] = draw.uniform(-size, size)
                else:
                    values[field.name] = value * draw.uniform(0.7, 1.3)
            groups[group.name] = values
        groups["perception"]["angle"] = draw.uniform(3.0, 6.0)
        groups["current"]["edge_speed_max"] = groups["current"]["edge_speed_min"]
        groups["vessel"]["radius"] = draw.uniform(1.5, 3.0)
        try:
            changed = {
                name: dataclasses.replace(getattr(config, name), **values)
                for name, values in groups.items()
            }
            changed["perception"] = changed["perception"].noiseless()
            return dataclasses.replace(config, **changed)
        except ConfigError:
            continue


def scattered(env: MarineNavEnv, draw: np.random.Generator) -> None:
    """Place the robots close to each other, under way, by overwriting what a reset has placed."""
    vessel = env.config.vessel
    ranges = {
        **dict.fromkeys(("x", "y"), (18.0, 40.0)),
        **dict.fromkeys(("goal_x", "goal_y"), (15.0, 43.0)),
        **dict.fromkeys(("vx_water", "vy_water"), (-2.5, 2.5)),
        **dict.fromkeys(("left_angle", "right_angle"), (-0.6, 0.6)),
        **dict.fromkeys(("left_thrust", "right_thrust"), (vessel.min_thrust, vessel.max_thrust)),
        "heading": (0.0, 2 * np.pi),
        "yaw_water": (-0.4, 0.4),
    }
    for name, (low, high) in ranges.items():
        view = env.state.robot_field(name)
        view.copy_(torch.from_numpy(draw.uniform(low, high, view.shape)))


def hulls_of(env: MarineNavEnv, world: int) -> list[Hull]:
    def of(*names: str) -> np.ndarray:
        return torch.stack([env.state.robot_field(n)[:, world] for n in names], 1).numpy().copy()

    parts = (
        of("x", "y", "heading"),
        of("vx_water", "vy_water", "yaw_water"),
        of("left_angle", "right_angle"),
        of("left_thrust", "right_thrust"),
        of("goal_x", "goal_y"),
    )
    return [Hull(*rows) for rows in zip(*parts, strict=True)]


def check_world(env, world, hulls, rates, out) -> tuple[bool, bool, bool]:
    """Move the model's robots and compare; return what happened to the first one that matters."""
    config, state = env.config, env.state
    vortices, buoys = (t[:, :, world].T.numpy() for t in (state.vortex, state.buoy))
    for hull, rate in zip(hulls, rates, strict=True):
        move(config, hull, rate, vortices)
    happened = np.zeros(3, dtype=bool)
    for robot, hull in enumerate(hulls):
        ego, objects, contact = observe(config, hulls, robot, buoys)
        phi = turn(config, ego[2:4], objects)
        reached = np.linalg.norm(ego[:2]) <= config.reward.goal_distance
        task = config.reward
        ended = task.collision if contact else task.goal if reached else 0.0
        reward = task.timestep + hull.progress + task.colregs * phi + ended
        found = {name: state.robot_field(name)[robot, world].item() for name in env.info_fields}
        expected = {
            "phi": phi,
            "step_energy": hull.energy,
            "progress": hull.progress,
            "contact": float(contact),
        }
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-8)
        np.testing.assert_allclose(out.obs.ego[world, robot], ego, rtol=1e-9, atol=1e-8)
        seen = np.zeros((NEAREST, 5))
        seen[: len(objects)] = objects
        np.testing.assert_allclose(out.obs.objects[world, robot], seen, rtol=1e-9, atol=1e-8)
        assert out.obs.mask[world, robot].sum() == len(objects)
        assert out.reward[world, robot].item() == pytest.approx(reward, rel=1e-9, abs=1e-8)
        assert out.terminated[world, robot].item() == (contact or reached)
        happened |= (phi > 0, contact, reached)
    return happened


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_decision_is_that_of_the_equations(seed, discrete):
    draw = np.random.default_rng(seed)
    config = varied(draw)
    env = MarineNavEnv(
        WORLDS,
        stages=[STAGE],
        config=config,
        discrete=discrete,
        dtype=torch.float64,
        seed=seed,
        info_mode="full",
    )
    before, out = env.make_buffers(), env.make_buffers()
    happened = np.zeros(3, dtype=bool)
    for _ in range(STEPS):
        env.reset_into(before)
        scattered(env, draw)
        if discrete:
            choice = draw.integers(0, 25, (WORLDS, STAGE.robots))
            left, right = config.vessel.left_thrust_rates, config.vessel.right_thrust_rates
            rates = np.stack([np.array(left)[choice // 5], np.array(right)[choice % 5]], -1)
            action = torch.from_numpy(choice)
        else:
            share = draw.uniform(-1.2, 1.2, (WORLDS, STAGE.robots, 2))
            rates = np.clip(share, -1.0, 1.0) * config.vessel.max_thrust_rate
            action = torch.from_numpy(share)
        hulls = [hulls_of(env, world) for world in range(WORLDS)]
        env.step_into(action, before, out)
        for world in range(WORLDS):
            happened |= check_world(env, world, hulls[world], rates[world], out)
    assert happened.all(), "COLREGs, contact and goal have to be met"
