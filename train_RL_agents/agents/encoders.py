"""Encoders: from a raw observation to features `[..., F]`, on which the head of a network stands.

The environment's description chooses the encoder. Scaling the inputs is part of it, so that it
travels with the weights and the exported model.

An encoder has two parts: `inputs` works out, without any weight, what `layers` take. An update, in
which several networks see the same observations, does the first part once. Widths in comments are
those of widening 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import (
    EntitySpec,
    Features,
    FlatSpec,
    ObservationSpec,
    RaySpec,
    TwoListSpec,
)
from marinenav_env.fields import ConfigError
from train_RL_agents.agents.relative_motion import (
    TURNING_AND_THRUSTS,
    OwnMotion,
    RelativeMotion,
    columns,
)

EGO_WIDTH = 56  # published width of the encoder of the robot's own features
OBJECT_WIDTH = 40  # published width of the encoder of one object
HIDDEN_WIDTH = 128  # published width of both hidden layers on it
LIST_WIDTHS = 32, 120, 160  # published widths for the robot and for either list (ICRA 2024)
LIST_HIDDEN_WIDTH = 156  # published width of both hidden layers on those
RAY_WIDTH = 200  # with the robot's own features as many as the published encoder gives
FLAT_WIDTH = 256  # that of the published encoder's output, for five objects


class EntityEncoder(nn.Module):
    """The published encoder: one layer for the robot itself, one that all objects share.

    State-dict names are those of the published weights.
    """

    def __init__(
        self,
        spec: EntitySpec,
        ego_magnitude: Sequence[float] | None,
        object_magnitude: Sequence[float] | None,
        widening: int = 1,
    ) -> None:
        super().__init__()
        (ego,), (rows, objects), _ = spec.shapes
        own_scale = reciprocal_scale("ego_magnitude", ego_magnitude, spec.ego, ego)
        object_scale = reciprocal_scale("object_magnitude", object_magnitude, spec.objects, objects)
        self.self_input_scale: Tensor  # here, because TorchScript cannot read it in the class
        self.object_input_scale: Tensor
        self.register_buffer("self_input_scale", own_scale)
        self.register_buffer("object_input_scale", object_scale)
        own_width, width = EGO_WIDTH * widening, OBJECT_WIDTH * widening
        self.self_encoder = layer(ego, own_width)
        self.object_encoder = layer(objects, width)
        self.features, self.hidden_width = own_width + rows * width, HIDDEN_WIDTH * widening

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scaled observation."""
        ego, objects, mask = observation
        return ego * self.self_input_scale, objects * self.object_input_scale, mask

    def layers(self, inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        ego, objects, mask = inputs
        own = self.self_encoder(ego)  # [..., 56]
        others = self.object_encoder(objects) * mask.unsqueeze(-1)  # [..., K, 40]
        return torch.cat((own, others.flatten(-2)), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 56 + 40 K]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))


