"""Sensor noise: its moments by the formula, and independence of everything it should not share.

A vessel looks at eight buoys that do not move, so every deviation from the noiseless observation is
noise. Significance of every test: 1e-4; the seed is fixed.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import iv

from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import Slots, radius_noise_table
from tests.marinenav_env.rollouts import quiet

WORLDS = 1500
STEPS = 3
ROBOTS = 3
# Distances of the buoys (m), so different that noise never changes which is nearest.
RADII = (6.0, 8.0, 10.0, 12.0, 14.0)
SIGNIFICANCE = 1e-4
PLACE = Stage(ROBOTS, 0, 0, 10.0)


def make_env(config: EnvConfig, device: str, worlds: int = WORLDS) -> MarineNavEnv:
    """Vessels 200 m apart, out of each other's sight, the first within a ring of five buoys."""
    env = MarineNavEnv(
        worlds,
        stages=(PLACE,),
        config=config,
        device=device,
        dtype=torch.float64,
        slots=Slots(ROBOTS, len(RADII), 0),
        seed=123,
    )
    env.reset_into(env.make_buffers())
    for name, value in (("x", 25.0), ("y", 30.0), ("heading", 0.7)):
        env.state.robot_field(name).fill_(value)
    spread = torch.arange(ROBOTS, device=device, dtype=torch.float64)[:, None]
    env.state.robot_field("x").add_(200.0 * spread)
    for i, distance in enumerate(RADII):
        angle = 2.0 * math.pi * i / len(RADII)
        env.state.buoy[0, i] = 25.0 + distance * math.cos(angle)
        env.state.buoy[1, i] = 30.0 + distance * math.sin(angle)
        env.state.buoy[2, i] = 1.0
    return env


def observe(config: EnvConfig, device: str = "cpu", worlds: int = WORLDS) -> np.ndarray:
    """Objects [T, W, R, 5, 5] that vessels see at STEPS decisions, each at the same place."""
    env = make_env(config, device, worlds)
    out = env.make_buffers()
    seen = []
    for robot in range(ROBOTS):  # the buoys go where this vessel is
        rows = []
        for step in range(STEPS):
            env.state.world_field("step").fill_(step)
            env.state.buoy[0].add_(200.0 * robot)
            env.observe_into(out)
            env.state.buoy[0].sub_(200.0 * robot)
            rows.append(out.obs.objects[:, robot].clone())
        seen.append(torch.stack(rows))
    return torch.stack(seen, 2).cpu().numpy()


@pytest.fixture(scope="module")
def noise() -> dict[str, np.ndarray]:
    """Deviations in the world frame: position, velocity [T, W, R, 5, 2], and the radius seen."""
    noisy, exact = observe(EnvConfig()), observe(quiet(EnvConfig()))
    assert (exact[..., 4] == 1.0).all()
    turn = np.array([[math.cos(0.7), -math.sin(0.7)], [math.sin(0.7), math.cos(0.7)]])
    difference = noisy - exact
    return {
        "position": difference[..., 0:2] @ turn.T,
        "velocity": difference[..., 2:4] @ turn.T,
        "radius": noisy[..., 4],
    }


@pytest.mark.parametrize("kind", ["position", "velocity"])
def test_position_and_velocity_are_normal(noise, kind):
    """N(0, 0.05): mean, variance (chi-square) and shape (Kolmogorov-Smirnov) of each coordinate."""
    std = 0.05
    for axis in range(2):
        x = noise[kind][..., axis].ravel()
        assert abs(x.mean()) < stats.norm.isf(SIGNIFICANCE / 2) * std / math.sqrt(x.size)
        chi2 = (x**2).sum() / std**2
        low, high = stats.chi2(x.size).interval(1 - SIGNIFICANCE)
        assert low < chi2 < high
        assert stats.kstest(x, stats.norm(0, std).cdf).pvalue > SIGNIFICANCE
        assert abs(x).max() > 4 * std, "the tails are there"


def test_radius_is_von_mises(noise):
    """Radius (0.8 + 0.2 X / pi), X von Mises with kappa 1: mean, variance, shape.

    Var X = pi^2/3 + (4 / I_0(k)) sum_n (-1)^n I_n(k) / n^2.
    """
    x = (noise["radius"].ravel() - 0.8) / 0.2 * math.pi
    order = np.arange(1, 40)
    series = ((-1.0) ** order * iv(order, 1.0) / order**2).sum()
    variance = math.pi**2 / 3 + 4 / iv(0, 1.0) * series
    assert abs(x.mean()) < stats.norm.isf(SIGNIFICANCE / 2) * math.sqrt(variance / x.size)
    fourth = stats.vonmises(1.0).expect(lambda a: a**4)
    error = math.sqrt((fourth - variance**2) / x.size)
    assert abs((x**2).mean() - variance) < stats.norm.isf(SIGNIFICANCE / 2) * error
    assert stats.kstest(x, stats.vonmises(1.0).cdf).pvalue > SIGNIFICANCE
    assert abs(x).max() <= math.pi + 1e-9


