"""How vessels move, as plain tensors: the one place where scores meet Tracks and environments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from marinenav_env.envs.marine import MarineNavEnv

if TYPE_CHECKING:
    from marinenav_env.tracks import Tracks

FIELDS = ("x", "y", "heading", "vx", "vy")
"""Robot fields of the simulator that a `Motion` takes, in its order."""


class Motion(NamedTuple):
    """True motion of the vessels of W worlds at one instant; worlds last, as the simulator has it.

    Attributes:
        x: [R, W] m, north.
        y: [R, W] m, east.
        heading: [R, W] rad, clockwise from north.
        vx: [R, W] m/s over ground, north.
        vy: [R, W] m/s over ground, east.
        present: [R, W] bool, the vessel is under way, or ended in the decision before.
    """

    x: Tensor
    y: Tensor
    heading: Tensor
    vx: Tensor
    vy: Tensor
    present: Tensor


def motion_of_env(env: MarineNavEnv, present: Tensor, worlds: Tensor) -> Motion:
    """Return the motion in some worlds of an environment.

    Args:
        env: the environment.
        present: [W, R] bool, as in `Motion`.
        worlds: [N] indices.
    """
    rows = (env.state.robot_field(name).index_select(1, worlds) for name in FIELDS)
    return Motion(*rows, present.T.index_select(1, worlds))


def motions_of_tracks(tracks: Tracks) -> Iterator[Motion]:
    """Yield the motion after the reset and after every decision."""
    fields = [tracks.field(name).mT for name in FIELDS]
    for step, present in enumerate(tracks.present.mT):
        yield Motion(*(field[step].contiguous() for field in fields), present.contiguous())
