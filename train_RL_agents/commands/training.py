"""Starts and resumes the runs that ``train.py`` is asked for: one, or one for each seed."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from marinenav_env.fields import ConfigError, build, plain, require
from train_RL_agents.commands.effect import check_effect
from train_RL_agents.commands.one_run import train_one
from train_RL_agents.commands.options import with_share, world_settings
from train_RL_agents.config.files import load_config, made_for, task_named, with_overrides
from train_RL_agents.config.plain import config_of_file
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.device.memory import return_freed_memory
from train_RL_agents.run import checkpoint, multi_seed
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.lock import sole_use
from train_RL_agents.run.provenance import EVALUATION, RUN, ended_at_once, read_run_record
from train_RL_agents.training.counters import DivergedRunError


def start(arguments: argparse.Namespace, processes: Processes) -> None:
    """Start one run, or one for each seed.

    Raises:
        ConfigError: a setting is wrong, or the folder is taken.
    """
    own = [*arguments.overrides, *_flags(arguments)]
    sources = {"task": arguments.task, "preset": arguments.preset, "path": arguments.config}
    task = task_named(**sources, overrides=own)  # decides what the number of a stage means
    overrides = [*world_settings(arguments, task), *own]
    config, seeds, folder = load_config(**sources, agent=arguments.agent, overrides=overrides)
    if arguments.scenario:
        config = with_share(config, own)
    check_effect(overrides, config)
    check_starts(config)
    where, meant = made_for(preset=arguments.preset, path=arguments.config)
    if processes.first and meant not in (None, config.agent):
        print(f"note: {where} is made for {meant}, and {config.agent} trains", file=sys.stderr)
    seeds = tuple(arguments.seed or seeds)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seed is {seeds}: each makes one run of the sweep; give each once")
    configs = [build(TrainConfig, {"seed": seed}, base=config) for seed in seeds]
    name = f"{config.agent}-{datetime.now():%Y%m%d-%H%M%S}"
    wanted = Path(arguments.output or Path(folder or "runs") / name)
    check_writable(wanted)
    with sole_use(wanted, processes, new=not arguments.output) as output_dir:
        start_in(output_dir, configs, processes)


def check_starts(config: TrainConfig) -> None:
    """Check that every stage of a sequence would be trained; older runs may have others.

    Raises:
        ConfigError: names the starts and the stage.
    """
    starts = config.curriculum.starts
    for stage, (begin, end) in enumerate(itertools.pairwise((*starts, config.total_steps)), 1):
        remedy = f"stage {stage} would not be trained; give ascending ones below total_steps"
        require(begin < end, "curriculum.starts", starts, remedy)


def start_in(output_dir: Path, configs: Sequence[TrainConfig], processes: Processes) -> None:
    """Start the runs of these settings, which differ in their seed, in a folder of their own.

    Raises:
        ConfigError: the folder is taken.
    """
    taken = (output_dir / RUN).exists() and not ended_at_once(output_dir)
    saved = checkpoint.saved_steps(output_dir / checkpoint.CHECKPOINTS)
    if taken or saved or (output_dir / multi_seed.SWEEP).exists():
        raise ConfigError(
            f"output is {str(output_dir)!r}, which holds a run: give another folder, or "
            f"--resume {output_dir}"
        )
    if len(configs) == 1:
        train_one(configs[0], output_dir, processes)
        return
    processes.wait()  # all have seen that the folder is free
    if processes.first:
        seeds = [config.seed for config in configs]
        multi_seed.write_sweep(output_dir, seeds, plain(configs[0]))
    try:
        train_seeds(configs, output_dir, processes)
    except (ConfigError, CheckpointError):
        folders = [multi_seed.seed_folder(output_dir, config.seed) for config in configs]
        if processes.first and not any(folder.exists() for folder in folders):
            (output_dir / multi_seed.SWEEP).unlink()  # nothing has begun that it would resume
        raise


def check_writable(folder: Path) -> None:
    """Check that a folder can be made, or written to.

    Raises:
        ConfigError: it cannot.
    """
    folder = folder.absolute()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ConfigError(
            f"output is {str(folder)!r}, and {str(existing)!r} is no folder to write to: give "
            "another one with --output"
        )


def resume(arguments: argparse.Namespace, processes: Processes) -> None:
    """Go on with a run or a sweep; what is complete stays as it is.

    Raises:
        CheckpointError: there is no checkpoint, it is damaged, or it lies outside its run.
        ConfigError: the number of threads or steps is wrong.
    """
    path = Path(arguments.resume)
    folder = checkpoint.run_folder(path) if path.is_file() else path
    folder = folder.parent if folder.name == checkpoint.CHECKPOINTS else folder
    if not folder.is_dir():
        raise CheckpointError(f"no folder {str(folder)!r}: give a run's folder or a checkpoint")
    processes.tell(lambda: check_own(folder, arguments.overrides))
    with sole_use(folder, processes):
        resume_in(path, arguments, processes)


def resume_in(path: Path, arguments: argparse.Namespace, processes: Processes) -> None:
    """Go on with what lies at a path; errors as `resume`."""
    noted = processes.tell(lambda: multi_seed.read_sweep(path))
    if noted is not None:
        seeds, values = noted
        before = config_of_file(values, path / multi_seed.SWEEP)
        config = _with_flags(before, arguments)
        for seed in seeds if config.total_steps < before.total_steps else ():
            trained = trained_steps(multi_seed.seed_folder(path, seed))
            config.require(
                config.total_steps >= trained,
                "total_steps",
                f"seed {seed} has {trained} already; give more",
            )
        given = with_overrides(before, arguments.overrides)
        if processes.first and given != before:
            multi_seed.write_sweep(path, seeds, plain(given))
        configs = [dataclasses.replace(config, seed=seed) for seed in seeds]
        train_seeds(configs, path, processes)
        return
    if processes.tell(lambda: ended_at_once(path)):
        config = config_of_file(read_run_record(path)["config"], path / RUN)
        train_one(_with_flags(config, arguments), path, processes)
        return
    newest = processes.tell(lambda: checkpoint.newest(path))
    output_dir = checkpoint.run_folder(newest)
    longer = any(override.startswith("total_steps=") for override in arguments.overrides)
    complete = processes.tell(lambda: path.is_dir() and (output_dir / EVALUATION).exists())
    if longer or not complete:
        state = checkpoint.load_run(newest)
        config = _with_flags(config_of_file(state["config"], newest), arguments)
        config.require(
            not longer or complete or config.total_steps > state["step"],
            "total_steps",
            f"the run has {state['step']} already; give more",
        )
        complete = complete and processes.tell(lambda: is_complete(output_dir, config))
    if complete:
        print(f"complete already: {output_dir / EVALUATION}")
        return
    train_one(config, output_dir, processes, newest)


def check_own(folder: Path, overrides: Sequence[str]) -> None:
    """Check that a run may have the settings that stay with it, and is no part of a sweep.

    Raises:
        ConfigError: its sweep has them.
    """
    lasting = [override for override in overrides if not override.startswith("threads=")]
    noted = multi_seed.sweep_of(folder) if lasting else None
    if noted is not None:
        raise ConfigError(
            f"{' '.join(lasting)}: {folder} is a seed of a sweep, which has one for all; give it to"
            f" --resume {noted}, or move the seed's folder out of there"
        )


def begun(folder: Path) -> Path | None:
    """Return the newest checkpoint of a run's folder, None where no run has begun that saves.

    Raises:
        CheckpointError: one has, and saved none.
    """
    return (
        checkpoint.newest(folder) if (folder / RUN).exists() and not ended_at_once(folder) else None
    )


def is_complete(folder: Path, config: TrainConfig) -> bool:
    """Whether a run has been evaluated at its end, and no longer one is asked for."""
    trained = trained_steps(folder) or config.total_steps
    return (folder / EVALUATION).exists() and trained >= config.total_steps


def trained_steps(folder: Path) -> int:
    """Return at which step the newest checkpoint of a run's folder is, 0 without one."""
    return max(checkpoint.saved_steps(folder / checkpoint.CHECKPOINTS), default=0)


