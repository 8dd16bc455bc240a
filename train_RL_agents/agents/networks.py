"""The networks of all agents: one observation encoder and the heads that stand on it.

Sizes and state-dict names are those of the published weights. Every network takes the raw
observation `(self [..., 7k], objects [..., Kk, 5], mask [..., Kk])` in metric units; scaling the
inputs is part of the network (the buffers `self_input_scale` and `object_input_scale`), so that it
travels with the weights and the exported model. Leading dimensions are free, `[W, R]` when acting
and `[B]` when learning. Every `forward` can be scripted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

SELF_WIDTH = 56  # published width of the encoder of the robot's own state
OBJECT_WIDTH = 40  # published width of the encoder of one object
HIDDEN_WIDTH = 128  # published width of both hidden layers
COSINES = 64  # published number of cosine features of a quantile fraction, i = 0..63

EGO_MAGNITUDE = (20.0, 20.0, 1.0, 1.0, 0.5, 500.0, 500.0)  # m, m, m/s, m/s, rad/s, N, N
OBJECT_MAGNITUDE = (10.0, 10.0, 1.0, 1.0, 2.0)  # m, m, m/s, m/s, m


@dataclass(frozen=True)
class ObservationDims:
    """Sizes of an observation: a history of k frames has `ego = 7 * k` and `objects = 5 * k`."""

    ego: int = 7  # features of the robot itself
    objects: int = 5  # object rows
    object_features: int = 5  # features of one object row


@dataclass(frozen=True)
class InputScale:
    """Typical magnitudes by which the inputs are divided, of one frame; a history repeats them."""

    ego: Sequence[float] = EGO_MAGNITUDE
    objects: Sequence[float] = OBJECT_MAGNITUDE

    @classmethod
    def identity(cls, dims: ObservationDims) -> InputScale:
        """The scaling that changes nothing, for `dims`."""
        return cls((1.0,) * dims.ego, (1.0,) * dims.object_features)


def reciprocal_scale(name: str, magnitudes: Sequence[float], size: int) -> Tensor:
    """Return `1 / magnitudes`, repeated to `size` features, as a float tensor `[size]`.

    Raises:
        ValueError: the magnitudes do not divide `size`, or one of them is not positive.
    """
    if not magnitudes or size % len(magnitudes) != 0:
        raise ValueError(
            f"{name} has {len(magnitudes)} entries, which do not divide the {size} features of the "
            f"observation; give one magnitude per feature of a frame"
        )
    if not all(value > 0 for value in magnitudes):
        raise ValueError(f"{name} = {tuple(magnitudes)}: every magnitude must be positive")
    return torch.tensor(tuple(magnitudes)).reciprocal().repeat(size // len(magnitudes))


class EncodedNetwork(nn.Module):
    """The observation encoder; every network is one of these with a head."""

    def __init__(self, dims: ObservationDims, scale: InputScale) -> None:
        super().__init__()
        own_scale = reciprocal_scale("ego_magnitude", scale.ego, dims.ego)
        object_scale = reciprocal_scale("object_magnitude", scale.objects, dims.object_features)
        self.register_buffer("self_input_scale", own_scale)
        self.register_buffer("object_input_scale", object_scale)
        self.self_encoder = nn.Sequential(nn.Linear(dims.ego, SELF_WIDTH), nn.ReLU(inplace=True))
        self.object_encoder = nn.Sequential(
            nn.Linear(dims.object_features, OBJECT_WIDTH), nn.ReLU(inplace=True)
        )
        self.features = SELF_WIDTH + dims.objects * OBJECT_WIDTH

    def encode(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 56 + 40 Kk]` of an observation, the robot's own first."""
        ego, objects, mask = observation
        own = self.self_encoder(ego * self.self_input_scale)  # [..., 56]
        others = self.object_encoder(objects * self.object_input_scale)  # [..., Kk, 40]
        others = others * mask.unsqueeze(-1)
        return torch.cat((own, others.flatten(-2)), dim=-1)


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


