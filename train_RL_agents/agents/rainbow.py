"""Rainbow: DQN with six extensions.

Hessel et al. 2018, "Rainbow: Combining Improvements in Deep Reinforcement Learning": double
learning, duelling streams, noisy layers and categorical values are here; n-step returns and
prioritised replay are settings that the replay carries out.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import setting
from marinenav_env.kernel import ops
from train_RL_agents.agents import losses
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.encoders import Encoder
from train_RL_agents.agents.networks import EncodedNetwork, ExpectedValues
from train_RL_agents.agents.settings import CHOICE, ReplayAgentConfig

HESSEL = "Hessel et al. 2018, table 1"


@dataclass(frozen=True)
class RainbowConfig(ReplayAgentConfig):
    """Settings of Rainbow.

    The support is by default the task's `value_range`, which covers its discounted returns; that of
    the marine tasks is named here. At full speed (1.6 m of progress a decision) and 10 at the goal,
    the mean journey of 40 m returns 41 and the longest, 72 m, 60. A
    collision costs 10 in training, and who drives away for 20 decisions loses 20, below which no
    difference matters. On what the shipped policy collects (random actions 5%, all six stages), its
    targets have 3e-6 of their probability on the upper end and 1e-9 on the lower; the log keeps
    both as `mass_at_ends`.
    """

    n_step: int = setting(3, unit="decisions", source=HESSEL, low=1)
    prioritized: bool = setting(True, unit="-", source=HESSEL)
    atoms: int = setting(51, unit="-", source=HESSEL, low=2, high=4096)
    """Number of values in the support."""
    v_min: float = setting(-30.0, unit="return", source=CHOICE)
    """Lowest value of the support."""
    v_max: float = setting(60.0, unit="return", source=CHOICE)
    """Highest value of the support."""
    sigma: float = setting(0.5, unit="-", source=HESSEL, low=0.0)
    """Initial noise of a layer, times the square root of its inputs."""

    @classmethod
    def for_values(cls, low: float, high: float) -> Self:
        """Return the defaults with a support that covers a range of discounted returns."""
        return cls(v_min=low, v_max=high)

    def check(self) -> None:
        """Refuse a support without a width."""
        self.require_order("v_min", "v_max", strict=True)


class NoisyLinear(nn.Module):
    """Linear layer with factorised Gaussian noise on weights and biases.

    Fortunato et al. 2018, "Noisy Networks for Exploration", eq. 9 to 11.
    """

    def __init__(self, inputs: int, outputs: int, sigma: float) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma * bound))

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer without its noise, `[..., outputs]` of `[..., inputs]`."""
        return functional.linear(x, self.weight, self.bias)

    def noisy(self, x: Tensor, *, shared: bool) -> Tensor:
        """Return the layer with new noise.

        Args:
            x: `[..., inputs]`.
            shared: one draw for all rows, as a loss uses it; else one for every row, so that robots
                explore independently of each other. The latter gives no gradients.

        Returns:
            `[..., outputs]`.
        """
        outputs, inputs = self.weight.shape
        rows = () if shared else x.shape[:-1]
        noise_in = torch.randn((*rows, inputs), device=x.device)  # [..., I]
        noise_out = torch.randn((*rows, outputs), device=x.device)  # [..., O]
        if shared:
            noise_in, noise_out = signed_root(noise_in), signed_root(noise_out)
            bias = self.bias + self.bias_sigma * noise_out  # [O]
            weight = self.weight + self.weight_sigma * torch.outer(noise_out, noise_in)  # [O, I]
            return functional.linear(x, weight, bias)
        # With many robots these are the largest tensors of a decision.
        spread = functional.linear(ops.noisy_input(noise_in, x), self.weight_sigma)  # [..., O]
        mean = functional.linear(x, self.weight)  # [..., O]
        return ops.noisy_output(noise_out, spread, mean, self.bias_sigma, self.bias)


def signed_root(x: Tensor) -> Tensor:
    """Return sign(x) sqrt(|x|), the noise of one factor."""
    return x.abs().sqrt_().copysign_(x)


class NoisyStream(nn.Module):
    """Three noisy layers, of the value or of the advantage."""

    def __init__(self, encoder: Encoder, outputs: int, sigma: float) -> None:
        super().__init__()
        width = encoder.hidden_width
        self.hidden_layer = NoisyLinear(encoder.features, width, sigma)
        self.hidden_layer_2 = NoisyLinear(width, width, sigma)
        self.output_layer = NoisyLinear(width, outputs, sigma)

    def forward(self, features: Tensor) -> Tensor:
        """Return `[..., outputs]` of features `[..., F]`, without noise."""
        hidden = functional.relu(self.hidden_layer(features))  # [..., 128]
        hidden = functional.relu(self.hidden_layer_2(hidden))  # [..., 128]
        return self.output_layer(hidden)

    def noisy(self, features: Tensor, *, shared: bool) -> Tensor:
        """As `forward`, with new noise in every layer, as `NoisyLinear.noisy` has it."""
        hidden = functional.relu(self.hidden_layer.noisy(features, shared=shared))
        hidden = functional.relu(self.hidden_layer_2.noisy(hidden, shared=shared))
        return self.output_layer.noisy(hidden, shared=shared)


