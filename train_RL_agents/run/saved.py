"""What a run keeps in its folder to resume from, and whether that is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from train_RL_agents.device.distributed import Processes
from train_RL_agents.metrics.writer import cut_back, missing_files
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CHECKPOINTS, CheckpointError, CheckpointFolder
from train_RL_agents.run.provenance import EVALUATION, ended_at_once


class SavedRun:
    """The checkpoints of a run, and the records that belong to them.

    Args:
        folder: the run's.
        keep: how many of the newest checkpoints stay.
        processes: the processes that train together.
    """

    def __init__(self, folder: Path, keep: int, processes: Processes) -> None:
        self.folder, self.processes = folder, processes
        self.checkpoints = CheckpointFolder(folder / CHECKPOINTS, keep, processes.rank)

    def clear(self) -> None:
        """Remove what an earlier start has left, if it saved nothing; all processes have looked."""
        self.processes.wait()
        if self.processes.first and ended_at_once(self.folder):
            cut_back(self.folder, {})
            self.checkpoints.drop_after(-1)
        self.processes.wait()

    def save(self, state: dict[str, Any]) -> Path:
        """Save this process's part of a checkpoint, and return its file."""
        return self.checkpoints.save(state["step"], state, self.processes.wait)

    def dump(self, state: dict[str, Any]) -> Path:
        """Save what no run can resume from beside the checkpoints, and return its file."""
        path = self.folder / f"diverged_{state['step']}_{self.processes.rank}.pt"
        checkpoint.save(path, state)
        return path

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """Read a checkpoint.

        Returns:
            The first process's part, which holds the policy, and this process's own.

        Raises:
            CheckpointError: it is missing, damaged, of a run with other processes, or of one whose
                records are not in the folder.
        """
        state = checkpoint.load_run(path)
        if state.get("processes") != self.processes.size:
            raise CheckpointError(
                f"{path} belongs to {state.get('processes')} processes, not "
                f"{self.processes.size}: start as many with torchrun --nproc-per-node"
            )
        missing = missing_files(self.folder, state["files"])
        if missing:
            raise CheckpointError(
                f"{self.folder / missing[0]} is missing or shorter than at the checkpoint "
                f"{path}: put the run's files back, and give --resume the run's own folder"
            )
        own = state
        if not self.processes.first:
            own = checkpoint.load_run(self.checkpoints.path(state["step"], self.processes.rank))
        if own["counters"].get("logged_step") != state["counters"].get("logged_step"):
            raise CheckpointError(
                f"the parts of {path} were saved at different moments: give an older checkpoint"
            )
        return state, own

    def go_back_to(self, state: dict[str, Any], config: dict[str, Any]) -> dict[str, Any] | None:
        """Remove the records and checkpoints after a state that all processes have taken over.

        What a run was asked for, its length and what it saves, it has from now on, whatever ends
        this start.

        Args:
            state: the first process's part of a checkpoint.
            config: the settings of this start.

        Returns:
            The best checkpoint that is left, if any; other processes than the first do nothing.
        """
        self.processes.wait()
        if not self.processes.first:
            return None
        if any(config[name] != state["config"][name] for name in ("total_steps", "checkpoint")):
            checkpoint.save(self.checkpoints.path(state["step"]), {**state, "config": config})
        (self.folder / EVALUATION).unlink(missing_ok=True)
        # No checkpoint may be left, at any moment, whose records are gone.
        self.checkpoints.drop_after(state["step"])
        cut_back(self.folder, state["files"])
        return self.checkpoints.restore_best(state["step"])
