"""The networks of all agents: an encoder of the observation and the head that stands on it.

Sizes (of widening 1) and state-dict names are those of the published weights. Leading dimensions
are free, `[W, R]` when acting and `[B]` when learning. Every `forward` can be scripted for
observations of a robot and objects; TorchScript needs the type of their tuple.

Rectifiers work in place except on quantiles. There a layer's output has more than two dimensions in
learning too, and is a view, for which autograd would make and copy three tensors of its size.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from train_RL_agents.agents.encoders import Encoder

COSINES = 64  # published number of cosine features of a quantile fraction, i = 0..63


class EncodedNetwork(nn.Module):
    """An observation encoder; every network is one of these with a head.

    In a state dict the encoder's tensors stand beside the head's, as in the published weights.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_state_dict_post_hook(_flatten_encoder)
        self.register_load_state_dict_pre_hook(_nest_encoder)


def _flatten_encoder(
    network: nn.Module, state: dict[str, Tensor], prefix: str, metadata: dict[str, Any]
) -> None:
    """Name the encoder's tensors as if they were the network's own, in the order that they have."""
    for key in list(state):
        value = state.pop(key)
        if key.startswith(f"{prefix}encoder."):
            key = prefix + key.removeprefix(f"{prefix}encoder.")
        state[key] = value


def _nest_encoder(
    network: EncodedNetwork, state: dict[str, Tensor], prefix: str, *others: Any
) -> None:
    """Undo `_flatten_encoder`."""
    for name in network.encoder.state_dict():
        if prefix + name in state:
            state[f"{prefix}encoder.{name}"] = state.pop(prefix + name)


class OutputLayer(nn.Linear):
    """The last layer of a network, in the format of its weights also where others use bfloat16.

    Returns of this task reach 40, where bfloat16 resolves 0.25: several times the difference of the
    two best actions' values.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs `[..., outputs]` of `[..., inputs]`."""
        if torch.jit.is_scripting():
            return functional.linear(x, self.weight, self.bias)
        with torch.autocast(x.device.type, enabled=False):
            return functional.linear(x.to(self.weight.dtype), self.weight, self.bias)


class ColumnScaledLayer(nn.Linear):
    """A layer whose weight an embedding scales; its bias' gradient, a sum, stays in its format."""


class QNetwork(EncodedNetwork):
    """Action values of DQN."""

    def __init__(self, encoder: Encoder, actions: int) -> None:
        super().__init__(encoder)
        width = encoder.hidden_width
        self.hidden_layer = nn.Linear(encoder.features, width)
        self.hidden_layer_2 = nn.Linear(width, width)
        self.output_layer = OutputLayer(width, actions)

    def head(self, features: Tensor) -> Tensor:
        """Return the outputs `[..., actions]` of features `[..., F]`."""
        hidden = functional.relu_(self.hidden_layer(features))  # [..., 128]
        hidden = functional.relu_(self.hidden_layer_2(hidden))  # [..., 128]
        return self.output_layer(hidden)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the action values `[..., actions]`."""
        return self.head(self.encoder(observation))


class DeterministicActor(QNetwork):
    """Actor of AC-IQN, DDPG, DAgger and PPO: a = (2/pi) atan(z) in (-1, 1)."""

    def mean_weights(self) -> dict[str, Tensor]:
        """Return the weights of the actor that takes the mean action: its own."""
        return self.state_dict()

    def act(self, features: Tensor) -> Tensor:
        """Return the action `[..., actions]` of features `[..., F]`."""
        return squash(self.head(features))

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the action `[..., actions]`."""
        return self.act(self.encoder(observation))


