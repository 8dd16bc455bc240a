"""CartPole: the second environment of the core, against Gymnasium."""

import gymnasium
import numpy as np
import pytest
import torch
from torchrl.envs.utils import check_env_specs

from marinenav_env import make
from marinenav_env.envs.classic import CartPoleEnv
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper

STATE = ("x", "x_dot", "theta", "theta_dot")


def test_float64_states_are_those_of_gymnasium_to_the_bit():
    """Every world against an environment of its own, from its start to its end and beyond it."""
    worlds = 24
    env = make("cartpole", worlds=worlds, dtype=torch.float64, seed=3)
    stepper = Stepper(env)
    stepper.reset()
    generator = torch.Generator().manual_seed(0)
    others = [gymnasium.make("CartPole-v1").unwrapped for _ in range(worlds)]
    for other, start in zip(others, stepper.now.obs.state[:, 0].numpy(), strict=True):
        other.reset()
        other.state = start.copy()
    ended = 0
    for _ in range(120):
        action = torch.randint(0, 2, (worlds, 1), generator=generator)
        following = stepper.step(action)
        for w, other in enumerate(others):
            _, reward, terminated, _, _ = other.step(int(action[w]))
            assert following.obs.state[w, 0].tolist() == other.state.tolist()
            assert following.reward[w, 0].item() == reward
            assert following.terminated[w, 0].item() is terminated
            ended += terminated
        stepper.advance()
        for w, other in enumerate(others):
            if following.done[w]:
                other.reset()
                other.state = stepper.now.obs.state[w, 0].numpy().copy()
    assert ended > 50


def test_starts_fill_their_range_and_differ():
    env = CartPoleEnv(4096)
    out = env.make_buffers()
    env.reset_into(out)
    state = out.obs.state[:, 0]
    assert state.abs().max() <= 0.05 < state.abs().max() * 1.001
    assert state.mean(0).abs().max() < 0.002
    assert len(np.unique(state.numpy())) > 16000


def test_a_cart_that_never_falls_is_truncated(device):
    env = CartPoleEnv(3, max_steps=4, device=device)
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


def test_torchrl_face(device):
    env = make("cartpole", worlds=5, device=device, stack_k=2)
    check_env_specs(env)
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
    assert set(ops.ENVIRONMENTS) == {"marine", "icra2024", "cartpole"}
    assert ops.describe("cartpole").fields("state") == STATE
