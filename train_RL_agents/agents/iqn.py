"""IQN: quantiles of the value of discrete actions.

Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement Learning". Acting
averages the quantiles at fixed fractions (i + 1/2) / n, so the deployed policy is deterministic,
unless the settings ask for random fractions as in the published code.
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
from train_RL_agents.agents.networks import MeanValues, QuantileQNetwork
from train_RL_agents.agents.quantiles import (
    QuantileConfig,
    RiskAdjusted,
    describe_risk,
    distort,
    draw_taus,
    midpoints,
)
from train_RL_agents.agents.settings import CHOICE, PUBLISHED


@dataclass(frozen=True)
class IQNConfig(QuantileConfig):
    """Settings of IQN; a risk level changes how it acts, not what it learns."""

    n_acting_taus: int = setting(32, unit="-", source=PUBLISHED, low=1, high=4096)
    """Quantile fractions of acting as deployed."""
    random_acting_taus: bool = setting(False, unit="-", source=PUBLISHED)
    """Draw the fractions of acting anew for every robot and decision, uniformly in [0, 1)."""
    n_exploring_taus: int = setting(8, unit="-", source=CHOICE, low=1, high=4096)
    """Quantile fractions of acting while collecting."""


class IQN(Agent):
    """Quantile regression of action values."""

    name = "IQN"
    discrete = True
    actor_outputs: ClassVar[dict[str, str]] = {
        "quantiles": "quantile of the return at each fraction of taus, for each action index"
    }
    acting_settings = ("cvar", "adaptive_cvar")
    Config = IQNConfig
    config: IQNConfig
    acting_taus: Tensor
    exploring_taus: Tensor

    def build_networks(self) -> None:
        """Build the network, its target and the fractions of acting."""
        self.network = QuantileQNetwork(self.make_encoder(), self.actions)
        self.target = copy.deepcopy(self.network)
        acting, exploring = self.config.n_acting_taus, self.config.n_exploring_taus
        self.register_buffer("acting_taus", midpoints(acting), persistent=False)
        self.register_buffer("exploring_taus", midpoints(exploring), persistent=False)
        self.register_learners(
            {"critic": (self.network.parameters(), self.config.learning_rate)},
            [(self.network, self.target)],
        )

    @property
    def policy_network(self) -> QuantileQNetwork:
        """The network `actor(observation, taus [..., N]) -> quantiles [..., N, A]`."""
        return self.network

    def actor_inputs(self) -> dict[str, Tensor]:
        """Return the quantile fractions of acting; `deployed_network` applies the risk level."""
        return {"taus": self.acting_taus}

    def deployed_network(self) -> nn.Module:
        """Return `actor` with the risk level inside."""
        return RiskAdjusted(self.actor, self.config, self.spec.observation)

    def action_values(self) -> MeanValues:
        """Return the mean over fractions of quantiles `[..., N, A]`."""
        return MeanValues()

    def export_metadata(self) -> dict[str, Any]:
        """Return the risk level that the network applies."""
        return {"risk_level": describe_risk(self.config, self.spec.observation)}

    def choose(
        self, network: nn.Module, observation: ObservationTensors, *, mean: bool = False
    ) -> Tensor:
        """Return the action `[...]` of the largest mean over the acting fractions."""
        taus = self.acting_taus
        if self.config.random_acting_taus:
            robots = observation[0].shape[:-1]
            taus = torch.rand(*robots, taus.shape[0], device=taus.device)  # [..., N]
        return self._greedy(network, observation, taus)

    @torch.no_grad()
    def explore(self, observation: ObservationTensors) -> Tensor:
        """Return the action `[...]` of the largest mean over the fewer exploring fractions."""
        with self.precision(self.network):
            return self._greedy(self.network, observation, self.exploring_taus)

    def _greedy(self, network: nn.Module, observation: ObservationTensors, taus: Tensor) -> Tensor:
        if not self.applied_settings:
            taus = distort(taus, observation, self.config, self.spec.observation)  # [N] or [..., N]
        return network(observation, taus).mean(-2).argmax(-1)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Quantile Huber loss of the taken action's quantiles."""
        config, size = self.config, batch.reward.shape[0]
        taus = draw_taus(size, config.n_taus, self.device, shared=config.shared_taus)
        obs, next_obs = self.inputs(batch)
        target = self._target(batch, next_obs)  # [B, M]
        features = self.network.encoder.layers(obs)  # [B, F]
        with self.precision(self.network):
            quantiles = self.network.head(features, taus)  # [B, N, A]
        theta = select(quantiles, batch.action)  # [B, N]
        loss = losses.quantile_huber(theta, target, taus, config.kappa)  # [B]
        metrics = {"q_mean": theta.detach().mean()}
        if config.prioritized:
            metrics["priority"] = (target.mean(1) - theta.detach().mean(1)).abs()  # [B]
        return {"critic": (batch.weight * loss).mean()}, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, next_obs: Any) -> Tensor:
        """Return target quantiles `[B, M]` of the action with the largest mean of them."""
        config, size = self.config, batch.reward.shape[0]
        taus = draw_taus(size, config.n_target_taus, self.device, shared=config.shared_taus)
        features = self.target.encoder.layers(next_obs)  # [B, F]
        with self.precision(self.target):
            quantiles = self.target.head(features, taus)  # [B, M, A]
        value = select(quantiles, quantiles.mean(1).argmax(-1))  # [B, M]
        return losses.td_target(batch.reward, batch.discount, value)


def select(quantiles: Tensor, action: Tensor) -> Tensor:
    """Return the quantiles `[B, N]` of actions `[B]` out of `[B, N, A]`."""
    index = action.view(-1, 1, 1).expand(-1, quantiles.shape[1], 1)  # [B, N, 1]
    return quantiles.gather(2, index).squeeze(2)
