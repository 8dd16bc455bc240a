"""Record episodes that a policy steers, as files of the published format.

Episode I of a seed has the same scenario whatever the number of episodes. Robots that collided or
arrived leave, the others go on. `scripts/replay_episode.py` replays the files,
`scripts/plot_episode.py` draws them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.episodes.format import Episode, write_episode
from marinenav_env.episodes.record import record_episodes
from train_RL_agents.evaluation.episodes import FIRST_WORLD
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run.checkpoint import CheckpointError

COUNTS = ("robots", "vortices", "buoys")
OPTIONS_BEFORE = {"vortices": ("--cores",)}
"""Options of older versions, which stay usable."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--checkpoint", required=True, metavar="PATH", help="what evaluate.py takes"
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
            help=f"{name} instead of the stage's",
        )
    parser.add_argument(
        "--min-distance", type=float, metavar="M", help="start to goal [m], instead of the stage's"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of scenarios, noise and actions (default %(default)s)"
    )
    parser.add_argument(
        "--episodes", type=int, default=1, metavar="N", help="how many (default %(default)s)"
    )
    parser.add_argument(
        "--noise", action=argparse.BooleanOptionalAction, default=True, help="of perception"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=1000,
        metavar="N",
        help="decisions of an episode at most (default %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="PATH",
        help="a file ending in .json for one episode, else a folder, made if missing, of files "
        "episode_SEED_INDEX.json",
    )
    options = parser.parse_args(arguments)
    if options.episodes < 1:
        parser.error(f"--episodes is {options.episodes}: give 1 or more")
    if options.output.suffix == ".json" and options.episodes > 1:
        parser.error(
            f"--output {str(options.output)!r} is one file for {options.episodes} episodes: "
            "give a folder"
        )
    return options


def record(options: argparse.Namespace) -> list[Episode]:
    """Record the episodes.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ValueError: the scenario is impossible, or the policy needs a history of observations,
            which the files do not hold.
    """
    agent, config = load_policy(options.checkpoint)
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
    torch.manual_seed(options.seed)
    return record_episodes(env, agent.act, seed=options.seed)


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


def told(episode: Episode) -> str:
    """Return in words how an episode went."""
    last = [len(actions) - 1 for actions in episode.action_history]
    ends = Counter(
        str(episode.recorded.infos[decision, robot]) for robot, decision in enumerate(last)
    )
    return f"{episode.decisions} decisions; " + ", ".join(
        f"{count} x {end}" for end, count in sorted(ends.items())
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Record as the command line says, and print the files with how the episodes went.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status: 0, or 1 if the policy, the scenario or the output is of no use.
    """
    options = parse(arguments)
    try:
        episodes = record(options)
        paths = write(episodes, options.output, options.seed)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for episode, path in zip(episodes, paths, strict=True):
        print(f"{path}: {told(episode)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
