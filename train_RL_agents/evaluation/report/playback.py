"""Episodes for the playback of the page: which ones, and packed as the script reads them."""

from __future__ import annotations

import base64
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import OBJECT_FEATURES
from marinenav_env.render.geometry import water_velocity
from marinenav_env.tracks import Tracks
from train_RL_agents.evaluation.report.evaluated import Evaluated

BUDGET = 3_500_000
"""Characters of all packed episodes of a page."""
ROWS = 400
"""An episode of more decisions is thinned out."""
FLOW_ARROWS = 24
"""Arrows of the water along each side of the map."""
SHOWN = [OBJECT_FEATURES.index(name) for name in ("p_x", "p_y", "radius")]
LARGEST = 32_767


class Candidate(NamedTuple):
    """An episode that may be shown.

    Attributes:
        rank: 0 a failure, 1 a near miss, 2 any other.
        gap: least gap to a vessel or buoy [m].
        row: index of its row of the table.
        world: in its evaluation.
        end: how it ended.
    """

    rank: int
    gap: float
    row: int
    world: int
    end: str


def candidates(evaluated: Evaluated) -> list[Candidate]:
    """Return all episodes: failures first, then near misses, then the others by their gap."""
    found, world = [], 0
    for row, result in enumerate(evaluated.rows):
        vessels, outcomes = result.measures.vessels, result.outcomes
        count = len(outcomes.success)
        near = (vessels["near_vessel"] + vessels["near_buoy"]) > 0
        gaps = torch.minimum(vessels["gap_vessel"], vessels["gap_buoy"])
        least = torch.full((count,), math.inf, dtype=gaps.dtype)
        least.scatter_reduce_(0, vessels["world"], gaps, "amin")
        missed = torch.zeros(count).scatter_add_(0, vessels["world"], near.float()) > 0
        for episode in range(count):
            success = bool(outcomes.success[episode])
            end = "collision" if outcomes.collision[episode] else "time-out"
            end = ("near miss" if missed[episode] else "success") if success else end
            rank = 0 if not success else 1 if missed[episode] else 2
            found.append(Candidate(rank, least[episode].item(), row, world + episode, end))
        world += count
    return sorted(found, key=lambda one: (one.rank, one.gap))


def in_turn(found: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield one of each row in turn, each row in its order, so that every row is shown."""
    rows: dict[int, list[Candidate]] = {}
    for one in found:
        rows.setdefault(one.row, []).append(one)
    for turn in itertools.zip_longest(*rows.values()):
        yield from (one for one in turn if one is not None)


def episodes_of(policies: Sequence[Evaluated], budget: int = BUDGET) -> list[dict[str, Any]]:
    """Return packed episodes of all policies, failures and near misses first.

    Args:
        policies: share the budget equally.
        budget: characters of JSON in all.
    """
    packed: list[tuple[Candidate, dict[str, Any]]] = []
    for index, evaluated in enumerate(policies):
        left, env = budget // len(policies), evaluated.config.env
        assert isinstance(env, EnvConfig)  # evaluate.py refuses other tasks
        for one in in_turn(candidates(evaluated)):
            episode = {
                "policy": index,
                "row": evaluated.rows[one.row].label,
                "world": one.world,
                "end": one.end,
                "gap": round(one.gap, 2) if math.isfinite(one.gap) else None,
                **pack_episode(evaluated.recording.tracks(one.world), env),
            }
            left -= len(json.dumps(episode))
            if left < 0:
                break
            packed.append((one, episode))
    return [episode for _, episode in sorted(packed, key=lambda pair: pair[0][:2])]


def pack_episode(tracks: Tracks, config: EnvConfig) -> dict[str, Any]:
    """Return one world's episode as JSON values; `pack` says how arrays lie in it.

    Args:
        tracks: of one world, with observations.
        config: of its environment.

    Returns:
        ``times`` [T] s, ``place`` [T, R, 2] m north and east, ``heading`` [T, R] rad, ``seen``
        [T, R, 5, 3] m (ahead, to starboard, radius; radius 0 for none), ``goals`` [R, 2], ``last``
        (index of each vessel's last row), ``ends``, ``buoys``, and ``flow`` where there are
        vortices.
    """
    decisions = len(tracks.acted)
    stride = max(math.ceil(decisions / ROWS), 1)
    kept = np.unique(np.append(np.arange(0, decisions + 1, stride), decisions))
    robots = tracks.placed[0].numpy()

    def rows(name: str) -> np.ndarray:
        return tracks.field(name)[:, 0].numpy()[kept][:, robots]

    assert tracks.observation is not None
    objects = tracks.observation.objects[:, 0].numpy()[kept][:, robots]
    there = tracks.observation.mask[:, 0].numpy()[kept][:, robots]
    last = tracks.acted[:, 0].numpy().sum(0)[robots]
    collided, reached = tracks.collided[0].numpy()[robots], tracks.reached[0].numpy()[robots]
    place = np.stack((rows("x"), rows("y")), -1)
    episode = {
        "times": pack(kept * tracks.decision_time),
        "place": pack(place),
        "heading": pack(rows("heading")),
        "seen": pack(objects[..., SHOWN] * there[..., None]),
        "goals": np.stack((rows("goal_x")[0], rows("goal_y")[0]), -1).round(3).tolist(),
        "last": np.searchsorted(kept, last).tolist(),
        "ends": np.where(collided, "collision", np.where(reached, "goal", "under way")).tolist(),
        "buoys": tracks.buoys[0].numpy().round(3).tolist(),
    }
    vortices = tracks.vortices[0].double().numpy()
    if len(vortices):
        episode["flow"] = pack_flow(vortices, config, place)
    return episode


def pack_flow(vortices: np.ndarray, config: EnvConfig, place: np.ndarray) -> dict[str, Any]:
    """Return the velocity of the water on a grid over what the vessels and vortices take up."""
    points = np.concatenate((place.reshape(-1, 2), vortices[:, :2]))
    low, high = points.min(0) - 3.0, points.max(0) + 3.0
    sides = [np.linspace(low[axis], high[axis], FLOW_ARROWS) for axis in (0, 1)]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, 2)
    speeds = water_velocity(vortices, config, grid)
    return {"points": pack(grid), "velocity": pack(speeds)}


def pack(array: np.ndarray) -> dict[str, Any]:
    """Return an array as base64 of little-endian int16 and their scale.

    A value is exact to 1/65,534 of the largest.
    """
    largest = float(np.abs(array).max(initial=0.0)) or 1.0
    whole = np.rint(array / largest * LARGEST).astype("<i2")
    return {
        "scale": largest / LARGEST,
        "shape": list(array.shape),
        "data": base64.b64encode(whole.tobytes()).decode(),
    }
