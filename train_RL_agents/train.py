"""Trains an agent: ``python train_RL_agents/train.py --agent AC-IQN [key=value ...]``."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import torch
from rich.console import Console

from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError, plain
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.commands.options import SHARE, add_world_options, world_settings
from train_RL_agents.commands.parser import Parser
from train_RL_agents.config.files import (
    config_of_file,
    load_config,
    presets,
    task_named,
    with_overrides,
)
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.device.memory import keep_freed_memory, return_freed_memory
from train_RL_agents.device.placement import check_own_gpu, choose_device
from train_RL_agents.evaluation.figures import TRAJECTORIES, draw_trajectories, has_map
from train_RL_agents.evaluation.results import Row
from train_RL_agents.evaluation.table import print_table
from train_RL_agents.metrics.writer import AnalysisReceiver
from train_RL_agents.run import checkpoint, multi_seed
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.ending import EndedRunError, failure_of_machine, output_may_close
from train_RL_agents.run.lock import sole_use
from train_RL_agents.run.provenance import (
    EVALUATION,
    RUN,
    ended_at_once,
    read_run_record,
    write_run_record,
)
from train_RL_agents.training.counters import DivergedRunError, InterruptedRunError
from train_RL_agents.training.trainer import TorchRLTrainer

OVERRIDE = re.compile(r"[A-Za-z_][\w.]*=.*", re.DOTALL)
RESUMED = ("threads=", "total_steps=")
"""The overrides that a resumed run takes too: it may go on elsewhere, and longer."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; ``key=value`` may stand anywhere."""
    parser = Parser(
        description="Train an agent in the simulator.",
        epilog="Any setting: key=value with dotted keys, for example updates.batch_size=512. "
        "train_RL_agents/config/schema.py and agents/*.py list them with units and defaults, "
        "docs/physics.md those of env.*",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take settings from this YAML file, or from a published training JSON",
    )
    parser.add_argument(
        "--preset", choices=presets(), help="take settings from this file of configs/"
    )
    parser.add_argument(
        "--task", choices=list(TASKS), help="train in this environment (default marine)"
    )
    parser.add_argument(
        "--agent",
        choices=list(AGENTS),
        help="train this algorithm (default: the preset's, else AC-IQN)",
    )
    parser.add_argument(
        "--seed", type=int, nargs="+", help="train with this seed; several train one after another"
    )
    add_world_options(
        parser,
        stages="train and evaluate in this stage instead of the task's",
        scenario=f"begin a share of the worlds ({SHARE:g}, or scenarios.share) with scenarios",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), help="train on this device")
    parser.add_argument(
        "--output", metavar="DIR", help="write the run to this folder (default runs/...)"
    )
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="resume the run in this folder; takes --device, --no-compile and threads=N, with "
        "which the results may no longer be equal to the bit to those of a run never stopped, and "
        "total_steps=N, which trains a finished run longer",
    )
    parser.add_argument("--no-compile", action="store_true", help="capture no CUDA graphs")
    overrides = [argument for argument in arguments if OVERRIDE.fullmatch(argument)]
    namespace = parser.parse_args([a for a in arguments if not OVERRIDE.fullmatch(a)])
    namespace.overrides = overrides
    names = ("config", "preset", "task", "agent", "seed", "output", "stage", "scenario")
    given = [f"--{name}" for name in names if getattr(namespace, name) is not None]
    given += [override for override in overrides if not override.startswith(RESUMED)]
    if namespace.resume and given:
        parser.error(
            f"--resume takes no {', '.join(given)}: the settings and the folder are the run's; "
            "give only --device, --no-compile, threads=N and total_steps=N"
        )
    return namespace


