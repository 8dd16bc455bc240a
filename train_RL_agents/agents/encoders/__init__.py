"""Encoders: from a raw observation to features `[..., F]`, on which the head of a network stands.

The environment's description chooses the encoder. Scaling the inputs is part of it, so that it
travels with the weights and the exported model.

An encoder has two parts: `inputs` works out, without any weight, what `layers` take. An update, in
which several networks see the same observations, does the first part once. Widths in comments are
those of widening 1. A file holds the encoders of one kind of observation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from marinenav_env.envs.spec import FlatSpec, ObservationSpec, RaySpec, TwoListSpec
from marinenav_env.fields import require
from train_RL_agents.agents.encoders.flat import FlatEncoder
from train_RL_agents.agents.encoders.objects import EntityEncoder, RelativeMotionEncoder
from train_RL_agents.agents.encoders.rays import RayEncoder
from train_RL_agents.agents.encoders.two_lists import TwoListEncoder, TwoListRelativeMotionEncoder

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
        ConfigError: the magnitudes do not fit the features, or the kind not the observation.
    """
    known: dict[str, Callable[[], Encoder]]
    if isinstance(spec, FlatSpec):
        known = {"published": lambda: FlatEncoder(spec, ego_magnitude, widening)}
    elif isinstance(spec, RaySpec):
        known = {"published": lambda: RayEncoder(spec, ego_magnitude, widening)}
    elif isinstance(spec, TwoListSpec):
        known = {
            "published": lambda: TwoListEncoder(spec, ego_magnitude, widening),
            "relative_motion": lambda: TwoListRelativeMotionEncoder(spec, widening),
        }
    else:
        known = {
            "published": lambda: EntityEncoder(spec, ego_magnitude, object_magnitude, widening),
            "relative_motion": lambda: RelativeMotionEncoder(spec, widening),
        }
    remedy = f"the environment shows what others encode; choose one of {', '.join(known)}"
    require(kind in known, "encoder", kind, remedy)
    return known[kind]()
