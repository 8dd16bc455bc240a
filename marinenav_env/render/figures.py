"""Pictures and films of episodes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import imageio.v2 as imageio
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from marinenav_env.episodes.format import Episode
from marinenav_env.files import write_atomically
from marinenav_env.render.chart import (
    BUOY_EDGE,
    BUOY_FILL,
    COLLISION_INK,
    CURRENT_INK,
    EAST_LABEL,
    NORTH_LABEL,
    ROBOT_COLOURS,
    TEXT_INK,
    add_hull,
    add_track,
    colour_of,
    draw_collision,
    draw_map,
    draw_start,
    draw_tracks,
)
from marinenav_env.render.geometry import End, Outcome, outcomes

FIGURE_INCHES = (9.2, 7.1)
"""Size of the picture of one episode."""

PANEL_INCHES = 3.6
FILM_DPI = 80
FILM_END_S = 1.5
"""How long a film stays at its last frame [s]."""


def plot_episode(episode: Episode, title: str | None = None) -> Figure:
    """Draw an episode: map, currents, buoys, tracks with hulls, starts, goals and ends.

    Args:
        episode: what to draw.
        title: heading of the picture; the episode's name if None.

    Returns:
        A figure of :data:`FIGURE_INCHES`, to be saved with :func:`save_figure`.
    """
    figure, axes = map_figure(episode, title)
    draw_tracks(axes, episode)
    return figure


def plot_episodes(
    episodes: Sequence[Episode], titles: Sequence[str] | None = None, columns: int = 3
) -> Figure:
    """Draw several episodes side by side, each in a square panel.

    Args:
        episodes: what to draw, at least one.
        titles: heading of each panel; the episodes' names if None.
        columns: panels in a row.

    Raises:
        ValueError: there is no episode, or the numbers of episodes and titles differ.
    """
    if not episodes:
        raise ValueError("episodes is empty: give at least one episode to draw")
    titles = [Path(episode.name).stem for episode in episodes] if titles is None else titles
    if len(titles) != len(episodes):
        raise ValueError(
            f"titles has {len(titles)} entries for {len(episodes)} episodes: give one title each"
        )
    columns = min(columns, len(episodes))
    rows = -(-len(episodes) // columns)
    figure = Figure(
        figsize=(PANEL_INCHES * columns, (PANEL_INCHES + 0.1) * rows + 0.45), layout="constrained"
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, episode, title in zip(panels, episodes, titles, strict=False):
        draw_map(panel, episode, compact=True)
        draw_tracks(panel, episode, compact=True)
        panel.set_title(title, loc="left", fontsize=10)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("")
        panel.set_ylabel("")
    for panel in panels[len(episodes) :]:
        panel.set_axis_off()
    figure.supxlabel(EAST_LABEL, fontsize=9, color=TEXT_INK)
    figure.supylabel(NORTH_LABEL, fontsize=9, color=TEXT_INK)
    figure.legend(
        handles=_symbol_handles(episodes),
        loc="outside upper center",
        ncols=6,
        frameon=False,
        fontsize=8.5,
    )
    return figure


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a picture, atomically; its kind follows from the file's ending.

    Args:
        figure: what to write.
        path: the file.
        dpi: pixels per inch.
    """
    kind = path.suffix.removeprefix(".").lower()
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=dpi))


