"""Make a folder of ``pretrained/`` from a run, or from several that began with the same policy.

The folder has weights, settings, evaluation and provenance.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import hashlib
import json
import operator
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from marinenav_env.config import EnvConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError, plain
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.parser import Parser, tells
from train_RL_agents.commands.training import check_writable
from train_RL_agents.config.build import LoadedPolicy
from train_RL_agents.config.schema import TrainConfig, training_env
from train_RL_agents.device.placement import choose_device
from train_RL_agents.evaluation.ensemble import ENSEMBLE
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.results import table_as_json
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.evaluation.scenarios.schema import DISTURBANCES
from train_RL_agents.evaluation.table import print_scenarios, print_table
from train_RL_agents.metrics.writer import METRICS, read_metrics
from train_RL_agents.policies.average import average
from train_RL_agents.policies.load import policy_file, read_policy
from train_RL_agents.policies.pretrained import (
    NETWORKS,
    WEIGHTS,
    is_pretrained,
    read_provenance,
    write_pretrained,
)
from train_RL_agents.policies.start import PLACEHOLDER
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.provenance import RUN, run_record_of
from train_RL_agents.run.source import ROOT

START = ("time", "commit", "versions", "device", "processes", "cpu_threads", "cpu_count")
"""What a policy's provenance takes over from a start of its run."""
SET = "singles"
"""Named encounters in which it is seen whether a policy keeps the rules."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = Parser(description=__doc__)
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="a run's folder, a checkpoint of it, or a folder that this program made; of several "
        "the mean of their weights is taken, with the settings of the first",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="make this folder, or replace the policy in it",
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=1000,
        metavar="N",
        help="play so many episodes of each stage (default %(default)s)",
    )
    parser.add_argument(
        "--encounters",
        type=int,
        default=200,
        metavar="N",
        help=f"play so many episodes of each scenario of the set {SET!r}, in the task marine "
        "(default %(default)s; 0: none)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="draw the episodes from this seed (default %(default)s)"
    )
    parser.add_argument(
        "--cvar",
        type=float,
        metavar="SHARE",
        help="risk level to ship instead of the run's, for an agent where it enters when it acts",
    )
    parser.add_argument(
        "--usual-worlds",
        action="store_true",
        help="evaluate and ship with the task's own map, water, sensor and stages instead of the "
        "run's",
    )
    parser.add_argument(
        "--all-networks",
        action="store_true",
        help=f"write {NETWORKS}, too, with which others can train on (algorithm.start)",
    )
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="evaluate on this device"
    )
    options = parser.parse_args(arguments)
    if options.all_networks and len(options.runs) > 1:
        parser.error("--all-networks: several runs have no mean but of what acts; leave it out")
    for name, least in (("episodes", 1), ("encounters", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is {getattr(options, name)}: give {least} or more")
    return options


def make(options: argparse.Namespace, console: Console) -> None:
    """Evaluate the policy, print the table, and write the folder.

    Raises:
        CheckpointError: a run has no readable policy, or no record of how it was made.
        ConfigError: the output is of no use, or the device is not there.
        ConfigError: the weights of several runs have no mean, or all networks are asked for where
            one is known alone.
        ConfigError: the risk level is out of its bounds, or does not enter when the agent acts.
        OSError: a file cannot be written.
    """
    check_output(options.output)
    files = [policy_file(run) for run in options.runs]
    policies = [read_policy(file, choose_device(options.device)) for file in files]
    origins = [provenance(file, policy) for file, policy in zip(files, policies, strict=True)]
    policy, made = policies[0], origins[0]
    if len(files) > 1:
        policy, made = average(policies, list(map(str, files))), provenance_of_mean(origins)
    if options.all_networks and not policy.whole:
        raise ConfigError(
            f"--all-networks: {options.runs[0]} has the acting network alone; give the run, or "
            "leave it out"
        )
    if options.cvar is not None:
        level = getattr(policy.config.algorithm, "cvar", None)
        made.setdefault("trained_with", {}).setdefault("cvar", level)
        policy.agent.act_under(cvar=options.cvar)
        config = dataclasses.replace(policy.config, algorithm=policy.agent.config)
        policy = policy._replace(config=config)
    if options.usual_worlds:
        config = in_usual_worlds(policy.config)
        own = {name: plain(getattr(policy.config.env, name)) for name in waters(policy.config)}
        made.setdefault("trained_with", {}).setdefault("env", own)
        policy = policy._replace(config=config)
    policy = policy._replace(config=without_places(policy.config))
    table = evaluate(policy, options, console)
    write_pretrained(options.output, policy, table, made, whole=options.all_networks)


def check_output(folder: Path) -> None:
    """Check that a folder can be made or filled, or holds a policy to replace.

    Raises:
        ConfigError: it cannot be written, or holds something else.
    """
    check_writable(folder)
    held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    weights = folder / WEIGHTS
    if held and not (weights.is_file() and is_pretrained(weights)):
        raise ConfigError(
            f"output is {str(folder)!r}, which holds {held[0]!r} and is no pretrained policy: give "
            "another folder with --output"
        )


def waters(config: TrainConfig) -> list[str]:
    """Return the groups of a task's environment that tell of the map, its water and the sensor."""
    names = ("scenario", "current", *DISTURBANCES)
    return [name for name in names if hasattr(config.env, name)]


def in_usual_worlds(config: TrainConfig) -> TrainConfig:
    """Return a run's settings with the map, the water, the sensor and the stages of its task.

    Its vessel, rewards and rules stay.
    """
    usual = training_env(config.task)
    water = {name: getattr(usual, name) for name in waters(config)}
    env: Any = dataclasses.replace(config.env, **water)
    stages = TASKS[config.task].evaluation_stages
    episodes = max(config.evaluation.episodes)  # a stage may have none
    evaluation = dataclasses.replace(config.evaluation, stages=stages, episodes=(episodes,))
    return dataclasses.replace(config, env=env, evaluation=evaluation)


