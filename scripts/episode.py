"""Record, replay, plot and score episodes of the published format.

``record`` writes the files that the others read.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.episodes.compare import QUANTITIES, Deviations
from marinenav_env.episodes.convert import config_of, tracks_of
from marinenav_env.episodes.format import Episode, read_episode, write_episode
from marinenav_env.episodes.record import record_episodes
from marinenav_env.episodes.replay import check
from marinenav_env.render.figures import plot_scene, save_figure, save_video
from marinenav_env.render.geometry import scenes_of
from train_RL_agents.evaluation.episodes import FIRST_WORLD
from train_RL_agents.evaluation.recorded import score_recorded
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import describe_report, shield_agent
from train_RL_agents.policies.shield.config import read_shield
from train_RL_agents.run.checkpoint import CheckpointError

COUNTS = ("robots", "vortices", "buoys")
OPTIONS_BEFORE = {"vortices": ("--cores",)}
"""Options of older versions, which stay usable."""

DTYPES = {"float64": torch.float64, "float32": torch.float32}
COLUMNS = (*QUANTITIES, "wrong_flags", "steps")
FIGURES = (".png", ".pdf", ".svg")
VIDEOS = (".gif", ".mp4")

# ---- record -----------------------------------------------------------------------------------

RECORD = """Record episodes that a policy steers, as files of the published format.

Episode I of a seed has the same scenario whatever the number of episodes. Robots that collided or
arrived leave, the others go on. Exit status: 0, 1 if the policy, the scenario or the output is of
no use, 2 for a wrong option.
"""


def define_record(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``record``."""
    parser.set_defaults(run=record, parser=parser)
    parser.add_argument(
        "--checkpoint", required=True, metavar="PATH", help="policy, as evaluate.py takes it"
    )
    parser.add_argument(
        "--shield",
        nargs="*",
        metavar="KEY=VALUE",
        help="guard the policy, with these settings where given (docs/shield.md)",
    )
    stages = range(1, len(PUBLISHED_STAGES) + 1)
    parser.add_argument(
        "--stage",
        type=int,
        choices=stages,
        default=stages[-1],
        help="published stage (default %(default)s)",
    )
    for name in COUNTS:
        parser.add_argument(
            f"--{name}",
            *OPTIONS_BEFORE.get(name, ()),
            type=int,
            metavar="N",
            help=f"number of {name} instead of the stage's",
        )
    parser.add_argument(
        "--min-distance",
        type=float,
        metavar="M",
        help="distance from start to goal [m] instead of the stage's",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of scenarios, noise and actions (default %(default)s)",
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=1,
        metavar="N",
        help="number of episodes (default %(default)s)",
    )
    parser.add_argument(
        "--noise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether perception is noisy",
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=1000,
        metavar="N",
        help="most decisions of an episode (default %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="PATH",
        help="a file ending in .json for one episode, else a folder, made if missing, of files "
        "episode_SEED_INDEX.json",
    )


def record(options: argparse.Namespace) -> int:
    """Record as the options say, and print the files with how the episodes went."""
    if options.episodes < 1:
        options.parser.error(f"--episodes is {options.episodes}: give 1 or more")
    if options.output.suffix == ".json" and options.episodes > 1:
        options.parser.error(
            f"--output {str(options.output)!r} is one file for {options.episodes} episodes: "
            "give a folder"
        )
    try:
        agent, config = load_policy(options.checkpoint)
        if not isinstance(config.env, EnvConfig):
            raise ValueError(
                f"{options.checkpoint} is a policy of the task {config.task!r}: only episodes of "
                "the task 'marine' can be recorded"
            )
        env = MarineNavEnv(
            options.episodes,
            stages=(stage_of(options),),
            config=env_config(config.env, options),
            discrete=agent.discrete,
            dtype=torch.float64,
            seed=options.seed,
            first_world=FIRST_WORLD,
            stack_k=config.stack_k,
        )
        shield = read_shield(options.shield)
        guarded = shield and shield_agent(agent, config, shield, agent.act)
        torch.manual_seed(options.seed)
        episodes = record_episodes(env, guarded or agent.act, seed=options.seed)
        paths = write(episodes, options.output, options.seed)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for episode, path in zip(episodes, paths, strict=True):
        print(f"{path}: {summary(episode)}")
    if guarded:
        print(describe_report(guarded.report()))
    return 0


def stage_of(options: argparse.Namespace) -> Stage:
    """Return the scenario setting: the stage, with the counts given in place of its own."""
    changes = {name: getattr(options, name) for name in COUNTS}
    changes["min_distance_m"] = options.min_distance
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(PUBLISHED_STAGES[options.stage - 1], **given)


def env_config(config: EnvConfig, options: argparse.Namespace) -> EnvConfig:
    """Return the policy's environment, whose episodes go on after a collision."""
    episode = replace(config.episode, max_steps=options.limit, stop_on_collision=False)
    perception = config.perception if options.noise else config.perception.noiseless()
    return replace(config, episode=episode, perception=perception)


def write(episodes: Sequence[Episode], output: Path, seed: int) -> list[Path]:
    """Write the episodes and return their files.

    Raises:
        OSError: a file cannot be written.
    """
    if output.suffix == ".json":
        paths = [output]
    else:
        output.mkdir(parents=True, exist_ok=True)
        paths = [output / f"episode_{seed}_{index}.json" for index in range(len(episodes))]
    for episode, path in zip(episodes, paths, strict=True):
        write_episode(episode, path)
    return paths


def summary(episode: Episode) -> str:
    """Return in words how a recorded episode went."""
    infos = episode.data["recorded"]["infos"]
    ends = Counter(infos[length - 1][robot] for robot, length in enumerate(episode.lengths))
    return f"{episode.decisions} decisions; " + ", ".join(
        f"{count} x {end}" for end, count in sorted(ends.items())
    )


