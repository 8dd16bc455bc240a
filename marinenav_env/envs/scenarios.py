"""Scenarios as data: what a stage holds, and the six published ones of the curriculum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from marinenav_env.fields import PUBLISHED, Settings, setting


@dataclass(frozen=True)
class Stage(Settings):
    """How many things a random scenario holds, and how far its robots have to go."""

    robots: int = setting(unit="vessels", source=PUBLISHED, low=1)
    vortices: int = setting(unit="vortices", source=PUBLISHED, low=0)
    buoys: int = setting(unit="buoys", source=PUBLISHED, low=0)
    min_distance_m: float = setting(unit="m", source=PUBLISHED, low=0.0)
    """Shortest allowed distance from a robot's start to its goal."""

    @property
    def label(self) -> str:
        """Short name in tables and figures, for example ``5 robots, 4 buoys``."""
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
