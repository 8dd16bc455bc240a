"""Scenes: vessels, buoys and vortices where they are wanted, instead of a random map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marinenav_env.envs.scenarios import Stage
from marinenav_env.kernel import ops


@dataclass(frozen=True)
class Scene:
    """How a world begins; rows are those of the core's tables (`csrc/marine/scenes.h`).

    Attributes:
        vessels: x, y, goal x, goal y (m), heading (rad in [0, 2 pi)), speed through the water
            (m/s) of each.
        buoys: x, y, radius (m) of each.
        vortices: x, y (m), circulation (m^2/s) of each.
        move: m; every start is moved by up to this, north and east, uniformly in each episode.
        turn: rad; every heading is turned by up to this, uniformly in each episode.
    """

    vessels: tuple[tuple[float, ...], ...]
    buoys: tuple[tuple[float, ...], ...] = ()
    vortices: tuple[tuple[float, ...], ...] = ()
    move: float = 0.0
    turn: float = 0.0


@dataclass(frozen=True)
class SceneStage:
    """A stage whose episodes each begin with one of some scenes, drawn uniformly.

    Attributes:
        label: name in records.
        scenes: at least one.
    """

    label: str
    scenes: tuple[Scene, ...]

    @property
    def robots(self) -> int:
        """Most vessels of a scene."""
        return max(len(scene.vessels) for scene in self.scenes)

    @property
    def buoys(self) -> int:
        """Most buoys of a scene."""
        return max(len(scene.buoys) for scene in self.scenes)

    @property
    def vortices(self) -> int:
        """Most vortices of a scene."""
        return max(len(scene.vortices) for scene in self.scenes)

    @property
    def mean_robots(self) -> float:
        """Vessels of a scene on average."""
        return sum(len(scene.vessels) for scene in self.scenes) / len(self.scenes)


AnyStage = Stage | SceneStage
SPEC = ops.describe("marine")  # of every environment with stages


def stage_tables(stages: Sequence[AnyStage], robots: int, buoys: int, vortices: int) -> dict:
    """Return the tables of stages and scenes, which every marine environment has.

    Args:
        stages: random maps and scenes.
        robots: slots of each kind in a world.
        buoys: "
        vortices: "
    """
    rows: list[list[float]] = []
    scenes: list[Scene] = []
    for stage in stages:
        if isinstance(stage, Stage):
            counts = stage.robots, stage.vortices, stage.buoys, stage.min_distance_m
            rows.append([*counts, 0, 0])
        else:
            rows.append([0, 0, 0, 0, len(scenes), len(stage.scenes)])
            scenes += stage.scenes
    kinds = ("vessels", "buoys", "vortices")
    heads = [
        [*(len(getattr(scene, kind)) for kind in kinds), scene.move, scene.turn] for scene in scenes
    ]
    tables: dict[str, Any] = {
        "stage": rows,
        "scene": np.array(heads, dtype=np.float64).reshape(len(scenes), len(SPEC.fields("scene"))),
    }
    slots = {"scene_vessel": robots, "scene_buoy": buoys, "scene_vortex": vortices}
    for (name, count), kind in zip(slots.items(), kinds, strict=True):
        table = np.zeros((len(scenes), count, len(SPEC.fields(name))))
        for index, scene in enumerate(scenes):
            for slot, row in enumerate(getattr(scene, kind)):
                table[index, slot] = row
        tables[name] = table
    return tables