class RelativeMotionEncoder(nn.Module):
    """The published encoder's layers on features of relative motion instead of raw ones.

    With several frames, each is described in itself. Vessels and buoys are told apart by their
    observed radius, which is at most the true one: what looks larger than the largest buoy is a
    vessel, with a hull like the robot's.
    """

    def __init__(self, spec: EntitySpec, widening: int = 1) -> None:
        super().__init__()
        self.frames, self.rows = spec.frames, spec.rows
        self.own_radius, self.buoy_radius = spec.own_radius, spec.buoy_radius
        self.own_motion = OwnMotion(TURNING_AND_THRUSTS)
        self.relative_motion = RelativeMotion()
        own_width, width = EGO_WIDTH * widening, OBJECT_WIDTH * widening
        self.self_encoder = layer(self.own_motion.features * spec.frames, own_width)
        self.object_encoder = layer(self.relative_motion.features, width)
        self.features = own_width + spec.rows * spec.frames * width
        self.hidden_width = HIDDEN_WIDTH * widening

    def inputs(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return motions `[..., 11 k]` of the robot and `[..., K k, 15]` of objects, and a mask."""
        ego, objects, mask = observation
        ego = ego.unflatten(-1, (self.frames, -1))  # [..., k, 7]
        x, y, vx, vy, seen = columns(objects.unflatten(-2, (self.frames, self.rows))).unbind(0)
        vessel = seen > self.buoy_radius  # [..., k, K], as every column
        reach = torch.where(vessel, seen.clamp(min=self.own_radius), seen) + self.own_radius
        u, v = ego[..., 2:3], ego[..., 3:4]  # [..., k, 1]
        motion = self.relative_motion((x, y, vx, vy), reach, vessel, u, v)  # [..., k, K, 15]
        return self.own_motion(ego).flatten(-2), motion.flatten(-3, -2), mask

    def layers(self, inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        own_motion, motion, mask = inputs
        own = self.self_encoder(own_motion)  # [..., 56]
        others = self.object_encoder(motion) * mask.unsqueeze(-1)  # [..., K k, 40]
        return torch.cat((own, others.flatten(-2)), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 56 + 40 K k]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))


class TwoListEncoder(nn.Module):
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


class TwoListRelativeMotionEncoder(nn.Module):
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
        buoys = self.static_encoder(static) * standing.unsqueeze(-1)  # [..., K, 40]
        robots = self.dynamic_encoder(dynamic) * present.unsqueeze(-1)  # [..., K, 40]
        own = self.self_encoder(own_motion)  # [..., 56]
        return torch.cat((own, buoys.flatten(-2), robots.flatten(-2)), dim=-1)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the features `[..., 56 + 80 K]` of an observation, the robot's own first."""
        return self.layers(self.inputs(observation))


class RayEncoder(nn.Module):
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


class FlatEncoder(nn.Module):
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

    def inputs(self, observation: tuple[Tensor]) -> tuple[Tensor]:
        """Return the scaled observation."""
        return (observation[0] * self.observation_input_scale,)

    def layers(self, inputs: tuple[Tensor]) -> Tensor:
        """Return the features of `inputs`."""
        return self.observation_encoder(inputs[0])

    def forward(self, observation: tuple[Tensor]) -> Tensor:
        """Return the features `[..., 256]` of an observation."""
        return self.layers(self.inputs(observation))


Encoder = (
    EntityEncoder
    | RelativeMotionEncoder
    | TwoListEncoder
    | TwoListRelativeMotionEncoder
    | RayEncoder
    | FlatEncoder
)

KINDS = ("published", "relative_motion")
"""How a robot and the objects around it can be encoded."""


def make_encoder(
    spec: ObservationSpec,
    kind: str = "published",
    ego_magnitude: Sequence[float] | None = None,
    object_magnitude: Sequence[float] | None = None,
    widening: int = 1,
) -> Encoder:
    """Return the encoder of an environment's observations, with fresh weights.

    Args:
        spec: of the observation.
        kind: of `KINDS`; only observations of objects leave a choice.
        ego_magnitude: divisors of the robot's own features, or of a flat observation; None takes
            those of the description.
        object_magnitude: divisors of an object's features, likewise.
        widening: factor of the published widths.

    Raises:
        ConfigError: the magnitudes do not fit the features.
    """
    if isinstance(spec, FlatSpec):
        return FlatEncoder(spec, ego_magnitude, widening)
    if isinstance(spec, RaySpec):
        return RayEncoder(spec, ego_magnitude, widening)
    relative = kind == "relative_motion"
    if isinstance(spec, TwoListSpec):
        if relative:
            return TwoListRelativeMotionEncoder(spec, widening)
        return TwoListEncoder(spec, ego_magnitude, widening)
    if relative:
        return RelativeMotionEncoder(spec, widening)
    return EntityEncoder(spec, ego_magnitude, object_magnitude, widening)


def layer(inputs: int, width: int) -> nn.Sequential:
    """Return a linear layer with ReLU."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(inplace=True))


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