def evaluate(policy: LoadedPolicy, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Evaluate the policy as deployed; print and return the table."""
    agent, config = policy.agent, policy.config
    episodes = (options.episodes,) * len(config.evaluation.stages)
    evaluation = Evaluation.of_agent(agent, config, episodes, seed=options.seed)
    results = evaluation.run(agent.act)
    print_table(results, f"{agent.name}, seed {options.seed}", console)
    return {"seed": options.seed, **table_as_json(results), **encounters(policy, options, console)}


def encounters(
    policy: LoadedPolicy, options: argparse.Namespace, console: Console
) -> dict[str, Any]:
    """Return how the policy passes others, by the rules, if it is of the task with rules."""
    agent, config = policy.agent, policy.config
    if not isinstance(config.env, EnvConfig) or not options.encounters:
        return {}
    scenarios = find_scenarios(SET)
    played = ScenarioEvaluation.of_agent(
        agent, config, scenarios, options.encounters, seed=options.seed
    )
    results = played.run(agent.act)
    print_scenarios(results, f"{agent.name}, {SET}, seed {options.seed}", console)
    success = {row.label: row.success for row in results.rows}
    seen = {"set": SET, "episodes": options.encounters, "seed": options.seed, "success": success}
    return {"encounters": {**seen, "rules": results.rules}}


def provenance(file: Path, policy: LoadedPolicy) -> dict[str, Any]:
    """Return how a policy was made, as JSON values.

    Args:
        file: its checkpoint, inside its run's folder, or the weights of a pretrained one.
        policy: the policy.

    Raises:
        CheckpointError: the run has no ``run.json``.
    """
    if is_pretrained(file):
        return read_provenance(file.parent)
    record = run_record_of(file)
    if record is None:
        raise CheckpointError(
            f"{file} lies in no run: without {RUN} nobody could tell how it was trained"
        )
    starts = [
        {name: start[name] for name in START}
        | {"command": command_of(start["command"]), "uncommitted_changes": bool(start["diff"])}
        for start in record["starts"]
    ]
    step = policy.origin["step"]
    return {
        "agent": policy.agent.name,
        "checkpoint": policy.origin["file"],
        "checkpoint_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "step": step,
        "commit": policy.origin["commit"],
        "training_s": elapsed_at(step, file),
        "starts": starts,
    }


def provenance_of_mean(origins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how a policy was made whose weights are the mean of several, as JSON values.

    Its decisions and its time are those of all runs, of each once. It has a commit if they share
    one.
    """
    runs: dict[str, dict[str, Any]] = {}
    for origin in sorted(single_runs(origins), key=operator.itemgetter("step")):
        runs[json.dumps(origin["starts"])] = origin  # of several checkpoints the latest
    times = [run["training_s"] for run in runs.values()]
    commits = {origin["commit"] for origin in origins}
    first = copy.deepcopy(origins[0])
    known = {name: first[name] for name in ("trained_with",) if name in first}
    return {
        "agent": origins[0]["agent"],
        "step": sum(run["step"] for run in runs.values()),
        "commit": commits.pop() if len(commits) == 1 else None,
        "training_s": None if None in times else sum(times),
        **known,  # the settings are those of the first
        "mean_of": list(origins),
    }


def single_runs(origins: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return how policies were made, those of which one is a mean in its place."""
    for origin in origins:
        if "mean_of" in origin:
            yield from single_runs(origin["mean_of"])
        else:
            yield origin


def command_of(command: Sequence[str]) -> str:
    """Return a command without what only the machine it ran on knows: places of files."""
    words = ["python"]
    for word in command[1:]:
        key, equals, value = word.rpartition("=")
        words.append(key + equals + without_place(value))
    return shlex.join(words)


def without_place(name: str) -> str:
    """Return an absolute path from the repository's root on, or its name alone; others as given.

    Of an ensemble each member.
    """
    if name.startswith(ENSEMBLE):
        members = name.removeprefix(ENSEMBLE).split(",")
        return ENSEMBLE + ",".join(map(without_place, members))
    path = Path(name)
    if not path.is_absolute():
        return name
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def without_places(config: TrainConfig) -> TrainConfig:
    """Return a run's settings without what only the machine it ran on knows.

    A policy of that machine, which they begin with, is one that whoever trains by them has to name.
    """
    settings: Any = config.algorithm
    start = without_place(settings.start)
    places = {"start": start if not start or start.startswith("pretrained/") else PLACEHOLDER}
    if hasattr(settings, "teacher"):
        places["teacher"] = without_place(settings.teacher)
    return dataclasses.replace(config, algorithm=dataclasses.replace(settings, **places))


def elapsed_at(step: int, file: Path) -> float | None:
    """Return the time the run had taken at a step [s], from its log; None if it does not say."""
    for folder in file.resolve().parents[:2]:
        log = folder / METRICS
        if log.is_file():
            records = [entry for entry in read_metrics(log) if entry["step"] <= step]
            times = [entry["elapsed_s"] for entry in records if "elapsed_s" in entry]
            return times[-1] if times else None
    return None


@tells(CheckpointError, ValueError, OSError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Make the folder as the command line says.

    Args:
        arguments: command line; the process's own if None.

    Returns:
        Exit status: 0, or 1 if the run or the output is of no use.
    """
    options = parse(arguments)
    make(options, open_console())
    size = sum(file.stat().st_size for file in options.output.iterdir())
    print(f"{options.output}: {size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
