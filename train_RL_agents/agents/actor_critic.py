"""What the agents with an actor and critics share: its rate, and a deterministic actor's ways."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import setting
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.networks import (
    Critic,
    DeterministicActor,
    GaussianActor,
    QuantileCritic,
)
from train_RL_agents.agents.settings import PROTOTYPE, ReplayAgentConfig


@dataclass(frozen=True)
class ActorCriticConfig(ReplayAgentConfig):
    """Settings of an agent with an actor beside its critics."""

    actor_learning_rate: float = setting(3e-4, unit="-", source=PROTOTYPE, low=0.0)
    """Adam's rate for the actor."""


class DeterministicActing(Agent):
    """An agent that acts as its deterministic actor says."""

    discrete = False
    policy: DeterministicActor

    @property
    def policy_network(self) -> DeterministicActor:
        """The network `actor(observation) -> [..., A]`."""
        return self.policy

    def choose(
        self, network: nn.Module, observation: ObservationTensors, *, mean: bool = False
    ) -> Tensor:
        """Return the actor's action `[..., A]`; it is its own mean."""
        return network(observation)


class LoneActor(DeterministicActing):
    """A deterministic actor that values no actions, so that it can begin with any other actor."""

    def taken_over(self, other: Agent, *, whole: bool) -> dict[str, Tensor] | None:
        """Return the weights of the other agent's actor, if it has one; as `Agent.taken_over`."""
        actor = other.actor
        if not isinstance(actor, DeterministicActor | GaussianActor):
            return None
        networks = {"policy": self.policy, "average": self.average}
        weights = actor.mean_weights().items()
        own = [name for name, network in networks.items() if network is not None]
        return {f"{network}.{name}": weight for network in own for name, weight in weights}


class DeterministicActorCritic(DeterministicActing):
    """A deterministic actor, a critic of its continuous actions, and a target of each.

    A subclass names the class of its critic and gives the losses `critic` and `actor`.
    """

    CriticNetwork: ClassVar[type[Critic | QuantileCritic]]
    Config: ClassVar[type[ActorCriticConfig]]
    config: ActorCriticConfig
    critic: Critic | QuantileCritic
    target_critic: Critic | QuantileCritic

    def build_networks(self) -> None:
        """Build the actor, the critic and their targets."""
        self.policy = DeterministicActor(self.make_encoder(), self.actions)
        self.critic = self.CriticNetwork(self.make_encoder(), self.actions)
        self.target_policy = copy.deepcopy(self.policy)
        self.target_critic = copy.deepcopy(self.critic)
        self.register_learners(
            {
                "critic": (self.critic.parameters(), self.config.learning_rate),
                "actor": (self.policy.parameters(), self.config.actor_learning_rate),
            },
            [(self.policy, self.target_policy), (self.critic, self.target_critic)],
        )
