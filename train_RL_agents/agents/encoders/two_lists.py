"""Encoders of a robot, a list of buoys and a list of robots (ICRA 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.spec import TwoListSpec, tuple_like
from train_RL_agents.agents.encoders.parts import (
    EGO_WIDTH,
    OBJECT_WIDTH,
    ObservationEncoder,
    layer,
    masked,
    reciprocal_scale,
)
from train_RL_agents.agents.relative_motion import OwnMotion, RelativeMotion, columns

LIST_WIDTHS = 32, 120, 160  # published widths for the robot and for either list
LIST_HIDDEN_WIDTH = 156  # published width of both hidden layers on those


class TwoListEncoder(ObservationEncoder):
    """The encoder of ICRA 2024: a layer for the robot itself and for either whole list.

    State-dict names are those of the published weights.
    """

    def __init__(
        self, spec: TwoListSpec, ego_magnitude: Sequence[float] | None, widening: int = 1
    ) -> None:
        super().__init__()
        own, buoys, robots = (math.prod(shape) for shape in spec.shapes)
        self.self_input_scale: Tensor
        self.static_input_scale: Tensor
        self.dynamic_input_scale: Tensor
        scale = reciprocal_scale("ego_magnitude", ego_magnitude, spec.ego, own)
        self.register_buffer("self_input_scale", scale)
        for name, features, size in (
            ("static", spec.static, buoys),
            ("dynamic", spec.dynamic, robots),
        ):
            scale = reciprocal_scale("magnitudes", None, features, size)
            self.register_buffer(f"{name}_input_scale", scale)
        self.self_encoder, self.static_encoder, self.dynamic_encoder = (
            layer(size, width * widening)
            for size, width in zip((own, buoys, robots), LIST_WIDTHS, strict=True)
        )
        self.features = sum(LIST_WIDTHS) * widening
        self.hidden_width = LIST_HIDDEN_WIDTH * widening

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scaled observation, each list in one row."""
        ego, static, dynamic = observation
        buoys = static.flatten(-2) * self.static_input_scale
        robots = dynamic.flatten(-2) * self.dynamic_input_scale
        return ego * self.self_input_scale, buoys, robots

    def layers(self, inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        ego, static, dynamic = inputs
        own = self.self_encoder(ego)  # [..., 32]
        buoys = self.static_encoder(static)  # [..., 120]
        robots = self.dynamic_encoder(dynamic)  # [..., 160]
        return torch.cat((own, buoys, robots), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 312]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))


class TwoListRelativeMotionEncoder(ObservationEncoder):
    """A layer for the robot itself, one that all buoys share and one that all robots share.

    All are on features of relative motion. Of several frames the earlier ones tell of the robot's
    own motion only, from which a network can infer the water that carries it.
    """

    def __init__(self, spec: TwoListSpec, widening: int = 1) -> None:
        super().__init__()
        self.frames, self.rows, self.own_radius = spec.frames, spec.rows, spec.own_radius
        self.own_motion = OwnMotion(())
        self.relative_motion = RelativeMotion()
        own_width, width = EGO_WIDTH * widening, OBJECT_WIDTH * widening
        self.self_encoder = layer(self.own_motion.features * spec.frames, own_width)
        self.static_encoder = layer(self.relative_motion.features, width)
        self.dynamic_encoder = layer(self.relative_motion.features, width)
        self.features = own_width + 2 * spec.rows * width
        self.hidden_width = LIST_HIDDEN_WIDTH * widening

    def read(self, observation: Any) -> Any:
        """Return the observation with the latest decision's lists only."""
        ego, static, dynamic = observation
        lists = static[..., : self.rows, :], dynamic[..., : self.rows, :]
        return tuple_like(observation, (ego, *lists))

    def inputs(
        self, observation: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return motions of the robot, of buoys and of robots, and which of the latter are there.

        They are `[..., 8 k]`, `[..., K, 15]` twice and `[..., K]` twice.
        """
        ego, static, dynamic = observation
        ego = ego.unflatten(-1, (self.frames, -1))  # [..., k, 4]
        u, v = ego[..., 0, 2:3], ego[..., 0, 3:4]  # [..., 1]
        x, y, radius = columns(static[..., : self.rows, :]).unbind(0)
        # All comes from the observation: what is made anew has a fixed batch in an ONNX file.
        still = 0.0 * x  # [..., K], as every column
        reach = radius + self.own_radius
        buoys = self.relative_motion((x, y, still, still), reach, still, u, v)
        x, y, vx, vy = columns(dynamic[..., : self.rows, :]).unbind(0)
        present = (x != 0.0) | (y != 0.0)  # two robots are never at one place
        reach = 0.0 * x + 2.0 * self.own_radius
        robots = self.relative_motion((x, y, vx, vy), reach, present, u, v)
        return self.own_motion(ego).flatten(-2), buoys, robots, radius > 0.0, present

    def layers(self, inputs: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        own_motion, static, dynamic, standing, present = inputs
        buoys = masked(self.static_encoder(static.flatten(0, -2)), standing)  # [..., K, 40]
        robots = masked(self.dynamic_encoder(dynamic.flatten(0, -2)), present)  # [..., K, 40]
        own = self.self_encoder(own_motion)  # [..., 56]
        return torch.cat((own, buoys.flatten(-2), robots.flatten(-2)), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 56 + 80 K]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))
