"""How far a replay is from its recording: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from marinenav_env.episodes.checks import TOO_LONG
from marinenav_env.episodes.convert import STATE_FIELDS, reach_goal, tracks_of
from marinenav_env.episodes.format import Episode
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

    ``velocity`` covers m/s and rad/s, ``observation`` all units of an observation. ``share`` is the
    largest difference over its tolerance, ``steps`` the number of decisions. A difference that is
    not a number makes the largest, and the share, NaN, which is never within.
    """

    position_m: float
    heading_rad: float
    velocity: float
    thrust_n: float
    observation: float | None
    reward: float | None
    phi_rad: float | None
    wrong_flags: int
    steps: int
    share: float

    def within(self) -> bool:
        """Return whether every difference is within its tolerance and no flag is wrong."""
        return self.share <= 1.0 and self.wrong_flags == 0

    @staticmethod
    def worst(parts: Sequence[Deviations]) -> Deviations:
        """Return the largest of each difference, and the sums of flags and steps."""
        return Deviations(
            position_m=_largest([part.position_m for part in parts]),
            heading_rad=_largest([part.heading_rad for part in parts]),
            velocity=_largest([part.velocity for part in parts]),
            thrust_n=_largest([part.thrust_n for part in parts]),
            observation=_largest([part.observation for part in parts]),
            reward=_largest([part.reward for part in parts]),
            phi_rad=_largest([part.phi_rad for part in parts]),
            wrong_flags=sum(part.wrong_flags for part in parts),
            steps=sum(part.steps for part in parts),
            share=_largest([part.share for part in parts]),
        )


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

    Trajectories, and which robots go on, are always compared. Observations, rewards, phi and flags
    are where the episode has a ``recorded`` section; where its perception was noisy, only the
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
    return _summarise(parts, tolerance, wrong, len(acted))


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
    assert known.observation is not None
    assert replayed.observation is not None
    seen, acted = _array(known.present), _array(known.acted)
    phi, known_phi = _array(replayed.field("phi")), _array(known.field("phi"))
    count, known_count = (_array(t.observation.mask).sum(-1) for t in (replayed, known))
    wrong = ((phi > 0.0) != applied) | (count != known_count)

    both = seen & applied & (phi > 0.0)
    both[0] = False  # the angle of the reset is not recorded
    listed = (
        _array(known.observation.mask > 0.0) & (seen & (count == known_count) & sure)[..., None]
    )
    ego, objects = (
        _difference(_array(found)[where], _array(recorded)[where])
        for found, recorded, where in (
            (replayed.observation.ego, known.observation.ego, seen),
            (replayed.observation.objects, known.observation.objects, listed),
        )
    )
    steady = acted & sure[1:]
    return {
        "observation": tuple(map(_joined, zip(ego, objects, strict=True))),
        "reward": _difference(_array(replayed.reward)[steady], _array(known.reward)[steady]),
        "phi_rad": (angle_between(phi[both], known_phi[both]), known_phi[both]),
    }, int((wrong & seen & sure).sum())


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([part.ravel() for part in parts])


def _array(rows: Tensor) -> np.ndarray:
    """Return [T, R, ...] on the host of rows of one world [T, 1, R, ...]."""
    rows = rows[:, 0].cpu()
    return (rows if rows.dtype == torch.bool else rows.double()).numpy()


def _summarise(
    parts: dict[str, Part], tolerance: Tolerance, wrong_flags: int, steps: int
) -> Deviations:
    largest = {name: float(np.max(part[0], initial=0.0)) for name, part in parts.items()}
    shares = [tolerance.share(difference, known) for difference, known in parts.values()]
    return Deviations(
        **{name: largest.get(name) for name in QUANTITIES},
        wrong_flags=wrong_flags,
        steps=steps,
        share=_largest(shares),
    )


def _difference(found: np.ndarray, known: np.ndarray) -> Part:
    return np.abs(found - known), known


def _largest(values: Sequence[float | None]) -> float | None:
    """Return the largest value; NaN if one is, which Python's own max may drop."""
    there = [value for value in values if value is not None]
    return float(np.max(there)) if there else None
