"""The stepper gives what the loop written by hand gives, and refuses another order."""

import pytest
import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.stepper import Stepper
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful, same_bits, snapshot


def make_env():
    return MarineNavEnv(13, stages=(CROWDED, SPARSE), config=eventful(), seed=4, stack_k=2)


def test_it_gives_what_the_loop_by_hand_gives():
    by_hand, env = make_env(), make_env()
    now, following = by_hand.make_buffers(), by_hand.make_buffers()
    by_hand.reset_into(now)
    stepper = Stepper(env)
    stepper.reset()
    finished = 0
    for decision in range(70):
        by_hand.step_into(actions(by_hand, decision), now, following)
        found, expected = snapshot(stepper.step(actions(env, decision))), snapshot(following)
        assert all(same_bits(found[name], expected[name]) for name in expected)
        finished += int(following.done.sum())
        by_hand.reset_into(following, following.done)
        now, following = following, now
        present = stepper.advance()
        assert present is stepper.now
        assert all(map(same_bits, present.obs, now.obs))
        assert torch.equal(by_hand.alive, env.alive)
    assert finished > 13


def test_finished_worlds_stay_without_restarts():
    env = make_env()
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    for decision in range(40):
        done = stepper.step(actions(env, decision)).done.clone()
        assert torch.equal(stepper.advance().done, done)
    assert done.all()
    assert not env.alive.any()


def test_only_the_worlds_given_begin_anew():
    env = make_env()
    stepper = Stepper(env)
    stepper.reset()
    some = torch.arange(13) % 3 == 0
    before = env.state.world_field("episode")[:13].clone()
    stepper.step(actions(env, 0))
    stepper.advance(some)
    assert torch.equal(env.state.world_field("episode")[:13] - before, some.int())


def test_another_order_is_refused():
    env = make_env()
    stepper = Stepper(env)
    stepper.reset()
    with pytest.raises(RuntimeError, match="no decision was taken"):
        stepper.advance()
    stepper.step(actions(env, 0))
    with pytest.raises(RuntimeError, match="awaits advance"):
        stepper.step(actions(env, 1))
