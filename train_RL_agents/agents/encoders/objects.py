"""Encoders of a robot and a list of objects around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.spec import EntitySpec
from train_RL_agents.agents.encoders.parts import (
    EGO_WIDTH,
    HIDDEN_WIDTH,
    OBJECT_WIDTH,
    ObservationEncoder,
    layer,
    masked,
    reciprocal_scale,
)
from train_RL_agents.agents.relative_motion import (
    TURNING_AND_THRUSTS,
    OwnMotion,
    RelativeMotion,
    columns,
    looks_like_vessel,
)


class _ObjectsEncoder(ObservationEncoder):
    """One layer for the robot itself, one that all objects share.

    State-dict names are those of the published weights.
    """

    def __init__(self, own: int, objects: int, rows: int, widening: int) -> None:
        super().__init__()
        own_width, width = EGO_WIDTH * widening, OBJECT_WIDTH * widening
        self.self_encoder = layer(own, own_width)
        self.object_encoder = layer(objects, width)
        self.features, self.hidden_width = own_width + rows * width, HIDDEN_WIDTH * widening

    def places_of(self, smaller: Any) -> Tensor:
        """Return the places of the robot's features, then of each object's; older ones are last."""
        encoders: tuple[Any, Any] = self, smaller
        own_width, own = (encoder.self_encoder[0].out_features for encoder in encoders)
        width, each = (encoder.object_encoder[0].out_features for encoder in encoders)
        place = torch.arange(smaller.features - own)  # among those of the objects
        objects = own_width + place // each * width + place % each
        return torch.cat((torch.arange(own), objects))

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the layers take: of the robot, of K objects, and which of these are there."""
        raise NotImplementedError

    def layers(self, inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        ego, objects, mask = inputs
        own = self.self_encoder(ego)  # [..., 56]
        others = masked(self.object_encoder(objects.flatten(0, -2)), mask)  # [..., K, 40]
        return torch.cat((own, others.flatten(-2)), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 56 + 40 K]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))


class EntityEncoder(_ObjectsEncoder):
    """The published encoder, on the scaled observation."""

    def __init__(
        self,
        spec: EntitySpec,
        ego_magnitude: Sequence[float] | None,
        object_magnitude: Sequence[float] | None,
        widening: int = 1,
    ) -> None:
        (ego,), (rows, objects), _ = spec.shapes
        super().__init__(ego, objects, rows, widening)
        own_scale = reciprocal_scale("ego_magnitude", ego_magnitude, spec.ego, ego)
        object_scale = reciprocal_scale("object_magnitude", object_magnitude, spec.objects, objects)
        self.self_input_scale: Tensor  # here, because TorchScript cannot read it in the class
        self.object_input_scale: Tensor
        self.register_buffer("self_input_scale", own_scale)
        self.register_buffer("object_input_scale", object_scale)

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scaled observation."""
        ego, objects, mask = observation
        return ego * self.self_input_scale, objects * self.object_input_scale, mask


class RelativeMotionEncoder(_ObjectsEncoder):
    """The published encoder's layers on features of relative motion instead of raw ones.

    With several frames, each is described in itself. Vessels and buoys are told apart by their
    observed radius, which is at most the true one: what looks larger than the largest buoy is a
    vessel, with a hull like the robot's.
    """

    def __init__(self, spec: EntitySpec, widening: int = 1) -> None:
        own_motion, relative_motion = OwnMotion(TURNING_AND_THRUSTS), RelativeMotion()
        own, rows = own_motion.features * spec.frames, spec.rows * spec.frames
        super().__init__(own, relative_motion.features, rows, widening)
        self.frames, self.rows = spec.frames, spec.rows
        self.own_radius, self.buoy_radius = spec.own_radius, spec.buoy_radius
        self.own_motion, self.relative_motion = own_motion, relative_motion

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return motions `[..., 11 k]` of the robot and `[..., K k, 15]` of objects, and a mask."""
        ego, objects, mask = observation
        ego = ego.unflatten(-1, (self.frames, -1))  # [..., k, 7]
        x, y, vx, vy, seen = columns(objects.unflatten(-2, (self.frames, self.rows))).unbind(0)
        vessel = looks_like_vessel(seen, self.buoy_radius)  # [..., k, K], as every column
        reach = torch.where(vessel, seen.clamp(min=self.own_radius), seen) + self.own_radius
        u, v = ego[..., 2:3], ego[..., 3:4]  # [..., k, 1]
        motion = self.relative_motion((x, y, vx, vy), reach, vessel, u, v)  # [..., k, K, 15]
        return self.own_motion(ego).flatten(-2), motion.flatten(-3, -2), mask
