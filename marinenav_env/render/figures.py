"""Figures of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from marinenav_env.files import write_atomically
from marinenav_env.render.chart import EAST_LABEL, NORTH_LABEL, draw_map
from marinenav_env.render.geometry import End, Scene
from marinenav_env.render.ink import (
    BUOY_EDGE,
    BUOY_FILL,
    COLLISION_INK,
    CURRENT_INK,
    TEXT_INK,
    colour_of,
)
from marinenav_env.render.marks import draw_tracks

FIGURE_INCHES = (9.2, 7.1)
"""Size of the figure of one episode."""

PANEL_INCHES = 3.6


def plot_scene(scene: Scene, title: str) -> Figure:
    """Draw an episode: map, currents, buoys, tracks with hulls, starts, goals and ends.

    Args:
        scene: what to draw.
        title: heading of the figure.

    Returns:
        A figure of :data:`FIGURE_INCHES`, to be saved with :func:`save_figure`.
    """
    figure, axes = map_figure(scene, title)
    draw_tracks(axes, scene)
    return figure


def plot_scenes(scenes: Sequence[Scene], titles: Sequence[str], columns: int = 3) -> Figure:
    """Draw several episodes side by side, each in a square panel.

    Args:
        scenes: what to draw, at least one.
        titles: heading of each panel.
        columns: panels in a row.

    Raises:
        ValueError: there is no episode, or the numbers of episodes and titles differ.
    """
    if not scenes:
        raise ValueError("scenes is empty: give at least one episode to draw")
    if len(titles) != len(scenes):
        raise ValueError(
            f"titles has {len(titles)} entries for {len(scenes)} scenes: give one title each"
        )
    columns = min(columns, len(scenes))
    rows = -(-len(scenes) // columns)
    figure = Figure(
        figsize=(PANEL_INCHES * columns, (PANEL_INCHES + 0.1) * rows + 0.45), layout="constrained"
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, scene, title in zip(panels, scenes, titles, strict=False):
        draw_map(panel, scene, compact=True)
        draw_tracks(panel, scene, compact=True)
        panel.set_title(title, loc="left", fontsize=10)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("")
        panel.set_ylabel("")
    for panel in panels[len(scenes) :]:
        panel.set_axis_off()
    figure.supxlabel(EAST_LABEL, fontsize=9, color=TEXT_INK)
    figure.supylabel(NORTH_LABEL, fontsize=9, color=TEXT_INK)
    figure.legend(
        handles=_symbol_handles(scenes),
        loc="outside upper center",
        ncols=6,
        frameon=False,
        fontsize=8.5,
    )
    return figure


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure, atomically; its kind follows from the file's ending.

    Args:
        figure: what to write.
        path: the file.
        dpi: pixels per inch.
    """
    kind = path.suffix.removeprefix(".").lower()
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=dpi))


def map_figure(scene: Scene, title: str) -> tuple[Figure, Axes]:
    """Return a figure with everything of an episode that does not move, and its axes."""
    figure = Figure(figsize=FIGURE_INCHES)
    axes = figure.add_axes((0.072, 0.09, 0.656, 0.85))
    draw_map(axes, scene)
    axes.set_title(title, loc="left", fontsize=12)
    figure.legend(
        handles=_robot_handles(scene) + _symbol_handles([scene]),
        loc="upper left",
        bbox_to_anchor=(0.74, 0.945),
        frameon=False,
        fontsize=9,
        labelspacing=0.75,
    )
    _draw_compass(figure.add_axes((0.76, 0.09, 0.15, 0.194)))
    return figure, axes


def _robot_handles(scene: Scene) -> list[Line2D]:
    """Return one legend entry per robot, with its end."""
    verb = {End.GOAL: "goal at", End.COLLISION: "collision at", End.UNDERWAY: "under way at"}
    return [
        Line2D(
            [],
            [],
            color=colour_of(robot),
            lw=2.5,
            label=f"robot {robot + 1}: {verb[end]} {scene.time_of_end(robot):g} s"
            f"{_loss_of(scene, robot)}",
        )
        for robot, end in enumerate(scene.ends)
    ]


def _loss_of(scene: Scene, robot: int) -> str:
    """Return in words which thruster a robot loses before its end, if any, on a line of its own."""
    if scene.losses is None:
        return ""
    time, side = scene.losses[robot]
    if side == 0.0 or time >= scene.time_of_end(robot):
        return ""
    return f"\n{'port' if side < 0.0 else 'starboard'} thrust lost, {time:.0f} s"


def _symbol_handles(scenes: Sequence[Scene]) -> list[Line2D]:
    """Return the entries for the symbols that occur in any of the scenes."""
    ink = "#5A6B75"
    handles = [
        Line2D([], [], ls="", marker="o", ms=6, mfc="white", mec=ink, mew=1.4, label="start"),
        Line2D([], [], ls="", marker="*", ms=9, color=ink, label="goal area"),
    ]
    if any(len(scene.buoys) for scene in scenes):
        handles.append(
            Line2D([], [], ls="", marker="o", ms=8, mfc=BUOY_FILL, mec=BUOY_EDGE, label="buoy")
        )
    if any(scene.has_current for scene in scenes):
        handles.append(Line2D([], [], color=CURRENT_INK, lw=1.2, marker=">", ms=4, label="current"))
    if any(End.COLLISION in scene.ends for scene in scenes):
        handles.append(
            Line2D(
                [], [], ls="", marker="X", ms=9, mfc=COLLISION_INK, mec="white", label="collision"
            )
        )
    return handles


def _draw_compass(axes: Axes) -> None:
    """Draw the axes of the world and the sense of yaw."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-0.9, 1.6)
    axes.set_ylim(-0.9, 1.6)
    style = {"arrowstyle": "-|>", "color": TEXT_INK, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0.0, 1.1), (0.0, 0.0), arrowprops=style)
    axes.annotate("", (1.1, 0.0), (0.0, 0.0), arrowprops=style)
    turn = style | {"lw": 1.0, "connectionstyle": "arc3,rad=-0.35"}
    axes.annotate("", (0.67, 0.2), (0.12, 0.7), arrowprops=turn)
    text: dict[str, Any] = {"fontsize": 8, "color": TEXT_INK, "ha": "center", "va": "center"}
    axes.text(0.0, 1.3, "x north", **text)
    axes.text(1.2, -0.22, "y east", **text)
    axes.text(0.78, 0.68, "yaw", **text)
