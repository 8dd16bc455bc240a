"""The parts that an episode's figure is made of: the map, tracks, hulls and marks."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.patches import Circle, Rectangle
from matplotlib.patheffects import withStroke

from marinenav_env.render.geometry import (
    End,
    Scene,
    hull_polygons,
    place_body,
    settings_in_force,
    to_map,
    water_velocity,
)

ROBOT_COLOURS = (
    "#0077BB",
    "#EE7733",
    "#009988",
    "#CC3377",
    "#5B3FA0",
    "#8C5A2B",
    "#33A5CC",
    "#7F8F18",
)
"""Colours of robots in order; told apart by readers with colour-vision deficiencies too."""

WATER, TEXT_INK, GRID = "#F3F8FB", "#22313A", "#D5E1E8"
CURRENT_INK, VORTEX_INK = "#7FAECB", "#2F6E97"
WIND_INK = "#4A5A66"
BUOY_FILL, BUOY_EDGE = "#F2C230", "#4A3B00"
COLLISION_INK = "#C00020"
WATER_SPEED = LinearSegmentedColormap.from_list("water", ["#F3F8FB", "#C4DDEC", "#7FB2D3"])
FASTEST_SHADE = 1.5
"""Water speed [m/s] from which the shade grows no darker; only the vortices' cores are faster."""

NORTH_LABEL = "north x [m]"
EAST_LABEL = "east y [m]   (yaw turns clockwise from north)"
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


def colour_of(robot: int) -> str:
    """Return the colour of a robot, by its index."""
    return ROBOT_COLOURS[robot % len(ROBOT_COLOURS)]


def draw_map(axes: Axes, scene: Scene, compact: bool = False) -> None:
    """Draw everything that does not move: water, currents, border, buoys and goals.

    Disturbances without a place on the map are named as settings in its lower left corner.

    Args:
        axes: where to draw.
        scene: what to draw.
        compact: draw fewer streamlines, for small panels.
    """
    low, high = map_extent(scene)
    axes.set_aspect("equal")
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_facecolor(WATER)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(EAST_LABEL)
    axes.set_ylabel(NORTH_LABEL)
    for spine in axes.spines.values():
        spine.set_color("#9FB2BD")
    if len(scene.vortices) or scene.stream.any():
        _draw_currents(axes, scene, low, high, 0.8 if compact else 1.2)
    if scene.wind.any():
        _draw_arrow(axes, scene.wind, 0.09, "wind {:.1f} m/s")
    if scene.waves.any():
        _draw_arrow(axes, scene.waves, 0.24, "waves {:.2g} m")
    _write_settings(axes, scene)
    border = Rectangle(
        (0.0, 0.0),
        scene.config.scenario.height,
        scene.config.scenario.width,
        fill=False,
        edgecolor="#8AA0AC",
        linewidth=1.0,
        linestyle=(0, (6, 3)),
        zorder=1.5,
    )
    axes.add_patch(border)
    for *position, radius in scene.buoys:
        centre = _point(position)
        axes.add_patch(
            Circle(centre, radius, facecolor=BUOY_FILL, edgecolor=BUOY_EDGE, lw=1.2, zorder=4)
        )
        axes.add_patch(Circle(centre, 0.3 * radius, facecolor=BUOY_EDGE, lw=0, zorder=4.1))
    radius = scene.config.reward.goal_distance
    for robot, goal in enumerate(to_map(scene.goals)):
        ink = colour_of(robot)
        axes.add_patch(
            Circle(goal, radius, facecolor=to_rgba(ink, 0.15), edgecolor=ink, lw=1.1, zorder=2.5)
        )
        axes.plot(*goal, marker="*", color=ink, markersize=6, markeredgewidth=0, zorder=2.6)


