"""The classic tasks of the core, against Gymnasium."""

import math

import numpy as np
import pytest
import torch
from torchrl.envs.utils import check_env_specs

from marinenav_env import make
from marinenav_env.envs.classic import (
    CLASSIC,
    CartPoleEnv,
    MountainCarPhysics,
    PendulumConfig,
    PendulumEnv,
    PendulumPhysics,
)
from marinenav_env.envs.make import ENVIRONMENTS
from marinenav_env.envs.state import Slots
from marinenav_env.fields import ConfigError, build
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper
from scripts.bench.simulation import random_actions
from scripts.checks.classic_check import compare
from tests.marinenav_env.rollouts import decide

STATE = ("x", "x_dot", "theta", "theta_dot")


@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.kernel)
def test_float64_is_gymnasium_to_the_bit(kind):
    """States, rewards, ends and float32 observations, from starts over ends to new starts.

    `scripts/checks/classic_check.py` takes 100,000 decisions.
    """
    config = kind.config_type(episode={"max_steps": 90})
    twins = compare(kind, 200, 12, seed=3, config=config)
    assert not any(twins.differences.values()), twins.differences
    assert set(twins.differences) == {"state", "reward", "terminated", "observation"}
    assert sum(twins.ends.values()) >= 5


def test_the_check_sees_what_differs():
    """Another gravity, and another number of actions than the twin has taken."""
    config = PendulumConfig(physics=PendulumPhysics(gravity=11))
    twins = compare(PendulumEnv, 3, 2, config=config)
    assert twins.differences["state"] == twins.differences["observation"] == 6
    assert twins.differences["terminated"] == 0


@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.kernel)
def test_float32_lanes_follow_float64(kind, device):
    """Seventeen worlds, one of them alone in its group of lanes, over restarts."""
    envs = [
        kind(17, dtype=dtype, device=device, config=kind.config_type(episode={"max_steps": 9}))
        for dtype in (torch.float32, torch.float64)
    ]
    steppers = [Stepper(env) for env in envs]
    for stepper in steppers:
        stepper.reset()
    generator = torch.Generator().manual_seed(0)
    for _ in range(40):
        action = torch.rand(17, 1, generator=generator).to(device)
        chosen = (action * envs[0].kernel_spec.discrete).long() if envs[0].discrete else None
        single, double = (
            stepper.step(
                (2 * action - 1).to(env.real_dtype).unsqueeze(-1) if chosen is None else chosen
            )
            for env, stepper in zip(envs, steppers, strict=True)
        )
        torch.testing.assert_close(single.obs.state.double(), double.obs.state, rtol=0, atol=2e-5)
        torch.testing.assert_close(single.reward.double(), double.reward, rtol=1e-4, atol=2e-4)
        assert torch.equal(single.done, double.done)
        for stepper in steppers:
            stepper.advance()


def test_a_pendulum_far_from_its_start_costs_the_same():
    """The float32 angle is wrapped without a remainder; after many turns it is still right."""
    turns = torch.tensor([-12.0, -1.0, 0.0, 1.0, 12.0], dtype=torch.float64)
    env, double = PendulumEnv(5), PendulumEnv(5, dtype=torch.float64)
    for each in (env, double):
        Stepper(each).reset()
        each.state.robot_field("theta")[0, :5] = 2 * math.pi * turns + 3.1
        each.state.robot_field("theta_dot").zero_()
    costs = []
    for each in (env, double):
        costs.append(-decide(each, each.make_action()).reward[:, 0].double())
    torch.testing.assert_close(costs[1], torch.full((5,), 3.1**2, dtype=torch.float64))
    torch.testing.assert_close(costs[0], costs[1], rtol=1e-4, atol=0)


