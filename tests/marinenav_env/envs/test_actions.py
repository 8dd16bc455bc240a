"""Actions: the table of discrete ones, clamping, and unusable ones."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import DISCRETE_ACTIONS, MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.vessels import THRUST_RATES, VesselConfig
from tests.marinenav_env.rollouts import decide, same_bits

STAGE = Stage(robots=2, vortices=0, buoys=0, min_distance_m=30.0)


def make_env(worlds: int, device: str, **options) -> MarineNavEnv:
    """Freshly placed vessels."""
    env = MarineNavEnv(worlds, stages=(STAGE,), device=device, **options)
    env.reset_into(env.make_buffers())
    return env


def thrusts_after(env: MarineNavEnv, action: Tensor, start: float = 0.0) -> Tensor:
    """[W, R, 2] N after one decision from the same thrust everywhere."""
    for side in ("left_thrust", "right_thrust"):
        env.state.robot_field(side).fill_(start)
    return decide(env, action).obs.ego[..., 5:7]


def test_discrete_actions_are_the_product_of_the_thrust_rates(device):
    """Index 5 i + j: i chooses the left rate, j the right one, from (0, -500, -1000, 500, 1000)."""
    assert THRUST_RATES == (0.0, -500.0, -1000.0, 500.0, 1000.0)
    env = make_env(DISCRETE_ACTIONS, device, discrete=True)
    index = torch.arange(DISCRETE_ACTIONS, device=device)[:, None].expand(-1, 2).contiguous()
    got = thrusts_after(env, index, start=200.0)
    expected = [
        [min(max(200.0 + 0.5 * rate, -500.0), 1000.0) for rate in pair]
        for pair in product(THRUST_RATES, THRUST_RATES)
    ]
    assert got[:, 0].tolist() == got[:, 1].tolist() == expected


def test_discrete_rates_are_parameters(device):
    rates = (10.0, 20.0, 30.0, 40.0, 50.0)
    config = EnvConfig(vessel=VesselConfig(left_thrust_rates=rates))
    env = make_env(5, device, discrete=True, config=config)
    index = (5 * torch.arange(5, device=device))[:, None].expand(-1, 2).contiguous()
    assert thrusts_after(env, index)[:, 0, 0].tolist() == [0.5 * rate for rate in rates]


def test_continuous_actions_scale_and_clamp(device):
    env = make_env(7, device)
    a = torch.tensor([-30.0, -1.0, -0.25, 0.0, 0.5, 1.0, 1e30], device=device)
    action = torch.stack((a, -a), -1)[:, None].expand(-1, 2, -1).contiguous()
    got = thrusts_after(env, action)[:, 0].tolist()
    left = [-500.0, -500.0, -125.0, 0.0, 250.0, 500.0, 500.0]
    right = [500.0, 500.0, 125.0, 0.0, -250.0, -500.0, -500.0]
    assert got == [list(pair) for pair in zip(left, right, strict=True)]
    env.check_actions()


def test_thrust_stays_within_its_limits(device):
    env = make_env(1, device)
    full = torch.ones(1, 2, 2, device=device)
    for start, sign, limit in ((800.0, 1.0, 1000.0), (-300.0, -1.0, -500.0)):
        assert (thrusts_after(env, sign * full, start) == limit).all()


BAD = {
    False: [math.nan, math.inf, -math.inf],
    True: [-1, DISCRETE_ACTIONS, 2**63 - 1, -(2**63)],
}


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unusable_actions_count_and_change_no_thrust(discrete, dtype, device):
    bad = BAD[discrete]
    env, other = (make_env(len(bad) + 1, device, discrete=discrete, dtype=dtype) for _ in "ab")
    if discrete:
        action = torch.tensor([[value, 0] for value in [*bad, 0]], device=device)
        none = torch.zeros_like(action)
    else:
        action = torch.zeros(len(bad) + 1, 2, 2, device=device, dtype=dtype)
        for i, value in enumerate(bad):
            action[i, 0, i % 2] = value
            action[i, 0, 1 - i % 2] = 0.7  # the other half is not used either
        none = torch.zeros_like(action)
    assert (thrusts_after(env, action, 100.0) == 100.0).all()
    thrusts_after(other, none, 100.0)
    assert same_bits(env.state.robot, other.state.robot)
    assert env.bad_actions().tolist() == [*([[1, 0]] * len(bad)), [0, 0]]
    message = (
        rf"{len(bad)} actions of {len(bad)} robots were not "
        + (r"0\.\.24" if discrete else "finite numbers")
        + r" \(first in world 0, robot 0\)"
    )
    with pytest.raises(ValueError, match=message):
        env.check_actions()
    env.clear_stats()
    env.check_actions()


def test_check_actions_says_where(device):
    env = make_env(20, device)
    action = torch.zeros(20, 2, 2, device=device)
    action[13, 1, 0] = torch.nan
    for _ in range(3):
        decide(env, action)
    with pytest.raises(ValueError, match=r"3 actions of 1 robots .* world 13, robot 1\)"):
        env.check_actions()


def test_actions_of_robots_that_are_gone_do_not_count(device):
    """Whatever a network says for an empty slot or a finished robot is nobody's action."""
    env = make_env(2, device)
    env.state.status[1] = 0
    action = torch.full((2, 2, 2), math.nan, device=device)
    decide(env, action)
    assert env.bad_actions().tolist() == [[1, 0], [1, 0]]
