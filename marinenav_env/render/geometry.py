"""What a drawing of an episode needs: map coordinates, hulls, currents, and how robots ended.

The map is drawn as a chart is: north (world x) up and east (world y) right, so that a growing
yaw turns clockwise on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.sections import Cores

CONTACT_TOLERANCE_M = 1e-6
"""Surface distance that still counts as contact where the recording does not say [m]."""


class End(StrEnum):
    """How a robot's part in an episode ended."""

    GOAL = "goal"
    COLLISION = "collision"
    UNDERWAY = "under way"


@dataclass(frozen=True)
class Outcome:
    """How and when one robot ended.

    Attributes:
        end: goal, collision, or still under way when the episode stopped.
        time_s: time of the robot's last state [s].
    """

    end: End
    time_s: float


def outcomes(episode: Episode) -> tuple[Outcome, ...]:
    """Return how every robot of the episode ended: as recorded, else as its last state shows."""
    return tuple(
        Outcome(_end_of(episode, robot), len(actions) * episode.decision_s)
        for robot, actions in enumerate(episode.action_history)
    )


def _end_of(episode: Episode, robot: int) -> End:
    last = len(episode.action_history[robot])
    if episode.recorded is not None and last > 0:
        collided = bool(episode.recorded.collision[last - 1, robot])
        arrived = bool(episode.recorded.reach_goal[last - 1, robot])
    else:
        collided = _touches(episode, robot, last)
        position = episode.trajectory[robot][last, :2]
        distance = np.linalg.norm(position - episode.missions.goal[robot])
        arrived = bool(distance <= episode.vessels.goal_dis[robot])
    if collided:
        return End.COLLISION
    return End.GOAL if arrived else End.UNDERWAY


def _touches(episode: Episode, robot: int, step: int) -> bool:
    """Return whether the robot touches a buoy, or a robot that is there, at state ``step``."""
    position = episode.trajectory[robot][step, :2]
    others = [
        other
        for other, states in enumerate(episode.trajectory)
        if other != robot and len(states) > step
    ]
    centres = [episode.trajectory[other][step, :2] for other in others]
    radii = [episode.vessels.r[other] for other in others]
    centres = np.array([*centres, *episode.buoys.positions]).reshape(-1, 2)
    radii = np.array([*radii, *episode.buoys.r])
    gaps = np.linalg.norm(centres - position, axis=1) - radii - episode.vessels.r[robot]
    return bool((gaps <= CONTACT_TOLERANCE_M).any())


def to_map(points: np.ndarray) -> np.ndarray:
    """Return drawing coordinates (right = east, up = north) of world points [..., 2] (x, y)."""
    return np.asarray(points)[..., ::-1]


def hull_polygons(length: float, width: float) -> tuple[np.ndarray, ...]:
    """Return the outline of a catamaran like the WAM-V in body coordinates.

    Args:
        length: length over all [m].
        width: beam over all [m].

    Returns:
        Closed polygons [N, 2] (forward, starboard) in m: port hull, starboard hull, and a deck
        that points forward.
    """
    tip, stern, beam = 0.5 * length, -0.5 * length, 0.24 * width
    profile = np.array(
        [
            (tip, 0.0),
            (0.68 * tip, 0.42),
            (0.40 * tip, 0.50),
            (0.85 * stern, 0.50),
            (stern, 0.36),
            (stern, -0.36),
            (0.85 * stern, -0.50),
            (0.40 * tip, -0.50),
            (0.68 * tip, -0.42),
        ]
    )
    profile[:, 1] *= beam
    offset = np.array([0.0, 0.5 * (width - beam)])
    inner = 0.5 * width - beam
    deck = np.array(
        [
            (0.62 * tip, 0.0),
            (0.22 * tip, inner),
            (0.60 * stern, inner),
            (0.60 * stern, -inner),
            (0.22 * tip, -inner),
        ]
    )
    return profile - offset, profile + offset, deck


def place_body(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return world coordinates of body points.

    Args:
        points: forward and starboard coordinates [N, 2] in m.
        pose: x, y [m] and heading [rad].

    Returns:
        World x, y [N, 2] in m.
    """
    cos, sin = np.cos(pose[2]), np.sin(pose[2])
    return points @ np.array([[cos, sin], [-sin, cos]]) + pose[:2]


def current_velocity(cores: Cores, core_radius: float, points: np.ndarray) -> np.ndarray:
    """Return the velocity of the water at world points, for drawing.

    The speed around each core is that of a Rankine vortex, Gamma d/(2 pi r^2) inside its radius r
    and Gamma/(2 pi d) outside; all cores add up. A core called clockwise turns that way where x is
    drawn to the right and y up; on a chart it turns the other way.

    Args:
        cores: the vortex cores.
        core_radius: r [m].
        points: world x, y [N, 2] in m.

    Returns:
        World velocity [N, 2] in m/s.
    """
    toward = cores.positions[None, :, :] - points[:, None, :]  # [N, C, 2]
    distance = np.linalg.norm(toward, axis=-1)
    speed = cores.gamma * np.where(
        distance <= core_radius,
        distance / (2.0 * np.pi * core_radius**2),
        1.0 / (2.0 * np.pi * np.maximum(distance, core_radius)),
    )
    unit = toward / np.maximum(distance, 1e-9)[..., None]
    turned = np.stack((-unit[..., 1], unit[..., 0]), axis=-1)
    sense = np.where(cores.clockwise == 1, 1.0, -1.0)
    return (turned * (speed * sense)[..., None]).sum(axis=1)
