"""DDPG: a critic of continuous actions, and a deterministic actor.

Lillicrap et al. 2016, "Continuous control with deep reinforcement learning".
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from marinenav_env.observation import Observation
from train_RL_agents import losses
from train_RL_agents.agents.base import PROTOTYPE, Agent, AgentConfig, Batch
from train_RL_agents.networks import Critic, DeterministicActor, ObservationDims
from train_RL_agents.settings import setting


@dataclass(frozen=True)
class DDPGConfig(AgentConfig):
    """Settings of DDPG."""

    actor_learning_rate: float = setting(3e-4, unit="-", source=PROTOTYPE, low=0.0)
    """Adam's rate for the actor."""


class DDPG(Agent):
    """Deterministic policy gradient."""

    name = "DDPG"
    discrete = False
    Config = DDPGConfig

    def __init__(
        self,
        config: DDPGConfig | None = None,
        dims: ObservationDims | None = None,
        device: torch.device | str = "cpu",
        actions: int | None = None,
    ) -> None:
        super().__init__(config, dims, device, actions)
        scale = self.config.input_scale
        self.policy = DeterministicActor(self.dims, scale, self.actions)
        self.critic = Critic(self.dims, scale, self.actions)
        self.target_policy = copy.deepcopy(self.policy)
        self.target_critic = copy.deepcopy(self.critic)
        self.register_learners(
            {
                "critic": (self.critic.parameters(), self.config.learning_rate),
                "actor": (self.policy.parameters(), self.config.actor_learning_rate),
            },
            [(self.policy, self.target_policy), (self.critic, self.target_critic)],
        )

    @property
    def policy_network(self) -> DeterministicActor:
        """The network `actor(observation) -> [..., A]`."""
        return self.policy

    def choose(
        self, network: nn.Module, observation: Observation, *, mean: bool = False
    ) -> Tensor:
        """Return the actor's action `[..., A]`; it is its own mean."""
        return network(observation)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Squared error of the critic; minus the value of the actor's action."""
        target = self._target(batch)  # [B]
        features = self.critic.encode(batch.obs)  # [B, F]
        policy_features = self.policy.encode(batch.obs)  # [B, F]
        with self.precision():
            hidden = self.critic.hidden(features)  # [B, 128]
            q = self.critic.value(hidden, batch.action)  # [B]
            # The action enters after that layer: the actor uses the critic's own pass.
            action = self.policy.act(policy_features)  # [B, A]
            value = self.critic.value(hidden.detach(), action)  # [B]
        q = q.float()
        metrics = {"q_mean": q.detach().mean()}
        if self.config.prioritized:
            metrics["priority"] = (target - q.detach()).abs()
        objectives = {
            "critic": (batch.weight * losses.squared_td(q, target)).mean(),
            "actor": losses.policy_gradient(value.float()),
        }
        return objectives, metrics

    @torch.no_grad()
    def _target(self, batch: Batch) -> Tensor:
        """Return the target `[B]`: the return and the target actor's value in the next state."""
        features = self.target_critic.encode(batch.next_obs)  # [B, F]
        policy_features = self.target_policy.encode(batch.next_obs)  # [B, F]
        with self.precision():
            action = self.target_policy.act(policy_features)  # [B, A]
            value = self.target_critic.value(self.target_critic.hidden(features), action)  # [B]
        return losses.td_target(batch.reward, batch.discount, value.float())
