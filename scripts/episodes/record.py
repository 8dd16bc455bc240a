"""``episode.py record``: files of what a policy does."""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.make import VESSEL_TASKS
from marinenav_env.episodes.archive import archive_of, write_archive
from marinenav_env.episodes.checks import TOO_LONG
from marinenav_env.episodes.config import check_recordable
from marinenav_env.episodes.format import Episode, write_episode
from marinenav_env.episodes.record import record_episodes, record_policy
from marinenav_env.episodes.schema import POLICY
from marinenav_env.faults import SensorFaultConfig
from marinenav_env.tracks import Tracks
from train_RL_agents.commands.options import (
    SETTINGS_HELP,
    add_config_option,
    add_world_options,
    groups_in,
)
from train_RL_agents.commands.parser import output_file, tells
from train_RL_agents.commands.traffic import add_traffic_option, check_traffic_option
from train_RL_agents.commands.worlds import SteeredWorlds, long_episodes, worlds_of
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.policies.shield.acting import describe_report
from train_RL_agents.run.checkpoint import CheckpointError

COUNTS = ("robots", "vortices", "buoys")
RECORDED = ("marine", "icra2024")
"""Tasks whose episodes have files of the published format."""
FILES = (".json", ".npz")
"""Endings of what is one file."""
OPTIONS_BEFORE = {"vortices": ("--cores",)}
"""Options of older versions, which stay usable."""

RECORD = f"""Record episodes that a policy steers, as files of the published format or as arrays.

Episode I of a seed has the same scenario whatever the number of episodes of one stage; the number
decides which vessels --traffic steers. Robots that collided or arrived leave, the others continue;
an episode is over when those of the policy have ended. {SETTINGS_HELP}
The format has no place for disturbances; an archive (--output NAME.npz, docs/episodes.md) has.
Exit status: 0, 1 if the policy, the scenario or the output is of no use, 2 for a wrong option.
"""


def add_policy_options(parser: argparse.ArgumentParser, *, required: bool, stages: str) -> None:
    """Add the options that say which policy acts in which worlds.

    Args:
        parser: where to.
        required: whether there has to be a policy.
        stages: what is done in the stages.
    """
    parser.add_argument(
        "--checkpoint", required=required, metavar="PATH", help="policy, as evaluate.py takes it"
    )
    parser.add_argument(
        "--shield",
        nargs="*",
        metavar="KEY=VALUE",
        help="guard the policy, with these settings where given (docs/shield.md)",
    )
    add_world_options(
        parser,
        stages=f"{stages} this stage (default: the task's last)",
        scenario=f"{stages} these scenarios",
    )
    add_config_option(parser, "env and evaluation.stages")
    add_traffic_option(parser)
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of scenarios, noise and actions (default %(default)s)",
    )
    parser.add_argument(
        "--noise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether perception is noisy and has faults, where a task knows any",
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=1000,
        metavar="N",
        help="most decisions of an episode (default %(default)s)",
    )


