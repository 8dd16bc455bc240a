"""The uniform current: what it does to vessels at rest, beside vortices, and over episodes."""

import math
from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.kernel import ops
from marinenav_env.water import StreamConfig
from tests.marinenav_env.rollouts import CROWDED, SPARSE, lone_vessel, motion_after_a_decision

EAST = (0.5 * math.pi,) * 2


def streaming(**values) -> EnvConfig:
    """A configuration with a uniform current."""
    return replace(EnvConfig(), stream=StreamConfig(**values))


def test_a_vessel_at_rest_drifts():
    """0.3 m/s to the east move it 0.015 m in 0.05 s, and it stays at rest in the water."""
    env = lone_vessel(streaming(speed=(0.3, 0.3), direction=EAST))
    assert motion_after_a_decision(env) == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)
    found = [env.state.robot_field(name)[0, 0].item() for name in ("x", "y", "vx", "vy")]
    assert found == pytest.approx([0.0, 0.015, 0.0, 0.3], abs=1e-15)


def test_vessels_begin_with_the_current(device):
    config = streaming(speed=(0.3, 0.3), direction=EAST)
    env = MarineNavEnv(4, stages=(SPARSE,), config=config, device=device, dtype=torch.float64)
    env.reset_into(env.make_buffers())
    assert env.state.robot_field("vy")[:2, :4].cpu().numpy() == pytest.approx(0.3)
    assert env.state.robot_field("vy_water").any().item() is False


def test_it_adds_to_the_vortices(device):
    """The difference to the same worlds without it is the same at every point."""
    place = {"stages": (CROWDED,), "device": device, "dtype": torch.float64}
    config = streaming(speed=(0.3, 0.3), direction=EAST)
    position = torch.rand(3, 20, 2, dtype=torch.float64, device=device) * 55.0
    flows = []
    for env in (MarineNavEnv(3, config=config, **place), MarineNavEnv(3, **place)):
        env.reset_into(env.make_buffers())
        flows.append(ops.water(env.state, position))
    added = (flows[0] - flows[1]).cpu()
    assert added[..., 0].numpy() == pytest.approx(0.0, abs=1e-12)
    assert added[..., 1].numpy() == pytest.approx(0.3, abs=1e-12)


def test_episodes_draw_from_the_ranges(device):
    config = streaming(speed=(0.1, 0.3), direction=(-0.5 * math.pi, 0.0))
    env = MarineNavEnv(2048, stages=(SPARSE,), config=config, device=device)
    env.reset_into(env.make_buffers())
    x, y = env.state.stream[:, :2048].clone()
    speed, toward = torch.hypot(x, y), torch.atan2(y, x)
    assert 0.1 - 1e-6 <= speed.min() < 0.105 < 0.295 < speed.max() <= 0.3 + 1e-6
    assert -0.5 * math.pi - 1e-6 <= toward.min() < -1.5 < -0.05 < toward.max() <= 1e-6
    env.reset_into(env.make_buffers())
    assert not torch.equal(env.state.stream[0, :2048], x)
