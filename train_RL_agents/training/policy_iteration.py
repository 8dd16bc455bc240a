"""A learner whose replay keeps what other actions would have brought, wherever its actor leads."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from train_RL_agents.agents.dpi import DPI
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.training.lookahead import Lookahead
from train_RL_agents.training.replay_learner import Choice, ReplayLearner


class PolicyIterationLearner(ReplayLearner):
    """Collects with the actor, and keeps what its actions are worth beside others.

    The policy that the rollouts follow is the one that acts as deployed.

    Args:
        config: all settings, of DPI.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: as for `ReplayLearner` and `Lookahead`.
    """

    agent: DPI

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        super().__init__(config, device, processes)
        settings: Any = config.algorithm
        self.lookahead = Lookahead(self.env, self._act, settings.lookahead, self.traffic)

    @torch.no_grad()
    def _act(self, observation: Any) -> Tensor:
        """As `Agent.act`, but with bfloat16 products where the agent learns with them."""
        with self.agent.precision(self.agent.actor):
            action = self.agent.choose(self.agent.actor, observation, mean=True)
        return action.to(observation[0].dtype)

    def _choose(self, observation: Any) -> Choice:
        action = self._act(observation)  # [W, R, A]
        advantages, looked_at = self.lookahead.value(self.stepper.now, action)
        of_robots = advantages.unsqueeze(1).expand(-1, action.shape[1], -1)
        kept = torch.cat([action, of_robots], -1)  # [W, R, A + K]
        return Choice(self.policy.explore(observation), kept, looked_at)
