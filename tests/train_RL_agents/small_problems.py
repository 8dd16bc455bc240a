"""Loops that learn CartPole or Pendulum, whose best returns are known, with a replay or without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from marinenav_env.envs.classic import ClassicEnv
from marinenav_env.stepper import Stepper
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.replay.buffer import DeviceReplay
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout
from train_RL_agents.training.rollout import Rollout

FIRST_UPDATE = 500
"""Transitions stored before the first update."""


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


def mean_return(kind: type[ClassicEnv], agent: Agent, worlds: int = 20) -> float:
    """Mean undiscounted return of whole episodes, acting as deployed with the mean action."""
    env = kind(worlds, seed=1)
    stepper, total = Stepper(env, restarts=False), torch.zeros(worlds, 1)
    stepper.reset()
    for _ in range(kind.evaluation_episode.max_steps):
        following = stepper.step(agent.act(stepper.now.obs, mean=True))
        total += following.reward * following.acted
        stepper.advance()
        if not env.alive.any():
            break
    return total.mean().item()


def learn(kind: type[ClassicEnv], agent: Agent, plan: Plan, goal: float) -> float:
    """Collect and learn until the mean return reaches `goal`; return the best one seen."""
    stepper = Stepper(kind(plan.worlds))
    stepper.reset()
    noise = 0.0 if agent.stochastic else plan.noise
    policy = PolicyWrapper(agent, (plan.worlds, 1), epsilon=plan.epsilon, action_noise=noise)
    config = ReplayConfig(
        capacity=plan.steps * plan.worlds,
        n_step=agent.config.n_step,
        gamma=agent.config.gamma,
        prioritized=agent.config.prioritized,
    )
    first = stepper.now.obs
    replay = DeviceReplay(config, TransitionLayout.of(first, policy.explore(first)), "cpu")
    best = -math.inf
    for step in range(1, plan.steps + 1):
        now = stepper.now
        action = policy.explore(now.obs)
        following = stepper.step(action)
        ends = following.acted, following.terminated, following.truncated
        reward = plan.reward_scale * following.reward
        replay.store(now.obs, action, reward, *ends, following.obs)
        stepper.advance()
        if step * plan.worlds < FIRST_UPDATE:
            continue
        for _ in range(plan.updates):
            batch = replay.sample(plan.batch)
            metrics = agent.update(batch)
            if config.prioritized:
                replay.update_priorities(batch.index, metrics["priority"])
        if step % plan.check == 0:
            best = max(best, mean_return(kind, agent))
            if best >= goal:
                break
    return best


def learn_fresh(kind: type[ClassicEnv], agent: Agent, goal: float) -> float:
    """Collect and learn from the latest decisions alone; arguments and result as `learn`."""
    env, encoder = kind(64), agent.policy_network.encoder
    stepper = Stepper(env)
    stepper.reset()
    rollout = Rollout(agent.config.turns, encoder.inputs(tuple(stepper.now.obs)), agent.actions)
    agent.settled.fill_(1.0)
    best = -math.inf
    for _ in range(150):
        for _ in range(rollout.turns):
            inputs = encoder.inputs(tuple(stepper.now.obs))
            drawn = agent.draw(inputs)
            following = stepper.step(drawn[0].clamp(-1.0, 1.0))
            following.reward.mul_(0.1)
            rollout.store(inputs, drawn, following, following.acted)
            stepper.advance()
        with torch.no_grad():
            value = agent.value(encoder.inputs(tuple(stepper.now.obs)))
        rollout.judge(value, agent.config.gamma, agent.config.trace)
        for _ in range(20):
            agent.update(rollout.sample(1024))
        best = max(best, mean_return(kind, agent))
        if best >= goal:
            break
    return best
