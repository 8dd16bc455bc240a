"""The encoder of an observation that is one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.spec import FlatSpec
from train_RL_agents.agents.encoders.parts import (
    HIDDEN_WIDTH,
    ObservationEncoder,
    layer,
    reciprocal_scale,
)

FLAT_WIDTH = 256  # that of the published encoder's output, for five objects


class FlatEncoder(ObservationEncoder):
    """One layer for an observation that is one vector."""

    def __init__(
        self, spec: FlatSpec, magnitude: Sequence[float] | None, widening: int = 1
    ) -> None:
        super().__init__()
        (width,) = spec.shapes.state
        scale = reciprocal_scale("ego_magnitude", magnitude, spec.features, width)
        self.observation_input_scale: Tensor
        self.register_buffer("observation_input_scale", scale)
        self.features, self.hidden_width = FLAT_WIDTH * widening, HIDDEN_WIDTH * widening
        self.observation_encoder = layer(width, self.features)

    def places_of(self, smaller: Any) -> Tensor:
        """Return the first places: older frames are the last inputs."""
        return torch.arange(smaller.features)

    def inputs(self, observation: tuple[Tensor]) -> tuple[Tensor]:
        """Return the scaled observation."""
        return (observation[0] * self.observation_input_scale,)

    def layers(self, inputs: tuple[Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        return self.observation_encoder(inputs[0])

    def forward(self, observation: tuple[Tensor]) -> Tensor:
        """Return the features `[..., 256]` of an observation."""
        return self.layers(self.inputs(observation))
