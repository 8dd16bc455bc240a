"""Evaluates a policy: ``python train_RL_agents/evaluate.py --checkpoint PATH --episodes N``."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from marinenav_env.fields import ConfigError
from marinenav_env.files import write_json
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.placement import choose_device
from train_RL_agents.evaluation.actor import Actor
from train_RL_agents.evaluation.against import compare, print_comparison
from train_RL_agents.evaluation.baselines.registry import BASELINES, PREFIX, Baseline
from train_RL_agents.evaluation.episodes import Evaluation, Policy
from train_RL_agents.evaluation.figures import draw_trajectories
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.report.evaluated import Evaluated
from train_RL_agents.evaluation.report.page import check_folder, write_report
from train_RL_agents.evaluation.results import StageResult, table_as_json
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation, ScenarioResults
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.evaluation.table import print_scenarios, print_table
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.shield.acting import describe_report, shield_agent
from train_RL_agents.policies.shield.config import read_shield
from train_RL_agents.run.checkpoint import CheckpointError

EPISODES = 100
"""Episodes of each stage where the command line names no number."""

Results = list[StageResult] | ScenarioResults


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Evaluate a policy on its evaluation.stages, by default the six published ones."
    )
    parser.add_argument(
        "--checkpoint",
        required=True,
        nargs="+",
        metavar="PATH",
        help="one or several: a run's folder, a checkpoint, a folder of pretrained/, an exported "
        "or published TorchScript file, published weights (.npz, .pth), or a classical controller: "
        + ", ".join(PREFIX + name for name in BASELINES),
    )
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help=f"per stage (default {EPISODES}) or scenario (default: as often as it says)",
    )
    parser.add_argument(
        "--scenario",
        metavar="NAME",
        help="evaluate in scenarios instead of stages: a named set such as imazu, one of its cases "
        "such as imazu-05, or a YAML file (docs/evaluation.md)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="of the episodes (default %(default)s)"
    )
    parser.add_argument(
        "--cvar",
        type=float,
        metavar="SHARE",
        help="act for the mean of this worst share of returns, from 0 to 1, instead of the "
        "checkpoint's; for an agent whose risk level enters when it acts (IQN); others "
        "take only the one they were trained with",
    )
    parser.add_argument(
        "--adaptive-cvar",
        action=argparse.BooleanOptionalAction,
        help="multiply that share by the closest surface distance / 10 m, at most 1",
    )
    parser.add_argument(
        "--shield",
        nargs="*",
        metavar="KEY=VALUE",
        help="guard the policy by looking ahead on the vessel's model, with these settings where "
        "given (docs/shield.md)",
    )
    parser.add_argument(
        "--against",
        metavar="PATH",
        help="evaluate this policy in the same worlds too, without a shield, and print the paired "
        "differences",
    )
    parser.add_argument("--json", metavar="OUT", help="write the table to this file")
    parser.add_argument(
        "--report",
        metavar="FOLDER",
        help="write a page about all these policies into this folder: index.html, which needs no "
        "network",
    )
    parser.add_argument("--picture", metavar="PNG", help="draw one episode of each stage")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    namespace = parser.parse_args(arguments)
    if namespace.episodes is not None and namespace.episodes < 1:
        parser.error(f"--episodes is {namespace.episodes}: give 1 or more")
    for option, path in (("--json", namespace.json), ("--picture", namespace.picture)):
        if path and not Path(path).absolute().parent.is_dir():
            parser.error(f"{option} is {path!r}: its folder is missing, make it")
    if namespace.picture and namespace.scenario:
        parser.error("--picture draws episodes of stages: leave it or --scenario out")
    for name in ("against", "picture"):
        if getattr(namespace, name) and len(namespace.checkpoint) > 1:
            parser.error(f"--{name} goes with one --checkpoint, not {len(namespace.checkpoint)}")
    return namespace


def evaluation_for(
    arguments: argparse.Namespace, agent: Actor, config: TrainConfig
) -> Evaluation | ScenarioEvaluation:
    """Return the evaluation that the command line asks for.

    Args:
        arguments: the command line.
        agent: what is evaluated.
        config: gives the stages, the environment and the observation's frames.

    Raises:
        ConfigError: there is no such scenario, or it cannot be played.
    """
    count, seed = arguments.episodes, arguments.seed
    if not arguments.scenario:
        episodes = (count or EPISODES,) * len(config.evaluation.stages)
        return Evaluation.of_agent(agent, config, episodes, seed=seed)
    scenarios = find_scenarios(arguments.scenario)
    return ScenarioEvaluation.of_agent(agent, config, scenarios, count, seed=seed)


def evaluate(
    arguments: argparse.Namespace, path: str, console: Console
) -> tuple[Evaluated, dict[str, Any] | None]:
    """Evaluate the policy at ``path`` as deployed, and print the table.

    A policy that samples its actions is evaluated with its mean actions too, in a second table.

    Returns:
        What came of it, and what the shield did, if any.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ConfigError: the device is not there.
        ConfigError: a risk level is out of its bounds, or does not enter when the agent acts.
        ConfigError: a setting of the shield is unknown or wrong, or it cannot guard the policy.
        ConfigError: there is no such scenario, or it cannot be played.
    """
    device = choose_device(arguments.device)
    agent: Agent | Baseline
    origin: dict[str, Any] = {}
    if path.startswith(PREFIX):
        agent, config = load_policy(path, device)
    else:
        agent, config, origin = read_policy(path, device)
    if arguments.report and config.task != "marine":
        raise ConfigError(f"task is {config.task!r}: --report knows the vessels of 'marine' only")
    given = {"cvar": arguments.cvar, "adaptive_cvar": arguments.adaptive_cvar}
    risk = {name: value for name, value in given.items() if value is not None}
    agent.act_under(**risk)
    shield = read_shield(arguments.shield)
    if shield and "shield" in origin:
        raise ConfigError(f"shield is given: {path} has one inside already, leave it out")
    evaluation = evaluation_for(arguments, agent, config)
    known = [f"{key} {value}" for key, value in origin.items() if value is not None]
    said = f"{path}: {', '.join([agent.name, *known])}"
    console.print(said, markup=False, highlight=False, soft_wrap=True)
    recording = Recording()

    def run(
        act: Policy, title: str, recording: Recording | None = None
    ) -> tuple[Results, dict[str, Any] | None]:
        guarded = None
        if shield:
            guarded = shield_agent(agent, config, shield, act)
        results = evaluation.run(guarded or act, recording)
        print_results(results, title, console)
        if guarded is None:
            return results, None
        report = guarded.report()
        console.print(describe_report(report))
        return results, report

    title = f"{agent.name}, episodes of seed {arguments.seed}"
    title += "".join(f", {name} {value}" for name, value in risk.items())
    results, shielded = run(agent.act, title, recording if arguments.report else None)
    if agent.stochastic:
        run(functools.partial(agent.act, mean=True), f"{title}, mean actions")
    if arguments.picture:
        draw_trajectories(agent, config, arguments.seed, Path(arguments.picture))
    name = f"{path}, shielded" if shield else path
    return Evaluated(name, config, results, recording), shielded


def print_results(results: Results, title: str, console: Console) -> None:
    """Print the tables of stages or scenarios."""
    if isinstance(results, ScenarioResults):
        print_scenarios(results, title, console)
    else:
        print_table(results, title, console)


def as_json(results: Results) -> dict[str, Any]:
    """Return the tables as other programs read them."""
    if isinstance(results, ScenarioResults):
        return results.as_json()
    return table_as_json(results)


def evaluate_against(
    arguments: argparse.Namespace, results: Results, console: Console
) -> dict[str, Any]:
    """Evaluate another policy in the worlds of ``results``; print and return the differences.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
    """
    device = choose_device(arguments.device)
    _, config = load_policy(arguments.checkpoint[0], device)
    other, other_config = load_policy(arguments.against, device)
    config = dataclasses.replace(config, stack_k=other_config.stack_k)
    others = evaluation_for(arguments, other, config).run(other.act)
    print_results(others, f"{other.name}, the same episodes", console)
    rows, other_rows = (
        part.rows if isinstance(part, ScenarioResults) else part for part in (results, others)
    )
    compared = [compare(first, second) for first, second in zip(rows, other_rows, strict=True)]
    print_comparison(rows, compared, arguments.against, console)
    return {"checkpoint": arguments.against, "paired": compared, **as_json(others)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        console = Console()
        if parsed.report:
            check_folder(Path(parsed.report))
        evaluated = [evaluate(parsed, path, console) for path in parsed.checkpoint]
        policies = [policy for policy, _ in evaluated]
        tables = [
            as_json(policy.results) | ({"shield": shield} if shield else {})
            for policy, shield in evaluated
        ]
        if parsed.against:
            tables[0]["against"] = evaluate_against(parsed, policies[0].results, console)
        if parsed.json:
            named = zip(parsed.checkpoint, tables, strict=True)
            several = {"policies": [{"checkpoint": path, **table} for path, table in named]}
            write_json(Path(parsed.json), tables[0] if len(tables) == 1 else several)
        if parsed.report:
            device = choose_device(parsed.device)
            print(write_report(Path(parsed.report), policies, seed=parsed.seed, device=device))
    except (CheckpointError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