# ---- replay -----------------------------------------------------------------------------------

REPLAY = """Replay episode files with their recorded actions and print the simulator's deviations.

In float64 an episode runs through from its start and may be off by 1e-6; in float32 every decision
starts from the recorded state and may be off by 1e-4 times max(1, |x|). Exit status: 0 if all files
replay within that and without a wrong flag, 1 if not, 2 if a file or an option is of no use.
"""


def define_replay(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``replay``."""
    parser.set_defaults(run=replay)
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file (published format)")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float64", help="precision of the simulation"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="device of the simulation"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def replay(options: argparse.Namespace) -> int:
    """Replay the files and print the deviations."""
    try:
        episodes = [read_episode(file) for file in options.files]
        names = [episode.name for episode in episodes]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(
                f"files {sorted(twice)} are named twice: give files of different names"
            )
        found = {
            episode.name: check(episode, DTYPES[options.dtype], options.device)
            for episode in episodes
        }
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    overall = Deviations.worst(list(found.values()))
    if not options.json:
        print_table(found, overall)
        return 0 if overall.within() else 1
    files = {name: as_json(deviations) for name, deviations in found.items()}
    try:
        print(json.dumps({"overall": as_json(overall), "files": files}, indent=1, allow_nan=False))
    except ValueError:
        diverged = [name for name, part in found.items() if not math.isfinite(part.share)]
        print(
            f"error: deviations of {diverged} are not finite, which JSON cannot hold: leave "
            "out --json to see which, and look for parameters that make the simulation diverge",
            file=sys.stderr,
        )
        return 1
    return 0 if overall.within() else 1


def as_json(deviations: Deviations) -> dict[str, float | int | None]:
    """Return the quantities that other programs read; null for one that was not recorded.

    What the task lacks is left out.
    """
    values = asdict(deviations)
    return {name: values[name] for name in COLUMNS if name not in deviations.lacking}


def print_table(found: Mapping[str, Deviations], overall: Deviations) -> None:
    """Print the largest deviations, a row per file and one for all."""
    rows = {**found, "overall": overall}
    width = max(map(len, rows))
    print("file".ljust(width), *(name.rjust(11) for name in COLUMNS), "verdict", sep="  ")
    for name, deviations in rows.items():
        values = as_json(deviations)
        cells = [_cell(values.get(name)).rjust(11) for name in COLUMNS]
        verdict = "ok" if deviations.within() else "OFF"
        print(name.ljust(width), *cells, verdict, sep="  ")
    print(f"largest deviation: {overall.share:.2g} of its tolerance")


def _cell(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if isinstance(value, float) else str(value)


# ---- plot -------------------------------------------------------------------------------------

PLOT = """Draw an episode file: a figure (.png, .pdf, .svg) or a video (.gif, .mp4).

Exit status: 0, or 2 if the episode or the output is of no use.
"""


def define_plot(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plot``."""
    parser.set_defaults(run=plot)
    parser.add_argument("episode", type=Path, metavar="EPISODE.json", help="episode file")
    parser.add_argument(
        "--output",
        type=Path,
        help=f"drawing, ending in one of {' '.join(FIGURES + VIDEOS)}; "
        "the episode's own name with .png in the current folder if left out",
    )
    parser.add_argument("--title", help="heading; the episode's name if left out")
    parser.add_argument("--fps", type=float, default=10.0, help="video: decisions shown a second")
    parser.add_argument("--dpi", type=int, default=150, help="figure: pixels per inch")


def plot(options: argparse.Namespace) -> int:
    """Draw the episode, and say where the drawing is."""
    output = options.output or Path(options.episode.stem + ".png")
    title = options.episode.stem if options.title is None else options.title
    try:
        check_drawing(output, options.dpi)
        episode = read_episode(options.episode)
        (scene,) = scenes_of(tracks_of(episode), config_of(episode))
        if output.suffix.lower() in VIDEOS:
            save_video(scene, output, title, options.fps)
        else:
            save_figure(plot_scene(scene, title), output, options.dpi)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


def check_drawing(output: Path, dpi: int) -> None:
    """Check what can be said of a drawing before any work.

    Raises:
        ValueError: the kind of drawing is unknown, its folder is missing, or it has no pixels.
    """
    kind, kinds = output.suffix.lower(), FIGURES + VIDEOS
    if kind not in kinds:
        raise ValueError(f"--output {str(output)!r} ends in {kind!r}: use one of {' '.join(kinds)}")
    if not output.parent.is_dir():
        raise ValueError(
            f"--output {str(output)!r}: folder {str(output.parent)!r} is missing, make it"
        )
    if dpi < 1:
        raise ValueError(f"--dpi is {dpi}: give 1 or more")


# ---- score ------------------------------------------------------------------------------------

SCORE = """Print safety numbers and COLREGs scores of episode files, all together, as JSON.

The files may be any program's; docs/evaluation.md says what the numbers are. Exit status: 0, or 2
if a file is of no use.
"""


def define_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``score``."""
    parser.set_defaults(run=score)
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file (published format)")


def score(options: argparse.Namespace) -> int:
    """Score the files and print the numbers."""
    try:
        numbers = score_recorded([tracks_of(read_episode(file)) for file in options.files])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(numbers, indent=1, allow_nan=False))
    return 0


COMMANDS = {
    "record": (RECORD, define_record),
    "replay": (REPLAY, define_replay),
    "plot": (PLOT, define_plot),
    "score": (SCORE, define_score),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status, see the commands.
    """
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (text, define) in COMMANDS.items():
        headline = text.partition("\n")[0]
        define(commands.add_parser(name, help=headline, description=text, formatter_class=style))
    options = parser.parse_args(arguments)
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