class RainbowNetwork(EncodedNetwork):
    """Categorical values with a value and an advantage stream of noisy layers."""

    def __init__(
        self, encoder: Encoder, actions: int, *, atoms: int = 51, sigma: float = 0.5
    ) -> None:
        super().__init__(encoder)
        self.actions, self.atoms = actions, atoms
        self.value_stream = NoisyStream(encoder, atoms, sigma)
        self.advantage_stream = NoisyStream(encoder, actions * atoms, sigma)

    def join(self, value: Tensor, advantage: Tensor) -> Tensor:
        """Return logits `[..., actions, atoms]` of both streams (Wang et al. 2016, eq. 9).

        Args:
            value: `[..., atoms]`.
            advantage: `[..., actions * atoms]`.
        """
        advantage = advantage.unflatten(-1, (self.actions, self.atoms))
        return value.unsqueeze(-2) + advantage - advantage.mean(-2, keepdim=True)

    def head(self, features: Tensor) -> Tensor:
        """Return logits `[..., actions, atoms]` of features `[..., F]`, without noise."""
        return self.join(self.value_stream(features), self.advantage_stream(features))

    def noisy_head(self, features: Tensor, *, shared: bool) -> Tensor:
        """As `head`, with new noise, as `NoisyLinear.noisy` has it."""
        return self.join(
            self.value_stream.noisy(features, shared=shared),
            self.advantage_stream.noisy(features, shared=shared),
        )

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return probabilities `[..., actions, atoms]` over the support, without noise."""
        return self.head(self.encoder(observation)).softmax(-1)


class Rainbow(Agent):
    """Categorical double Q-learning that explores by its noisy layers."""

    name = "Rainbow"
    discrete = True
    actor_outputs: ClassVar[dict[str, str]] = {
        "probabilities": "probability of each return in support, for each action index"
    }
    network_settings = (*Agent.network_settings, "atoms", "v_min", "v_max")
    Config = RainbowConfig
    config: RainbowConfig
    support: Tensor

    def build_networks(self) -> None:
        """Build the network, its target and the support."""
        config = self.config
        self.network = RainbowNetwork(
            self.make_encoder(), self.actions, atoms=config.atoms, sigma=config.sigma
        )
        self.target = copy.deepcopy(self.network)
        support = torch.linspace(config.v_min, config.v_max, config.atoms)
        self.register_buffer("support", support)
        self.register_learners(
            {"critic": (self.network.parameters(), config.learning_rate)},
            [(self.network, self.target)],
        )

    @property
    def policy_network(self) -> RainbowNetwork:
        """The network `actor(observation) -> probabilities [..., A, Z]` over `support`."""
        return self.network

    def action_values(self) -> ExpectedValues:
        """Return the expectation over the support of probabilities `[..., A, Z]`."""
        return ExpectedValues(self.support)

    def export_metadata(self) -> dict[str, Any]:
        """Return the support."""
        return {"support": self.support.tolist()}

    def choose(
        self, network: nn.Module, observation: ObservationTensors, *, mean: bool = False
    ) -> Tensor:
        """Return the action `[...]` of the largest expected value, without noise."""
        return self._values(network(observation)).argmax(-1)

    @torch.no_grad()
    def explore(self, observation: ObservationTensors) -> Tensor:
        """Return the action `[...]` of the largest expected value under each robot's own noise."""
        with self.precision(self.network):
            features = self.network.encoder(observation)
            logits = self.network.noisy_head(features, shared=False)
        return self._values(logits.float().softmax(-1)).argmax(-1)

    def _values(self, probabilities: Tensor) -> Tensor:
        """Return expected values `[..., A]` of `[..., A, Z]`."""
        return probabilities @ self.support.to(probabilities.dtype)

    def objectives(self, batch: Batch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Cross-entropy of the taken action's distribution; its value is the new priority.

        The metric `mass_at_ends`, the target's probability on the support's two ends, stays small
        while the support is wide enough.
        """
        obs, next_obs = self.inputs(batch)
        m = self._target(batch, next_obs)  # [B, Z]
        features = self.network.encoder.layers(obs)  # [B, F]
        with self.precision(self.network):
            logits = self.network.noisy_head(features, shared=True)  # [B, A, Z]
        log_p = select(logits, batch.action).float().log_softmax(-1)  # [B, Z]
        loss = losses.categorical_cross_entropy(log_p, m)  # [B]
        metrics = {
            "q_mean": self._values(log_p.detach().exp()).mean(),
            "mass_at_ends": (m[:, 0] + m[:, -1]).mean(),
        }
        if self.config.prioritized:
            metrics["priority"] = loss.detach()
        return {"critic": (batch.weight * loss).mean()}, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, next_obs: Any) -> Tensor:
        """Return the target distribution `[B, Z]`; the learning network chooses its action."""
        features = self.network.encoder.layers(next_obs)  # [B, F]
        target_features = self.target.encoder.layers(next_obs)  # [B, F]
        with self.precision(self.network, self.target):
            chooser = self.network.noisy_head(features, shared=True)  # [B, A, Z]
            logits = self.target.noisy_head(target_features, shared=True)  # [B, A, Z]
        action = self._values(chooser.float().softmax(-1)).argmax(-1)  # [B]
        p = select(logits, action).float().softmax(-1)  # [B, Z]
        return losses.categorical_projection(p, batch.reward, batch.discount, self.support)


def select(logits: Tensor, action: Tensor) -> Tensor:
    """Return the logits `[B, Z]` of actions `[B]` out of `[B, A, Z]`."""
    index = action.view(-1, 1, 1).expand(-1, 1, logits.shape[2])  # [B, 1, Z]
    return logits.gather(1, index).squeeze(1)
