"""Wind: its force by hand, its gusts by their statistics, and what a state without it means."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.water import WindConfig
from tests.marinenav_env.rollouts import SPARSE, lone_vessel, motion_after_a_decision, roll

SURGE_MASS, SWAY_MASS, YAW_INERTIA, DT = 380.0, 400.0, 1430.0, 0.05
NORTH_3_EAST_4 = {"speed": (5.0, 5.0), "direction": (math.atan2(4.0, 3.0),) * 2}


def windy(**values) -> EnvConfig:
    """A configuration with wind."""
    return replace(EnvConfig(), wind=WindConfig(**values))


def expected(surge: float, sway: float, yaw: float) -> tuple[float, ...]:
    """What forces make of a vessel at rest in 0.05 s."""
    return (surge / SURGE_MASS * DT, sway / SWAY_MASS * DT, yaw / YAW_INERTIA * DT)


@pytest.mark.parametrize(
    ("model", "force"),
    [
        # half of 3 m/s squared and of 4 m/s squared; -2 times 0.33 times 3 times 4
        ("vrx", (4.5, 8.0, -7.92)),
        # half of 1.224 times 5 m/s, times 0.7 * 1.5 * 3 and 0.8 * 3 * 4; yaw: see docs
        ("fossen", (9.639, 29.376, -22.032)),
    ],
)
def test_force_on_a_vessel_at_rest(model, force):
    env = lone_vessel(windy(model=model, **NORTH_3_EAST_4))
    assert motion_after_a_decision(env) == pytest.approx(expected(*force), rel=1e-12)


def test_force_turns_with_the_hull():
    """Heading east, a wind of 3 m/s to the north comes from starboard."""
    env = lone_vessel(windy(**NORTH_3_EAST_4), heading=0.5 * math.pi)
    surge, sway, yaw = expected(8.0, -4.5, 7.92)
    # Forward is east, and starboard south.
    assert motion_after_a_decision(env) == pytest.approx((-sway, surge, yaw), rel=1e-9)


def test_force_is_that_of_the_relative_wind():
    """At 1 m/s ahead the wind of 3 m/s has 2 left; the water takes 100 + 150 N."""
    env = lone_vessel(windy(**NORTH_3_EAST_4), vx=1.0, vx_water=1.0)
    north, east, yaw = motion_after_a_decision(env)
    assert north - 1.0 == pytest.approx((0.5 * 2.0 * 2.0 - 250.0) / SURGE_MASS * DT, rel=1e-9)
    assert east == pytest.approx(8.0 / SWAY_MASS * DT, rel=1e-9)
    assert yaw == pytest.approx(-2.0 * 0.33 * 2.0 * 4.0 / YAW_INERTIA * DT, rel=1e-9)


def wind_of(env: MarineNavEnv) -> torch.Tensor:
    """[speed cos sin gust, W], a copy."""
    return env.state.wind[:, : env.worlds].clone()


def test_episodes_draw_from_the_ranges(device):
    config = windy(speed=(2.0, 6.0), direction=(0.0, 0.5 * math.pi))
    env = MarineNavEnv(2048, stages=(SPARSE,), config=config, device=device)
    env.reset_into(env.make_buffers())
    first = wind_of(env)
    speed, toward = first[0], torch.atan2(first[2], first[1])
    assert 2.0 <= speed.min() < 2.1 < 5.9 < speed.max() <= 6.0
    assert -1e-6 <= toward.min() < 0.05 < 1.5 < toward.max() <= 0.5 * math.pi + 1e-6
    assert speed.mean().item() == pytest.approx(4.0, abs=0.1)
    assert (first[3] == 0.0).all()
    env.reset_into(env.make_buffers())
    assert not torch.equal(wind_of(env)[0], speed)


def test_gusts_have_their_spread_and_memory(device):
    """A spread of 2 m/s in every decision, and a share exp(-0.5 s / 2 s) of the one before."""
    env = MarineNavEnv(8192, stages=(SPARSE,), config=windy(gust_std=2.0), device=device)
    rows = [wind_of(env)[3] for _ in roll(env, 4)]
    for before, after in itertools.pairwise(rows):
        assert after.std().item() == pytest.approx(2.0, rel=0.04)
        assert torch.corrcoef(torch.stack((before, after)))[0, 1].item() == pytest.approx(
            math.exp(-0.25), abs=0.03
        )


def test_an_older_state_has_no_wind():
    """Checkpoints from before there was wind still load; a tensor that always was is missed."""
    env = MarineNavEnv(4, config=windy(speed=(5.0, 5.0)))
    env.reset_into(env.make_buffers())
    saved = env.state_dict()
    del saved["wind"]
    env.load_state_dict(saved)
    assert not env.state.wind.any()
