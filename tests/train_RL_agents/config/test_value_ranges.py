"""Settings that depend on how much a task's returns are worth."""

import pytest
import torch

from marinenav_env.envs.make import TASKS
from marinenav_env.stepper import Stepper
from train_RL_agents.config.files import load_config


@pytest.mark.parametrize("task", ["cartpole", "mountain_car", "icra2024", "marine"])
def test_rainbows_support_covers_the_discounted_returns_of_the_task(task):
    """Those of random actions; what is beyond the end of a rollout counts nothing."""
    config = load_config(agent="Rainbow", task=task)[0]
    low, high = config.algorithm.v_min, config.algorithm.v_max
    assert (low, high) == TASKS[task].value_range
    env = TASKS[task](64, config=config.collecting_env, discrete=True, seed=3)
    stepper = Stepper(env)
    stepper.reset()
    generator = torch.Generator().manual_seed(0)
    steps = []
    for _ in range(250):
        action = torch.randint(env.kernel_spec.discrete, env.alive.shape, generator=generator)
        step = stepper.step(action)
        steps.append((step.reward.clone(), step.terminated.clone()))
        stepper.advance()
    value, outside = torch.zeros(env.alive.shape), []
    for reward, terminated in reversed(steps):
        value = reward + config.algorithm.gamma * value * ~terminated
        outside.append((value < low) | (value > high))
    assert torch.stack(outside).double().mean() < 0.1


def test_a_support_that_is_given_stays():
    for task in ("cartpole", "marine"):
        settings = load_config(agent="Rainbow", task=task, overrides=["algorithm.v_min=-7"])[0]
        assert settings.algorithm.v_min == -7.0
        assert settings.algorithm.v_max == TASKS[task].value_range[1]
