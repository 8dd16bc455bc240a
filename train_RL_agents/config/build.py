"""What loading a policy gives, and how an agent is built for its settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.networks import ObservationDims
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.schema import TrainConfig


class Policy(NamedTuple):
    """A loaded policy.

    Attributes:
        agent: its `act` is the policy.
        config: settings of its training; for published weights the defaults.
        origin: where it comes from, as JSON values: `file`, and where known `step` and `commit`.
    """

    agent: Agent
    config: TrainConfig
    origin: dict[str, Any]


def dims_of(config: TrainConfig) -> ObservationDims:
    """Return the sizes of the observation under these settings."""
    return ObservationDims(ego=7 * config.stack_k, objects=5 * config.stack_k)


def build_agent(config: TrainConfig, device: torch.device | str) -> Agent:
    """Build an agent with fresh weights."""
    return AGENTS[config.agent](config.algorithm, dims_of(config), device)


def published_config(name: str) -> TrainConfig:
    """Return the settings with which published weights of the agent ``name`` act."""
    return TrainConfig(agent=name, algorithm=AGENTS[name].published_config())
