"""What an environment shows and takes: from it networks, replays and exports are built.

An observation is a named tuple of tensors with the same leading dimensions, `[W, R]` worlds and
robots or `[B]` samples; the first of them is a vector `[..., F]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation, RayObservation, TwoListObservation

ObservationTensors = tuple[Tensor, ...]
"""An observation of any environment."""


def tuple_like(example: tuple[Any, ...], values: Iterable[Any]) -> Any:
    """Return the values as a tuple, or as a named one, of the type of the example."""
    return getattr(type(example), "_make", tuple)(values)


class FlatObservation(NamedTuple):
    """The observation of an environment without objects: one vector `[..., F]`."""

    state: Tensor


@dataclass(frozen=True)
class Features:
    """The features of a vector.

    Attributes:
        names: of every feature.
        units: of every feature.
        magnitudes: typical ones, by which a network divides, in the features' units.
        frame: of reference.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    magnitudes: tuple[float, ...]
    frame: str = "-"

    def __len__(self) -> int:
        """Return the number of features."""
        return len(self.names)

    def draw(self, *shape: int, generator: torch.Generator) -> Tensor:
        """Draw vectors `[*shape, F]` of the typical magnitudes."""
        drawn = torch.randn(*shape, len(self), generator=generator)
        return drawn * torch.tensor(self.magnitudes)

    def describe(self) -> dict[str, Any]:
        """Return names, units and frame as JSON values."""
        return {"features": self.names, "units": self.units, "frame": self.frame}


@dataclass(frozen=True)
class FlatSpec:
    """One vector, as a :class:`FlatObservation`.

    Attributes:
        features: of one frame.
        frames: decisions k in an observation, the newest first.
    """

    features: Features
    frames: int = 1

    keys = ("observation",)
    """Names of an observation's tensors in a TensorDict and in exports."""

    @property
    def shapes(self) -> FlatObservation:
        """Shape of the tensor, without leading dimensions."""
        return FlatObservation((len(self.features) * self.frames,))  # type: ignore[arg-type]

    def draw(self, rows: int, generator: torch.Generator) -> FlatObservation:
        """Draw observations `[rows, ...]` of typical magnitudes."""
        return FlatObservation(
            self.features.draw(rows, self.frames, generator=generator).flatten(1)
        )

    def describe(self) -> list[dict[str, Any]]:
        """Return what an exported file says of each tensor, as JSON values."""
        part = {"name": self.keys[0], "shape": ["B", *self.shapes.state]}
        return [part | self.features.describe() | describe_history(self.frames)]


NEAREST_FIRST = "nearest first, padding 0"


class ListsSpec:
    """What the specs of vessels share: the robot itself, lists of rows, and which rows count.

    A subclass holds the features of the robot and of each list.
    """

    keys: ClassVar[tuple[str, ...]]
    """Names of an observation's tensors in a TensorDict and in exports."""
    kind: ClassVar[Callable[..., Any]]
    """The named tuple of an observation."""
    lists: ClassVar[tuple[str, ...]]
    """Attributes with the features of the lists."""
    mask: ClassVar[str | None] = None
    """What the last tensor means, which says 1 or 0 of each row; None without one."""
    ego: Features
    rows: int
    frames: int
    order: str

    @property
    def shapes(self) -> Any:
        """Shapes of the tensors, without leading dimensions."""
        rows = self.rows * self.frames
        lists = [(rows, len(getattr(self, name))) for name in self.lists]
        mask = [(rows,)] if self.mask else []
        return self.kind((len(self.ego) * self.frames,), *lists, *mask)

    def draw(self, rows: int, generator: torch.Generator) -> Any:
        """Draw observations `[rows, ...]` of typical magnitudes; the first sees nothing."""
        ego = self.ego.draw(rows, self.frames, generator=generator).flatten(1)
        lists = []
        for name in self.lists:
            drawn = getattr(self, name).draw(rows, self.rows * self.frames, generator=generator)
            mask = (torch.rand(drawn.shape[:-1], generator=generator) < 0.7).float()
            mask[0] = 0.0
            lists.append(drawn * mask.unsqueeze(-1))
        return self.kind(ego, *lists, *([mask] if self.mask else []))

    def describe(self) -> list[dict[str, Any]]:
        """Return what an exported file says of each tensor, as JSON values."""
        order, mask = {"order": self.order}, [{"meaning": self.mask}] if self.mask else []
        lists = [getattr(self, name).describe() | order for name in self.lists]
        parts = [self.ego.describe() | describe_history(self.frames), *lists, *mask]
        return [
            {"name": key, "shape": ["B", *shape]} | part
            for key, shape, part in zip(self.keys, self.shapes, parts, strict=True)
        ]