class QNetwork(EncodedNetwork):
    """Action values of DQN."""

    def __init__(self, dims: ObservationDims, scale: InputScale, actions: int) -> None:
        super().__init__(dims, scale)
        self.hidden_layer = nn.Linear(self.features, HIDDEN_WIDTH)
        self.hidden_layer_2 = nn.Linear(HIDDEN_WIDTH, HIDDEN_WIDTH)
        self.output_layer = OutputLayer(HIDDEN_WIDTH, actions)

    def head(self, features: Tensor) -> Tensor:
        """Return the outputs `[..., actions]` of features `[..., F]`."""
        hidden = functional.relu_(self.hidden_layer(features))  # [..., 128]
        hidden = functional.relu_(self.hidden_layer_2(hidden))  # [..., 128]
        return self.output_layer(hidden)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the action values `[..., actions]`."""
        return self.head(self.encode(observation))


class DeterministicActor(QNetwork):
    """Actor of AC-IQN and DDPG: a = (2/pi) atan(z) in (-1, 1)."""

    def act(self, features: Tensor) -> Tensor:
        """Return the action `[..., actions]` of features `[..., F]`."""
        return squash(self.head(features))

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the action `[..., actions]`."""
        return self.act(self.encode(observation))


class GaussianActor(EncodedNetwork):
    """Actor of SAC: mean and log standard deviation of z, with a = (2/pi) atan(z)."""

    def __init__(self, dims: ObservationDims, scale: InputScale, actions: int) -> None:
        super().__init__(dims, scale)
        self.hidden_layer = nn.Linear(self.features, HIDDEN_WIDTH)
        self.hidden_layer_2 = nn.Linear(HIDDEN_WIDTH, HIDDEN_WIDTH)
        self.output_layer_mu = OutputLayer(HIDDEN_WIDTH, actions)
        self.output_layer_log_std = OutputLayer(HIDDEN_WIDTH, actions)

    def head(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return `(mu, log_std)`, each `[..., actions]`, of features `[..., F]`."""
        hidden = functional.relu_(self.hidden_layer(features))  # [..., 128]
        hidden = functional.relu_(self.hidden_layer_2(hidden))  # [..., 128]
        log_std = self.output_layer_log_std(hidden).clamp(-20.0, 2.0)  # published bounds
        return self.output_layer_mu(hidden), log_std

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return `(mu, log_std)`, each `[..., actions]`."""
        return self.head(self.encode(observation))


class QuantileEncodedNetwork(EncodedNetwork):
    """Encoder, cosine embedding of quantile fractions and first hidden layer of IQN.

    Equation 4 of Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement
    Learning", with the published code's cosine index 0..63.
    """

    def __init__(self, dims: ObservationDims, scale: InputScale) -> None:
        super().__init__(dims, scale)
        index = torch.arange(COSINES, dtype=torch.float32)
        self.register_buffer("cosine_index", index, persistent=False)
        self.cos_embedding = nn.Linear(COSINES, self.features)
        self.hidden_layer = nn.Linear(self.features, HIDDEN_WIDTH)

    def embed(self, taus: Tensor) -> Tensor:
        """Return ReLU(Linear(cos(pi i tau))) `[..., N, F]` of quantile fractions `[..., N]`."""
        cosines = torch.cos(math.pi * (taus.unsqueeze(-1) * self.cosine_index))  # [..., N, 64]
        return functional.relu_(self.cos_embedding(cosines))

    def hidden(self, features: Tensor, taus: Tensor) -> Tensor:
        """First hidden layer, for quantile fractions of each sample or shared by all of them.

        With shared fractions the embedding scales the columns of the layer's weight once per batch
        instead of every sample's features, W (f * c) = (W * c) f, without the [..., N, F] product.

        Args:
            features: `[..., F]` from `encode`.
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
        return functional.relu_(self.hidden_layer(features.unsqueeze(-2) * embedding))


class QuantileQNetwork(QuantileEncodedNetwork):
    """Quantiles of the action values of IQN."""

    def __init__(self, dims: ObservationDims, scale: InputScale, actions: int) -> None:
        super().__init__(dims, scale)
        self.hidden_layer_2 = nn.Linear(HIDDEN_WIDTH, HIDDEN_WIDTH)
        self.output_layer = OutputLayer(HIDDEN_WIDTH, actions)

    def head(self, features: Tensor, taus: Tensor) -> Tensor:
        """Return quantiles `[..., N, actions]` of features `[..., F]` at fractions `taus`."""
        hidden = functional.relu_(self.hidden_layer_2(self.hidden(features, taus)))  # [..., N, 128]
        return self.output_layer(hidden)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor], taus: Tensor) -> Tensor:
        """Return quantiles `[..., N, actions]` at fractions `taus`, `[..., N]` or `[N]`."""
        return self.head(self.encode(observation), taus)


class Critic(EncodedNetwork):
    """Action value of DDPG and SAC; the action enters after the first hidden layer."""

    def __init__(self, dims: ObservationDims, scale: InputScale, actions: int) -> None:
        super().__init__(dims, scale)
        self.hidden_layer = nn.Linear(self.features, HIDDEN_WIDTH)
        self.action_encoder = nn.Sequential(nn.Linear(actions, HIDDEN_WIDTH), nn.ReLU(inplace=True))
        self.hidden_layer_2 = nn.Linear(HIDDEN_WIDTH, HIDDEN_WIDTH)
        self.output_layer = OutputLayer(HIDDEN_WIDTH, 1)

    def hidden(self, features: Tensor) -> Tensor:
        """Return the part `[..., 128]` of features `[..., F]` that no action changes."""
        return functional.relu_(self.hidden_layer(features))

    def value(self, hidden: Tensor, action: Tensor) -> Tensor:
        """Return the values `[...]` of actions `[..., actions]` on `hidden` `[..., 128]`."""
        hidden = functional.relu_(self.hidden_layer_2(hidden * self.action_encoder(action)))
        return self.output_layer(hidden).squeeze(-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor], action: Tensor) -> Tensor:
        """Return the values `[...]` of actions `[..., actions]`."""
        return self.value(self.hidden(self.encode(observation)), action)


class QuantileCritic(QuantileEncodedNetwork):
    """Quantiles of the action value of AC-IQN; the action enters after the first hidden layer."""

    def __init__(self, dims: ObservationDims, scale: InputScale, actions: int) -> None:
        super().__init__(dims, scale)
        self.action_encoder = nn.Sequential(nn.Linear(actions, HIDDEN_WIDTH), nn.ReLU(inplace=True))
        self.hidden_layer_2 = nn.Linear(HIDDEN_WIDTH, HIDDEN_WIDTH)
        self.output_layer = OutputLayer(HIDDEN_WIDTH, 1)

    def value(self, hidden: Tensor, action: Tensor) -> Tensor:
        """Return quantiles `[..., N]` of actions `[..., actions]` on `hidden` `[..., N, 128]`."""
        hidden = hidden * self.action_encoder(action).unsqueeze(-2)  # [..., N, 128]
        hidden = functional.relu_(self.hidden_layer_2(hidden))  # [..., N, 128]
        return self.output_layer(hidden).squeeze(-1)

    def forward(
        self, observation: tuple[Tensor, Tensor, Tensor], action: Tensor, taus: Tensor
    ) -> Tensor:
        """Return quantiles `[..., N]` at fractions `taus`, `[..., N]` or `[N]`."""
        return self.value(self.hidden(self.encode(observation), taus), action)


def squash(z: Tensor) -> Tensor:
    """Map unbounded z to an action in (-1, 1): a = (2/pi) atan(z)."""
    return (2.0 / math.pi) * torch.atan(z)


def load_published(network: EncodedNetwork, weights: Mapping[str, Tensor]) -> None:
    """Load weights trained without input scaling, and set the network's scaling to the identity.

    Args:
        network: of the kind and the sizes of the weights.
        weights: every parameter by its state-dict name, and no scaling buffer.

    Raises:
        RuntimeError: a name is missing, unknown, or its shape does not fit.
    """
    identity = {
        name: torch.ones_like(buffer)
        for name, buffer in network.named_buffers()
        if name.endswith("_input_scale")
    }
    network.load_state_dict({**weights, **identity}, strict=True)
