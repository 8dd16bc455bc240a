"""DAgger: an actor that learns to do what a teacher would do, where the actor itself leads.

Ross, Gordon and Bagnell 2011, "A Reduction of Imitation Learning and Structured Prediction to
No-Regret Online Learning", algorithm 3.1. The teacher may be a policy behind the shield: so what
the shield works out at run time enters the weights. Nothing is learned from rewards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from marinenav_env.fields import setting
from train_RL_agents.agents.actor_critic import LoneActor
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.networks import DeterministicActor
from train_RL_agents.agents.settings import MEASURED, AgentConfig
from train_RL_agents.agents.shield_settings import ShieldConfig


@dataclass(frozen=True)
class DAggerConfig(AgentConfig):
    """Settings of DAgger.

    `exploration.epsilon_start` and so on give the share of decisions that the teacher takes (beta
    of Ross et al.), instead of random ones. `gamma` does nothing.
    """

    teacher: str = setting("", unit="-", source=MEASURED)
    """The policy to imitate: a run, a checkpoint, an export, a folder of pretrained/,
    ``baseline:NAME``, or ``mean:PATH,PATH`` for the mean action of several trained ones; of the
    same task and ``stack_k``."""
    guarded: bool = setting(True, unit="-", source=MEASURED)
    """Put the teacher behind the shield."""
    shield: ShieldConfig = field(default_factory=ShieldConfig)
    """Of the teacher, if it is guarded."""
    n_step: ClassVar[int] = 1
    """Decisions of a transition: there are no returns."""
    prioritized: bool = setting(True, unit="-", source=MEASURED)
    """Sample transitions by how far the actor was from the teacher there."""


class DAgger(LoneActor):
    """Dataset aggregation; `batch.action` is what the teacher would do."""

    name = "DAgger"
    learns_from = "teacher"
    bootstraps = False
    idle_settings = ("algorithm.gamma",)
    Config: ClassVar[type[DAggerConfig]] = DAggerConfig
    config: DAggerConfig

    def build_networks(self) -> None:
        """Build the actor."""
        self.policy = DeterministicActor(self.make_encoder(), self.actions)
        self.register_learners({"actor": (self.policy.parameters(), self.config.learning_rate)})

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Mean absolute difference of the actions.

        Of a teacher that is of two minds its minimum is one of them, and not their mean.
        """
        features = self.policy.encoder(batch.obs)  # [B, F]
        with self.precision(self.policy):
            action = self.policy.act(features)  # [B, A]
        difference = (action - batch.action).abs().mean(-1)  # [B]
        metrics = {"priority": difference.detach()} if self.config.prioritized else {}
        return {"actor": (batch.weight * difference).mean()}, metrics
