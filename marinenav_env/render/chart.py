"""What does not move on an episode's figure: water, currents, border, buoys and goals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, Rectangle
from matplotlib.patheffects import withStroke

from marinenav_env.render.geometry import Scene, settings_in_force, to_map, to_point, water_velocity
from marinenav_env.render.ink import (
    BUOY_EDGE,
    BUOY_FILL,
    CURRENT_INK,
    FASTEST_SHADE,
    GRID,
    VORTEX_INK,
    WATER,
    WATER_SPEED,
    WIND_INK,
    colour_of,
)

NORTH_LABEL = "north x [m]"
EAST_LABEL = "east y [m]   (yaw turns clockwise from north)"


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
    if scene.has_current:
        _draw_currents(axes, scene, low, high, 0.8 if compact else 1.2)
    if scene.wind.any():
        _draw_arrow(axes, scene.wind, 0.09, "wind {:.1f} m/s")
    if scene.waves.any():
        _draw_arrow(axes, scene.waves, 0.24, "waves {:.2g} m")
    _write_settings(axes, scene)
    if lies_on_the_map(scene):
        _draw_border(axes, scene)
    for *position, radius in scene.buoys:
        centre = to_point(position)
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

    It holds the map, or all starts, goals and buoys of an episode that does not lie on it, and
    every vessel at every state, but for one that is further from these than half their side: they
    would become too small to see.
    """
    reach = 0.5 * scene.config.vessel.length
    low, high = np.zeros(2), map_size(scene)
    if not lies_on_the_map(scene):
        places, room = places_of(scene), max(reach, scene.config.reward.goal_distance)
        low, high = places.min(axis=0) - room, places.max(axis=0) + room
    outside = 0.5 * (high - low).max()
    paths = [path[:, :2].clip(low - outside, high + outside) for path in scene.paths]
    points = np.vstack([*paths, low + reach, high - reach])
    low, high = points.min(axis=0) - reach - 1.0, points.max(axis=0) + reach + 1.0
    centre, half = 0.5 * (low + high), 0.5 * (high - low).max()
    return to_map(centre - half), to_map(centre + half)


def lies_on_the_map(scene: Scene) -> bool:
    """Return whether all starts, goals and buoys do; those of named encounters need not."""
    places, rounding = places_of(scene), 1e-3
    return bool(((places >= -rounding) & (places <= map_size(scene) + rounding)).all())


def map_size(scene: Scene) -> np.ndarray:
    """Return the sides of the map [2] in m, along x and y."""
    return np.array([scene.config.scenario.width, scene.config.scenario.height])


def places_of(scene: Scene) -> np.ndarray:
    """Return all starts, goals and centres of buoys [2 R + B, 2] in m."""
    return np.vstack([*(path[:1, :2] for path in scene.paths), scene.goals, scene.buoys[:, :2]])


def _draw_border(axes: Axes, scene: Scene) -> None:
    """Draw where robots and buoys are placed."""
    border = Rectangle(
        (0.0, 0.0),
        *to_map(map_size(scene)),
        fill=False,
        edgecolor="#8AA0AC",
        linewidth=1.0,
        linestyle=(0, (6, 3)),
        zorder=1.5,
    )
    axes.add_patch(border)


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
