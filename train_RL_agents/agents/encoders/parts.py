"""What encoders are made of: layers of the published widths, and the scales of their inputs.

Widths are those of widening 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import Features
from marinenav_env.fields import ConfigError

EGO_WIDTH = 56  # published width of the encoder of the robot's own features
OBJECT_WIDTH = 40  # published width of the encoder of one object
HIDDEN_WIDTH = 128  # published width of both hidden layers on it


class ObservationEncoder(nn.Module):
    """What encoders share."""

    def places_of(self, smaller: Any) -> Tensor | None:
        """Return where the features of a narrower encoder, or one of fewer frames, are in its own.

        Args:
            smaller: encoder of the same class.

        Returns:
            Index [F of the smaller one], where its inputs are the first of the inputs here; None
            where they are not.
        """
        return None

    def read(self, observation: Any) -> Any:
        """Return what of an observation the encoder reads, views; a replay need keep no more.

        The encoder's inputs of it, and adaptive risk levels, are those of the whole observation.
        """
        return observation


def layer(inputs: int, width: int) -> nn.Sequential:
    """Return a linear layer with ReLU."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(inplace=True))


def masked(features: Tensor, mask: Tensor) -> Tensor:
    """Return the features of objects that are there, and 0 for the others.

    A layer gives them in two dimensions, since it then takes its bias along with the product. In
    more, torch adds it in a pass of its own where the objects lie feature by feature.

    Args:
        features: `[N, width]` of all objects.
        mask: which are there, `[..., K]` with N entries.

    Returns:
        `[..., K, width]`.
    """
    features = features * mask.flatten().unsqueeze(-1).to(features.dtype)
    return features.unflatten(0, mask.shape)


def reciprocal_scale(
    name: str, magnitudes: Sequence[float] | None, features: Features, size: int
) -> Tensor:
    """Return `1 / magnitudes`, repeated to `size` features, as a float tensor `[size]`.

    Args:
        name: of the setting, for messages.
        magnitudes: divisors of one frame; None takes those of the features.
        features: of one frame.
        size: features of all frames.

    Raises:
        ConfigError: the magnitudes do not divide `size`, or one of them is not positive.
    """
    if magnitudes is None:
        magnitudes = features.magnitudes
    if not magnitudes or size % len(magnitudes) != 0:
        raise ConfigError(
            f"{name} has {len(magnitudes)} entries, which do not divide the {size} features of the "
            f"observation; give one magnitude per feature of a frame"
        )
    if not all(value > 0 for value in magnitudes):
        raise ConfigError(f"{name} = {tuple(magnitudes)}: every magnitude must be positive")
    return torch.tensor(tuple(magnitudes)).reciprocal().repeat(size // len(magnitudes))
