"""Figures and videos of episodes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import imageio.v2 as imageio
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from marinenav_env.files import write_atomically
from marinenav_env.render.chart import EAST_LABEL, NORTH_LABEL, draw_map
from marinenav_env.render.geometry import End, Scene
from marinenav_env.render.ink import (
    BUOY_EDGE,
    BUOY_FILL,
    COLLISION_INK,
    CURRENT_INK,
    ROBOT_COLOURS,
    TEXT_INK,
    colour_of,
)
from marinenav_env.render.marks import (
    Hull,
    add_hulls,
    add_track,
    draw_collision,
    draw_start,
    draw_tracks,
)

FIGURE_INCHES = (9.2, 7.1)
"""Size of the figure of one episode."""

PANEL_INCHES = 3.6
VIDEO_DPI = 80
VIDEO_END_S = 1.5
"""How long a video stays at its last frame [s]."""


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


def save_video(scene: Scene, path: Path, title: str, fps: float = 10.0) -> None:
    """Write a video of an episode, one frame per decision; an MP4 or a GIF, by the file's ending.

    At every moment either the old file or the whole new one is there.

    Args:
        scene: what to draw.
        path: the file.
        title: heading.
        fps: frames per second; 10 plays decisions of 0.5 s five times as fast as they were.

    Raises:
        ValueError: the ending is neither ``.gif`` nor ``.mp4``, or ``fps`` is not above 0.
    """
    if not 0.0 < fps < np.inf:
        raise ValueError(f"fps is {fps!r}: give a finite number above 0")
    steps = [*range(scene.decisions), *[scene.decisions] * max(1, round(VIDEO_END_S * fps))]
    if path.suffix.lower() == ".mp4":

        def write(file: BinaryIO) -> None:
            """Encode frame by frame."""
            options: Any = {"format": "mp4", "fps": fps, "quality": 8, "macro_block_size": 2}
            writer: Any = imageio.get_writer(file, **options)
            with writer:
                for frame in video_frames(scene, steps, title):
                    writer.append_data(frame)

    elif path.suffix.lower() == ".gif":
        palette = _palette(scene, next(video_frames(scene, steps[-1:], title)))
        first, *others = (
            Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
            for frame in video_frames(scene, steps, title)
        )
        write = functools.partial(
            first.save,
            format="GIF",
            save_all=True,
            append_images=others,
            duration=1000.0 / fps,
            loop=0,
        )
    else:
        raise ValueError(f"video {str(path)!r} ends in {path.suffix!r}: use .gif or .mp4")
    write_atomically(path, write)


def video_frames(scene: Scene, steps: Iterable[int], title: str) -> Iterator[np.ndarray]:
    """Yield images of an episode after the given numbers of decisions.

    Args:
        scene: what to draw.
        steps: numbers of decisions, 0 for the start.
        title: heading.

    Yields:
        RGB images [height, width, 3] of bytes.
    """
    figure, axes = map_figure(scene, title)
    figure.set_dpi(VIDEO_DPI)
    canvas = FigureCanvasAgg(figure)
    for robot in range(len(scene.paths)):
        draw_start(axes, scene, robot, 9.5)
    canvas.draw()
    background = canvas.copy_from_bbox(figure.bbox)
    for step in steps:
        canvas.restore_region(background)
        for artist in sorted(_moving(axes, scene, step), key=Artist.get_zorder):
            axes.draw_artist(artist)
            artist.remove()
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _palette(scene: Scene, frame: np.ndarray) -> Image.Image:
    """Return a palette for all frames of a GIF: every robot's own colours, then the frame's."""
    inks = [colour_of(robot) for robot in range(min(len(scene.paths), len(ROBOT_COLOURS)))]
    own = [
        tuple(round(255 * (part * share + 1.0 - share)) for part in to_rgb(ink))
        for ink in [*inks, COLLISION_INK, BUOY_FILL]
        for share in (1.0, 0.8, 0.6, 0.4)
    ]
    own.append((255, 255, 255))
    others = Image.fromarray(frame).quantize(256 - len(own), dither=Image.Dither.NONE)
    palette = Image.new("P", (1, 1))
    palette.putpalette([*np.ravel(own).tolist(), *(others.getpalette() or ())])
    return palette


def _moving(axes: Axes, scene: Scene, step: int) -> Iterator[Artist]:
    """Draw what moves, as it is after ``step`` decisions, and yield it piece by piece.

    A robot that has ended is gone from the water; its last place stays, pale.
    """
    yield axes.text(
        0.985,
        0.98,
        f"{step * scene.decision_time:.1f} s",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=13,
        color=TEXT_INK,
        zorder=8,
    )
    hulls = []
    for robot, (path, end) in enumerate(zip(scene.paths, scene.ends, strict=True)):
        last = len(path) - 1
        gone = step > last and end is not End.UNDERWAY
        hulls.append(Hull(robot, path[min(step, last)], 0.3 if gone else 1.0))
        yield add_track(axes, scene, robot, step, 1.9)
        if step >= last and end is End.COLLISION:
            yield from draw_collision(axes, scene, robot, 11.0)
    yield add_hulls(axes, scene, hulls)


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
    if any(len(scene.vortices) for scene in scenes):
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
