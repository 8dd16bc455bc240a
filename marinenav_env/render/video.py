"""Videos of episodes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import imageio.v2 as imageio
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from PIL import Image

from marinenav_env.files import write_atomically
from marinenav_env.render.figures import map_figure
from marinenav_env.render.geometry import End, Scene
from marinenav_env.render.ink import BUOY_FILL, COLLISION_INK, ROBOT_COLOURS, TEXT_INK, colour_of
from marinenav_env.render.marks import Hull, add_hulls, add_track, draw_collision, draw_start

VIDEO_DPI = 80
VIDEO_END_S = 1.5
"""How long a video stays at its last frame [s]."""


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