def train_one(
    config: TrainConfig,
    output_dir: Path,
    processes: Processes,
    resumed: Path | None = None,
    whole: Path | None = None,
) -> None:
    """Train one seed in its folder, from the start or from a checkpoint.

    Args:
        config: all settings.
        output_dir: the run's folder.
        processes: the processes that train together.
        resumed: the checkpoint to go on from.
        whole: what is to be resumed after an interruption: the run's folder, or its sweep's.

    Raises:
        ConfigError: the device is not there, or not this process's own.
        InterruptedRunError: a signal came; the run is saved.
        EndedRunError: another process died, the disk or the memory is full.
    """
    go_on = f"--resume {whole or output_dir}"
    try:
        train_here(config, output_dir, processes, resumed)
    except InterruptedRunError as stop:
        raise InterruptedRunError(f"{stop}\ngo on with: {go_on}", stop.received) from stop
    except Exception as error:
        reason = failure_of_machine(error)
        if reason is None:
            raise
        steps = checkpoint.saved_steps(output_dir / checkpoint.CHECKPOINTS)
        saved = (
            f"saved up to step {steps[-1]}; go on with: {go_on}"
            if steps
            else f"nothing is saved yet; begin again with: {go_on}"
        )
        raise EndedRunError(f"{reason}\n{saved}") from error


def note_on_curve(config: TrainConfig) -> str | None:
    """Return what to say of a run that is evaluated once; its curve is a point."""
    interval = config.evaluation.interval_steps
    if config.total_steps > interval:
        return None
    return (
        f"note: evaluation.interval_steps is {interval}, so this run of {config.total_steps} steps "
        "is evaluated at its end only; lower it for a curve"
    )


def train_here(
    config: TrainConfig, output_dir: Path, processes: Processes, resumed: Path | None
) -> None:
    """Train as `train_one` does, and raise whatever ends the run."""
    device = choose_device(config.device, processes.local_rank)
    check_own_gpu(device, processes)
    if config.threads:
        torch.set_num_threads(config.threads)
    trainer = TorchRLTrainer(config, output_dir, device, processes)
    if resumed is None:
        trainer.clear_folder()
    else:
        trainer.resume(resumed)
    if processes.first:
        write_run_record(output_dir, config, device, processes.size, resumed=resumed is not None)
        if note := note_on_curve(config):
            print(note, file=sys.stderr)

    def conclude(results: list[Row], receiver: AnalysisReceiver) -> None:
        """Print the table, and draw the trajectories of a task that has a map."""
        title = f"{config.agent}, seed {config.seed}, {config.total_steps:,} steps"
        print_table(results, title, Console())
        if has_map(config.task):
            picture = output_dir / TRAJECTORIES
            draw_trajectories(trainer.learner.agent, config, config.seed, picture)
            receiver.show_picture("trajectories", picture, step=trainer.counters.step)
            print(f"picture: {picture}")
        print(f"run: {output_dir}")

    trainer.train(conclude)
    if processes.first and not trainer.counters.updates:
        print(
            "warning: the run ended without an update, its policy is that of the start: raise "
            "total_steps, or lower updates.warmup_transitions or updates.batch_size",
            file=sys.stderr,
        )


def start(arguments: argparse.Namespace, processes: Processes) -> None:
    """Start one run, or one for each seed.

    Raises:
        ConfigError: a setting is wrong, or the folder is taken.
    """
    own = [*arguments.overrides, *_flags(arguments)]
    sources = {"task": arguments.task, "preset": arguments.preset, "path": arguments.config}
    task = task_named(**sources, overrides=own)  # decides what the number of a stage means
    config, seeds, folder = load_config(
        **sources, agent=arguments.agent, overrides=[*world_settings(arguments, task), *own]
    )
    seeds = tuple(arguments.seed or seeds)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seed is {seeds}: each makes one run of the sweep; give each once")
    configs = [dataclasses.replace(config, seed=seed) for seed in seeds]
    moment, *_ = processes.gather(datetime.now().strftime("%Y%m%d-%H%M%S"))
    output_dir = Path(arguments.output or Path(folder or "runs") / f"{config.agent}-{moment}")
    check_writable(output_dir)
    with sole_use(output_dir, processes):
        start_in(output_dir, configs, processes)


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
    train_seeds(configs, output_dir, processes)


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
    with sole_use(folder, processes):
        resume_in(path, arguments, processes)