def test_continuous_actions_are_clamped_and_counted_where_unusable(device):
    env = PendulumEnv(4, device=device, dtype=torch.float64)
    Stepper(env).reset()
    env.state.robot_field("theta").zero_()
    env.state.robot_field("theta_dot").zero_()
    action = torch.tensor([[[1.0]], [[7.0]], [[float("nan")]], [[0.0]]], device=device)
    turned = decide(env, action.double()).obs.state[:, 0, 2].tolist()
    assert turned == [pytest.approx(0.3), turned[0], 0.0, 0.0]  # 3 * 2 N m * 0.05 s
    assert env.bad_actions().flatten().tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.kernel)
def test_parameters_reach_the_core(kind):
    """A number of each that changes what happens."""
    changes = {
        "cartpole": {"force": 20.0},
        "pendulum": {"mass": 2.0},
        "mountain_car": {"power": 0.01},
        "mountain_car_continuous": {"power": 0.01},
    }[kind.kernel]
    states = []
    for physics in ({}, changes):
        env = kind(3, config={"physics": physics}, dtype=torch.float64)
        stepper = Stepper(env)
        stepper.reset()
        states.append(stepper.step(env.make_action() + (not env.discrete)).obs.state.clone())
    assert (states[0] != states[1]).any(-1).all()


def test_what_a_task_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="discrete is True: the task 'pendulum' takes the other"):
        PendulumEnv(2, discrete=True)
    with pytest.raises(
        ConfigError, match=r"slots is Slots\(.*\): the task 'pendulum' has one stage"
    ):
        PendulumEnv(2, slots=Slots(1, 0, 0))
    with pytest.raises(ConfigError, match=r"max_steps is 0: give 1 or more"):
        CartPoleEnv(2, config={"episode": {"max_steps": 0}})
    out = PendulumEnv(2).make_buffers()
    with pytest.raises(RuntimeError, match="`action` has dtype Long, expected Float"):
        PendulumEnv(2).step_into(torch.zeros(2, 1, dtype=torch.int64), out, out)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_position": 0.7}, r"min_position is 0\.7: must be below max_position = 0\.6"),
        ({"start_high": 0.7}, r"start_low is -0\.6: .* start_high = 0\.7 <= max_position"),
    ],
)
def test_a_valley_without_room_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        MountainCarPhysics(**values)


def test_the_meaning_of_actions_follows_the_physics():
    config = build(PendulumEnv.config_type, {"physics": {"dt": 0.1, "max_torque": 3.0}})
    meaning = PendulumEnv.describe(config).action.meaning
    assert (meaning["decision_s"], meaning["largest_n_m"]) == (0.1, 3.0)


def test_starts_fill_their_range_and_differ():
    env = CartPoleEnv(4096)
    out = env.make_buffers()
    env.reset_into(out)
    state = out.obs.state[:, 0]
    assert state.abs().max() <= 0.05 < state.abs().max() * 1.001
    assert state.mean(0).abs().max() < 0.002
    assert len(np.unique(state.numpy())) > 16000


def test_a_cart_that_never_falls_is_truncated(device):
    env = CartPoleEnv(3, config={"episode": {"max_steps": 4}}, device=device)
    stepper = Stepper(env)
    stepper.reset()
    for step in range(4):
        out = stepper.step(torch.full((3, 1), step % 2, device=device))
        assert out.done.tolist() == [step == 3] * 3
        assert out.truncated.flatten().tolist() == [step == 3] * 3
        assert not out.terminated.any()
        stepper.advance()
    names = env.kernel_spec.fields("stats")
    sums = dict(zip(names, env.read_stats()[0].tolist(), strict=True))
    assert sums == {"episodes": 3.0, "timeouts": 3.0, "return_sum": 12.0, "length_sum": 12.0}
    assert env.robot_steps() == 12