def train_seeds(configs: Sequence[TrainConfig], output_dir: Path, processes: Processes) -> None:
    """Train what is not complete of a sweep, then join the curves of the seeds that are.

    Args:
        configs: the settings, with one seed each.
        output_dir: the sweep's folder.
        processes: the processes that train together.

    Raises:
        DivergedRunError: of all seeds that diverged, once the others are trained.
    """
    folders = [multi_seed.seed_folder(output_dir, config.seed) for config in configs]
    diverged = []
    for config, folder in zip(configs, folders, strict=True):
        if processes.tell(functools.partial(is_complete, folder, config)):
            continue
        try:
            with sole_use(folder, processes):
                resumed = processes.tell(functools.partial(begun, folder))
                train_one(config, folder, processes, resumed, whole=output_dir)
        except DivergedRunError as error:
            diverged.append(f"seed {config.seed}: {error}")
        return_freed_memory()
    complete = [folder for folder in folders if (folder / EVALUATION).exists()]
    if processes.first and complete:
        multi_seed.draw_curve(complete, configs[0].agent, output_dir / multi_seed.CURVE)
        print(f"joint curve: {output_dir / multi_seed.CURVE}")
    # A launcher ends all once one has failed, and the first alone evaluates the end and draws.
    processes.wait()
    if diverged:
        raise DivergedRunError("\n".join(diverged))


def _flags(arguments: argparse.Namespace) -> list[str]:
    flags = [f"device={arguments.device}"] if arguments.device else []
    return [*flags, "compile=false"] if arguments.no_compile else flags


def _with_flags(config: TrainConfig, arguments: argparse.Namespace) -> TrainConfig:
    return with_overrides(config, [*arguments.overrides, *_flags(arguments)])
