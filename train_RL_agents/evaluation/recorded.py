"""Measures of recorded episodes: of Tracks, whatever program they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from marinenav_env.fields import ConfigError
from marinenav_env.tracks import Tracks
from train_RL_agents.evaluation.measures import Measures, measure
from train_RL_agents.evaluation.motion import motion_of_tracks
from train_RL_agents.evaluation.rules import rule_table
from train_RL_agents.evaluation.safety import safety


def measure_tracks(tracks: Tracks) -> Measures:
    """Return what happened to the robots that are judged; an energy not recorded is NaN."""
    worlds = torch.arange(len(tracks.buoys), device=tracks.robot.device)
    measures = measure(
        [(worlds, motion_of_tracks(tracks))],
        tracks.buoys.permute(2, 1, 0),
        hull_radius=tracks.hull_radius,
        decision_time=tracks.decision_time,
        reached=tracks.reached.T,
        collided=tracks.collided.T,
        energy=torch.where(tracks.acted, tracks.field("step_energy")[1:], 0.0).sum(0).T,
    )
    return measures if tracks.own is None else measures.of_robots(tracks.own.T.cpu())


def score_recorded(recorded: Sequence[Tracks]) -> dict[str, Any]:
    """Return safety numbers and rule scores of recorded episodes together, as JSON values.

    Raises:
        ConfigError: the episodes are of vessels of different sizes, or of different decision times.
    """
    scales = {(tracks.hull_radius, tracks.decision_time) for tracks in recorded}
    if len(scales) > 1:
        raise ConfigError(
            f"hull radius [m] and decision time [s] are {sorted(scales)}: score episodes of one "
            "kind of vessel together"
        )
    joined = join([measure_tracks(tracks) for tracks in recorded])
    return {"safety": safety(joined), "rules": rule_table(joined)}


def join(parts: Sequence[Measures]) -> Measures:
    """Return the measures of several batches of worlds as one."""
    before = torch.tensor([0, *(part.worlds for part in parts)]).cumsum(0).tolist()

    def columns(kind: str) -> dict[str, torch.Tensor]:
        tables = [getattr(part, kind) for part in parts]
        whole = {name: torch.cat([table[name] for table in tables]) for name in tables[0]}
        shifted = [table["world"] + first for table, first in zip(tables, before, strict=False)]
        return whole | {"world": torch.cat(shifted)}

    return parts[0]._replace(
        worlds=before[-1],
        vessels=columns("vessels"),
        encounters=columns("encounters"),
        meetings=columns("meetings"),
    )
