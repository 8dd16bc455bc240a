"""Thrusters that lag or are lost, against hand calculations."""

import math
from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.faults import ThrusterConfig
from tests.marinenav_env.rollouts import SPARSE, decide, lone_vessel

SURGE_MASS, YAW_INERTIA, DT = 380.0, 1430.0, 0.05


def with_thrusters(**values) -> EnvConfig:
    """A configuration with imperfect thrusters."""
    return replace(EnvConfig(), thrusters=ThrusterConfig(**values))


def full_ahead(env: MarineNavEnv) -> None:
    """A decision at the greatest rate of both thrusts."""
    decide(env, torch.ones(env.worlds, env.robots, 2, dtype=env.real_dtype, device=env.device))


def field(env: MarineNavEnv, name: str) -> float:
    """A number of the only vessel."""
    return env.state.robot_field(name)[0, 0].item()


def test_a_lagging_thrust_follows_what_it_is_told():
    """Told 50 N after 0.05 s, each thruster with a lag of 0.1 s gives 50 (1 - exp(-1/2)) N."""
    env = lone_vessel(with_thrusters(lag=0.1))
    full_ahead(env)
    given = 50.0 * (1.0 - math.exp(-0.5))
    assert field(env, "left_thrust") == 50.0
    assert field(env, "vx_water") == pytest.approx(2.0 * given / SURGE_MASS * DT, rel=1e-12)
    assert env.state.thruster[:2, 0, 0].tolist() == pytest.approx([given, given], rel=1e-12)
    full_ahead(env)
    given += (100.0 - given) * (1.0 - math.exp(-0.5))
    assert env.state.thruster[:2, 0, 0].tolist() == pytest.approx([given, given], rel=1e-12)


def test_the_thrust_of_a_robot_that_has_ended_rests(device):
    """Beside one under way, with which it shares a register of the CPU."""
    alone = Stage(robots=1, vortices=0, buoys=0, min_distance_m=30.0)
    env = MarineNavEnv(2, stages=(alone,), config=with_thrusters(lag=0.1), device=device)
    env.reset_into(env.make_buffers())
    full_ahead(env)
    before = env.state.thruster[:2, 0, :2].clone()
    env.state.status[0, 0] = 0
    full_ahead(env)
    given = env.state.thruster[:2, 0, :2]
    assert torch.equal(given[:, 0], before[:, 0])
    assert (given[:, 1] > before[:, 1]).all()


@pytest.mark.parametrize("side", [-1, 1])
def test_a_lost_thruster_gives_nothing(side):
    """The other one pushes with 50 N, 1.25 m beside the middle."""
    env = lone_vessel(with_thrusters(loss_probability=1.0))
    env.state.thruster[3, 0, 0] = side
    full_ahead(env)
    assert field(env, "vx_water") == pytest.approx(50.0 / SURGE_MASS * DT, rel=1e-12)
    turn = side * 50.0 * 1.25 / YAW_INERTIA * DT
    assert field(env, "yaw_water") == pytest.approx(turn, rel=1e-12)


def test_a_thruster_works_until_it_is_lost():
    """Lost after 0.05 s: the first decision has both, the second one."""
    env = lone_vessel(with_thrusters(loss_probability=1.0, loss_time=(0.05, 0.05)))
    full_ahead(env)
    assert field(env, "yaw_water") == 0.0
    full_ahead(env)
    assert field(env, "yaw_water") != 0.0


def test_losses_are_drawn_for_every_robot(device):
    config = with_thrusters(loss_probability=0.25, loss_time=(10.0, 20.0))
    env = MarineNavEnv(4096, stages=(SPARSE,), config=config, device=device)
    env.reset_into(env.make_buffers())
    loss, lost = env.state.thruster[2:, :, :4096].cpu()
    assert (lost < 0).float().mean() == pytest.approx(0.125, abs=0.015)
    assert (lost > 0).float().mean() == pytest.approx(0.125, abs=0.015)
    assert 10.0 <= loss.min() < 10.1 < 19.9 < loss.max() <= 20.0
    assert not torch.equal(lost[0], lost[1])
