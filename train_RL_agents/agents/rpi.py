"""RPI: rollout policy iteration. An actor improves by what its own actions would have led to.

Lagoudakis and Parr 2003, "Reinforcement Learning as Classification: Leveraging Modern Classifiers",
after Tesauro and Galperin 1996, "On-line Policy Improvement using Monte-Carlo Search": several
actions are tried in copies of the simulator, in which all robots then follow the policy
(`training/branches.py`). A critic learns how they differ. It averages over what the robot cannot
know, such as the goals of others; the actor climbs it, close to the policy that was followed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from marinenav_env.fields import setting
from train_RL_agents.agents.actor_critic import DeterministicActing
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.encoders import make_encoder
from train_RL_agents.agents.networks import Critic, DeterministicActor
from train_RL_agents.agents.settings import CHOICE, AgentConfig

TRIALS = "docs/diary.md"


@dataclass(frozen=True)
class RPIConfig(AgentConfig):
    """Settings of RPI. `acting_average` says how fast the policy that branches follow changes.

    Returns are not discounted: `gamma` does nothing.
    """

    start: str = setting("", unit="-", source=TRIALS)
    """The policy whose actor it begins with: a run, a checkpoint or a folder of pretrained/ of
    AC-IQN, DDPG, DAgger, PPO or RPI with the same encoder; empty for fresh weights."""
    tried: int = setting(8, unit="actions", source=TRIALS, low=3, high=1000)
    """Actions that are tried for each robot and decision: the policy's own, then as many uniformly
    random ones as random ones near it."""
    near: float = setting(0.35, unit="half the range", source=TRIALS, above=0.0)
    """Standard deviation of the actions near the policy's own."""
    hold: int = setting(2, unit="decisions", source=TRIALS, low=1)
    """For which a tried action is kept."""
    horizon: int = setting(80, unit="decisions", source=TRIALS, low=1, high=10_000)
    """Length of a branch."""
    scale: float = setting(2.0, unit="return", source=CHOICE, above=0.0)
    """The critic learns differences of returns divided by this."""
    limit: float = setting(24.0, unit="return", source=TRIALS, above=0.0)
    """A return differs from the mean of those tried by this at most; what is beyond counts as
    this."""
    critic_widening: int = setting(2, unit="-", source=TRIALS, low=1, high=64)
    """Factor of the published widths of the critic's layers; `widening` is that of the actor."""
    actor_learning_rate: float = setting(3e-4, unit="-", source=TRIALS, low=0.0)
    """Adam's rate for the actor."""
    anchor: float = setting(0.2, unit="scaled return", source=TRIALS, low=0.0)
    """Price of the squared distance of an action to what the followed policy does."""
    settling_updates: int = setting(400, unit="updates", source=TRIALS, low=0)
    """At the start of a run, in which only the critic learns."""

    def check(self) -> None:
        """Refuse actions that outlast their branch."""
        self.require(
            self.hold <= self.horizon,
            "hold",
            f"must not exceed horizon = {self.horizon}",
        )


class RPI(DeterministicActing):
    """Rollout policy iteration; `batch.action` holds the actions tried and their returns."""

    name = "RPI"
    learner = "branching"
    Config: ClassVar[type[RPIConfig]] = RPIConfig
    config: RPIConfig

    def build_networks(self) -> None:
        """Build the actor and the critic of differences."""
        config = self.config
        self.policy = DeterministicActor(self.make_encoder(), self.actions)
        scale = config.ego_magnitude, config.object_magnitude
        encoder = make_encoder(
            self.spec.observation, config.encoder, *scale, config.critic_widening
        )
        self.critic = Critic(encoder, self.actions)
        self.settled: Tensor
        self.register_buffer("settled", torch.zeros(()))
        self.register_learners(
            {
                "critic": (self.critic.parameters(), config.learning_rate),
                "actor": (self.policy.parameters(), config.actor_learning_rate),
            }
        )

    def settle(self) -> None:
        """Let the actor learn from the next update on, with Adam as at its start.

        Until then its gradients were 0; their number would make Adam's first steps too large.
        """
        self.settled.fill_(1.0)
        self.descent.restart("actor")

    @torch.no_grad()
    def propose(self, own: Tensor) -> Tensor:
        """Return actions to try `[..., K, A]`, the policy's own `[..., A]` first."""
        around = own.unsqueeze(-2)
        near, anywhere = self.config.tried // 2, (self.config.tried - 1) // 2
        uniform = 2.0 * torch.rand_like(around.expand(*own.shape[:-1], anywhere, -1)) - 1.0
        around = around.expand(*own.shape[:-1], near, -1)
        close = (around + self.config.near * torch.randn_like(around)).clamp(-1.0, 1.0)
        return torch.cat((own.unsqueeze(-2), uniform, close), dim=-2)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Squared error of the differences; minus the actor's gain over the followed policy.

        Until `settled` is 1 the actor's is 0, so that Adam leaves it where it is.
        """
        config = self.config
        actions, returns = batch.action.split((self.actions, 1), dim=-1)  # [B, K, A], [B, K, 1]
        worth = _centred(returns.squeeze(-1)).clamp(-config.limit, config.limit)
        worth = _centred(worth) / config.scale  # [B, K]
        inputs, _ = self.inputs(batch)
        features = self.critic.encoder.layers(inputs)  # [B, F]
        policy_features = self.policy.encoder.layers(inputs)  # [B, F]
        with torch.no_grad():
            followed = self.actor(batch.obs)  # [B, A]
        with self.precision(self.critic, self.policy):
            hidden = self.critic.hidden(features).unsqueeze(-2)  # [B, 1, 128]
            value = _centred(self.critic.value(hidden, actions))  # [B, K]
            action = self.policy.act(policy_features)  # [B, A]
            both = torch.stack((action, followed.to(action.dtype)), dim=-2)  # [B, 2, A]
            new, old = self.critic.value(hidden.detach(), both).unbind(-1)  # [B] each
        gain, error = (new - old).mean(), (value - worth).square()  # [], [B, K]
        distance = (action - followed).square().sum(-1).mean()
        metrics = {
            "gain": gain.detach() * config.scale,
            "moved": distance.detach().sqrt(),
            "explained": 1.0 - (error.detach().mean() / worth.square().mean().clamp(min=1e-6)),
        }
        losses = {"critic": error.mean(), "actor": self.settled * (config.anchor * distance - gain)}
        return losses, metrics


def _centred(values: Tensor) -> Tensor:
    """Return values `[B, K]` without the mean of each row."""
    return values - values.mean(-1, keepdim=True)
