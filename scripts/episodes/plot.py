"""``episode.py plot``: figures and videos of episode files, and of what a policy does."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from marinenav_env.envs.make import VESSEL_TASKS
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.replay import task_of_episode
from marinenav_env.episodes.tracks import own_of, tracks_of
from marinenav_env.render.figures import plot_scene, plot_scenes, save_figure
from marinenav_env.render.geometry import Scene, scenes_of
from marinenav_env.render.video import save_video
from marinenav_env.tracks import record_tracks
from scripts.episodes.record import adapted, add_policy_options
from train_RL_agents.commands.options import SETTINGS_HELP
from train_RL_agents.commands.parser import FIGURES, output_file, tells
from train_RL_agents.commands.traffic import check_traffic_option
from train_RL_agents.commands.worlds import worlds_of
from train_RL_agents.evaluation.episodes import LOOK_INTERVAL
from train_RL_agents.run.checkpoint import CheckpointError

VIDEOS = (".gif", ".mp4")
FIGURE_DPI, VIDEO_FPS = 150, 10.0

PLOT = f"""Draw an episode file, or one episode of a policy in each stage or scenario.

A figure ends in .png, .pdf or .svg, a video in .gif or .mp4. With --checkpoint:
{SETTINGS_HELP} Exit status: 0, or 2 if the episode, the policy or the output is of no use.
"""


def define_plot(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plot``."""
    parser.set_defaults(run=plot, parser=parser, episodes=1)
    parser.add_argument(
        "episode", type=Path, nargs="?", metavar="EPISODE.json", help="episode file"
    )
    add_policy_options(parser, required=False, stages="draw an episode in")
    parser.add_argument(
        "--output",
        type=output_file(*FIGURES, *VIDEOS),
        help=f"drawing, ending in one of {' '.join(FIGURES + VIDEOS)}; "
        "the episode's own name, or episodes, with .png in the current folder if left out",
    )
    parser.add_argument("--title", help="heading; the episode's name if left out")
    parser.add_argument(
        "--fps", type=float, help=f"video: decisions shown a second (default {VIDEO_FPS:g})"
    )
    parser.add_argument("--dpi", type=int, help=f"figure: pixels per inch (default {FIGURE_DPI})")


@tells(CheckpointError, ValueError, OSError, status=2)
def plot(options: argparse.Namespace) -> int:
    """Draw the episode, and say where the drawing is."""
    if (options.episode is None) == (options.checkpoint is None):
        options.parser.error("give either an episode file or --checkpoint")
    check_traffic_option(options.parser, options)
    own = (options.settings, options.stage, options.scenario, options.config, options.traffic)
    if options.episode and any(own):
        options.parser.error("the worlds of an episode file are its own: --checkpoint is missing")
    if options.episode and options.shield is not None:
        options.parser.error("--shield guards a policy, not an episode file: leave it out")
    name = options.episode.stem if options.episode else "episodes"
    output = options.output or Path(name + ".png")
    dpi = FIGURE_DPI if options.dpi is None else options.dpi
    fps = VIDEO_FPS if options.fps is None else options.fps
    check_drawing(output, options)
    scenes, titles = scenes_of_policy(options) if options.checkpoint else from_file(options)
    if options.title is not None:
        if len(scenes) > 1:
            raise ValueError(f"--title is for one episode, not {len(scenes)}: leave it out")
        titles = [options.title]
    if output.suffix.lower() in VIDEOS:
        if len(scenes) > 1:
            raise ValueError(f"a video shows one episode, not {len(scenes)}: name one stage")
        save_video(scenes[0], output, titles[0], fps)
    elif len(scenes) == 1:
        save_figure(plot_scene(scenes[0], titles[0]), output, dpi)
    else:
        save_figure(plot_scenes(scenes, titles), output, dpi)
    print(output)
    return 0


def from_file(options: argparse.Namespace) -> tuple[list[Scene], list[str]]:
    """Return the scene of an episode file and its heading."""
    episode = read_episode(options.episode)
    _, config, _ = task_of_episode(episode)
    return scenes_of(tracks_of(episode), config), [options.episode.stem]


def scenes_of_policy(options: argparse.Namespace) -> tuple[list[Scene], list[str]]:
    """Return scenes of what a policy does, one for each stage or scenario, and their headings."""
    drawn = [*VESSEL_TASKS]
    worlds = worlds_of(options, tasks=drawn, adapt=adapted(options), dtype=torch.float32)
    torch.manual_seed(options.seed)
    tracks = record_tracks(
        worlds.env,
        worlds.act,
        options.limit,
        reset=not worlds.placed,
        look_interval=LOOK_INTERVAL,
        own=own_of(worlds.steer),
    )
    return scenes_of(tracks, worlds.env.config), worlds.labels


def check_drawing(output: Path, options: argparse.Namespace) -> None:
    """Check what can be said of a drawing before any work.

    Raises:
        ValueError: the kind of drawing has no use for an option, or it has no pixels.
    """
    kind = output.suffix.lower()
    if options.fps is not None and kind in FIGURES:
        raise ValueError(f"--fps is {options.fps:g}, which is for videos: leave it out")
    if options.dpi is not None and kind in VIDEOS:
        raise ValueError(f"--dpi is {options.dpi}, which is for figures: leave it out")
    if options.dpi is not None and options.dpi < 1:
        raise ValueError(f"--dpi is {options.dpi}: give 1 or more")
