"""The one place that lists the algorithms; a new one is a file, an entry here and a YAML file."""

from __future__ import annotations

from train_RL_agents.agents.ac_iqn import ACIQN
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.dagger import DAgger
from train_RL_agents.agents.ddpg import DDPG
from train_RL_agents.agents.dpi import DPI
from train_RL_agents.agents.dqn import DQN
from train_RL_agents.agents.iqn import IQN
from train_RL_agents.agents.ppo import PPO
from train_RL_agents.agents.rainbow import Rainbow
from train_RL_agents.agents.sac import SAC

AGENTS: dict[str, type[Agent]] = {
    agent.name: agent
    for agent in (
        ACIQN,
        IQN,
        DQN,
        Rainbow,
        DDPG,
        SAC,
        PPO,
        DAgger,
        DPI,
    )
}
"""All of them."""
REPLAY_AGENTS = {name: agent for name, agent in AGENTS.items() if agent.learns_from == "replay"}
"""Those that learn from a replay of what they did."""
