"""RunState: what a run consists of, how it is recorded, saved and resumed."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml

from marinenav_env.fields import build, plain
from train_RL_agents.agents.base import LearnsFrom
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.schedules import Schedules
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.results import Standing
from train_RL_agents.metrics.writer import AnalysisReceiver
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.saved import SavedRun
from train_RL_agents.training.counters import Counters, DivergedRunError
from train_RL_agents.training.evaluations import RunEvaluation
from train_RL_agents.training.imitation import ImitationLearner
from train_RL_agents.training.learner import Learner
from train_RL_agents.training.on_policy import OnPolicyLearner
from train_RL_agents.training.policy_iteration import PolicyIterationLearner
from train_RL_agents.training.replay_learner import ReplayLearner

OF_LEARNING = "resume from an older checkpoint, or lower algorithm.learning_rate"


class RunState:
    """A run: its learner, schedules, counters and records, and its checkpoints.

    Args:
        config: all settings.
        output_dir: the run's folder.
        device: where everything lives.
        processes: the processes that train together; None is this one alone.

    Raises:
        ConfigError: the scenarios cannot be placed, or the device is not there.
        ConfigError: the replay does not fit, or another setting is impossible.
    """

    def __init__(
        self,
        config: TrainConfig,
        output_dir: Path,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        self.config, self.output_dir, self.device = config, output_dir, device
        self.processes = processes or Processes()
        self.schedules = Schedules(config)
        self.schedules.curriculum.check_worlds(config.worlds * self.processes.size)
        self.learner = make_learner(config, device, self.processes)
        self.steps_per_iteration = config.worlds * self.processes.size
        self.counters = Counters()
        self.counters.robot_rate = self.learner.stored_at_start(self.schedules.curriculum)
        self.started = False
        self.saved = SavedRun(output_dir, config.checkpoint.keep, self.processes)
        self.evaluation = None
        if self.processes.first:
            self.evaluation = RunEvaluation(config, self.learner.agent)
        self.receiver = AnalysisReceiver(None)

    @contextmanager
    def records(self) -> Iterator[None]:
        """Write the run's records; closes their files on leaving, whatever ends the run."""
        self.receiver = AnalysisReceiver(
            self.output_dir if self.processes.first else None,
            headline=self.config.log.tensorboard == "headline",
        )
        try:
            yield
        except BaseException:
            with suppress(OSError):  # what ended the run is to be told, not what follows from it
                self.receiver.close()
            raise
        self.receiver.close()

    def show_start(self) -> None:
        """Show the command and the settings of this start in TensorBoard."""
        step, settings = self.counters.step, yaml.safe_dump(plain(self.config), sort_keys=False)
        self.receiver.show_text("command", shlex.join(sys.argv), step=step)
        self.receiver.show_text("configuration", settings, step=step)

    def save(self) -> Path:
        """Save this process's part of a checkpoint, and return its file."""
        return self.saved.save(self.state())

    def state(self) -> dict[str, Any]:
        """Return all that a run needs to resume, as nested dictionaries of tensors."""
        return {
            **self._policy_state(),
            "processes": self.processes.size,
            "counters": asdict(self.counters),
            "files": self.receiver.sync(),
            "learner": self.learner.state_dict(with_replay=self.config.checkpoint.with_replay),
        }

    def _policy_state(self) -> dict[str, Any]:
        return {
            "step": self.counters.step,
            "config": plain(self.config),
            "model": self.learner.agent.training_state(),
        }

    def resume(self, path: Path) -> None:
        """Take over a checkpoint; `train` then continues exactly as if it had not stopped.

        Records and checkpoints after it are removed.

        Raises:
            CheckpointError: as `SavedRun.read`, or the state does not fit the settings.
        """
        state, own = self.saved.read(path)
        if not self.config.checkpoint.with_replay:
            own = {**own, "learner": {**own["learner"], "replay": None}}
        try:
            self.learner.agent.load_training_state(state["model"])
            self.learner.load_state_dict(own["learner"])
            counted = own["counters"]["counted"] * self.processes.size  # known since 2026-11-28
            counters = {"stored_transitions": counted, **own["counters"]}
            self.counters = build(Counters, counters, where="counters")
            self.started = True
        except checkpoint.FOREIGN as error:
            raise CheckpointError(f"{path} does not fit its settings: {error}") from error
        if own["learner"]["replay"] is None:
            self.counters.stored = 0.0
        self.learner.set_stages(self.stages())  # others, where the run is to be longer
        best = self.saved.go_back_to(state, plain(self.config))
        if best is None:
            self.counters.forget_best()
        elif "standing" in best:  # the end of a run that is to be longer, or as before
            self.counters.keep(Standing(*best["standing"]))

    def diverged(self, problems: list[str], remedy: str = OF_LEARNING) -> DivergedRunError:
        """Save the state beside the checkpoints; return the error that names it."""
        dump = self.saved.dump(self.state())
        step = self.counters.step
        return DivergedRunError(
            f"at step {step}: {'; '.join(problems)}. The state is in {dump}; {remedy}"
        )

    @contextmanager
    def timed(self, *, collecting: bool = False) -> Iterator[None]:
        """Add the time spent inside to the counters."""
        begun = time.monotonic()
        yield
        spent = time.monotonic() - begun
        self.counters.elapsed_s += spent
        if collecting:
            self.counters.collecting_s += spent

    def stages(self) -> torch.Tensor:
        """Return the stage of each world of this process at the present step."""
        return self.schedules.curriculum.stages(
            self.counters.step, self.config.worlds, self.learner.first_world, self.device
        )


LEARNERS: dict[LearnsFrom, type[Learner]] = {
    "replay": ReplayLearner,
    "rounds": OnPolicyLearner,
    "teacher": ImitationLearner,
    "lookahead": PolicyIterationLearner,
}
"""The kind of learner by what an algorithm learns from."""


def make_learner(config: TrainConfig, device: torch.device, processes: Processes) -> Learner:
    """Return the learner of an algorithm's kind; arguments and errors as those of `Learner`."""
    return LEARNERS[AGENTS[config.agent].learns_from](config, device, processes)