@dataclass(frozen=True)
class EntitySpec(ListsSpec):
    """A robot and the objects around it, nearest first, as an :class:`Observation`.

    Attributes:
        ego: features of the robot itself, in one frame.
        objects: features of an object; the first two are its position relative to the robot.
        rows: objects K of one frame.
        frames: decisions k in an observation, the newest first.
        own_radius: of the robot, m.
        buoy_radius: of the largest buoy, m.
    """

    ego: Features
    objects: Features
    rows: int
    frames: int
    own_radius: float
    buoy_radius: float

    keys = ("self", "objects", "mask")
    kind = Observation
    lists = ("objects",)
    order = NEAREST_FIRST
    mask = "1 for an object, 0 for padding"


@dataclass(frozen=True)
class TwoListSpec(ListsSpec):
    """A robot, the buoys and the robots around it, as a :class:`TwoListObservation`.

    Attributes:
        ego: features of the robot itself, in one frame.
        static: features of a buoy: its position relative to the robot, and its radius.
        dynamic: features of another robot; the first two are its position likewise.
        rows: of either list, in one frame.
        frames: decisions k in an observation, the newest first.
        own_radius: of every robot, m.
    """

    ego: Features
    static: Features
    dynamic: Features
    rows: int
    frames: int
    own_radius: float

    keys = ("self", "static", "dynamic")
    kind = TwoListObservation
    lists = ("static", "dynamic")
    order = NEAREST_FIRST


@dataclass(frozen=True)
class RaySpec(ListsSpec):
    """A robot and what its range finder measures, as a :class:`RayObservation`.

    Attributes:
        ego: features of the robot itself, in one frame.
        rays: features of a row: a sector or a beam.
        rows: of one frame.
        order: of the rows, in words.
        frames: decisions k in an observation, the newest first.
    """

    ego: Features
    rays: Features
    rows: int
    order: str
    frames: int

    keys = ("self", "rays", "hits")
    kind = RayObservation
    lists = ("rays",)
    mask = "1 where a row meets something, else 0"


def describe_history(frames: int) -> dict[str, str]:
    """Return what an exported file says of the frames in an observation."""
    return {"history": f"{frames} decisions, the newest first"}


ObservationSpec = EntitySpec | TwoListSpec | RaySpec | FlatSpec


@dataclass(frozen=True)
class ActionSpec:
    """Index of an action, or a vector in [-1, 1].

    Attributes:
        discrete: an index `[...]` int64 rather than coordinates `[..., A]`.
        size: number of indices, or of coordinates A.
        meaning: what an exported file says of it, as JSON values.
    """

    discrete: bool
    size: int
    meaning: Mapping[str, Any]


@dataclass(frozen=True)
class EnvSpec:
    """What an environment shows to a robot, and what it takes from it.

    Attributes:
        observation: what it shows.
        action: what it takes.
        group: key of the robots' entries in a TensorDict; None puts them at the root.
    """

    observation: ObservationSpec
    action: ActionSpec
    group: str | None = None

    def key(self, name: str) -> str | tuple[str, str]:
        """Return the key of a robot's entry in a TensorDict."""
        return (self.group, name) if self.group else name
