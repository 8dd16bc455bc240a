"""What moves on an episode's figure: tracks, hulls, and the marks of starts and collisions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke

from marinenav_env.render.geometry import End, Scene, hull_polygons, place_body, to_map, to_point
from marinenav_env.render.ink import COLLISION_INK, colour_of, darker

HULL_EVERY_S = 5.0
"""Time between two hulls drawn along a track [s]."""


class Hull(NamedTuple):
    """A vessel to draw.

    Attributes:
        robot: index of the robot, for its colour.
        pose: x, y [m] and heading [rad].
        strength: opacity of the filling, 0 to 1.
    """

    robot: int
    pose: np.ndarray
    strength: float


def draw_tracks(axes: Axes, scene: Scene, compact: bool = False) -> None:
    """Draw the tracks: colour grows with time, hulls every 5 s, the ends marked.

    Args:
        axes: where a map has been drawn.
        scene: what to draw.
        compact: leave out times, for small panels.
    """
    every, hulls = max(1, round(HULL_EVERY_S / scene.decision_time)), []
    for robot, path in enumerate(scene.paths):
        add_track(axes, scene, robot, len(path), 1.4 if compact else 1.9)
        for step in hull_steps(path, every, 0.7 * scene.config.vessel.length):
            hulls.append(Hull(robot, path[step], 0.25 + 0.45 * step / len(path)))
            if not compact and step > 0:
                _write_time(axes, path[step], step * scene.decision_time, colour_of(robot))
        hulls.append(Hull(robot, path[-1], 1.0))
        draw_start(axes, scene, robot, 7.0 if compact else 9.5)
        if scene.ends[robot] is End.COLLISION:
            draw_collision(axes, scene, robot, 8.0 if compact else 11.0)
    add_hulls(axes, scene, hulls)


def hull_steps(path: np.ndarray, every: int, gap: float) -> list[int]:
    """Return the decisions after which a hull is drawn: the start, and then those with room.

    Args:
        path: x, y [m] and heading [rad] [T + 1, 3].
        every: decisions between two hulls.
        gap: least distance of a hull to the one before and to the last state [m].
    """
    shown = [0]
    for step in range(every, len(path) - 1, every):
        distances = np.linalg.norm(path[[shown[-1], -1], :2] - path[step, :2], axis=1)
        if (distances >= gap).all():
            shown.append(step)
    return shown if len(path) > 1 else []


def add_hulls(axes: Axes, scene: Scene, hulls: Sequence[Hull]) -> PolyCollection:
    """Draw vessels, the stronger ones over the weaker ones.

    One artist holds them all, since an artist each takes several times as long.

    Args:
        axes: where to draw.
        scene: for the vessels' size.
        hulls: what to draw.

    Returns:
        What was drawn: of each vessel the port hull, the starboard hull and the deck.
    """
    parts = hull_polygons(scene.config.vessel.length, scene.config.vessel.width)
    outlines, fillings, edges = [], [], []
    for robot, pose, strength in sorted(hulls, key=attrgetter("strength")):
        ink = colour_of(robot)
        outlines += [to_map(place_body(part, pose)) for part in parts]
        fillings += [to_rgba(ink, strength)] * len(parts)
        edges += [to_rgba(darker(ink), 0.35 + 0.65 * strength)] * len(parts)
    drawn = PolyCollection(
        outlines, facecolors=fillings, edgecolors=edges, linewidths=0.7, zorder=5.0
    )
    axes.add_collection(drawn)
    return drawn


def draw_start(axes: Axes, scene: Scene, robot: int, size: float) -> None:
    """Mark where a robot starts, with its number; ``size`` in points."""
    place, ink = to_point(scene.paths[robot][0, :2]), colour_of(robot)
    axes.plot(
        *place,
        marker="o",
        markersize=size,
        markerfacecolor="white",
        markeredgecolor=ink,
        markeredgewidth=1.3,
        zorder=6.2,
    )
    axes.annotate(
        str(robot + 1),
        place,
        fontsize=0.72 * size,
        fontweight="bold",
        color=darker(ink),
        ha="center",
        va="center_baseline",
        zorder=6.3,
    )


def draw_collision(axes: Axes, scene: Scene, robot: int, size: float) -> list[Artist]:
    """Mark a robot's last state as a collision, with its collision circle.

    Args:
        axes: where to draw.
        scene: for the place and the collision radius.
        robot: index of the robot.
        size: of the mark, in points.

    Returns:
        What was drawn.
    """
    place = to_point(scene.paths[robot][-1, :2])
    circle = Circle(
        place,
        scene.config.vessel.radius,
        facecolor=to_rgba(COLLISION_INK, 0.08),
        edgecolor=COLLISION_INK,
        linestyle=(0, (3, 2)),
        linewidth=0.9,
        zorder=4.5,
    )
    axes.add_patch(circle)
    marks = axes.plot(
        *place,
        marker="X",
        markersize=size,
        markerfacecolor=COLLISION_INK,
        markeredgecolor="white",
        markeredgewidth=1.0,
        zorder=7,
    )
    return [circle, *marks]


def add_track(axes: Axes, scene: Scene, robot: int, steps: int, width: float) -> LineCollection:
    """Draw a robot's track over its first ``steps`` decisions, its opacity growing with time.

    Args:
        axes: where to draw.
        scene: for the path.
        robot: index of the robot.
        steps: number of decisions; more than the robot took draws all of its track.
        width: of the line, in points.

    Returns:
        What was drawn.
    """
    points = to_map(scene.paths[robot][: steps + 1, :2])
    segments = np.stack((points[:-1], points[1:]), axis=1)
    colours = np.tile(to_rgba(colour_of(robot)), (len(segments), 1))
    colours[:, 3] = np.linspace(0.35, 1.0, len(segments))
    track = LineCollection(list(segments), colors=colours, linewidths=width, zorder=3)
    axes.add_collection(track)
    return track


def _write_time(axes: Axes, pose: np.ndarray, time_s: float, ink: str) -> None:
    """Write the time beside the hull, off its starboard side."""
    aside = place_body(np.array([[0.0, 2.6]]), pose)[0]
    axes.annotate(
        f"{time_s:g} s",
        to_point(aside),
        fontsize=7,
        color=darker(ink),
        ha="center",
        va="center",
        zorder=6.5,
        annotation_clip=True,
        path_effects=[withStroke(linewidth=2.0, foreground="white", alpha=0.85)],
    )
