"""Measures throughput: the simulator's step, step with inference, step with inference and training.

Prints a table and, with --json, writes one record, anew after every row. docs/benchmarks/README.md
says what the columns mean and how the figures are taken. Exit status: 0; 1 if memory grows by more
than --max-mem-delta or a mode stays below --min-rate; 2 if an option is of no use.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from tqdm import tqdm

from marinenav_env.envs.checks import check_device
from marinenav_env.envs.make import TASKS
from marinenav_env.files import write_json
from marinenav_env.kernel import ops
from scripts.bench.bounds import bound_of, products_of, work_of
from scripts.bench.disturbances import DISTURBANCES
from scripts.bench.kernels import measure_kernels
from scripts.bench.machine import (
    matmul_flops_per_s,
    measure_peaks,
    record_head,
)
from scripts.bench.modes import (
    RESETS,
    Case,
    Effort,
    compare_reset_skipping,
    describe,
    measure_simulator,
)
from scripts.bench.table import print_record
from scripts.bench.training import measure_training
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.commands.parser import Parser
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import fitting_agents
from train_RL_agents.device.memory import keep_freed_memory
from train_RL_agents.device.placement import choose_device
from train_RL_agents.policies.shield.config import read_shield
from train_RL_agents.run.checkpoint import CheckpointError

MODES = ("step", "inference", "train")
WORLDS = (1, 16, 256, 4096, 65536)
FILE_WIDTH = 160  # characters of a table that is not shown in a terminal
FULL, QUICK = Effort(repeats=7, seconds=0.2), Effort(repeats=3, seconds=0.05)
FULL_TRAINING, QUICK_TRAINING = Effort(repeats=5, seconds=3.0), Effort(repeats=3, seconds=0.5)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--task", choices=list(TASKS), default="marine", help="environment")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--worlds", nargs="+", type=_positive, help="of step and inference")
    parser.add_argument("--resets", nargs="+", choices=RESETS, help="of step (default all)")
    parser.add_argument("--vortices", "--cores", nargs="+", type=int, help="of step (marine: 0 4)")
    parser.add_argument(
        "--disturbances", nargs="+", choices=DISTURBANCES, default=["off"], help="of step"
    )
    parser.add_argument(
        "--turns",
        nargs="+",
        type=_positive,
        default=[1],
        help="of step: decisions in one launch, in classic tasks with natural resets",
    )
    parser.add_argument("--robots", type=_positive, help="(default: of the task's last stage)")
    parser.add_argument("--buoys", type=int, help="likewise")
    parser.add_argument("--min-distance", type=float, help="likewise, start to goal, in metres")
    parser.add_argument(
        "--agents", nargs="+", choices=list(REPLAY_AGENTS), help="of inference and train"
    )
    parser.add_argument(
        "--policies",
        nargs="+",
        metavar="PATH",
        help="of inference: trained policies and baselines, as evaluate.py takes them, in the place"
        " of --agents",
    )
    parser.add_argument(
        "--shield", nargs="*", metavar="KEY=VALUE", help="guards --policies (docs/shield.md)"
    )
    parser.add_argument("--train-worlds", type=_positive)
    parser.add_argument(
        "--samples-per-insert", "--replay-ratios", nargs="+", type=_above_zero, help="of train"
    )
    parser.add_argument("--batch-size", type=_positive, help="of train")
    parser.add_argument("--threads", type=_positive, help="CPU threads (default: torch's choice)")
    parser.add_argument("--quick", action="store_true", help="few short rows, within 30 s")
    parser.add_argument("--repeats", type=_positive, help="of a row")
    parser.add_argument("--seconds", type=_above_zero, help="that a repeat lasts")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the record here")
    parser.add_argument("--max-mem-delta", type=int, metavar="BYTES", help="growth allowed a row")
    parser.add_argument(
        "--min-rate",
        type=float,
        metavar="ROBOT_STEPS_PER_S",
        help="that the fastest row of every mode has to reach",
    )
    options = parser.parse_args(arguments)
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
    if options.task != "marine" and options.disturbances != ["off"]:
        parser.error(f"--disturbances go with --task marine, not {options.task}")
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


def cases(options: argparse.Namespace, device: torch.device) -> Iterator[Case]:
    """Yield what to measure, in order.

    Inference: the first agent over all worlds, and every agent at the worlds of training; or every
    one of --policies over all worlds.
    """
    world = {
        "task": options.task,
        "robots": options.robots,
        "buoys": options.buoys,
        "min_distance_m": options.min_distance,
    }
    if "step" in options.modes:
        asked = (options.vortices, options.resets, options.worlds, options.disturbances)
        for vortices, resets, worlds, name, turns in itertools.product(*asked, options.turns):
            yield Case(
                "step",
                device,
                worlds,
                vortices=vortices,
                disturbances=name,
                resets=resets,
                turns=turns,
                **world,
            )
    if "inference" in options.modes:
        first, *_ = options.agents
        pairs = [(first, worlds) for worlds in options.worlds]
        pairs += [(agent, options.train_worlds) for agent in options.agents]
        if options.policies:
            pairs = [(policy, worlds) for policy in options.policies for worlds in options.worlds]
        shield = read_shield(options.shield)
        for agent, worlds in dict.fromkeys(pairs):
            yield Case("inference", device, worlds, agent=agent, shield=shield, **world)
    if "train" in options.modes:
        for ratio in options.samples_per_insert:
            for agent in options.agents:
                yield Case(
                    "train",
                    device,
                    options.train_worlds,
                    agent=agent,
                    samples_per_insert=ratio,
                    batch_size=options.batch_size,
                    **world,
                )


def efforts(options: argparse.Namespace) -> tuple[Effort, Effort]:
    """Return how long to measure without training and with it."""
    usual = (QUICK, QUICK_TRAINING) if options.quick else (FULL, FULL_TRAINING)
    without, training = (
        Effort(options.repeats or effort.repeats, options.seconds or effort.seconds)
        for effort in usual
    )
    return without, training


def measure(
    options: argparse.Namespace, device: torch.device, keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Measure everything; return the record. `keep` gets what there is of it, after every row."""
    effort, training = efforts(options)
    record = {
        **record_head(device),
        "command": ["scripts/bench.py", *options.arguments],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "matmul_flops_per_s": matmul_flops_per_s(device),
        "complete": False,
        "rows": [],
        "out_of_memory": [],
        "skip_reset_if_empty": [],
    }
    peaks = measure_peaks(device)
    if peaks is not None:
        record["peaks"] = peaks._asdict()
    keep(record)
    measured = []
    for case in tqdm(list(cases(options, device)), unit="row", disable=None):
        with out_of_memory_noted(record, case):
            if case.mode == "train":
                row = measure_training(case, training, record["matmul_flops_per_s"])
            else:
                row = measure_simulator(case, effort)
            record["rows"].append(row)
            measured.append((case, row))
            if peaks is not None:
                rate = max(record["matmul_flops_per_s"].values())
                row |= bound_of(work_of(case), peaks, products_of(case, row), rate)
                row["fraction_of_bound"] = row["robot_steps_per_s"] / row["bound"]
        keep(record)
    if "step" in options.modes and options.task == "marine":
        for worlds in options.worlds[:1] if options.quick else options.worlds:
            with out_of_memory_noted(record, Case("step", device, worlds)):
                comparison = compare_reset_skipping(device, worlds, effort)
                record["skip_reset_if_empty"].append(comparison)
            keep(record)
    for case, row in measured if device.type == "cuda" else ():
        with out_of_memory_noted(record, case):
            row |= measure_kernels(case)
        keep(record)
    record["complete"] = True
    keep(record)
    return record


