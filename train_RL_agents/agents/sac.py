"""SAC: twin critics and a stochastic actor that also seeks entropy.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications". Actions are squashed as
a = (2/pi) atan(z), as in the published weights, and their log-probability is corrected for exactly
that map.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import setting
from train_RL_agents.agents import losses
from train_RL_agents.agents.actor_critic import ActorCriticConfig
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.networks import Critic, GaussianActor, squash
from train_RL_agents.agents.settings import CHOICE


@dataclass(frozen=True)
class SACConfig(ActorCriticConfig):
    """Settings of SAC; `polyak` applies to the critics, the actor has no target."""

    alpha: float = setting(0.2, unit="return/nat", source="Haarnoja et al. 2018", low=1e-6)
    """Temperature: the value of a nat of entropy; where tuning starts, without `start`."""
    tune_alpha: bool = setting(True, unit="-", source="Haarnoja et al. 2018")
    """Tune the temperature until the policy has `target_entropy`; else it stays."""
    alpha_learning_rate: float = setting(3e-4, unit="-", source=CHOICE, low=0.0)
    """Adam's rate for the logarithm of the temperature."""
    target_entropy: float | None = setting(None, unit="nat", source="Haarnoja et al. 2018")
    """Entropy to keep; null takes minus the number of action coordinates."""


class SAC(Agent):
    """Soft actor-critic."""

    name = "SAC"
    discrete = False
    stochastic = True
    actor_outputs: ClassVar[dict[str, str]] = {
        "mu": "mean of z; the action is (2/pi) atan(z), in (-1, 1), as `actions` describes it",
        "log_std": "logarithm of the standard deviation of z",
    }
    Config = SACConfig
    config: SACConfig

    def build_networks(self) -> None:
        """Build the actor, both critics, their targets and the temperature."""
        self.policy = GaussianActor(self.make_encoder(), self.actions)
        self.critics = nn.ModuleList(Critic(self.make_encoder(), self.actions) for _ in range(2))
        self.target_critics = copy.deepcopy(self.critics)
        entropy = self.config.target_entropy
        self.target_entropy = -float(self.actions) if entropy is None else entropy
        log_alpha = torch.tensor(math.log(self.config.alpha))
        self.log_alpha = nn.Parameter(log_alpha, requires_grad=self.config.tune_alpha)
        groups: dict[str, tuple[Iterable[nn.Parameter], float]] = {
            "critic": (self.critics.parameters(), self.config.learning_rate),
            "actor": (self.policy.parameters(), self.config.actor_learning_rate),
        }
        if self.config.tune_alpha:
            groups["alpha"] = ([self.log_alpha], self.config.alpha_learning_rate)
        self.register_learners(groups, [(self.critics, self.target_critics)])

    def taken_over(self, other: Agent, *, whole: bool) -> dict[str, Tensor] | None:
        """Leave out the other agent's temperature where this one's is fixed."""
        weights = super().taken_over(other, whole=whole)
        if weights is not None and not self.config.tune_alpha:
            del weights["log_alpha"]
        return weights

    @property
    def policy_network(self) -> GaussianActor:
        """The network `actor(observation) -> (mu, log_std)`, each `[..., A]`, of z."""
        return self.policy

    def choose(
        self, network: nn.Module, observation: ObservationTensors, *, mean: bool = False
    ) -> Tensor:
        """Return a sampled action `[..., A]`, or that of the mean z."""
        mu, log_std = network(observation)  # [..., A]
        return squash(mu if mean else sample(mu, log_std))

    @torch.no_grad()
    def value_of(self, observation: ObservationTensors, action: Tensor) -> Tensor:
        """Return the lesser of both critics' values; arguments and result as `Agent.value_of`."""
        first, second = (critic(observation, action) for critic in typed(self.critics))
        return torch.minimum(first, second)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Squared errors of both critics; soft value of the actor; entropy of the temperature."""
        obs, next_obs = self.inputs(batch)
        target = self._target(batch, next_obs)  # [B]
        critics = typed(self.critics)
        features = [critic.encoder.layers(obs) for critic in critics]  # each [B, F]
        action, log_prob = self._sample(obs)  # [B, A], [B]
        with self.precision(self.critics):
            hidden = [c.hidden(f) for c, f in zip(critics, features, strict=True)]
            q_1, q_2 = self._values(critics, hidden, batch.action)  # [B]
            # The action enters after that layer: the actor uses the critics' own passes.
            v_1, v_2 = self._values(critics, [h.detach() for h in hidden], action)  # [B]
        loss = losses.squared_td(q_1, target) + losses.squared_td(q_2, target)  # [B]
        alpha = self.log_alpha.detach().exp()
        objectives = {
            "critic": (batch.weight * loss).mean(),
            "actor": losses.soft_policy(v_1, v_2, log_prob, alpha),
        }
        if self.config.tune_alpha:
            objectives["alpha"] = losses.temperature(
                self.log_alpha, log_prob.detach(), self.target_entropy
            )
        q = 0.5 * (q_1 + q_2).detach()
        metrics = {"q_mean": q.mean(), "entropy": -log_prob.detach().mean(), "alpha": alpha}
        if self.config.prioritized:
            metrics["priority"] = (target - q).abs()
        return objectives, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, next_obs: Any) -> Tensor:
        """Return the target `[B]`: the return and the soft value of the state after n decisions.

        Where n is more than one, the entropy of the decisions in between is left out.
        """
        critics = typed(self.target_critics)
        features = [critic.encoder.layers(next_obs) for critic in critics]
        action, log_prob = self._sample(next_obs)  # [B, A], [B]
        with self.precision(self.target_critics):
            hidden = [c.hidden(f) for c, f in zip(critics, features, strict=True)]
            q_1, q_2 = self._values(critics, hidden, action)  # [B]
        value = losses.soft_value(q_1, q_2, log_prob, self.log_alpha.exp())
        return losses.td_target(batch.reward, batch.discount, value)

    def _sample(self, inputs: Any) -> tuple[Tensor, Tensor]:
        """Return sampled actions `[B, A]` and their log-probabilities `[B]`."""
        features = self.policy.encoder.layers(inputs)  # [B, F]
        with self.precision(self.policy):
            mu, log_std = self.policy.head(features)  # [B, A]
        z = sample(mu, log_std)  # [B, A]
        return squash(z), losses.squashed_log_prob(z, mu, log_std)

    @staticmethod
    def _values(critics: Sequence[Critic], hidden: list[Tensor], action: Tensor) -> list[Tensor]:
        """Return both critics' values, each `[B]`."""
        return [c.value(h, action) for c, h in zip(critics, hidden, strict=True)]


def typed(critics: nn.ModuleList) -> list[Critic]:
    """Return the critics of a list of modules."""
    return cast("list[Critic]", list(critics))


def sample(mu: Tensor, log_std: Tensor) -> Tensor:
    """Draw z ~ N(mu, exp(log_std)^2), shaped as `mu`, with gradients to both."""
    return mu + log_std.exp() * torch.randn_like(mu)
