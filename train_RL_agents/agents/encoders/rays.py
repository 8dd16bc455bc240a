"""The encoder of a robot and its range finder."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from marinenav_env.envs.spec import RaySpec
from train_RL_agents.agents.encoders.parts import (
    EGO_WIDTH,
    HIDDEN_WIDTH,
    ObservationEncoder,
    layer,
    reciprocal_scale,
)

RAY_WIDTH = 200  # with the robot's own features as many as the published encoder gives


class RayEncoder(ObservationEncoder):
    """One layer for the robot itself, and one for all rows of its range finder together."""

    def __init__(
        self, spec: RaySpec, ego_magnitude: Sequence[float] | None, widening: int = 1
    ) -> None:
        super().__init__()
        (ego,), (rows, features), _ = spec.shapes
        self.self_input_scale: Tensor
        self.ray_input_scale: Tensor
        scale = reciprocal_scale("ego_magnitude", ego_magnitude, spec.ego, ego)
        self.register_buffer("self_input_scale", scale)
        scale = reciprocal_scale("magnitudes", None, spec.rays, rows * features)
        self.register_buffer("ray_input_scale", scale)
        self.self_encoder = layer(ego, EGO_WIDTH * widening)
        self.ray_encoder = layer(rows * (features + 1), RAY_WIDTH * widening)
        self.features = (EGO_WIDTH + RAY_WIDTH) * widening
        self.hidden_width = HIDDEN_WIDTH * widening

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the scaled observation, all of the rays in one row."""
        ego, rays, hits = observation
        seen = torch.cat((rays.flatten(-2) * self.ray_input_scale, hits), dim=-1)
        return ego * self.self_input_scale, seen

    def layers(self, inputs: tuple[Tensor, Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        ego, seen = inputs
        return torch.cat((self.self_encoder(ego), self.ray_encoder(seen)), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 256]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))