@contextmanager
def out_of_memory_noted(record: dict[str, Any], case: Case) -> Iterator[None]:
    """Note in the record that the memory is too small for a case, and go on with the next one."""
    try:
        yield
    except RuntimeError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, torch.OutOfMemoryError):
            cause = cause.__context__  # the end of a capture raises an error of its own
        if cause is None:
            raise
        message = str(cause).splitlines()[0]
        record["out_of_memory"].append({**describe(case), "message": message})


def write_record(path: Path | None, record: dict[str, Any]) -> None:
    """Write the record, if it is wanted."""
    if path is not None:
        write_json(path, record)


def complaints(
    rows: Sequence[dict[str, Any]], max_mem_delta: int | None, min_rate: float | None
) -> list[str]:
    """Return what is wrong with the rows, in sentences.

    Args:
        rows: of the record.
        max_mem_delta: bytes that a row's memory may grow by.
        min_rate: robot-steps/s that the fastest row of every mode has to reach.
    """
    found = []
    for row in rows if max_mem_delta is not None else ():
        growth = row["memory_growth_bytes"]
        if growth > max_mem_delta:
            found.append(
                f"memory grew by {growth} bytes, more than --max-mem-delta {max_mem_delta}, in"
                f" mode {row['mode']}, agent {row['agent']}, {row['worlds']} worlds, resets"
                f" {row['resets']}, {row['vortices']} vortices"
            )
    for mode in dict.fromkeys(row["mode"] for row in rows) if min_rate is not None else ():
        best = max(row["robot_steps_per_s"] for row in rows if row["mode"] == mode)
        if best < min_rate:
            found.append(
                f"mode {mode} reaches {best:,.0f} robot-steps/s in its fastest row, less than"
                f" --min-rate {min_rate:,.0f}"
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; return the exit status."""
    options = parse(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    keep_freed_memory()  # as train.py does
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    try:
        device = check_device(options.device)
        if options.json is not None and not options.json.parent.is_dir():
            raise ValueError(f"--json {options.json}: the folder is missing, make it")
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        torch.manual_seed(0)
        record = measure(options, device, lambda record: write_record(options.json, record))
    except (ValueError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    title = f"{options.device}, {options.robots} robots, {options.buoys} buoys"
    print_record(console, record, title)
    wrong = complaints(record["rows"], options.max_mem_delta, options.min_rate)
    for complaint in wrong:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
