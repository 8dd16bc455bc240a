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

from marinenav_env.files import write_json
from train_RL_agents.device.placement import choose_device
from train_RL_agents.evaluation.against import compare, print_comparison
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.figures import draw_trajectories
from train_RL_agents.evaluation.results import StageResult, table_as_json
from train_RL_agents.evaluation.table import print_table
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run.checkpoint import CheckpointError


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Evaluate a policy on its evaluation.stages, by default the six published ones."
    )
    parser.add_argument(
        "--checkpoint",
        required=True,
        metavar="PATH",
        help="a run's folder, a checkpoint, a folder of pretrained/, an exported or published "
        "TorchScript file, or published weights (.npz, .pth)",
    )
    parser.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="per stage (default %(default)s)"
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
        "--against",
        metavar="PATH",
        help="evaluate this policy in the same worlds too, and print the paired differences",
    )
    parser.add_argument("--json", metavar="OUT", help="write the table to this file")
    parser.add_argument("--picture", metavar="PNG", help="draw one episode of each stage")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    namespace = parser.parse_args(arguments)
    if namespace.episodes < 1:
        parser.error(f"--episodes is {namespace.episodes}: give 1 or more")
    return namespace


def evaluate(arguments: argparse.Namespace, console: Console) -> list[StageResult]:
    """Evaluate as deployed, print the table, and return it.

    A policy that samples its actions is evaluated with its mean actions too, in a second table.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ConfigError: the device is not there.
        ConfigError: a risk level is out of its bounds, or does not enter when the agent acts.
    """
    agent, config = load_policy(arguments.checkpoint, choose_device(arguments.device))
    given = {"cvar": arguments.cvar, "adaptive_cvar": arguments.adaptive_cvar}
    risk = {name: value for name, value in given.items() if value is not None}
    agent.act_under(**risk)
    episodes = (arguments.episodes,) * len(config.evaluation.stages)
    evaluation = Evaluation.of_agent(agent, config, episodes, seed=arguments.seed)
    results = evaluation.run(agent.act)
    console.print(arguments.checkpoint, markup=False, highlight=False, soft_wrap=True)
    title = f"{agent.name}, episodes of seed {arguments.seed}"
    title += "".join(f", {name} {value}" for name, value in risk.items())
    print_table(results, title, console)
    if agent.stochastic:
        by_mean = evaluation.run(functools.partial(agent.act, mean=True))
        print_table(by_mean, f"{title}, mean actions", console)
    if arguments.picture:
        draw_trajectories(agent, config, arguments.seed, Path(arguments.picture))
    return results


def evaluate_against(
    arguments: argparse.Namespace, results: list[StageResult], console: Console
) -> dict[str, Any]:
    """Evaluate another policy in the worlds of ``results``; print and return the differences.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
    """
    device = choose_device(arguments.device)
    _, config = load_policy(arguments.checkpoint, device)
    other, other_config = load_policy(arguments.against, device)
    config = dataclasses.replace(config, stack_k=other_config.stack_k)
    episodes = (arguments.episodes,) * len(config.evaluation.stages)
    evaluation = Evaluation.of_agent(other, config, episodes, seed=arguments.seed)
    others = evaluation.run(other.act)
    print_table(others, f"{other.name}, the same episodes", console)
    compared = [compare(first, second) for first, second in zip(results, others, strict=True)]
    print_comparison(results, compared, arguments.against, console)
    table = table_as_json(others)["stages"]
    stages = [row | {"paired": paired} for row, paired in zip(table, compared, strict=True)]
    return {"checkpoint": arguments.against, "stages": stages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        console = Console()
        results = evaluate(parsed, console)
        table = table_as_json(results)
        if parsed.against:
            table["against"] = evaluate_against(parsed, results, console)
        if parsed.json:
            write_json(Path(parsed.json), table)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
