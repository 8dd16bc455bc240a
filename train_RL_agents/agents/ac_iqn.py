"""AC-IQN: an implicit quantile critic of continuous actions, and a deterministic actor.

Lin et al. 2025, "Distributional Reinforcement Learning based Integrated Decision Making and Control
for Autonomous Surface Vehicles" (arXiv 2412.09466).
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
from train_RL_agents.agents.networks import QuantileCritic
from train_RL_agents.agents.quantiles import QuantileConfig, distort, draw_taus, midpoints


@dataclass(frozen=True)
class ACIQNConfig(ActorCriticConfig, QuantileConfig):
    """Settings of AC-IQN; with a risk level, the actor learns to act for it."""


class ACIQN(DeterministicActorCritic):
    """Actor-critic with quantiles of the return."""

    name = "AC-IQN"
    Config = ACIQNConfig
    CriticNetwork = QuantileCritic
    config: ACIQNConfig
    critic: QuantileCritic
    target_critic: QuantileCritic

    @torch.no_grad()
    def value_of(self, observation: ObservationTensors, action: Tensor) -> Tensor:
        """Return the mean quantile; arguments and result as in `Agent.value_of`."""
        taus = midpoints(self.config.n_taus).to(self.device)
        return self.critic(observation, action, taus).mean(-1)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Quantile Huber loss of the critic; minus the mean quantile of the actor's action."""
        config, size = self.config, batch.reward.shape[0]
        taus = draw_taus(size, config.n_taus, self.device, shared=config.shared_taus)
        obs, next_obs = self.inputs(batch)
        target = self._target(batch, next_obs)  # [B, M]

        features = self.critic.encoder.layers(obs)  # [B, F]
        with self.precision(self.critic):
            hidden = self.critic.hidden(features, taus)  # [B, N, 128]
            theta = self.critic.value(hidden, batch.action)  # [B, N]
        loss = losses.quantile_huber(theta, target, taus, config.kappa)  # [B]

        policy_features = self.policy.encoder.layers(obs)  # [B, F]
        with self.precision(self.policy, self.critic):
            action = self.policy.act(policy_features)  # [B, A]
            value = self.critic.value(self._actor_hidden(batch, features, hidden, taus), action)
        metrics = {"q_mean": theta.detach().mean()}
        if config.prioritized:
            error = target.mean(1) - theta.detach().mean(1)  # [B]
            metrics["priority"] = error.abs()
        objectives = {
            "critic": (batch.weight * loss).mean(),
            "actor": losses.policy_gradient(value),
        }
        return objectives, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, next_obs: Any) -> Tensor:
        """Return target quantiles `[B, M]` of the target actor's action in the next state."""
        config, size = self.config, batch.reward.shape[0]
        taus = draw_taus(size, config.n_target_taus, self.device, shared=config.shared_taus)
        features = self.target_critic.encoder.layers(next_obs)  # [B, F]
        policy_features = self.target_policy.encoder.layers(next_obs)  # [B, F]
        with self.precision(self.target_policy, self.target_critic):
            action = self.target_policy.act(policy_features)  # [B, A]
            value = self.target_critic.value(self.target_critic.hidden(features, taus), action)
        return losses.td_target(batch.reward, batch.discount, value)

    @torch.no_grad()
    def _actor_hidden(self, batch: Batch, features: Tensor, hidden: Tensor, taus: Tensor) -> Tensor:
        """Return the critic's first hidden layer `[B, N, 128]` as the actor's loss needs it.

        The action enters after that layer, so the actor can use the critic's own pass; only a risk
        level asks for other fractions.
        """
        if self.config.cvar == 1.0 and not self.config.adaptive_cvar:
            return hidden.detach()
        taus = distort(taus, batch.obs, self.config, self.spec.observation)
        return self.critic.hidden(features, taus)
