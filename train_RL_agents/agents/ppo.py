"""PPO: a stochastic policy improved with what its own latest decisions brought.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms", with the clipped objective of
equation 7. No value of single actions is learned: what an action was worth is measured, as the
generalised advantage (`training/rollout.py`).

While collecting, the action is drawn from a Gaussian around the actor's and then limited to
[-1, 1]. Deployed, the actor is that of AC-IQN and DDPG: its action is the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from marinenav_env.fields import setting
from train_RL_agents.agents import losses
from train_RL_agents.agents.actor_critic import LoneActor
from train_RL_agents.agents.networks import DeterministicActor, QNetwork
from train_RL_agents.agents.settings import CHOICE, AgentConfig

SCHULMAN = "Schulman et al. 2017, table 3"
TRIALS = "docs/diary.md"


@dataclass(frozen=True)
class PPOConfig(AgentConfig):
    """Settings of PPO. It has no replay and no epsilon: `replay` and `exploration` do nothing."""

    turns: int = setting(64, unit="decisions", source=CHOICE, low=1)
    """Decisions of each world between two rounds of updates."""
    trace: float = setting(0.95, unit="-", source=SCHULMAN, low=0.0, high=1.0)
    """Lambda of the generalised advantage."""
    clip: float = setting(0.2, unit="-", source=SCHULMAN, above=0.0, high=1.0)
    """Change of an action's probability, as a share, from which on nothing is gained."""
    deviation: float = setting(0.15, unit="half the range", source=TRIALS, low=1e-3)
    """Standard deviation of actions at the start; it is learned."""
    least_deviation: float = setting(0.05, unit="half the range", source=CHOICE, low=1e-3)
    """It does not fall below this."""
    actor_learning_rate: float = setting(3e-4, unit="-", source=SCHULMAN, low=0.0)
    """Adam's rate for the actor and the deviation."""
    value_scale: float = setting(20.0, unit="return", source=CHOICE, above=0.0)
    """The value network learns returns divided by this."""
    settling_rounds: int = setting(3, unit="rounds", source=CHOICE, low=0)
    """Rounds of updates at the start of a run in which only the value network learns."""

    def check(self) -> None:
        """Refuse a deviation that is below its own bound."""
        self.require_order("least_deviation", "deviation")


class FreshBatch(NamedTuple):
    """A batch of B decisions that the present policy took.

    Attributes:
        inputs: what the encoders take in their `layers`, fields [B, ...].
        drawn: the action as drawn, before it was limited, [B, A].
        log_probability: of it, up to a constant, when it was drawn, [B].
        advantage: normalised, [B].
        target: of the value, [B].
    """

    inputs: Any
    drawn: Tensor
    log_probability: Tensor
    advantage: Tensor
    target: Tensor


class PPO(LoneActor):
    """Proximal policy optimisation; the actor's action is the mean of those that it draws."""

    name = "PPO"
    learns_from = "rounds"
    idle_settings = ("replay.", "exploration.")
    Config: ClassVar[type[PPOConfig]] = PPOConfig
    config: PPOConfig

    def build_networks(self) -> None:
        """Build the actor, its deviation and the value network."""
        self.policy = DeterministicActor(self.make_encoder(), self.actions)
        self.value_network = QNetwork(self.make_encoder(), 1)
        start = torch.full((self.actions,), math.log(self.config.deviation))
        self.log_deviation = nn.Parameter(start)  # [A]
        self.settled: Tensor
        self.register_buffer("settled", torch.zeros(()))
        actor = [*self.policy.parameters(), self.log_deviation]
        self.register_learners(
            {
                "critic": (self.value_network.parameters(), self.config.learning_rate),
                "actor": (actor, self.config.actor_learning_rate),
            }
        )

    def settle(self) -> None:
        """Let the actor learn from the next update on, with Adam as at its start.

        Until then its gradients were 0; their number would make Adam's first steps too large.
        """
        self.settled.fill_(1.0)
        self.descent.restart("actor")

    @torch.no_grad()
    def draw(self, inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Draw actions while collecting.

        Args:
            inputs: of the encoders' `layers`, `[..., ...]`.

        Returns:
            The action as drawn `[..., A]`, its log-probability and the value `[...]`.
        """
        mean = self._mean(inputs)
        drawn = torch.addcmul(mean, self.log_deviation.exp(), torch.randn_like(mean))
        return drawn, self._log_probability(mean, drawn), self.value(inputs)

    def value(self, inputs: Any) -> Tensor:
        """Return the value `[...]` of the present policy, a return."""
        network = self.value_network
        features = network.encoder.layers(inputs)  # [..., F]
        with self.precision(network):
            value = network.head(features).squeeze(-1)
        return value * self.config.value_scale

    def _mean(self, inputs: Any) -> Tensor:
        """Return the actor's action `[..., A]`."""
        features = self.policy.encoder.layers(inputs)  # [..., F]
        with self.precision(self.policy):
            return self.policy.act(features)

    def objectives(self, batch: FreshBatch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Squared error of the value; the clipped objective of the actor.

        Until `settled` is 1 the actor's is 0, so that Adam leaves it where it is.
        """
        mean = self._mean(batch.inputs)  # [B, A]
        change = self._log_probability(mean, batch.drawn) - batch.log_probability  # [B]
        gain = losses.clipped_policy(change, batch.advantage, self.config.clip)  # [B]
        error = (self.value(batch.inputs) - batch.target) / self.config.value_scale  # [B]
        ratio = change.detach().exp()
        metrics = {
            "policy_change": (ratio - 1.0 - change.detach()).mean(),
            "clipped_share": ((ratio - 1.0).abs() > self.config.clip).float().mean(),
            "deviation": self.log_deviation.detach().exp().mean(),
        }
        return {"critic": error.square().mean(), "actor": self.settled * gain.mean()}, metrics

    def update(self, batch: FreshBatch) -> dict[str, Tensor]:
        """Do one gradient update; arguments and result as `Agent.update`."""
        metrics = super().update(batch)
        with torch.no_grad():
            self.log_deviation.clamp_(min=math.log(self.config.least_deviation))
        return metrics

    def _log_probability(self, mean: Tensor, drawn: Tensor) -> Tensor:
        """Return the Gaussian's log-density `[...]` of actions `[..., A]`, up to a constant."""
        normal = (drawn - mean) / self.log_deviation.exp()
        return -(0.5 * normal.square() + self.log_deviation).sum(-1)
