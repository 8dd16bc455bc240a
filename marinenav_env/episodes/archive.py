"""Tracks of several episodes as one plain NumPy archive, whatever disturbed them.

An archive does not replay. Arrays begin with the episode, then time and robot if they have these.
NaN stands where there is nothing: a robot that takes no part, an empty slot.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marinenav_env.episodes.format import put_in_place
from marinenav_env.tracks import Tracks

STATES = {
    "position": {"x": "m", "y": "m"},
    "heading": {"heading": "rad"},
    "velocity": {"vx": "m/s", "vy": "m/s"},
    "yaw_rate": {"yaw": "rad/s"},
    "velocity_through_water": {"vx_water": "m/s", "vy_water": "m/s"},
    "thrust": {"left_thrust": "N", "right_thrust": "N"},
}
"""Arrays [E, N + 1, R, columns]: fields of a robot and their units. A task may lack some."""

PLACES = {"x": "m", "y": "m"}
OTHERS = {
    **{"time": {"time": "s"}, "decision_time": {"decision_time": "s"}},
    **{"hull_radius": {"hull_radius": "m"}, "goal": PLACES},
    **{name: {name: "-"} for name in ("reward", "present", "reached", "collision", "truncated")},
    **{"buoys": {**PLACES, "radius": "m"}, "vortices": {**PLACES, "circulation": "m^2/s"}},
    **{"stream": {"x": "m/s", "y": "m/s"}, "wind": {"x": "m/s", "y": "m/s"}, "waves": PLACES},
    "thruster_loss": {"time": "s", "side": "-"},
}
"""Columns of all other arrays but the action and texts, and their units."""


def archive_of(
    tracks: Tracks, labels: Sequence[str], steer: Sequence[Sequence[str]], seed: int
) -> dict[str, np.ndarray]:
    """Return the arrays of an archive by their names.

    Args:
        tracks: of E worlds with R robots.
        labels: [E] stage or scenario.
        steer: [E][R] names of what steers the robots.
        seed: of the environment.
    """
    decisions = int(tracks.length.max())
    tensors = {name: rows.transpose(0, 1) for name, rows in _by_time(tracks, decisions).items()}
    tensors |= _of_episodes(tracks)
    arrays = {name: part.cpu().numpy() for name, part in tensors.items()} | {
        "time": np.arange(decisions + 1) * tracks.decision_time,
        "decision_time": np.array(tracks.decision_time),
        "hull_radius": np.array(tracks.hull_radius),
    }
    columns = STATES | OTHERS | {"action": _action_columns(tracks)}
    names = [
        [name if there else "" for name, there in zip(row, here, strict=True)]
        for row, here in zip(steer, tracks.placed.tolist(), strict=True)
    ]
    return arrays | {
        "columns": np.array([(name, *row) for name in arrays for row in columns[name].items()]),
        "label": np.array(labels),
        "steer": np.array(names),
        "seed": np.array(seed),
    }


def _by_time(tracks: Tracks, decisions: int) -> dict[str, Tensor]:
    """Return arrays of the first N decisions [N, E, R, ...], of their states [N + 1, E, R, ...]."""
    present, acted = tracks.present[: decisions + 1], tracks.acted[:decisions]
    states = {
        name: torch.stack([tracks.field(field)[: decisions + 1] for field in fields], dim=-1)
        for name, fields in STATES.items()
        if set(fields) <= set(tracks.fields)
    }
    return {name: _there(state, present).squeeze(-1) for name, state in states.items()} | {
        "present": present,
        "action": _there(tracks.action[:decisions], acted),
        "reward": _there(tracks.reward[:decisions], acted),
        "reached": (tracks.terminated & ~tracks.collision)[:decisions],
        "collision": tracks.collision[:decisions],
        "truncated": tracks.truncated[:decisions],
    }


def _of_episodes(tracks: Tracks) -> dict[str, Tensor]:
    """Return arrays of whole episodes [E, ...]."""
    goal = torch.stack([tracks.field(name)[0] for name in ("goal_x", "goal_y")], dim=-1)
    losses = tracks.losses
    parts = {
        "goal": _there(goal, tracks.placed),
        "buoys": _there(tracks.buoys, tracks.buoys[..., 2] > 0.0),
        "vortices": _there(tracks.vortices, tracks.vortices[..., 2] != 0.0),
        "stream": tracks.stream,
        "wind": tracks.wind,
        "waves": tracks.waves,
        "thruster_loss": losses if losses is None else _there(losses, tracks.placed),
    }
    return {name: part for name, part in parts.items() if part is not None}


def _there(part: Tensor, there: Tensor) -> Tensor:
    """Return values where there are any, else NaN, or -1 for whole numbers."""
    nothing = float("nan") if part.is_floating_point() else -1
    chosen = there.view(*there.shape, *(1,) * (part.dim() - there.dim()))
    return part.where(chosen, nothing)


def _action_columns(tracks: Tracks) -> dict[str, str]:
    if tracks.action.dim() == 3:
        return {"index": "-"}
    kinematic = "left_thrust" not in tracks.fields
    return dict.fromkeys(("acceleration", "turn_rate") if kinematic else ("left", "right"), "-")


def write_archive(arrays: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write an archive in one atomic step; ``np.load`` reads it.

    Raises:
        ConfigError: the place cannot be written. A file that was there before is then untouched.
    """
    put_in_place(Path(path), lambda file: np.savez_compressed(file, **arrays))
