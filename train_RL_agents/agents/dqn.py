"""DQN: one value for each discrete action.

Mnih et al. 2015, "Human-level control through deep reinforcement learning"; with `double`, van
Hasselt et al. 2016, "Deep Reinforcement Learning with Double Q-learning".
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import setting
from train_RL_agents.agents import losses
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.networks import OwnValues, QNetwork
from train_RL_agents.agents.settings import MEASURED, PUBLISHED, ReplayAgentConfig


@dataclass(frozen=True)
class DQNConfig(ReplayAgentConfig):
    """Settings of DQN."""

    double: bool = setting(False, unit="-", source=PUBLISHED)
    """Let the learning network choose the action that the target network values."""
    kappa: float = setting(200.0, unit="return", source=MEASURED, low=1e-6)
    """Where the Huber loss turns linear. Below the size of returns it seeks their median, which
    does not see an unlikely collision; Mnih et al. 2015 have 1, for clipped rewards."""


class DQN(Agent):
    """Q-learning with a target network."""

    name = "DQN"
    discrete = True
    actor_outputs: ClassVar[dict[str, str]] = {"values": "value of each action index"}
    Config = DQNConfig
    config: DQNConfig

    def build_networks(self) -> None:
        """Build the network and its target."""
        self.network = QNetwork(self.make_encoder(), self.actions)
        self.target = copy.deepcopy(self.network)
        self.register_learners(
            {"critic": (self.network.parameters(), self.config.learning_rate)},
            [(self.network, self.target)],
        )

    @property
    def policy_network(self) -> QNetwork:
        """The network `actor(observation) -> action values [..., A]`."""
        return self.network

    def action_values(self) -> OwnValues:
        """Return what leaves values `[..., A]` as they are."""
        return OwnValues()

    def choose(
        self, network: nn.Module, observation: ObservationTensors, *, mean: bool = False
    ) -> Tensor:
        """Return the action `[...]` of the largest value."""
        return network(observation).argmax(-1)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Huber loss of the taken action's value."""
        obs, next_obs = self.inputs(batch)
        target = self._target(batch, next_obs)  # [B]
        features = self.network.encoder.layers(obs)  # [B, F]
        with self.precision(self.network):
            values = self.network.head(features)  # [B, A]
        q = values.gather(1, batch.action.unsqueeze(1)).squeeze(1)  # [B]
        loss = losses.q_learning(q, target, self.config.kappa)  # [B]
        metrics = {"q_mean": q.detach().mean()}
        if self.config.prioritized:
            metrics["priority"] = (target - q.detach()).abs()
        return {"critic": (batch.weight * loss).mean()}, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, next_obs: Any) -> Tensor:
        """Return the target `[B]`: the return and the value of the next state's best action."""
        features = self.target.encoder.layers(next_obs)  # [B, F]
        with self.precision(self.target, self.network):
            values = self.target.head(features)  # [B, A]
            chooser = values
            if self.config.double:
                chooser = self.network.head(self.network.encoder.layers(next_obs))  # [B, A]
        value = values.gather(1, chooser.argmax(1, keepdim=True)).squeeze(1)  # [B]
        return losses.td_target(batch.reward, batch.discount, value)
