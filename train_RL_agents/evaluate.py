"""Evaluates a policy: ``python train_RL_agents/evaluate.py --checkpoint PATH --episodes N``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from marinenav_env.fields import plain
from marinenav_env.files import write_json
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.evaluation import (
    EPISODES,
    EvaluatedPolicy,
    check_together,
    evaluate,
    evaluate_against,
)
from train_RL_agents.commands.options import (
    SETTINGS_HELP,
    add_config_option,
    add_world_options,
    split_settings,
)
from train_RL_agents.commands.parser import FIGURES, Parser, output_file, tells
from train_RL_agents.commands.traffic import add_traffic_option, check_traffic_option
from train_RL_agents.device.placement import choose_device
from train_RL_agents.evaluation.baselines.registry import BASELINES, PREFIX
from train_RL_agents.evaluation.ensemble import ENSEMBLE
from train_RL_agents.evaluation.episodes import evaluation_config
from train_RL_agents.evaluation.figures import draw_trajectories
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.source import source_commit

RECORDS = {
    "runs": ("FOLDER", "trainings, runs or sweeps over seeds,"),
    "benchmarks": ("FILE", "records of bench.py --json"),
    "robustness": ("FILE", "records of robustness.py --json"),
}
"""What ``--report-NAME`` takes."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(
        description="Evaluate a policy on its evaluation.stages, by default the six published "
        f"ones. {SETTINGS_HELP}"
    )
    parser.add_argument(
        "--checkpoint",
        required=True,
        nargs="+",
        metavar="PATH",
        help="evaluate these policies, in the worlds of the first: a run's folder, a checkpoint, "
        "a folder of pretrained/, an "
        "exported or published TorchScript file, published weights (.npz, .pth); a classical "
        f"controller: {', '.join(PREFIX + name for name in BASELINES)}; or the mean of several "
        f"policies' actions: {ENSEMBLE}PATH,PATH",
    )
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help=f"play so many episodes of each stage (default {EPISODES}) or scenario (default: as "
        "many as it says)",
    )
    add_world_options(
        parser,
        stages="evaluate in this stage instead of the policy's",
        scenario="evaluate in scenarios instead of stages",
    )
    add_config_option(parser, "env and evaluation.stages")
    add_traffic_option(parser)
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="S",
        help="draw the episodes from this seed (default %(default)s)",
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
    parser.add_argument(
        "--json", type=output_file(), metavar="OUT", help="write the table to this file"
    )
    parser.add_argument(
        "--report",
        metavar="FOLDER",
        help="write a page about all these policies into this folder: index.html, which needs no "
        "network",
    )
    for name, (what, shown) in RECORDS.items():
        parser.add_argument(
            f"--report-{name}",
            nargs="+",
            default=[],
            metavar=what,
            help=f"show these {shown} on the page too",
        )
    parser.add_argument(
        "--figure",
        "--picture",
        type=output_file(*FIGURES),
        metavar="FILE",
        help=f"draw one episode of each stage: {' '.join(FIGURES)}",
    )
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="evaluate on this device"
    )
    rest, settings = split_settings(arguments)
    namespace = parser.parse_args(rest)
    namespace.settings = settings
    if namespace.episodes is not None and namespace.episodes < 1:
        parser.error(f"--episodes is {namespace.episodes}: give 1 or more")
    check_traffic_option(parser, namespace)
    if namespace.figure and namespace.scenario:
        parser.error("--figure draws episodes of stages: leave it or --scenario out")
    if namespace.figure and namespace.traffic:
        parser.error("--figure draws the policy alone: episode.py plot --traffic draws both")
    for name in RECORDS:
        if getattr(namespace, f"report_{name}") and not namespace.report:
            parser.error(f"--report-{name} goes with --report: name its folder")
    for name in ("against", "figure"):
        if getattr(namespace, name) and len(namespace.checkpoint) > 1:
            parser.error(f"--{name} goes with one --checkpoint, not {len(namespace.checkpoint)}")
    return namespace


@tells(CheckpointError, ValueError, OSError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    console = open_console()
    if parsed.report:
        # Here, as in `evaluation.figures`: most evaluations write none.
        from train_RL_agents.evaluation.report import page

        page.check_folder(Path(parsed.report))
        more = page.read_records(*(getattr(parsed, f"report_{name}") for name in RECORDS))
    check_together(parsed)
    first = evaluate(parsed, parsed.checkpoint[0], console)
    others = (evaluate(parsed, path, console, first.config) for path in parsed.checkpoint[1:])
    policies = [first, *others]
    names = "seed", "config", "settings", "scenario", "traffic", "cvar", "adaptive_cvar"
    asked = {name: getattr(parsed, name) for name in names} | {"commit": source_commit()}
    named = zip(parsed.checkpoint, policies, strict=True)
    tables = [
        {"checkpoint": path, **asked, "env": played_in(policy, parsed), **policy.as_json()}
        for path, policy in named
    ]
    if parsed.against:
        tables[0]["against"] = evaluate_against(parsed, first, console)
    if parsed.json:
        write_json(parsed.json, tables[0] if len(tables) == 1 else {"policies": tables})
    if parsed.report:
        facts = {"seed": parsed.seed, "device": choose_device(parsed.device), "more": more}
        print(page.write_report(Path(parsed.report), policies, **facts))
    if parsed.figure:
        draw_trajectories(first.agent, first.config, parsed.seed, parsed.figure, act=first.act)
    return 0


def played_in(policy: EvaluatedPolicy, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the environment of the episodes, which end as evaluations do.

    What a scenario changes in it says its file.
    """
    env = evaluation_config(policy.config.env, among_others=bool(arguments.traffic))
    return cast(dict[str, Any], plain(env))


if __name__ == "__main__":
    sys.exit(main())