def map_extent(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower left and the upper right corner (east, north) [m] of the square drawn.

    It holds the map and every vessel at every state.
    """
    size = np.array([scene.config.scenario.width, scene.config.scenario.height])
    reach = 0.5 * scene.config.vessel.length
    points = np.vstack([path[:, :2] for path in scene.paths] + [[reach, reach], size - reach])
    low, high = points.min(axis=0) - reach - 1.0, points.max(axis=0) + reach + 1.0
    centre, half = 0.5 * (low + high), 0.5 * (high - low).max()
    return to_map(centre - half), to_map(centre + half)


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
        edges += [to_rgba(_darker(ink), 0.35 + 0.65 * strength)] * len(parts)
    drawn = PolyCollection(
        outlines, facecolors=fillings, edgecolors=edges, linewidths=0.7, zorder=5.0
    )
    axes.add_collection(drawn)
    return drawn


def _point(position: np.ndarray) -> tuple[float, float]:
    """Return the drawing coordinates of one world point [2]."""
    x, y = position
    return float(y), float(x)


def draw_start(axes: Axes, scene: Scene, robot: int, size: float) -> None:
    """Mark where a robot starts, with its number; ``size`` in points."""
    place, ink = _point(scene.paths[robot][0, :2]), colour_of(robot)
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
        color=_darker(ink),
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
    place = _point(scene.paths[robot][-1, :2])
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


def _draw_currents(
    axes: Axes, scene: Scene, low: np.ndarray, high: np.ndarray, density: float
) -> None:
    """Shade the water by its speed and draw streamlines, the cores of the vortices on top."""
    east = np.linspace(low[0], high[0], 160)
    north = np.linspace(low[1], high[1], 160)
    grid = np.stack(np.meshgrid(north, east, indexing="ij"), axis=-1).reshape(-1, 2)
    velocity = water_velocity(scene.vortices, scene.config, grid, scene.stream)
    velocity = velocity.reshape(160, 160, 2)
    speed = np.linalg.norm(velocity, axis=-1)
    axes.pcolormesh(
        east,
        north,
        speed,
        cmap=WATER_SPEED,
        vmin=0.0,
        vmax=FASTEST_SHADE,
        shading="gouraud",
        zorder=0.3,
        rasterized=True,
    )
    axes.streamplot(
        east,
        north,
        velocity[..., 1],
        velocity[..., 0],
        color=CURRENT_INK,
        linewidth=0.4 + 0.9 * np.clip(speed, 0.0, 1.0),
        arrowsize=0.7,
        density=density,
        zorder=0.6,
    )
    radius = scene.config.current.core_radius
    for centre in to_map(scene.vortices[:, :2]):
        axes.add_patch(Circle(centre, radius, color=VORTEX_INK, lw=0, zorder=0.9))


def _draw_arrow(axes: Axes, vector: np.ndarray, x: float, text: str) -> None:
    """Draw at the top, at a share x of the width, where something goes, and how much of it."""
    size, middle = float(np.linalg.norm(vector)), np.array([x, 0.92])
    half = 0.05 * to_map(vector) / size
    axes.annotate(
        "",
        tuple(middle + half),
        tuple(middle - half),
        xycoords="axes fraction",
        textcoords="axes fraction",
        arrowprops={"arrowstyle": "-|>", "color": WIND_INK, "lw": 1.6},
        zorder=8,
    )
    below: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "top", "zorder": 8}
    axes.text(x, 0.86, text.format(size), fontsize=7, color=WIND_INK, **below)


def _write_settings(axes: Axes, scene: Scene) -> None:
    """Name what disturbs the vessels without a place on the map."""
    axes.text(
        0.012,
        0.012,
        "\n".join(settings_in_force(scene.config)),
        transform=axes.transAxes,
        fontsize=6.5,
        color=WIND_INK,
        va="bottom",
        zorder=8,
        path_effects=[withStroke(linewidth=2.0, foreground="white", alpha=0.85)],
    )


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
        _point(aside),
        fontsize=7,
        color=_darker(ink),
        ha="center",
        va="center",
        zorder=6.5,
        annotation_clip=True,
        path_effects=[withStroke(linewidth=2.0, foreground="white", alpha=0.85)],
    )


def _darker(ink: str) -> tuple[float, float, float]:
    red, green, blue, _ = to_rgba(ink)
    return 0.6 * red, 0.6 * green, 0.6 * blue
