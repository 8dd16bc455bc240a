"""How vessels move, as plain tensors: the one place where scores meet Tracks and environments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.marine import MarineNavEnv

if TYPE_CHECKING:
    from marinenav_env.tracks import Tracks

FIELDS = ("x", "y", "heading", "vx", "vy")
"""Robot fields of the simulator that a `Motion` takes, in its order."""


class Motion(NamedTuple):
    """True motion of the vessels of W worlds, worlds last, as the simulator has it.

    Row 0 is the reset, row t what decision t has led to.

    Attributes:
        x: [T, R, W] m, north.
        y: [T, R, W] m, east.
        heading: [T, R, W] rad, clockwise from north.
        vx: [T, R, W] m/s over ground, north.
        vy: [T, R, W] m/s over ground, east.
        present: [T, R, W] bool, the vessel took part in the decision; in row 0: it is there.
    """

    x: Tensor
    y: Tensor
    heading: Tensor
    vx: Tensor
    vy: Tensor
    present: Tensor

    def of_worlds(self, worlds: Tensor) -> Motion:
        """Return the motion in worlds [N]."""
        # On a CPU `index_select` of the last dimension takes three times as long.
        index = worlds.expand(*self.x.shape[:2], -1)
        return Motion(*(field.gather(-1, index) for field in self))


def sizes_of(placed: Tensor, buoys: Tensor, under_way: Tensor) -> Tensor:
    """Return up to which vessel, buoy and row there is any in each world: [3, W].

    Args:
        placed: [R, W] bool, the vessel is there at first.
        buoys: [B, W] bool, the buoy is there.
        under_way: [T, W] bool, any vessel took part.
    """
    return torch.stack([_until_last(flags) for flags in (placed, buoys, under_way)])


def _until_last(flags: Tensor) -> Tensor:
    """Return the number of flags [N, W] up to the last one that is set: [W]."""
    number = torch.arange(len(flags) + 1, device=flags.device).unsqueeze(1)
    none = flags.new_zeros(1, flags.shape[1])
    return torch.cat((none, flags)).mul(number).amax(0)


def motion_of_tracks(tracks: Tracks) -> Motion:
    """Return the motion that Tracks hold."""
    return Motion._make([*(tracks.field(name).mT for name in FIELDS), tracks.present.mT])


class MotionLog:
    """Keeps the motion in an environment's worlds while they run.

    Args:
        env: the environment, after its reset.
    """

    def __init__(self, env: MarineNavEnv) -> None:
        self._env = env
        self._worlds = torch.arange(env.worlds, device=env.device)
        self._blocks: list[tuple[Tensor, list[Motion]]] = [(self._worlds, [])]
        self.note(env.alive)

    def follow(self, worlds: Tensor) -> None:
        """Follow only these worlds [N] from now on, in ascending order."""
        self._worlds = worlds
        self._blocks.append((worlds, []))

    def note(self, present: Tensor) -> None:
        """Note the motion now; ``present`` [W, R] is that of `Motion`."""
        state, worlds = self._env.state, self._worlds
        rows = (state.robot_field(name).index_select(1, worlds) for name in FIELDS)
        self._blocks[-1][1].append(Motion._make([*rows, present.index_select(0, worlds).T]))

    def read(self) -> Iterator[tuple[Tensor, Motion]]:
        """Yield worlds that were followed equally long, and their motion.

        Worlds with as many vessels, buoys and decisions stand together.
        """
        blocks = [
            (worlds, Motion(*map(torch.stack, zip(*rows, strict=True))))
            for worlds, rows in self._blocks
            if rows
        ]
        placed, radius = blocks[0][1].present[0], self._env.state.buoy[2]
        for last, (worlds, motion) in enumerate(blocks):
            later = blocks[last + 1][0] if last + 1 < len(blocks) else worlds[:0]
            ends = ~torch.isin(worlds, later)
            ended, under_way = worlds[ends], motion.present.any(1)[:, ends]
            robots, slots, rows = sizes_of(placed[:, ended], radius[:, ended] > 0.0, under_way)
            order = ((robots * (len(radius) + 1) + slots) * (len(motion.x) + 1) + rows).argsort()
            ended = ended[order]
            parts = [
                block.of_worlds(torch.searchsorted(among, ended))
                for among, block in blocks[: last + 1]
            ]
            if len(ended):
                yield ended, Motion(*map(torch.cat, zip(*parts, strict=True)))
