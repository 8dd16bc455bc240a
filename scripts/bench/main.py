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
from rich.markup import escape
from tqdm import tqdm

from marinenav_env.envs.checks import check_device
from marinenav_env.files import write_json
from scripts.bench import NO_MEMORY
from scripts.bench.bounds import bound_of, product_rate_of, products_of, work_of
from scripts.bench.case import Case, describe
from scripts.bench.kernels import measure_kernels
from scripts.bench.machine import (
    gpu_state,
    matmul_flops_per_s,
    measure_peaks,
    record_head,
)
from scripts.bench.modes import compare_reset_skipping, measure_simulator
from scripts.bench.options import efforts, parse
from scripts.bench.table import print_record
from scripts.bench.training import measure_training
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.options import SETTINGS_HELP, read_shield
from train_RL_agents.commands.parser import tells
from train_RL_agents.device.memory import keep_freed_memory
from train_RL_agents.run.checkpoint import CheckpointError


def cases(options: argparse.Namespace, device: torch.device) -> Iterator[Case]:
    """Yield what to measure, in order.

    Inference: the first agent over all worlds, and every agent at the worlds of training; or every
    one of --policies over all worlds. Inference and training take the first number of vortices.
    """
    world = {
        "task": options.task,
        "robots": options.robots,
        "vortices": options.vortices[0],
        "buoys": options.buoys,
        "min_distance_m": options.min_distance,
        "settings": tuple(options.settings),
    }
    if "step" in options.modes:
        asked = (options.vortices, options.resets, options.worlds, options.disturbances)
        for vortices, resets, worlds, name, turns in itertools.product(*asked, options.turns):
            its_world = {**world, "vortices": vortices}
            yield Case(
                "step",
                device,
                worlds,
                disturbances=name,
                resets=resets,
                turns=turns,
                **its_world,
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
                rate = product_rate_of(case, record["matmul_flops_per_s"])
                row |= bound_of(work_of(case), peaks, products_of(case, row), rate)
                row["fraction_of_bound"] = row["robot_steps_per_s"] / row["bound"]
        keep(record)
    if device.type == "cuda":
        record["gpu_state_after"] = gpu_state(device)
    elif "step" in options.modes and options.task == "marine":  # on a GPU it changes nothing
        for worlds in options.worlds[:1] if options.quick else options.worlds:
            with out_of_memory_noted(record, Case("step", device, worlds)):
                comparison = compare_reset_skipping(device, worlds, effort)
                record["skip_reset_if_empty"].append(comparison)
            keep(record)
    named = set(options.kernels)
    for case, row in measured if device.type == "cuda" else ():
        if named & {case.mode, case.agent}:
            with out_of_memory_noted(record, case):
                row |= measure_kernels(case)
            keep(record)
    record["complete"] = True
    keep(record)
    return record


@contextmanager
def out_of_memory_noted(record: dict[str, Any], case: Case) -> Iterator[None]:
    """Note in the record that the memory is too small for a case, and continue."""
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


@tells(ValueError, CheckpointError, status=2)
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; return the exit status."""
    options = parse(arguments, description=f"{__doc__}\n{SETTINGS_HELP}")
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    keep_freed_memory()  # as train.py does
    console = open_console()
    device = check_device(options.device)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    record = measure(options, device, lambda record: write_record(options.json, record))
    title = f"{options.device}, {options.robots} robots, {options.buoys} buoys"
    title += "".join(f", {setting}" for setting in options.settings)
    print_record(console, record, escape(title))
    for row in record["out_of_memory"]:
        named = ", ".join(f"{key} {value}" for key, value in row.items() if value is not None)
        print(f"{NO_MEMORY}: {named}", file=sys.stderr)
    wrong = complaints(record["rows"], options.max_mem_delta, options.min_rate)
    for complaint in wrong:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
