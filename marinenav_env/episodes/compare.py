"""How far a replay is from its recording: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marinenav_env.episodes.checks import TOO_LONG
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.tracks import STATE_FIELDS, reach_goal, tracks_of
from marinenav_env.tracks import Tracks

POSE = slice(0, 2)
HEADING = 2
VELOCITIES = slice(3, 9)
THRUSTS = slice(11, 13)
QUANTITIES = (
    *("position_m", "heading_rad", "velocity", "thrust_n"),
    *("observation", "reward", "phi_rad"),
)

Part = tuple[np.ndarray, np.ndarray]
"""Differences, and the recorded values they belong to."""


@dataclass(frozen=True)
class Deviations:
    """Largest differences between a replay and its recording; None where there is no recording.

    ``lacking`` names the quantities that the task does not have.

    ``velocity`` covers m/s and rad/s, ``observation`` all units of an observation. ``share`` is the
    largest difference over its tolerance, ``steps`` the number of decisions. A difference that is
    not a number makes the largest, and the share, NaN, which is never within.
    """

    position_m: float
    heading_rad: float
    velocity: float
    thrust_n: float | None
    observation: float | None
    reward: float | None
    phi_rad: float | None
    wrong_flags: int
    steps: int
    share: float
    lacking: tuple[str, ...] = ()

    def within(self) -> bool:
        """Return whether every difference is within its tolerance and no flag is wrong."""
        return self.share <= 1.0 and self.wrong_flags == 0

    @staticmethod
    def of(parts: Mapping[str, Part], tolerance: Tolerance, **others: Any) -> Deviations:
        """Return the largest differences of parts, quantities by name, and other attributes."""
        largest: dict[str, Any] = dict.fromkeys(QUANTITIES)
        largest |= {name: float(np.max(part[0], initial=0.0)) for name, part in parts.items()}
        share = _largest([tolerance.share(*part) for part in parts.values()])
        return Deviations(**largest, share=share, **others)

    @staticmethod
    def worst(parts: Sequence[Deviations]) -> Deviations:
        """Return the largest of each difference, and the sums of flags and steps."""
        values = {
            name: [getattr(part, name) for part in parts] for name in Deviations.__annotations__
        }
        summed = {name: sum(values.pop(name)) for name in ("wrong_flags", "steps")}
        lacking = set.intersection(*map(set, values.pop("lacking")))
        largest = {name: _largest(of) for name, of in values.items()}
        return Deviations(**largest, **summed, lacking=tuple(sorted(lacking)))


@dataclass(frozen=True)
class Tolerance:
    """How far a replay may be from its recording.

    Attributes:
        size: largest accepted difference.
        relative: multiply it by max(1, abs(x)) of the recorded value x.
    """

    size: float
    relative: bool

    def share(self, difference: np.ndarray, recorded: np.ndarray) -> float:
        """Return the largest of differences over what is accepted; 0 for none."""
        scale = np.maximum(1.0, np.abs(recorded)) if self.relative else 1.0
        return float(np.max(difference / (self.size * scale), initial=0.0))


RUN_THROUGH = Tolerance(1e-6, relative=False)
"""For a replay in float64 from the start; ten recorded digits account for less than half of it."""

STEP_BY_STEP = Tolerance(1e-4, relative=True)
"""For a replay in float32, one decision from each recorded state."""


def compare(
    episode: Episode,
    replayed: Tracks,
    tolerance: Tolerance,
    unsure: np.ndarray | None = None,
) -> Deviations:
    """Compare a replay with its recording.

    Trajectories, and which robots continue, are always compared. Observations, rewards, phi and
    flags are where the episode has a ``recorded`` section; where its perception was noisy, only the
    flags of collision and goal are, which the noise does not reach.

    Args:
        episode: the recording.
        replayed: one world of T decisions, with observations.
        tolerance: how far they may differ.
        unsure: where flags, counts and the order of objects are not compared [T + 1, R].

    Returns:
        The largest differences.
    """
    known = tracks_of(episode)
    acted = _array(known.acted)
    sure = np.ones((len(acted) + 1, acted.shape[1]), bool) if unsure is None else ~unsure
    found_states, states = (
        np.stack([_array(tracks.field(name))[1:][acted] for name in STATE_FIELDS], axis=-1)
        for tracks in (replayed, known)
    )
    heading = found_states[:, HEADING], states[:, HEADING]
    parts = {
        "position_m": _difference(found_states[:, POSE], states[:, POSE]),
        "heading_rad": (angle_between(*heading), heading[1]),
        "velocity": _difference(found_states[:, VELOCITIES], states[:, VELOCITIES]),
        "thrust_n": _difference(found_states[:, THRUSTS], states[:, THRUSTS]),
    }
    alive = _array(replayed.acted & ~replayed.terminated & ~replayed.truncated)
    wrong = int(((acted[1:] != alive[:-1]) & acted[:-1] & sure[1:-1]).sum())
    recorded = episode.recorded
    if recorded is not None:
        goal_distance = episode.robots["goal_dis"][0]
        flags = {
            "collision": replayed.collision,
            "reach_goal": reach_goal(replayed, goal_distance),
        }
        for name, flag in flags.items():
            wrong += int(((np.array(recorded[name]) != _array(flag)) & acted & sure[1:]).sum())
        if not episode.noisy:
            over = (np.array(recorded["dones"]) != ~alive) & acted & sure[1:]
            wrong += int((over & (np.array(recorded["infos"]) != TOO_LONG)).sum())
            applies = np.array(recorded["apply_colregs"])
            exact, wrong_here = _compare_answers(known, applies, replayed, sure)
            parts |= exact
            wrong += wrong_here
    return Deviations.of(parts, tolerance, wrong_flags=wrong, steps=len(acted))


def angle_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the distance of two angles modulo 2 pi [rad], elementwise."""
    return np.abs((first - second + np.pi) % (2.0 * np.pi) - np.pi)


