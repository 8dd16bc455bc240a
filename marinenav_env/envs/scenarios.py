"""Scenarios as data: what a stage holds, and the six published ones of the curriculum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """How many things a random scenario holds, and how far its robots have to go.

    Attributes:
        robots: number of vessels [-], at least 1.
        cores: number of vortex cores [-].
        buoys: number of static buoys [-].
        min_distance_m: shortest allowed distance from a robot's start to its goal [m].

    Raises:
        ValueError: a count is not a whole number or too small, or the distance is not finite
            or negative.
    """

    robots: int
    vortices: int
    buoys: int
    min_distance_m: float

    def __post_init__(self) -> None:
        """Check the counts and the distance; see the class."""
        for field, least in (("robots", 1), ("vortices", 0), ("buoys", 0)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f"Stage.{field} is {value!r}: give a whole number, {least} or more"
                )
        distance = self.min_distance_m
        is_number = isinstance(distance, int | float) and not isinstance(distance, bool)
        if not is_number or not math.isfinite(distance) or distance < 0.0:
            raise ValueError(
                f"Stage.min_distance_m is {distance!r}: give a finite distance in metres, 0 or more"
            )

    @property
    def label(self) -> str:
        """Short name in tables and pictures, for example ``5 robots, 4 buoys``."""
        parts = [_counted(self.robots, "robots"), _counted(self.buoys, "buoys")]
        if self.vortices:
            parts.append(_counted(self.vortices, "vortices"))
        return ", ".join(parts)


def labels_of(stages: Sequence[Stage]) -> list[str]:
    """Return a name of its own for every stage: its label, with what else it takes to tell them."""
    names = [stage.label for stage in stages]
    alike = Counter(names)
    names = [
        f"{name}, {stage.min_distance_m:g} m" if alike[name] > 1 else name
        for name, stage in zip(names, stages, strict=True)
    ]
    return [
        name if names.index(name) == i else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]


def _counted(count: int, plural: str) -> str:
    return f"{count} {SINGULAR[plural] if count == 1 else plural}"


SINGULAR = {"robots": "robot", "buoys": "buoy", "vortices": "vortex"}


PUBLISHED_STAGES: tuple[Stage, ...] = (
    Stage(robots=3, vortices=0, buoys=0, min_distance_m=30.0),
    Stage(robots=4, vortices=0, buoys=0, min_distance_m=35.0),
    Stage(robots=5, vortices=0, buoys=0, min_distance_m=40.0),
    Stage(robots=5, vortices=0, buoys=2, min_distance_m=40.0),
    Stage(robots=5, vortices=0, buoys=3, min_distance_m=40.0),
    Stage(robots=5, vortices=0, buoys=4, min_distance_m=40.0),
)
"""The curriculum of the published training, one stage per sixth of the run, and its evaluation."""
