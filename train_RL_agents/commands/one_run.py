"""Trains one seed in its folder, as ``train.py`` does."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from marinenav_env.envs.make import VESSEL_TASKS
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.vessel_notes import tell_of_vessel, top_speed_of_values
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.device.placement import check_own_gpu, choose_device
from train_RL_agents.evaluation.figures import TRAJECTORIES, draw_trajectories
from train_RL_agents.evaluation.results import Row
from train_RL_agents.evaluation.table import print_table
from train_RL_agents.metrics.writer import AnalysisReceiver
from train_RL_agents.run import checkpoint
from train_RL_agents.run.ending import EndedRunError, failure_of_machine
from train_RL_agents.run.provenance import write_run_record
from train_RL_agents.training.counters import InterruptedRunError
from train_RL_agents.training.trainer import TorchRLTrainer


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
        resumed: the checkpoint to resume from.
        whole: what is to be resumed after an interruption: the run's folder, or its sweep's.

    Raises:
        ConfigError: the device is not there, or not this process's own.
        InterruptedRunError: a signal came; the run is saved.
        EndedRunError: another process died, the disk or the memory is full.
    """
    command = f"--resume {whole or output_dir}"
    try:
        train_here(config, output_dir, processes, resumed)
    except InterruptedRunError as stop:
        raise InterruptedRunError(f"{stop}\nresume with: {command}", stop.received) from stop
    except Exception as error:
        reason = failure_of_machine(error)
        if reason is None:
            raise
        steps = checkpoint.saved_steps(output_dir / checkpoint.CHECKPOINTS)
        saved = (
            f"saved up to step {steps[-1]}; resume with: {command}"
            if steps
            else f"nothing is saved yet; begin again with: {command}"
        )
        raise EndedRunError(f"{reason}\n{saved}") from error


def note_on_curve(config: TrainConfig) -> str | None:
    """Return what to say of a run that is evaluated once; its curve is a point."""
    interval = config.evaluation.interval_steps
    if config.total_steps > interval:
        return None
    return (
        f"note: evaluation.interval_steps is {interval}, so this run of {config.total_steps} steps "
        f"is evaluated at its end only, on {config.evaluation.final_episodes} episodes a stage "
        "(evaluation.final_episodes); lower it for a curve"
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
        trainer.start()  # before anything is written, since it may refuse
        trainer.saved.clear()
    else:
        trainer.resume(resumed)
    if processes.first:
        write_run_record(output_dir, config, device, processes.size, resumed=resumed is not None)
        tell_of_vessel(config.env)
        for note in (top_speed_of_values(config.env), note_on_curve(config)):
            if note:
                print(note, file=sys.stderr)

    def conclude(results: list[Row], receiver: AnalysisReceiver) -> None:
        """Print the table, and draw the trajectories of a task that has a map."""
        title = f"{config.agent}, seed {config.seed}, {config.total_steps:,} steps"
        print_table(results, title, open_console())
        if config.task in VESSEL_TASKS:
            figure = output_dir / TRAJECTORIES
            draw_trajectories(trainer.learner.agent, config, config.seed, figure)
            receiver.show_figure("trajectories", figure, step=trainer.counters.step)
            print(f"figure: {figure}")
        print(f"run: {output_dir}")

    trainer.train(conclude)
    if processes.first and not trainer.counters.updates:
        print(
            "warning: the run ended without an update, its policy is that of the start: raise "
            "total_steps, or lower updates.warmup_transitions or updates.batch_size",
            file=sys.stderr,
        )
