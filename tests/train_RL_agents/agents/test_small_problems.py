"""Every agent that learns from rewards learns a small problem whose best return is known.

So its algorithm is right. DAgger learns from a teacher: training/test_imitation.py.
"""

from __future__ import annotations

import dataclasses

import pytest
import torch

from marinenav_env.envs.classic import CartPoleEnv, PendulumEnv
from tests.train_RL_agents.small_problems import Plan, learn, learn_fresh
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS

# Random actions return about 22 on CartPole, of at most 500, and about -1200 on Pendulum, where the
# best average over its starts is about -150.
GOALS = {CartPoleEnv: 400.0, PendulumEnv: -200.0}
PLANS = {
    CartPoleEnv: Plan(worlds=16, steps=1200, updates=8, epsilon=0.1, check=20),
    PendulumEnv: Plan(worlds=8, steps=2000, updates=2, noise=0.2, check=50),
}
RATES = {
    "learning_rate": 1e-3,
    "actor_learning_rate": 1e-3,
    "alpha_learning_rate": 1e-3,
    "polyak": 0.05,
    "n_step": 1,
    "acting_average": 0.0,
    "autocast": False,
}
SETTINGS = {
    "AC-IQN": {
        "n_taus": 4,
        "n_target_taus": 4,
        "polyak": 0.02,
        "kappa": 20.0,
        "learning_rate": 2e-3,
    },
    "IQN": {"n_taus": 4, "n_target_taus": 4, "learning_rate": 2e-3, "polyak": 0.1},
    "DQN": {},
    "Rainbow": {"v_min": 0.0, "v_max": 10.0, "atoms": 21, "n_step": 3, "polyak": 0.1},
    "DDPG": {"polyak": 0.02},
    "SAC": {"polyak": 0.02},
    "PPO": {"gamma": 0.95, "deviation": 0.5, "value_scale": 10.0, "turns": 50},
}

SEEDS = {"AC-IQN": 2, "DQN": 1, "IQN": 3, "Rainbow": 2, "PPO": 2}
"""Others than 0, which learn in fewer decisions; DQN takes up to 43 s with some."""


def with_its_problem(name):
    """Return an agent of the registry, and the problem of its kind of actions."""
    kind = AGENTS[name]
    problem = CartPoleEnv if kind.discrete else PendulumEnv
    known = {field.name for field in dataclasses.fields(kind.Config)}
    rates = {key: value for key, value in RATES.items() if key in known}
    spec = problem.describe(problem.config_type())
    return kind(kind.Config(**{**rates, **SETTINGS.get(name, {})}), spec), problem


@pytest.mark.parametrize("name", [*REPLAY_AGENTS, "PPO"])
def test_the_agent_learns(name):
    torch.manual_seed(SEEDS.get(name, 0))
    agent, problem = with_its_problem(name)
    goal = GOALS[problem]
    if agent.learns_from == "rounds":
        assert learn_fresh(problem, agent, goal) >= goal
    else:
        assert learn(problem, agent, PLANS[problem], goal) >= goal
