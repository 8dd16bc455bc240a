"""Every agent of the registry in turn."""

from __future__ import annotations

import pytest

from tests.train_RL_agents.agent_samples import make_agent
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS


@pytest.fixture(params=AGENTS)
def agent(request) -> Agent:
    return make_agent(request.param)


@pytest.fixture(params=REPLAY_AGENTS)
def replay_agent(request) -> Agent:
    return make_agent(request.param)
