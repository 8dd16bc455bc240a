"""The command line of the benchmark: which rows to measure, and for how long."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from marinenav_env.envs.make import TASKS
from marinenav_env.kernel import ops
from scripts.bench.case import RESETS, Effort
from scripts.bench.disturbances import DISTURBANCES, env_of, fitting_disturbances
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.commands.options import split_settings
from train_RL_agents.commands.parser import Parser, output_file
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import fitting_agents
from train_RL_agents.device.placement import choose_device

MODES = ("step", "inference", "train")
WORLDS = (1, 16, 256, 4096, 65536)
FULL, QUICK = Effort(repeats=7, seconds=0.2), Effort(repeats=3, seconds=0.05)
FULL_TRAINING, QUICK_TRAINING = Effort(repeats=5, seconds=3.0), Effort(repeats=3, seconds=0.5)


def parse(arguments: Sequence[str] | None, description: str | None = None) -> argparse.Namespace:
    """Read the command line.

    Raises:
        ConfigError: a setting of the environment is unknown or wrong.
    """
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="measure on this device (default: a GPU if there is one)",
    )
    parser.add_argument(
        "--task", choices=list(TASKS), default="marine", help="measure this environment"
    )
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=MODES,
        default=list(MODES),
        help="measure these modes (default: all)",
    )
    for_rows = parser.add_argument_group("rows: what to step, to infer and to train with")
    for_rows.add_argument(
        "--worlds",
        nargs="+",
        type=_positive,
        help="step and infer with so many worlds (default: 1 16 256 4096 65536; with --quick 4096)",
    )
    for_rows.add_argument(
        "--resets", nargs="+", choices=RESETS, help="step with these resets (default: all)"
    )
    for_rows.add_argument(
        "--vortices",
        "--cores",
        nargs="+",
        type=int,
        help="step with so many vortices, infer and train with the first (default: 0 4 in the task"
        " marine, those of the last stage in others)",
    )
    for_rows.add_argument(
        "--disturbances",
        nargs="+",
        choices=DISTURBANCES,
        default=["off"],
        help="step with these disturbances (default: off)",
    )
    for_rows.add_argument(
        "--turns",
        nargs="+",
        type=_positive,
        default=[1],
        help="step so many decisions in one launch; classic tasks with natural resets can",
    )
    for_rows.add_argument(
        "--agents",
        nargs="+",
        choices=list(REPLAY_AGENTS),
        help="infer and train with these (default: all that fit the task; with --quick the first)",
    )
    for_rows.add_argument(
        "--policies",
        nargs="+",
        metavar="PATH",
        help="infer with these trained policies or baselines, named as for evaluate.py, instead of"
        " --agents",
    )
    for_rows.add_argument(
        "--shield",
        nargs="*",
        metavar="KEY=VALUE",
        help="guard --policies with these settings of the shield (docs/shield.md)",
    )
    for_rows.add_argument(
        "--samples-per-insert",
        "--replay-ratios",
        nargs="+",
        type=_above_zero,
        help="train with so many gradient samples per stored transition (default: 5.1 on a CPU)",
    )
    world = parser.add_argument_group("worlds (default: those of the task's last stage)")
    world.add_argument("--robots", type=_positive, help="place so many robots")
    world.add_argument("--buoys", type=int, help="place so many buoys")
    world.add_argument("--min-distance", type=float, help="place goals so many metres away")
    world.add_argument(
        "--train-worlds", type=_positive, help="train with so many worlds (default: 64 on a CPU)"
    )
    world.add_argument(
        "--batch-size", type=_positive, help="train on batches of this size (default: 256 on a CPU)"
    )
    effort = parser.add_argument_group("effort and outcome")
    effort.add_argument(
        "--threads", type=_positive, help="compute on so many CPU threads (default: torch's choice)"
    )
    effort.add_argument(
        "--quick", action="store_true", help="measure few rows for a short time, within 30 s"
    )
    effort.add_argument("--repeats", type=_positive, help="measure every row so many times")
    effort.add_argument("--seconds", type=_above_zero, help="let a repeat last so many seconds")
    effort.add_argument(
        "--kernels",
        nargs="*",
        choices=(*MODES, *REPLAY_AGENTS),
        default=list(MODES),
        help="on a GPU, list the costliest kernels of these modes and algorithms (default: of all"
        " rows)",
    )
    effort.add_argument(
        "--json", type=output_file(), metavar="PATH", help="write the record to this file"
    )
    effort.add_argument(
        "--max-mem-delta",
        type=int,
        metavar="BYTES",
        help="fail if the memory of a row grows by more",
    )
    effort.add_argument(
        "--min-rate",
        type=float,
        metavar="ROBOT_STEPS_PER_S",
        help="fail if the fastest row of a mode is slower",
    )
    rest, settings = split_settings(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(rest, argparse.Namespace(settings=settings))
    if options.shield is not None and not options.policies:
        parser.error("--shield guards --policies: name some")
    if options.device == "auto":
        options.device = choose_device("auto").type
    few = options.quick
    options.worlds = options.worlds or ([4096] if few else list(WORLDS))
    options.resets = options.resets or list(RESETS)
    stage = TASKS[options.task].default_stages[-1]
    if options.vortices is None:
        options.vortices = [0, 4] if options.task == "marine" else [stage.vortices]
    for name, value in (
        ("robots", stage.robots),
        ("buoys", stage.buoys),
        ("min_distance", stage.min_distance_m),
    ):
        if getattr(options, name) is None:
            setattr(options, name, value)
    known = fitting_disturbances(TASKS[options.task].config_type)
    unknown = [name for name in options.disturbances if name not in known]
    if unknown:
        named = f"{options.task} goes with {', '.join(known)}"
        parser.error(f"--disturbances {', '.join(unknown)}: {named}")
    for name in options.disturbances:
        env_of(options.task, settings, name)  # refuses what is of no use before any row
    several = options.turns != [1]
    if several and (not ops.describe(options.task).unrolls or options.resets != ["natural"]):
        parser.error("--turns go with classic tasks and --resets natural")
    # Of PPO nothing is done in most iterations, and all in few: its rates are in its run's log.
    fitting = [agent for agent in fitting_agents(options.task) if agent in REPLAY_AGENTS]
    options.agents = options.agents or (fitting[:1] if few else fitting)
    unfit = sorted(set(options.agents) - set(fitting))
    if unfit and set(options.modes) & {"inference", "train"}:
        parser.error(f"--agents {', '.join(unfit)}: {options.task} goes with {', '.join(fitting)}")
    worlds, ratio, batch = training_sizes(options.device)
    options.train_worlds = options.train_worlds or worlds
    options.samples_per_insert = options.samples_per_insert or [ratio]
    options.batch_size = options.batch_size or batch
    return options


def training_sizes(device: str) -> tuple[int, float, int]:
    """Return worlds, samples per insert and batch of training, unless others are asked for.

    On a GPU those of the preset `scale`; on a CPU the published ratio of 5.1 gradient samples per
    stored robot transition.
    """
    if device == "cpu":
        return 64, 5.1, 256
    config, _, _ = load_config(preset="scale")
    return config.worlds, config.updates.samples_per_insert, config.updates.batch_size


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: give 1 or more")
    return value


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{value}: give a number above 0")
    return value


def efforts(options: argparse.Namespace) -> tuple[Effort, Effort]:
    """Return how long to measure without training and with it."""
    usual = (QUICK, QUICK_TRAINING) if options.quick else (FULL, FULL_TRAINING)
    without, training = (
        Effort(options.repeats or effort.repeats, options.seconds or effort.seconds)
        for effort in usual
    )
    return without, training
