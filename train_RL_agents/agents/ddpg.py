"""DDPG: a critic of continuous actions, and a deterministic actor.

Lillicrap et al. 2016, "Continuous control with deep reinforcement learning".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.spec import ObservationTensors
from train_RL_agents.agents import losses
from train_RL_agents.agents.actor_critic import ActorCriticConfig, DeterministicActorCritic
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.networks import Critic


@dataclass(frozen=True)
class DDPGConfig(ActorCriticConfig):
    """Settings of DDPG."""


class DDPG(DeterministicActorCritic):
    """Deterministic policy gradient."""

    name = "DDPG"
    Config = DDPGConfig
    CriticNetwork = Critic
    critic: Critic
    target_critic: Critic

    @torch.no_grad()
    def value_of(self, observation: ObservationTensors, action: Tensor) -> Tensor:
        """Return the critic's output; arguments and result as in `Agent.value_of`."""
        return self.critic(observation, action)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Squared error of the critic; minus the value of the actor's action."""
        obs, next_obs = self.inputs(batch)
        target = self._target(batch, next_obs)  # [B]
        features = self.critic.encoder.layers(obs)  # [B, F]
        policy_features = self.policy.encoder.layers(obs)  # [B, F]
        with self.precision(self.critic, self.policy):
            hidden = self.critic.hidden(features)  # [B, 128]
            q = self.critic.value(hidden, batch.action)  # [B]
            # The action enters after that layer: the actor uses the critic's own pass.
            action = self.policy.act(policy_features)  # [B, A]
            value = self.critic.value(hidden.detach(), action)  # [B]
        metrics = {"q_mean": q.detach().mean()}
        if self.config.prioritized:
            metrics["priority"] = (target - q.detach()).abs()
        objectives = {
            "critic": (batch.weight * losses.squared_td(q, target)).mean(),
            "actor": losses.policy_gradient(value),
        }
        return objectives, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, next_obs: Any) -> Tensor:
        """Return the target `[B]`: the return and the target actor's value in the next state."""
        features = self.target_critic.encoder.layers(next_obs)  # [B, F]
        policy_features = self.target_policy.encoder.layers(next_obs)  # [B, F]
        with self.precision(self.target_critic, self.target_policy):
            action = self.target_policy.act(policy_features)  # [B, A]
            value = self.target_critic.value(self.target_critic.hidden(features), action)  # [B]
        return losses.td_target(batch.reward, batch.discount, value)
