"""CartPole-v1 and Pendulum-v1 as torch batches, and a loop that learns them with the own replay.

The dynamics are Gymnasium's, in float64; a test compares them step by step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from marinenav_env.envs.spec import FlatObservation
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.replay.buffer import DeviceReplay
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout

FIRST_UPDATE = 500
"""Transitions stored before the first update."""


class Problem(Protocol):
    """A batch of W copies of a problem."""

    limit: int  # decisions after which an episode is cut
    features: int  # of an observation
    actions: int  # discrete actions, or coordinates of a continuous one

    def start(self, worlds: int) -> Tensor:
        """Return initial states `[worlds, ...]`."""

    def observe(self, state: Tensor) -> Tensor:
        """Return features `[worlds, features]`."""

    def advance(self, state: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next states, rewards `[worlds]`, and whether they end there `[worlds]`."""


class CartPole:
    """A pole on a cart: push left (0) or right (1), one point a decision while it stands."""

    limit, features, actions = 500, 4, 2

    def start(self, worlds: int) -> Tensor:
        """All four numbers uniform in [-0.05, 0.05]."""
        return 0.1 * torch.rand(worlds, 4, dtype=torch.float64) - 0.05

    def observe(self, state: Tensor) -> Tensor:
        """Position, velocity, angle, angular velocity."""
        return state.float()

    def advance(self, state: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One Euler step of 0.02 s."""
        _, x_dot, theta, theta_dot = state.unbind(-1)
        force = 20.0 * action.double() - 10.0
        sin, cos = theta.sin(), theta.cos()
        temp = (force + 0.05 * theta_dot.square() * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos.square() / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        change = torch.stack((x_dot, x_acc, theta_dot, theta_acc), -1)
        state = state + 0.02 * change
        ended = (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 12 * 2 * math.pi / 360)
        return state, torch.ones(len(state)), ended


class Pendulum:
    """A pendulum to swing up and hold, with a torque of up to 2."""

    limit, features, actions = 200, 3, 1

    def start(self, worlds: int) -> Tensor:
        """Angle uniform in [-pi, pi], angular velocity in [-1, 1]."""
        bounds = torch.tensor([math.pi, 1.0], dtype=torch.float64)
        return (2.0 * torch.rand(worlds, 2, dtype=torch.float64) - 1.0) * bounds

    def observe(self, state: Tensor) -> Tensor:
        """Cosine and sine of the angle, angular velocity."""
        angle, velocity = state.unbind(-1)
        return torch.stack((angle.cos(), angle.sin(), velocity), -1).float()

    def advance(self, state: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One step of 0.05 s; the action in [-1, 1] is half the torque."""
        angle, velocity = state.unbind(-1)
        torque = (2.0 * action[:, 0].double()).clamp(-2.0, 2.0)
        wrapped = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
        cost = wrapped.square() + 0.1 * velocity.square() + 0.001 * torque.square()
        velocity = (velocity + (15.0 * angle.sin() + 3.0 * torque) * 0.05).clamp(-8.0, 8.0)
        state = torch.stack((angle + 0.05 * velocity, velocity), -1)
        return state, -cost.float(), torch.zeros(len(state), dtype=torch.bool)


def one_robot(features: Tensor) -> FlatObservation:
    """Features `[W, F]` as the observation `[W, 1, F]` of worlds with one robot."""
    return FlatObservation(features.unsqueeze(1))


def mean_return(problem: Problem, agent: Agent, worlds: int = 20) -> float:
    """Mean undiscounted return of whole episodes, acting as deployed with the mean action."""
    state, alive = problem.start(worlds), torch.ones(worlds)
    total = torch.zeros(worlds)
    for _ in range(problem.limit):
        action = agent.act(FlatObservation(problem.observe(state)), mean=True)
        state, reward, ended = problem.advance(state, action)
        total += alive * reward
        alive *= (~ended).float()
    return total.mean().item()


@dataclass(frozen=True)
class Plan:
    """How to collect and learn."""

    worlds: int
    steps: int  # decisions of every world, at most
    updates: int  # after every decision
    check: int  # decisions between evaluations
    batch: int = 64
    epsilon: float = 0.0
    noise: float = 0.0
    reward_scale: float = 0.1


def learn(problem: Problem, agent: Agent, plan: Plan, goal: float) -> float:
    """Collect and learn until the mean return reaches `goal`; return the best one seen."""
    noise = 0.0 if agent.stochastic else plan.noise
    policy = PolicyWrapper(agent, epsilon=plan.epsilon, action_noise=noise)
    state = problem.start(plan.worlds)
    first = one_robot(problem.observe(state))
    config = ReplayConfig(
        capacity=plan.steps * plan.worlds,
        n_step=agent.config.n_step,
        gamma=agent.config.gamma,
        prioritized=agent.config.prioritized,
    )
    replay = DeviceReplay(config, TransitionLayout.of(first, policy.explore(first)), "cpu")
    acted = torch.ones(plan.worlds, 1, dtype=torch.bool)
    age = torch.randint(problem.limit, (plan.worlds,))  # so that not all are cut at once
    best = -math.inf
    for step in range(1, plan.steps + 1):
        now = one_robot(problem.observe(state))
        action = policy.explore(now)  # [worlds, 1, ...]
        state, reward, ended = problem.advance(state, action.squeeze(1))
        age += 1
        cut_off = (age >= problem.limit) & ~ended
        replay.store(
            now,
            action,
            plan.reward_scale * reward.unsqueeze(1),
            acted,
            ended.unsqueeze(1),
            cut_off.unsqueeze(1),
            one_robot(problem.observe(state)),
        )
        over = ended | cut_off
        state = torch.where(over.unsqueeze(-1), problem.start(plan.worlds), state)
        age *= ~over
        if step * plan.worlds < FIRST_UPDATE:
            continue
        for _ in range(plan.updates):
            batch = replay.sample(plan.batch)
            metrics = agent.update(batch)
            if config.prioritized:
                replay.update_priorities(batch.index, metrics["priority"])
        if step % plan.check == 0:
            best = max(best, mean_return(problem, agent))
            if best >= goal:
                break
    return best