@pytest.mark.parametrize("kappa", [0.0, 1.0, 8.0])
def test_noise_table_holds_the_quantiles(kappa):
    table = radius_noise_table(kappa) * math.pi
    probability = np.linspace(0.0, 1.0, len(table))
    if kappa == 0.0:
        np.testing.assert_allclose(table, (2 * probability - 1) * math.pi, atol=1e-6)
    else:
        np.testing.assert_allclose(stats.vonmises(kappa).cdf(table), probability, atol=1e-6)


def test_kappa_reaches_the_noise():
    perception = replace(PerceptionConfig(), radius_kappa=8.0)
    narrow = observe(replace(EnvConfig(), perception=perception), worlds=200)[..., 4]
    wide = observe(EnvConfig(), worlds=200)[..., 4]
    assert narrow.std() < 0.4 * wide.std()


def test_noise_shares_nothing(noise):
    """No correlation between robots, steps, worlds, objects, coordinates or kinds."""
    position, velocity, radius = noise["position"], noise["velocity"], noise["radius"]
    unit = (radius - radius.mean())[..., None]
    everything = np.concatenate((position, velocity, unit), -1)  # [T, W, R, K, 5]
    everything = everything / everything.std((0, 1, 2, 3))
    couples = {
        "coordinates": [
            (everything[..., i], everything[..., j]) for i in range(5) for j in range(i)
        ],
        "robots": [
            (everything[:, :, 0], everything[:, :, 1]),
            (everything[:, :, 1], everything[:, :, 2]),
        ],
        "steps": [(everything[0], everything[1]), (everything[1], everything[2])],
        "worlds": [(everything[:, :-1], everything[:, 1:])],
        "objects": [(everything[..., :-1, :], everything[..., 1:, :])],
    }
    for name, group in couples.items():
        for a, b in group:
            assert not np.array_equal(a, b), name
            assert stats.pearsonr(a.ravel(), b.ravel()).pvalue > SIGNIFICANCE, name
            squares = stats.pearsonr((a**2).ravel(), (b**2).ravel())
            assert squares.pvalue > SIGNIFICANCE, f"{name}: not even their sizes"


def test_noise_off_shows_what_is(device):
    env = make_env(quiet(EnvConfig()), device, worlds=4)
    out = env.make_buffers()
    env.observe_into(out)
    distances = out.obs.objects[:, 0, :, :2].norm(dim=-1)
    expected = torch.tensor(RADII, device=device, dtype=torch.float64).expand(4, -1)
    torch.testing.assert_close(distances, expected)
    noisy = make_env(EnvConfig(), device, worlds=4)
    noisy.observe_into(out)
    assert (out.obs.objects[:, 0, :, :2].norm(dim=-1) - expected).abs().min() > 0


def test_collision_is_judged_without_noise(device):
    """Large sensor noise: a vessel 5 cm from a buoy has not hit it, one 5 cm inside has."""
    loud = replace(EnvConfig(), perception=replace(PerceptionConfig(), position_std=0.8))
    for gap, hit in ((0.05, 0.0), (-0.05, 1.0)):
        env = make_env(loud, device, worlds=200)
        env.state.buoy[0, 0] = 25.0 + env.config.vessel.radius + 1.0 + gap
        env.state.buoy[1, 0] = 30.0
        env.observe_into(env.make_buffers())
        assert (env.state.robot_field("contact")[0, :200] == hit).all()


def test_observing_again_draws_the_same_noise(device):
    env = make_env(EnvConfig(), device, worlds=20)
    first, second = env.make_buffers(), env.make_buffers()
    env.observe_into(first)
    env.observe_into(second)
    assert torch.equal(first.obs.objects, second.obs.objects)


def seen_buoys(perception, worlds=4000, **scenario):
    """Return what a lone robot sees of the buoys around it, [n, 5] in the body frame."""
    config = EnvConfig(perception=perception, scenario=replace(EnvConfig().scenario, **scenario))
    env = MarineNavEnv(worlds, stages=[Stage(1, 0, 4, 30.0)], config=config, seed=5)
    out = env.make_buffers()
    env.reset_into(out)
    return out.obs.objects[out.obs.mask > 0]


def test_velocities_have_a_noise_of_their_own():
    """A buoy lies still, so what is seen of its velocity is noise."""
    velocity = seen_buoys(PerceptionConfig(position_std=0.6, velocity_std=0.2))[:, 2:4]
    assert len(velocity) > 1000
    assert velocity.std().item() == pytest.approx(0.2, rel=0.05)


def test_the_radius_that_is_seen_decides_what_is_in_range():
    perception = PerceptionConfig(range=15.0, position_std=0.0, radius_mean_ratio=0.5)
    seen = seen_buoys(perception, buoy_radius_min=3.0, buoy_radius_max=3.0)
    distance, radius = seen[:, :2].norm(dim=1), seen[:, 4]
    assert (distance > 15.0).sum() > 50
    assert (distance <= radius + 15.0 + 1e-4).all()
