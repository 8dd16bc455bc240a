"""How far a replay is from its recording: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.recordings import Recording

POSE = slice(0, 2)
HEADING = 2
VELOCITIES = slice(3, 9)
THRUSTS = slice(11, 13)
QUANTITIES = (
    *("position_m", "heading_rad", "velocity", "thrust_n"),
    *("observation", "reward", "phi_rad"),
)
TOO_LONG = "too long episode"

Part = tuple[np.ndarray, np.ndarray]
"""Differences, and the recorded values they belong to."""


@dataclass(frozen=True)
class Replayed:
    """What the simulator made of T decisions of R robots; the first row of T + 1 is the start.

    Attributes:
        states: trajectory rows [T, R, 13] after each decision.
        reward: [T, R].
        collision: [T, R] (bool).
        reach_goal: [T, R] (bool).
        alive: whether the robot goes on after the decision [T, R] (bool).
        phi: turn COLREGs ask for [rad], 0 where none applies [T + 1, R].
        ego: own state as observed [T + 1, R, 7].
        objects: observed objects [T + 1, R, K, 5].
        mask: 1 for an object, 0 for padding [T + 1, R, K].
    """

    states: np.ndarray
    reward: np.ndarray
    collision: np.ndarray
    reach_goal: np.ndarray
    alive: np.ndarray
    phi: np.ndarray
    ego: np.ndarray
    objects: np.ndarray
    mask: np.ndarray


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
    replayed: Replayed,
    tolerance: Tolerance,
    unsure: np.ndarray | None = None,
) -> Deviations:
    """Compare a replay with its recording.

    Trajectories, and which robots go on, are always compared. Observations, rewards, phi and flags
    are where the episode has a ``recorded`` section; where its perception was noisy, only the
    flags of collision and goal are, which the noise does not reach.

    Args:
        episode: the recording.
        replayed: the replay, of T decisions.
        tolerance: how far they may differ.
        unsure: where flags, counts and the order of objects are not compared [T + 1, R].

    Returns:
        The largest differences.
    """
    acted = _acted(episode)
    unsure = np.zeros((len(acted) + 1, episode.robots), dtype=bool) if unsure is None else unsure
    sure = ~unsure
    states = np.zeros_like(replayed.states)
    for robot, rows in enumerate(episode.trajectory):
        states[: len(rows) - 1, robot] = rows[1:]
    found, states = replayed.states[acted], states[acted]
    parts = {
        "position_m": _difference(found[:, POSE], states[:, POSE]),
        "heading_rad": (angle_between(found[:, HEADING], states[:, HEADING]), states[:, HEADING]),
        "velocity": _difference(found[:, VELOCITIES], states[:, VELOCITIES]),
        "thrust_n": _difference(found[:, THRUSTS], states[:, THRUSTS]),
    }
    goes_on = np.roll(acted, -1, axis=0)[:-1] != replayed.alive[:-1]
    wrong = int((goes_on & acted[:-1] & sure[1:-1]).sum())
    recorded = episode.recorded
    if recorded is not None:
        for name in ("collision", "reach_goal"):
            flags = getattr(recorded, name) != getattr(replayed, name)
            wrong += int((flags & acted & sure[1:]).sum())
        if not episode.perception.noisy:
            exact, wrong_here = _compare_answers(recorded, replayed, acted, sure)
            parts |= exact
            wrong += wrong_here
    return _summarise(parts, tolerance, wrong, len(acted))


def angle_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the distance of two angles modulo 2 pi [rad], elementwise."""
    return np.abs((first - second + np.pi) % (2.0 * np.pi) - np.pi)


def _compare_answers(
    recorded: Recording, replayed: Replayed, acted: np.ndarray, sure: np.ndarray
) -> tuple[dict[str, Part], int]:
    """Compare what was said of observations without noise; the wrong flags are returned too."""
    seen = recorded.obs.present & np.concatenate((np.ones_like(acted[:1]), acted))
    applies = replayed.phi > 0.0
    counted = replayed.mask.sum(axis=-1) == recorded.obs.count
    wrong = ((applies != recorded.apply_colregs) | ~counted) & seen & sure
    gone = (recorded.dones != ~replayed.alive) & acted & sure[1:] & (recorded.infos != TOO_LONG)

    both = seen[1:] & applies[1:] & recorded.apply_colregs[1:]
    phi, known_phi = replayed.phi[1:][both], recorded.phi[both]
    listed = recorded.obs.mask.astype(bool) & (seen & counted & sure)[..., None]
    ego = _difference(replayed.ego[seen], recorded.obs.ego[seen])
    objects = _difference(replayed.objects[listed], recorded.obs.objects[listed])
    observation = tuple(
        np.concatenate((own.ravel(), other.ravel()))
        for own, other in zip(ego, objects, strict=True)
    )
    steady = acted & sure[1:]
    parts = {
        "observation": observation,
        "reward": _difference(replayed.reward[steady], recorded.rewards[steady]),
        "phi_rad": (angle_between(phi, known_phi), known_phi),
    }
    return parts, int(wrong.sum() + gone.sum())


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


def _acted(episode: Episode) -> np.ndarray:
    """Return whether the robot took the decision [T, R]."""
    lengths = np.array([len(actions) for actions in episode.action_history])
    return np.arange(episode.decisions)[:, None] < lengths
