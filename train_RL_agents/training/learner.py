"""What a run keeps on the device, whatever it learns from: worlds, agent and statistics."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenes import SceneStage
from marinenav_env.kernel.state import StepBuffers
from marinenav_env.stepper import Stepper
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.schedules import Curriculum
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import Processes
from train_RL_agents.metrics.accumulators import RunStatistics
from train_RL_agents.policies.start import begin_with
from train_RL_agents.training.stages import training_stages
from train_RL_agents.training.traffic import traffic_of


class Learner(abc.ABC):
    """Collects and learns; nothing here but `state_dict` and `weights_finite` reads the device.

    A subclass says what a decision leaves behind (`_collect`) and what is learned from it.

    Args:
        config: all settings.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: the scenarios cannot be placed, or the device is not there, or the traffic
            cannot be steered.
    """

    rates: ClassVar[tuple[str, ...]]
    """Those of `config.schedules.Rates` that it follows."""

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        self.config, self.device, self.processes = config, device, processes
        self.first_world = processes.rank * config.worlds
        torch.manual_seed(config.seed)
        self.agent = build_agent(config, device)
        processes.broadcast(self.agent.state_dict().values())
        torch.manual_seed(config.seed * processes.size + processes.rank)
        self.env = TASKS[config.task](
            config.worlds,
            stages=training_stages(config),
            config=config.collecting_env,
            discrete=self.agent.discrete,
            device=device,
            seed=config.seed,
            first_world=self.first_world,
            stack_k=config.stack_k,
        )
        self.traffic = traffic_of(config, self.env, processes)
        self.stepper = Stepper(self.env)
        self.statistics = RunStatistics(self.env)
        self._collecting = self._captured(self._collect)

    def _step(self, action: Tensor) -> tuple[StepBuffers, Tensor]:
        """Take a decision, with the traffic's, and count it.

        Args:
            action: [W, R, ...], of the policy that learns.

        Returns:
            What the decision led to, and whether a robot acted in it by that policy, bool [W, R].
        """
        if self.traffic:
            action = self.traffic.steer(action, self.stepper.now.obs)
        following = self.stepper.step(action)
        own = following.acted & self.traffic.own if self.traffic else following.acted
        self.statistics.add_decision(action, following, own)
        return following, own

    def _captured(self, decision: Callable[[], None]) -> tuple[CapturedStep, CapturedStep]:
        """Return a decision of all robots as two steps, one for each of the stepper's buffers."""
        enabled = self.config.compile
        return (
            CapturedStep(decision, self.device, enabled=enabled),
            CapturedStep(decision, self.device, enabled=enabled),
        )

    @abc.abstractmethod
    def _collect(self) -> None:
        """Take one decision of every robot and keep it."""

    @abc.abstractmethod
    def learn(self, updates: int = 1) -> int:
        """Do gradient updates.

        Args:
            updates: how many more the samples per insert ask for.

        Returns:
            How many were done now; others may follow later.
        """

    @abc.abstractmethod
    def set_rates(self, epsilon: float, learning_rate_scale: float, beta: float) -> None:
        """Set what the schedules give, in force from the next step."""

    @abc.abstractmethod
    def memory_state(self) -> dict[str, Any]:
        """Return what is kept to learn from; its own memory where that is on the CPU."""

    @abc.abstractmethod
    def load_memory_state(self, state: dict[str, Any]) -> None:
        """Take over a `memory_state`, from any device.

        Raises:
            ValueError: it is of other sizes.
        """

    def stored_at_start(self, curriculum: Curriculum) -> float:
        """Return how many transitions a process stores of a decision at the start, by estimate.

        It is the mean over the processes, so that all of them do equally many updates.
        """
        robots = [
            stage.mean_robots if isinstance(stage, SceneStage) else stage.robots
            for stage in self.env.stages
        ]
        stages = curriculum.stages(0, self.config.worlds * self.processes.size)
        placed = sum(robots[stage] for stage in stages.tolist()) / self.processes.size
        return placed * self.config.stored_share

    def start(self, stages: Tensor) -> None:
        """Take over the policy to begin with, if any, and place the first scenarios.

        Args:
            stages: of the scenarios, int64 [W].

        Raises:
            CheckpointError: there is no such policy.
            ConfigError: it has other networks, or too few.
        """
        if self.config.algorithm.start:
            begin_with(self.agent, self.config)
            self.processes.broadcast(self.agent.state_dict().values())
        self.env.set_stage(stages)
        self.stepper.reset()

    def set_stages(self, stages: Tensor) -> None:
        """Draw the scenarios to come from the given stages, int64 [W]."""
        self.env.set_stage(stages)

    def collect(self) -> None:
        """Take one decision of every robot and keep it."""
        self._run(self._collecting)

    def _run(self, collecting: tuple[CapturedStep, CapturedStep]) -> None:
        """Take one decision, by the one of two steps that is of the present buffer."""
        parity = self.stepper.parity
        collecting[parity]()
        self.stepper.parity = 1 - parity

    def weights_finite(self) -> bool:
        """Whether all numbers of the agent's networks are finite. Reads the device."""
        weights = [value for value in self.agent.state_dict().values() if value.numel()]
        return bool(torch.stack([value.isfinite().all() for value in weights]).all())

    def state_dict(self, *, with_replay: bool) -> dict[str, Any]:
        """Return all that changes, as nested dictionaries of tensors. Reads the device.

        All are copies, but for what is kept to learn from where that is on the CPU.
        """
        random = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        return {
            "env": self.env.state_dict(),
            "current": self.stepper.parity,
            "frames": [frame.clone() for frame in self.stepper.now.frames],
            "replay": self.memory_state() if with_replay else None,
            "statistics": self.statistics.state_dict(),
            "random": random,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a `state_dict`, from any device; the agent's state is loaded apart.

        Raises:
            ValueError: it comes from other worlds, stages or sizes.
        """
        if state["current"] not in (0, 1):
            raise ValueError(f"the current buffer is {state['current']!r}: it is 0 or 1")
        self.stepper.parity = state["current"]
        self.env.load_state_dict(state["env"])
        for own, saved in zip(self.stepper.now.frames, state["frames"], strict=True):
            own.copy_(saved)
        if state["replay"] is not None:
            self.load_memory_state(state["replay"])
        self.statistics.load_state_dict(state["statistics"])
        torch.set_rng_state(state["random"]["cpu"])
        if self.device.type == "cuda" and "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"], self.device)
