"""DPI: direct policy iteration, an actor that learns from what other actions would have brought.

Lazaric, Ghavamzadeh and Munos 2016, "Analysis of Classification-based Policy Iteration Algorithms",
JMLR 17(19): rollouts value the actions in the states that the policy visits, and the next policy is
the one that loses least against the best of them, over all states. There is no critic. Their
actions are a few; here the rollouts value the points of a lattice, and an action is worth what its
coordinates do one by one, their main effects (Box and Wilson 1951, "On the Experimental Attainment
of Optimum Conditions"). What a robot does not see is averaged over, as it is in its observations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from marinenav_env.fields import setting
from train_RL_agents.agents.actor_critic import LoneActor
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.lattice import interpolated
from train_RL_agents.agents.lookahead_settings import LookaheadConfig
from train_RL_agents.agents.networks import DeterministicActor
from train_RL_agents.agents.settings import MEASURED, AgentConfig


@dataclass(frozen=True)
class DPIConfig(AgentConfig):
    """Settings of direct policy iteration.

    `exploration.epsilon_start` and so on give the share of random decisions. `gamma` does nothing:
    rollouts are not discounted. One decision in `look_every` is stored: the samples per insert and
    the warm-up count these.
    """

    lookahead: LookaheadConfig = field(default_factory=LookaheadConfig)
    """Of the rollouts."""
    look_every: int = setting(5, unit="decisions", source=MEASURED, low=1)
    """From one that is looked ahead at to the next: rollouts are dear, and neighbours alike."""
    largest_advantage: float = setting(30.0, unit="return", source=MEASURED, above=0.0)
    """Advantages are cut to within this, either way: a collision counts no more."""
    reach: float = setting(0.5, unit="-", source=MEASURED, above=0.0)
    """How far from the policy's own action its own return still counts: the distance, in shares of
    the largest thrust rate, at which it does so by 1/e."""
    n_step: ClassVar[int] = 1
    """Decisions of a transition: there are no returns."""
    prioritized: ClassVar[bool] = False
    """All that was looked at is sampled alike."""

    @property
    def stored_share(self) -> float:
        """Share of the decisions that are looked ahead at, and kept."""
        return 1.0 / self.look_every


class DPI(LoneActor):
    """Direct policy iteration; `batch.action` is the policy's action and the points' advantages."""

    name = "DPI"
    learns_from = "lookahead"
    bootstraps = False
    idle_settings = ("algorithm.gamma",)
    Config: ClassVar[type[DPIConfig]] = DPIConfig
    config: DPIConfig

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """The policy's action, and the advantage of every point of the lattice over it."""
        return (self.actions + 3**self.actions,)

    def build_networks(self) -> None:
        """Build the actor."""
        self.policy = DeterministicActor(self.make_encoder(), self.actions)
        self.register_learners({"actor": (self.policy.parameters(), self.config.learning_rate)})

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Minus the mean advantage of the actor's actions over the policy's.

        An action's advantage is the sum of its coordinates' main effects, linear between the points
        of the lattice, and near the policy's own action it is what makes that one's 0.
        """
        features = self.policy.encoder(batch.obs)  # [B, F]
        with self.precision(self.policy):
            action = self.policy.act(features).to(batch.action.dtype)  # [B, A]
        own, advantages = batch.action.split([self.actions, 3**self.actions], -1)
        largest = self.config.largest_advantage
        advantages = advantages.clamp(-largest, largest)
        nearness = (-(action - own).square().sum(-1) / self.config.reach**2).exp()  # [B]
        advantage = interpolated(advantages, action) - nearness * interpolated(advantages, own)
        metrics = {
            "advantage": advantage.detach().mean(),
            "advantage_of_best": advantages.amax(-1).clamp(min=0.0).mean(),
            "moved": torch.linalg.vector_norm(action.detach() - own, dim=-1).mean(),
        }
        return {"actor": -(batch.weight * advantage).mean()}, metrics