def _compare_answers(
    known: Tracks, applied: np.ndarray, replayed: Tracks, sure: np.ndarray
) -> tuple[dict[str, Part], int]:
    """Compare what was said of observations without noise; the wrong flags are returned too.

    Args:
        known: the recording.
        applied: where a COLREGs rule was recorded to apply [T + 1, R].
        replayed: the replay.
        sure: where flags are compared [T + 1, R].
    """
    seen, acted = _array(known.present), _array(known.acted)
    phi, known_phi = _array(replayed.field("phi")), _array(known.field("phi"))
    (ego, objects, mask), (known_ego, known_objects, known_mask) = (
        map(_array, tracks.observation or ()) for tracks in (replayed, known)
    )
    count, known_count = mask.sum(axis=-1), known_mask.sum(axis=-1)
    wrong = ((phi > 0.0) != applied) | (count != known_count)
    both = seen & applied & (phi > 0.0)
    both[0] = False  # the angle of the reset is not recorded
    listed = (known_mask > 0.0) & (seen & (count == known_count) & sure)[..., None]
    parts = {
        "observation": _difference(
            np.concatenate((ego[seen].ravel(), objects[listed].ravel())),
            np.concatenate((known_ego[seen].ravel(), known_objects[listed].ravel())),
        ),
        "reward": _difference(
            _array(replayed.reward)[acted & sure[1:]], _array(known.reward)[acted & sure[1:]]
        ),
        "phi_rad": (angle_between(phi[both], known_phi[both]), known_phi[both]),
    }
    return parts, int((wrong & seen & sure).sum())


def _array(rows: Tensor) -> Any:
    """Return [T, R, ...] on the host of rows of one world [T, 1, R, ...]."""
    rows = rows[:, 0].cpu()
    return (rows if rows.dtype == torch.bool else rows.double()).numpy()


def _difference(found: np.ndarray, known: np.ndarray) -> Part:
    return np.abs(found - known), known


def _largest(values: Sequence[float | None]) -> Any:
    """Return the largest value; NaN if one is, which Python's own max may drop."""
    there = [value for value in values if value is not None]
    return float(np.max(there)) if there else None