def define_record(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``record``."""
    parser.set_defaults(run=record, parser=parser)
    add_policy_options(parser, required=True, stages="record in")
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
        "--episodes",
        type=int,
        default=1,
        metavar="N",
        help="number of episodes of each stage or scenario (default %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=output_place,
        default=Path(),
        metavar="PATH",
        help="a folder, made if missing, of files episode_SEED_INDEX.json; a file ending in .json "
        "for one episode; or one in .npz, a NumPy archive of all episodes, of any water",
    )


@tells(CheckpointError, ValueError, OSError)
def record(options: argparse.Namespace) -> int:
    """Record as the options say, and print the files with how the episodes went."""
    if options.episodes < 1:
        options.parser.error(f"--episodes is {options.episodes}: give 1 or more")
    archived = options.output.suffix == ".npz"
    changes = {name: getattr(options, name) for name in COUNTS}
    changes["min_distance_m"] = options.min_distance
    changes = {name: value for name, value in changes.items() if value is not None}
    if options.scenario and changes:
        options.parser.error(f"--scenario has its own {', '.join(changes)}: leave one out")
    check_traffic_option(options.parser, options)
    if options.scenario and not archived:
        check_scenarios(options.scenario)
    free = archived or "colregs" in groups_in(options.settings)
    adapt = adapted(options)

    def adapted_to_files(config: Any) -> Any:
        return adapt(config if free else with_published_zones(config))

    tasks = VESSEL_TASKS if archived else RECORDED
    worlds = worlds_of(options, changes, tasks=tasks, adapt=adapted_to_files, dtype=torch.float64)
    count = worlds.env.worlds
    if options.output.suffix == ".json" and count > 1:
        options.parser.error(
            f"--output {str(options.output)!r} is one file for {count} episodes: give a folder"
        )
    torch.manual_seed(options.seed)
    if archived:
        tracks = record_policy(worlds.env, worlds.act, placed=worlds.placed, steer=worlds.steer)
        write_archive(archive_of(tracks, worlds.labels, worlds.steer, options.seed), options.output)
        print(f"{options.output}: {count} episode{'s'[: count > 1]}; {summary_of(tracks)}")
    else:
        record_files(worlds, options)
    if worlds.guarded:
        print(describe_report(worlds.guarded.report()))
    return 0


def record_files(worlds: SteeredWorlds, options: argparse.Namespace) -> None:
    """Record files of the published format, and print them with how the episodes went."""
    episodes = record_episodes(
        worlds.env, worlds.act, seed=options.seed, placed=worlds.placed, steer=worlds.steer
    )
    paths = write(episodes, options.output, options.seed)
    several = len(set(worlds.labels)) > 1 or options.scenario
    for episode, path, label in zip(episodes, paths, worlds.labels, strict=True):
        print(f"{path}: {f'{label}; ' if several else ''}{summary(episode)}")


def output_place(text: str) -> Path:
    """Return where to record, of a command line: a folder, or a file by its ending."""
    path = Path(text)
    if path.suffix in FILES:
        return output_file(*FILES)(text)
    if (path.suffix and not path.is_dir()) or path.is_file():
        reason = f"ends in {path.suffix!r}" if path.suffix else "is a file"
        raise argparse.ArgumentTypeError(
            f"{text!r} {reason}: give a folder, new ones without an ending, or a file that ends in "
            f"{' or '.join(FILES)}"
        )
    return path


def check_scenarios(name: str) -> None:
    """Check that episode files hold what scenarios say of the environment.

    Raises:
        ConfigError: they do not, or there are no such scenarios.
    """
    for scenario in find_scenarios(name):
        for section, group in scenario.disturbances().items():
            given: dict = {section: group}
            remedy = f"remove the section {section} of {scenario.name!r} from {name!r}"
            check_recordable(replace(EnvConfig(), **given), remedy)


def with_published_zones(config: Any) -> Any:
    """Return an environment whose rules apply where episode files have it; tells of a change.

    Nothing but the reward depends on that.
    """
    zones = EnvConfig().colregs
    if not isinstance(config, EnvConfig) or config.colregs == zones:
        return config
    print(
        "note: the rules of the road apply in the published zones, as episode files have it; "
        "rewards in the file are with these",
        file=sys.stderr,
    )
    return replace(config, colregs=zones)


def adapted(options: argparse.Namespace) -> functools.partial[Any]:
    """Return what makes of a policy's environment that of the command line."""
    return functools.partial(_adapt, limit=options.limit, noise=options.noise)


def _adapt(config: Any, *, limit: int, noise: bool) -> Any:
    config = long_episodes(config, limit)
    if noise or not isinstance(getattr(config, "perception", None), SensorFaultConfig):
        return config
    return replace(config, perception=config.perception.noiseless())


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
    """Return in words how a recorded episode went for the vessels that the policy steered."""
    infos = episode.data["recorded"]["infos"]
    steer = episode.robots.get("steer", [POLICY] * len(episode.lengths))
    ends = Counter(
        infos[length - 1][robot]
        for robot, length in enumerate(episode.lengths)
        if steer[robot] == POLICY
    )
    return f"{episode.decisions} decisions; {_listed(ends)}"


def summary_of(tracks: Tracks) -> str:
    """Return in words how recorded episodes went for the vessels that the policy steered."""
    own = tracks.placed if tracks.own is None else tracks.placed & tracks.own
    ends = Counter({"collision": int((own & tracks.collided).sum())})
    ends["reach goal"] = int((own & tracks.reached).sum())
    ends[TOO_LONG] = int(own.sum()) - ends.total()
    return _listed(+ends)


def _listed(ends: Counter[str]) -> str:
    return ", ".join(f"{count} x {end}" for end, count in sorted(ends.items()))