class GaussianActor(EncodedNetwork):
    """Actor of SAC: mean and log standard deviation of z, with a = (2/pi) atan(z)."""

    def __init__(self, encoder: Encoder, actions: int) -> None:
        super().__init__(encoder)
        width = encoder.hidden_width
        self.hidden_layer = nn.Linear(encoder.features, width)
        self.hidden_layer_2 = nn.Linear(width, width)
        self.output_layer_mu = OutputLayer(width, actions)
        self.output_layer_log_std = OutputLayer(width, actions)

    def mean_weights(self) -> dict[str, Tensor]:
        """Return the weights of the `DeterministicActor` that takes the action of the mean z."""
        weights = self.state_dict()
        return {n.replace("_mu", ""): w for n, w in weights.items() if "log_std" not in n}

    def head(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return `(mu, log_std)`, each `[..., actions]`, of features `[..., F]`."""
        hidden = functional.relu_(self.hidden_layer(features))  # [..., 128]
        hidden = functional.relu_(self.hidden_layer_2(hidden))  # [..., 128]
        log_std = self.output_layer_log_std(hidden).clamp(-20.0, 2.0)  # published bounds
        return self.output_layer_mu(hidden), log_std

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return `(mu, log_std)`, each `[..., actions]`."""
        return self.head(self.encoder(observation))


class QuantileEncodedNetwork(EncodedNetwork):
    """Encoder, cosine embedding of quantile fractions and first hidden layer of IQN.

    Equation 4 of Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement
    Learning", with the published code's cosine index 0..63.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        index = torch.arange(COSINES, dtype=torch.float32)
        self.cosine_index: Tensor
        self.register_buffer("cosine_index", index, persistent=False)
        self.cos_embedding = nn.Linear(COSINES, encoder.features)
        self.hidden_layer = ColumnScaledLayer(encoder.features, encoder.hidden_width)

    def embed(self, taus: Tensor) -> Tensor:
        """Return ReLU(Linear(cos(pi i tau))) `[..., N, F]` of quantile fractions `[..., N]`."""
        cosines = torch.cos(math.pi * (taus.unsqueeze(-1) * self.cosine_index))  # [..., N, 64]
        return functional.relu(self.cos_embedding(cosines))

    def hidden(self, features: Tensor, taus: Tensor) -> Tensor:
        """First hidden layer, for quantile fractions of each sample or shared by all of them.

        With shared fractions the embedding scales the columns of the layer's weight once per batch
        instead of every sample's features, W (f * c) = (W * c) f, without the [..., N, F] product.

        Args:
            features: `[..., F]` from the encoder.
            taus: `[..., N]` with the features' leading dimensions, or `[N]` shared by all samples.

        Returns:
            `[..., N, 128]` after the ReLU.
        """
        embedding = self.embed(taus)
        if taus.dim() == 1:
            n, width = taus.shape[0], self.hidden_layer.bias.shape[0]
            weight = self.hidden_layer.weight.to(embedding.dtype)  # [128, F]
            weight = weight * embedding.unsqueeze(-2)  # [N, 128, F]
            bias = self.hidden_layer.bias.repeat(n)  # [N * 128]
            hidden = functional.linear(features, weight.flatten(0, 1), bias)  # [..., N * 128]
            return functional.relu_(hidden).unflatten(-1, (n, width))
        return functional.relu(self.hidden_layer(features.unsqueeze(-2) * embedding))


class QuantileQNetwork(QuantileEncodedNetwork):
    """Quantiles of the action values of IQN."""

    def __init__(self, encoder: Encoder, actions: int) -> None:
        super().__init__(encoder)
        width = encoder.hidden_width
        self.hidden_layer_2 = nn.Linear(width, width)
        self.output_layer = OutputLayer(width, actions)

    def head(self, features: Tensor, taus: Tensor) -> Tensor:
        """Return quantiles `[..., N, actions]` of features `[..., F]` at fractions `taus`."""
        hidden = functional.relu(self.hidden_layer_2(self.hidden(features, taus)))  # [..., N, 128]
        return self.output_layer(hidden)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor], taus: Tensor) -> Tensor:
        """Return quantiles `[..., N, actions]` at fractions `taus`, `[..., N]` or `[N]`."""
        return self.head(self.encoder(observation), taus)


class Critic(EncodedNetwork):
    """Action value of DDPG and SAC; the action enters after the first hidden layer."""

    def __init__(self, encoder: Encoder, actions: int) -> None:
        super().__init__(encoder)
        width = encoder.hidden_width
        self.hidden_layer = nn.Linear(encoder.features, width)
        self.action_encoder = nn.Sequential(nn.Linear(actions, width), nn.ReLU(inplace=True))
        self.hidden_layer_2 = nn.Linear(width, width)
        self.output_layer = OutputLayer(width, 1)

    def hidden(self, features: Tensor) -> Tensor:
        """Return the part `[..., 128]` of features `[..., F]` that no action changes."""
        return functional.relu_(self.hidden_layer(features))

    def value(self, hidden: Tensor, action: Tensor) -> Tensor:
        """Return the values `[...]` of actions `[..., actions]` on `hidden` `[..., 128]`."""
        hidden = functional.relu_(self.hidden_layer_2(hidden * self.action_encoder(action)))
        return self.output_layer(hidden).squeeze(-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor], action: Tensor) -> Tensor:
        """Return the values `[...]` of actions `[..., actions]`."""
        return self.value(self.hidden(self.encoder(observation)), action)


class QuantileCritic(QuantileEncodedNetwork):
    """Quantiles of the action value of AC-IQN; the action enters after the first hidden layer."""

    def __init__(self, encoder: Encoder, actions: int) -> None:
        super().__init__(encoder)
        width = encoder.hidden_width
        self.action_encoder = nn.Sequential(nn.Linear(actions, width), nn.ReLU(inplace=True))
        self.hidden_layer_2 = nn.Linear(width, width)
        self.output_layer = OutputLayer(width, 1)

    def value(self, hidden: Tensor, action: Tensor) -> Tensor:
        """Return quantiles `[..., N]` of actions `[..., actions]` on `hidden` `[..., N, 128]`."""
        hidden = hidden * self.action_encoder(action).unsqueeze(-2)  # [..., N, 128]
        hidden = functional.relu(self.hidden_layer_2(hidden))  # [..., N, 128]
        return self.output_layer(hidden).squeeze(-1)

    def forward(
        self, observation: tuple[Tensor, Tensor, Tensor], action: Tensor, taus: Tensor
    ) -> Tensor:
        """Return quantiles `[..., N]` at fractions `taus`, `[..., N]` or `[N]`."""
        return self.value(self.hidden(self.encoder(observation), taus), action)


def squash(z: Tensor) -> Tensor:
    """Map unbounded z to an action in (-1, 1): a = (2/pi) atan(z)."""
    return (2.0 / math.pi) * torch.atan(z)


class ActionValues(nn.Module):
    """Makes action values `[..., A]` of a network's output; `axis` is the output's of actions."""

    axis = -1


class OwnValues(ActionValues):
    """Action values `[..., A]` of outputs that are such."""

    def forward(self, outputs: Tensor) -> Tensor:
        """Return the outputs."""
        return outputs


class MeanValues(ActionValues):
    """Action values `[..., A]` of quantiles `[..., N, A]`."""

    def forward(self, outputs: Tensor) -> Tensor:
        """Return the mean over the fractions."""
        return outputs.mean(-2)


class ExpectedValues(ActionValues):
    """Action values `[..., A]` of probabilities `[..., A, Z]` over a support `[Z]`."""

    axis = -2

    def __init__(self, support: Tensor) -> None:
        super().__init__()
        self.support: Tensor  # here, because TorchScript cannot read it in the class
        self.register_buffer("support", support.clone())

    def forward(self, outputs: Tensor) -> Tensor:
        """Return the expectation."""
        return outputs @ self.support