@pytest.mark.parametrize("stack_k", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.kernel)
def test_decisions_in_one_launch_are_those_one_by_one(kind, dtype, stack_k, device):
    """Results, observations over ends and new starts, statistics and state, to the bit."""
    turns = 13
    config = kind.config_type(episode={"max_steps": 5})
    env, plain = (
        kind(37, config=config, dtype=dtype, stack_k=stack_k, device=device) for _ in range(2)
    )
    stepper, out = Stepper(plain), env.make_buffers(turns)
    before = env.make_buffers()
    env.reset_into(before)
    stepper.reset()
    ended = 0
    for part in range(2):  # the second continues where the first ended
        actions = random_actions(env, turns).to(dtype if not env.discrete else torch.int64)
        env.unroll_into(actions, before, out)
        for k, action in enumerate(actions):
            following = stepper.step(action)
            for name in ("reward", "acted", "terminated", "truncated", "done"):
                assert torch.equal(getattr(out, name)[k], getattr(following, name)), (part, k, name)
            ended += int(following.done.sum())
            now = stepper.advance()
            assert torch.equal(out.obs.state[k], now.obs.state)
            assert torch.equal(out.alive[k], plain.alive)
        before.frames.state.copy_(out.frames.state[-1])
    assert ended > 100
    for name, tensor in plain.state_dict().items():
        assert torch.equal(env.state_dict()[name], tensor), name


def test_what_cannot_be_decided_in_one_launch_is_refused(device):
    env = CartPoleEnv(4, device=device)
    before, out = env.make_buffers(), env.make_buffers(3)
    with pytest.raises(RuntimeError, match=r"`action` has shape \[2, 4, 1\], expected \[3, 4, 1\]"):
        env.unroll_into(random_actions(env, 2), before, out)
    with pytest.raises(RuntimeError, match=r"`state` has shape \[4, 1, 1, 4\], expected \[turns, "):
        env.unroll_into(random_actions(env, 3), before, before)
    stacked = CartPoleEnv(4, stack_k=2, device=device)
    only = stacked.make_buffers(1)
    before = stacked.make_buffers()
    before.frame_list[0] = only.frames.state[0]
    with pytest.raises(RuntimeError, match="must not share memory"):
        stacked.unroll_into(random_actions(stacked, 1), before, only)
    with pytest.raises(RuntimeError, match="`actions` holds no turn"):
        env.unroll_into(random_actions(env, 0), env.make_buffers(), env.make_buffers(0))
    marine = make("marine", worlds=2, device=device)
    with pytest.raises(RuntimeError, match="`marine` takes one decision a launch: call"):
        marine.unroll_into(random_actions(marine, 3), marine.make_buffers(), marine.make_buffers(3))


def test_unknown_actions_do_not_push(device):
    env = CartPoleEnv(2, device=device, dtype=torch.float64)
    out = env.make_buffers()
    env.reset_into(out)
    before = env.state.robot_field("x_dot").clone()
    env.step_into(torch.tensor([[-1], [2]], device=device), out, env.make_buffers())
    moved = (env.state.robot_field("x_dot") - before).abs()
    assert moved.max() < 0.05  # a push gives 0.2 m/s
    with pytest.raises(ValueError, match=r"2 actions of 2 robots were not 0\.\.1"):
        env.check_actions()


@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.kernel)
def test_specs_hold(kind, device):
    check_env_specs(kind(3, device=device))


def test_torchrl_face(device):
    env = make("cartpole", worlds=5, device=device, stack_k=2)
    rollout = env.rollout(60, break_when_any_done=False)
    assert rollout["observation"].shape == (5, 60, 8)
    assert rollout["action"].shape == (5, 60)
    assert rollout["next", "done"].any()
    older = rollout["next", "observation"][..., 4:]
    assert torch.equal(older, rollout["observation"][..., :4])


def test_float_actions_are_refused():
    env = CartPoleEnv(2)
    out = env.make_buffers()
    with pytest.raises(RuntimeError, match="`action` has dtype Float, expected Long"):
        env.step_into(torch.zeros(2, 1), out, env.make_buffers())


def test_every_environment_of_the_core_is_described():
    assert set(ops.ENVIRONMENTS) == set(ENVIRONMENTS)
    assert ops.describe("cartpole").fields("state") == STATE