def resume_in(path: Path, arguments: argparse.Namespace, processes: Processes) -> None:
    """Go on with what lies at a path; errors as `resume`."""
    noted = multi_seed.read_sweep(path)
    if noted is not None:
        seeds, values = noted
        before = config_of_file(values, path / multi_seed.SWEEP)
        config = _with_flags(before, arguments)
        if processes.first and config.total_steps != before.total_steps:
            before = dataclasses.replace(before, total_steps=config.total_steps)
            multi_seed.write_sweep(path, seeds, plain(before))
        configs = [dataclasses.replace(config, seed=seed) for seed in seeds]
        train_seeds(configs, path, processes)
        return
    if ended_at_once(path):
        config = config_of_file(read_run_record(path)["config"], path / RUN)
        train_one(_with_flags(config, arguments), path, processes)
        return
    newest = checkpoint.newest(path)
    output_dir = checkpoint.run_folder(newest)
    longer = any(override.startswith("total_steps=") for override in arguments.overrides)
    complete = path.is_dir() and (output_dir / EVALUATION).exists()
    if longer or not complete:
        state = checkpoint.load_run(newest)
        config = _with_flags(config_of_file(state["config"], newest), arguments)
        config.require(
            not longer or complete or config.total_steps > state["step"],
            "total_steps",
            f"the run has {state['step']} already; give more",
        )
        complete = complete and is_complete(output_dir, config)
    if complete:
        print(f"complete already: {output_dir / EVALUATION}")
        return
    train_one(config, output_dir, processes, newest)


def is_complete(folder: Path, config: TrainConfig) -> bool:
    """Whether a run has been evaluated at its end, and no longer one is asked for."""
    steps = checkpoint.saved_steps(folder / checkpoint.CHECKPOINTS)
    trained = steps[-1] if steps else config.total_steps
    return (folder / EVALUATION).exists() and trained >= config.total_steps


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
        if is_complete(folder, config):
            continue
        try:
            with sole_use(folder, processes):
                begun = (folder / RUN).exists() and not ended_at_once(folder)
                resumed = checkpoint.newest(folder) if begun else None
                train_one(config, folder, processes, resumed, whole=output_dir)
        except DivergedRunError as error:
            diverged.append(f"seed {config.seed}: {error}")
        return_freed_memory()
    complete = [folder for folder in folders if (folder / EVALUATION).exists()]
    if processes.first and complete:
        title = f"{configs[0].agent}, {len(complete)} seeds"
        multi_seed.draw_curve(complete, title, output_dir / multi_seed.CURVE)
        print(f"joint curve: {output_dir / multi_seed.CURVE}")
    if diverged:
        raise DivergedRunError("\n".join(diverged))


def _flags(arguments: argparse.Namespace) -> list[str]:
    flags = [f"device={arguments.device}"] if arguments.device else []
    return [*flags, "compile=false"] if arguments.no_compile else flags


def _with_flags(config: TrainConfig, arguments: argparse.Namespace) -> TrainConfig:
    return with_overrides(config, [*arguments.overrides, *_flags(arguments)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    keep_freed_memory()
    processes = Processes()
    with output_may_close():
        try:
            processes = Processes.join()
            (resume if parsed.resume else start)(parsed, processes)
        except InterruptedRunError as stop:
            print(stop, file=sys.stderr)
            return 128 + (stop.received or signal.SIGTERM)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 128 + signal.SIGINT
        except (ValueError, CheckpointError, DivergedRunError, EndedRunError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except Exception as error:
            reason = failure_of_machine(error)
            if reason is None:
                raise
            print(f"error: {reason}", file=sys.stderr)
            return 1
        finally:
            processes.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
