"""Draw an episode file: a picture (.png, .pdf, .svg) or a film (.gif, .mp4)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from marinenav_env.episodes.format import read_episode
from marinenav_env.render.figures import plot_episode, save_figure, save_film

PICTURES = (".png", ".pdf", ".svg")
FILMS = (".gif", ".mp4")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read an episode, draw it, and say where the drawing is.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status: 0, or 2 if the episode or the output is of no use.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("episode", type=Path, metavar="EPISODE.json", help="episode file")
    parser.add_argument(
        "--output",
        type=Path,
        help=f"drawing, ending in one of {' '.join(PICTURES + FILMS)}; "
        "the episode's own name with .png in the current folder if left out",
    )
    parser.add_argument("--title", help="heading; the episode's name if left out")
    parser.add_argument("--fps", type=float, default=10.0, help="film: decisions shown a second")
    parser.add_argument("--dpi", type=int, default=150, help="picture: pixels per inch")
    options = parser.parse_args(arguments)
    output = options.output or Path(options.episode.stem + ".png")
    try:
        draw(options.episode, output, options.title, options.fps, options.dpi)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


def draw(source: Path, output: Path, title: str | None, fps: float, dpi: int) -> None:
    """Write the drawing of an episode file.

    Args:
        source: the episode.
        output: the drawing; its ending decides the kind.
        title: heading, or None for the episode's name.
        fps: frames of a film per second.
        dpi: pixels of a picture per inch.

    Raises:
        ValueError: the episode is damaged, or the output or a number is of no use.
    """
    kind = output.suffix.lower()
    if kind not in PICTURES + FILMS:
        raise ValueError(
            f"--output {str(output)!r} ends in {kind!r}: use one of {' '.join(PICTURES + FILMS)}"
        )
    if not output.parent.is_dir():
        raise ValueError(
            f"--output {str(output)!r}: folder {str(output.parent)!r} is missing, make it"
        )
    if dpi < 1:
        raise ValueError(f"--dpi is {dpi}: give 1 or more")
    episode = read_episode(source)
    if kind in FILMS:
        save_film(episode, output, fps, title)
    else:
        save_figure(plot_episode(episode, title), output, dpi)


if __name__ == "__main__":
    sys.exit(main())
