"""What loading a policy gives, and how an agent is built for its settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.spec import EnvSpec
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.schema import TrainConfig


class LoadedPolicy(NamedTuple):
    """A loaded policy.

    Attributes:
        agent: its `act` is the policy.
        config: settings of its training; for published weights the defaults.
        origin: where it comes from, as JSON values: `file`, and where known `step` and `commit`.
        whole: whether all networks of the agent are the policy's, and not only the acting one.
    """

    agent: Agent
    config: TrainConfig
    origin: dict[str, Any]
    whole: bool = False


def spec_of(config: TrainConfig) -> EnvSpec:
    """Return the description of the environment under these settings."""
    discrete = AGENTS[config.agent].discrete
    describe = TASKS[config.task].describe
    return describe(config.env, discrete=discrete, stack_k=config.stack_k)


def build_agent(config: TrainConfig, device: torch.device | str) -> Agent:
    """Build an agent with fresh weights."""
    return AGENTS[config.agent](config.algorithm, spec_of(config), device)
