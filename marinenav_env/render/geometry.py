"""What a figure of an episode needs: the episode on the host, map coordinates, hulls and currents.

The map is drawn as a chart is: north (world x) up and east (world y) right, so that a growing
yaw turns clockwise on the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import numpy as np
import torch

from marinenav_env.config import TaskConfig
from marinenav_env.envs.make import task_of
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import Slots
from marinenav_env.kernel import ops
from marinenav_env.tracks import DISTURBANCES, Tracks

PLACELESS = {
    "wind": ("gust_std",),
    "thrusters": ("lag",),
    "variation": (),
    "perception": ("miss", "dropout", "delay", "noise_factor", "range_factor", "range_std"),
}
"""Groups and names of the disturbances that have no place on a map; () stands for all names."""


class End(StrEnum):
    """How a robot's part in an episode ended."""

    GOAL = "goal"
    COLLISION = "collision"
    UNDERWAY = "under way"


@dataclass(frozen=True)
class Scene:
    """One world's episode as it is drawn; arrays of float64 on the host.

    Attributes:
        config: of the environment, for the sizes of map, hulls, goals and vortices.
        paths: x, y [m] and heading [rad] of each robot [T_i + 1, 3], the start first.
        goals: [R, 2] in m.
        ends: how each robot ended.
        buoys: x, y, radius [B, 3] in m.
        vortices: x, y [m] and circulation [m2/s] [V, 3].
        decision_time: [s].
        stream: uniform current [2] in m/s, world frame.
        wind: mean wind [2] in m/s, world frame.
        waves: significant height [2] in m along the direction in which they run, world frame.
        losses: of each robot [R, 2] when it loses a thruster [s], and which: -1 port, 1 starboard,
            0 none.
    """

    config: TaskConfig
    paths: tuple[np.ndarray, ...]
    goals: np.ndarray
    ends: tuple[End, ...]
    buoys: np.ndarray
    vortices: np.ndarray
    decision_time: float
    stream: np.ndarray = field(default_factory=lambda: np.zeros(2))
    wind: np.ndarray = field(default_factory=lambda: np.zeros(2))
    waves: np.ndarray = field(default_factory=lambda: np.zeros(2))
    losses: np.ndarray | None = None

    @property
    def decisions(self) -> int:
        """Return T, the number of decisions of the robot that acted longest."""
        return max(map(len, self.paths), default=1) - 1

    @property
    def has_current(self) -> bool:
        """Whether the water moves somewhere."""
        return bool(len(self.vortices) or self.stream.any())

    def time_of_end(self, robot: int) -> float:
        """Return the time of the robot's last state [s]."""
        return (len(self.paths[robot]) - 1) * self.decision_time


def scenes_of(tracks: Tracks, config: TaskConfig) -> list[Scene]:
    """Return the worlds of ``tracks`` as they are drawn; ``config`` is their environment's."""
    columns = [tracks.fields.index(name) for name in ("x", "y", "heading", "goal_x", "goal_y")]
    rows, present, collided, reached, buoys, vortices = (
        part.cpu().numpy()
        for part in (
            tracks.robot[..., columns].double(),
            tracks.present,
            tracks.collided,
            tracks.reached,
            tracks.buoys.double(),
            tracks.vortices.double(),
        )
    )
    known = {name: getattr(tracks, name) for name in DISTURBANCES}
    disturbances = {n: part.double().cpu().numpy() for n, part in known.items() if part is not None}
    scenes = []
    for world in range(rows.shape[1]):
        robots = np.flatnonzero(present[0, world])
        ends = np.where(reached[world], End.GOAL, End.UNDERWAY)
        ends = np.where(collided[world], End.COLLISION, ends)
        here = {name: part[world] for name, part in disturbances.items()}
        if "losses" in here:
            here["losses"] = here["losses"][robots]
        scenes.append(
            Scene(
                config=config,
                paths=tuple(rows[present[:, world, i], world, i, :3] for i in robots),
                goals=rows[0, world, robots, 3:],
                ends=tuple(End(end) for end in ends[robots]),
                buoys=buoys[world][buoys[world, :, 2] > 0.0],
                vortices=vortices[world][vortices[world, :, 2] != 0.0],
                decision_time=tracks.decision_time,
                **here,
            )
        )
    return scenes


def settings_in_force(config: TaskConfig) -> list[str]:
    """Return the disturbances that have no place on a map, as settings ("thrusters.lag 0.3 s").

    Only what differs from its default, which is off.
    """
    found = []
    for group, names in PLACELESS.items():
        part = getattr(config, group, None)
        for entry in fields(part) if part is not None else ():
            value = getattr(part, entry.name)
            if (names and entry.name not in names) or value == entry.default:
                continue
            unit = entry.metadata["unit"].removeprefix("-")
            numbers = value if isinstance(value, tuple) else (value,)
            listed = " to ".join(f"{number:g}" for number in numbers)
            found.append(f"{group}.{entry.name} {listed} {unit}".rstrip())
    return found


def to_map(points: Any) -> Any:
    """Return drawing coordinates (right = east, up = north) of world points [..., 2] (x, y)."""
    return np.asarray(points)[..., ::-1]


def to_point(position: Any) -> tuple[float, float]:
    """Return the drawing coordinates of one world point [2], as a pair."""
    x, y = position
    return float(y), float(x)


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


def water_velocity(
    vortices: np.ndarray,
    config: TaskConfig,
    points: np.ndarray,
    stream: np.ndarray | None = None,
) -> np.ndarray:
    """Return the velocity of the water at world points, as the simulator has it.

    Args:
        vortices: x, y [m] and circulation [m2/s] [V, 3].
        config: of the environment.
        points: world x, y [N, 2] in m.
        stream: uniform current [2] in m/s; None for none.

    Returns:
        World velocity [N, 2] in m/s.
    """
    env = task_of(config)(
        1,
        stages=(Stage(robots=1, vortices=0, buoys=0, min_distance_m=0.0),),
        config=config,
        dtype=torch.float64,
        info_mode="none",
        slots=Slots(robots=1, buoys=0, vortices=len(vortices)),
    )
    env.state.vortex[..., 0] = torch.from_numpy(vortices.T)
    if stream is not None and stream.any():
        env.state.stream[:, 0] = torch.from_numpy(stream)
    position = torch.from_numpy(points).contiguous().unsqueeze(0)
    return ops.water(env.state, position)[0].numpy()