def save_film(episode: Episode, path: Path, fps: float = 10.0, title: str | None = None) -> None:
    """Write a film of an episode, one frame per decision; an MP4 or a GIF, by the file's ending.

    At every moment either the old file or the whole new one is there.

    Args:
        episode: what to draw.
        path: the file.
        fps: frames per second; 10 plays decisions of 0.5 s five times as fast as they were.
        title: heading; the episode's name if None.

    Raises:
        ValueError: the ending is neither ``.gif`` nor ``.mp4``, or ``fps`` is not above 0.
    """
    if not 0.0 < fps < np.inf:
        raise ValueError(f"fps is {fps!r}: give a finite number above 0")
    steps = [*range(episode.decisions), *[episode.decisions] * max(1, round(FILM_END_S * fps))]
    if path.suffix.lower() == ".mp4":

        def write(file: BinaryIO) -> None:
            """Encode frame by frame."""
            options = {"format": "mp4", "fps": fps, "quality": 8, "macro_block_size": 2}
            with imageio.get_writer(file, **options) as writer:
                for frame in film_frames(episode, steps, title):
                    writer.append_data(frame)

    elif path.suffix.lower() == ".gif":
        palette = _palette(episode, next(film_frames(episode, steps[-1:], title)))
        first, *others = (
            Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
            for frame in film_frames(episode, steps, title)
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
        raise ValueError(f"film {str(path)!r} ends in {path.suffix!r}: use .gif or .mp4")
    write_atomically(path, write)


def film_frames(
    episode: Episode, steps: Iterable[int], title: str | None = None
) -> Iterator[np.ndarray]:
    """Yield pictures of an episode after the given numbers of decisions.

    Args:
        episode: what to draw.
        steps: numbers of decisions, 0 for the start.
        title: heading; the episode's name if None.

    Yields:
        RGB images [height, width, 3] of bytes.
    """
    figure, axes = map_figure(episode, title)
    figure.set_dpi(FILM_DPI)
    canvas = FigureCanvasAgg(figure)
    for robot in range(episode.robots):
        draw_start(axes, episode, robot, 9.5)
    canvas.draw()
    background = canvas.copy_from_bbox(figure.bbox)
    ended = outcomes(episode)
    for step in steps:
        canvas.restore_region(background)
        for artist in sorted(_moving(axes, episode, ended, step), key=Artist.get_zorder):
            axes.draw_artist(artist)
            artist.remove()
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _palette(episode: Episode, frame: np.ndarray) -> Image.Image:
    """Return a palette for all frames of a GIF: every robot's own colours, then the frame's."""
    inks = [colour_of(robot) for robot in range(min(episode.robots, len(ROBOT_COLOURS)))]
    own = [
        tuple(round(255 * (part * share + 1.0 - share)) for part in to_rgb(ink))
        for ink in [*inks, COLLISION_INK, BUOY_FILL]
        for share in (1.0, 0.8, 0.6, 0.4)
    ]
    own.append((255, 255, 255))
    others = Image.fromarray(frame).quantize(256 - len(own), dither=Image.Dither.NONE)
    palette = Image.new("P", (1, 1))
    palette.putpalette([*np.ravel(own).tolist(), *others.getpalette()])
    return palette


def _moving(axes: Axes, episode: Episode, ended: Sequence[Outcome], step: int) -> Iterator[Artist]:
    """Draw what moves, as it is after ``step`` decisions, and yield it piece by piece.

    A robot that has ended is gone from the water; its last place stays, pale.
    """
    yield axes.text(
        0.985,
        0.98,
        f"{step * episode.decision_s:.1f} s",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=13,
        color=TEXT_INK,
        zorder=8,
    )
    for robot, (states, outcome) in enumerate(zip(episode.trajectory, ended, strict=True)):
        last = len(states) - 1
        gone = step > last and outcome.end is not End.UNDERWAY
        yield add_track(axes, episode, robot, step, 1.9)
        yield add_hull(axes, episode, robot, states[min(step, last)], 0.3 if gone else 1.0)
        if step >= last and outcome.end is End.COLLISION:
            yield from draw_collision(axes, episode, robot, 11.0)


def map_figure(episode: Episode, title: str | None = None) -> tuple[Figure, Axes]:
    """Return a figure with everything of an episode that does not move, and its axes."""
    figure = Figure(figsize=FIGURE_INCHES)
    axes = figure.add_axes((0.072, 0.09, 0.656, 0.85))
    draw_map(axes, episode)
    axes.set_title(Path(episode.name).stem if title is None else title, loc="left", fontsize=12)
    figure.legend(
        handles=_robot_handles(episode) + _symbol_handles([episode]),
        loc="upper left",
        bbox_to_anchor=(0.74, 0.945),
        frameon=False,
        fontsize=9,
        labelspacing=0.75,
    )
    _draw_compass(figure.add_axes((0.76, 0.09, 0.15, 0.194)))
    return figure, axes


def _robot_handles(episode: Episode) -> list[Line2D]:
    """Return one legend entry per robot, with its outcome."""
    return [
        Line2D([], [], color=colour_of(robot), lw=2.5, label=_sentence(robot, outcome))
        for robot, outcome in enumerate(outcomes(episode))
    ]


def _sentence(robot: int, outcome: Outcome) -> str:
    verb = {End.GOAL: "goal at", End.COLLISION: "collision at", End.UNDERWAY: "under way at"}
    return f"robot {robot + 1}: {verb[outcome.end]} {outcome.time_s:g} s"


def _symbol_handles(episodes: Sequence[Episode]) -> list[Line2D]:
    """Return the entries for the symbols that occur in any of the episodes."""
    ink = "#5A6B75"
    handles = [
        Line2D([], [], ls="", marker="o", ms=6, mfc="white", mec=ink, mew=1.4, label="start"),
        Line2D([], [], ls="", marker="*", ms=9, color=ink, label="goal area"),
    ]
    if any(len(episode.buoys.r) for episode in episodes):
        handles.append(
            Line2D([], [], ls="", marker="o", ms=8, mfc=BUOY_FILL, mec=BUOY_EDGE, label="buoy")
        )
    if any(len(episode.cores.gamma) for episode in episodes):
        handles.append(Line2D([], [], color=CURRENT_INK, lw=1.2, marker=">", ms=4, label="current"))
    if any(item.end is End.COLLISION for episode in episodes for item in outcomes(episode)):
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
    text = {"fontsize": 8, "color": TEXT_INK, "ha": "center", "va": "center"}
    axes.text(0.0, 1.3, "x north", **text)
    axes.text(1.2, -0.22, "y east", **text)
    axes.text(0.78, 0.68, "yaw", **text)
