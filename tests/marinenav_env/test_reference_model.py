"""The core against an independent statement of its equations, at random parameters."""

import dataclasses

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from tests.marinenav_env.reference_model import (
    NEAREST,
    Around,
    Hull,
    move,
    observe,
    turn,
    wave_frequencies,
)

WORLDS, STEPS = 24, 3
STAGE = Stage(robots=4, vortices=2, buoys=3, min_distance_m=20.0)
PLACEMENT = ("scenario", "episode")
"""Groups without a part in a decision. Noise is compared in `envs/test_noise.py`."""
DISTURBANCES = ("wind", "stream", "waves", "thrusters", "variation")
"""Groups that are off as published."""
CHANCE = ("miss", "dropout", "delay", "noise_factor", "range_factor", "fringe")
"""Fields that are chance; what can be certain of the sensor's is in `disturbed`, and the share that
collides in a fringe is compared in `envs/test_ends.py`."""
ZEROS = {"N s": 60.0, "N s^2/m": 90.0, "N s^2": 90.0, "kg m": 40.0, "m": 0.3}
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
                if field.name in CHANCE or isinstance(value, str):
                    continue  # a name alone changes nothing
                if isinstance(value, bool):
                    values[field.name] = bool(draw.integers(2))
                elif isinstance(value, tuple):
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


def disturbed(config: EnvConfig, draw: np.random.Generator) -> EnvConfig:
    """Turn on all that may disturb a vessel, every parameter away from its default."""

    def near(value: float) -> float:
        return value * draw.uniform(0.7, 1.3)

    def span(low: float, high: float) -> tuple[float, ...]:
        return tuple(sorted(draw.uniform(low, high, 2)))

    wind = config.wind
    numbers = {
        field.name: near(getattr(wind, field.name))
        for field in dataclasses.fields(wind)
        if field.name not in ("speed", "direction", "gust_std", "model")
    }
    wind = dataclasses.replace(
        wind,
        **numbers,
        speed=span(2.0, 9.0),
        direction=span(0.0, 6.0),
        gust_std=draw.uniform(0.5, 2.0),
        model=str(draw.choice(("vrx", "fossen"))),
    )
    return dataclasses.replace(
        config,
        wind=wind,
        stream=dataclasses.replace(config.stream, speed=span(0.2, 0.8), direction=span(0.0, 6.0)),
        waves=dataclasses.replace(
            config.waves,
            height=draw.uniform(0.05, 0.3),
            period=draw.uniform(2.0, 5.0),
            direction=span(0.0, 6.0),
            draught=draw.uniform(0.1, 0.6),
        ),
        thrusters=dataclasses.replace(
            config.thrusters, lag=draw.uniform(0.1, 1.0), loss_probability=0.7, loss_time=(0.0, 1.5)
        ),
        variation=dataclasses.replace(
            config.variation,
            **{field.name: span(0.7, 1.3) for field in dataclasses.fields(config.variation)},
        ),
        perception=dataclasses.replace(config.perception, delay=float(draw.integers(0, 2))),
    )


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
    views = {env.state.robot_field(name): ends for name, ends in ranges.items()}
    views |= {env.state.field("past", name): ranges["x"] for name in ("x", "y")}
    views |= {env.state.field("past", name): (-2.5, 2.5) for name in ("vx", "vy")}
    given = (vessel.min_thrust, vessel.max_thrust)
    views |= {env.state.field("thruster", name): given for name in ("left", "right")}
    for view, (low, high) in views.items():
        view.copy_(torch.from_numpy(draw.uniform(low, high, view.shape)))
    step = env.state.world_field("step")
    step.copy_(torch.from_numpy(draw.integers(0, 4, step.shape)))


def hulls_of(env: MarineNavEnv, world: int) -> list[Hull]:
    def of(*names: str, tensor: str = "robot") -> np.ndarray:
        rows = [env.state.field(tensor, name)[:, world] for name in names]
        return torch.stack(rows, 1).numpy().copy()

    parts = (
        of("x", "y", "heading"),
        of("vx_water", "vy_water", "yaw_water"),
        of("left_angle", "right_angle"),
        of("left_thrust", "right_thrust"),
        of("goal_x", "goal_y"),
        of("left", "right", tensor="thruster"),
        of("loss", "lost", tensor="thruster"),
        of("x", "y", "vx", "vy", tensor="past"),
    )
    hulls = [Hull(*rows) for rows in zip(*parts, strict=True)]
    if env.config.thrusters.lag == 0.0:
        for hull in hulls:
            hull.given = hull.thrusts
    return hulls


def around_of(env: MarineNavEnv, world: int) -> Around:
    """Return what a world has drawn."""
    state, config = env.state, env.config

    def of(tensor: str) -> dict[str, float]:
        names = env.kernel_spec.fields(tensor)
        return {name: state.field(tensor, name)[world].item() for name in names}

    wind, stream, factors = of("wind"), of("stream"), of("factor")
    steps = state.world_field("step")[world].item()
    return Around(
        state.vortex[:, :, world].T.numpy(),
        np.array([stream["x"], stream["y"]]),
        np.array([wind["speed"] + wind["gust"], wind["cos"], wind["sin"]]),
        state.wave[:, world].numpy().copy(),
        factors,
        steps * config.vessel.dt * config.vessel.substeps,
    )


def check_world(env, world, hulls, around, rates, out) -> tuple[bool, bool, bool]:
    """Move the model's robots and compare; return what happened to the first one that matters."""
    config, state = env.config, env.state
    buoys = state.buoy[:, :, world].T.numpy()
    for hull, rate in zip(hulls, rates, strict=True):
        move(config, hull, rate, around)
    if config.waves.height > 0:
        moved = (
            around.wave[2:] - wave_frequencies(config) * config.vessel.dt * config.vessel.substeps
        )
        assert np.exp(1j * state.wave[2:, world].numpy()) == pytest.approx(np.exp(1j * moved))
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


@pytest.mark.parametrize("still", [False, True])
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_decision_is_that_of_the_equations(seed, discrete, still):
    """In still air with sound thrusters and sensor, and with everything that may disturb."""
    draw = np.random.default_rng(seed)
    config = varied(draw)
    if not still:
        config = disturbed(config, draw)
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
        around = [around_of(env, world) for world in range(WORLDS)]
        env.step_into(action, before, out)
        for world in range(WORLDS):
            happened |= check_world(env, world, hulls[world], around[world], rates[world], out)
    assert happened.all(), "COLREGs, contact and goal have to be met"
