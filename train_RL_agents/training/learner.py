"""What a run keeps on the device: simulator, policy, replay and agent, and the steps of a run."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.make import TASKS
from marinenav_env.stepper import Stepper
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import GradientAverage, Processes
from train_RL_agents.metrics.accumulators import RunStatistics
from train_RL_agents.replay.buffer import DeviceReplay
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout, check_memory
from train_RL_agents.training.stages import training_stages

UPDATES_IN_A_GRAPH = 8
"""Most updates in one graph: each number of them, up to this one, has a graph of its own."""


class Learner:
    """Collects and learns; nothing here but `state_dict` and `weights_finite` reads the device.

    Args:
        config: all settings.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: the scenarios cannot be placed, or the device is not there.
        ConfigError: the replay does not fit the memory, or holds too few rows.
    """

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        self.config, self.device = config, device
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
        explore = config.exploration
        self.policy = PolicyWrapper(
            self.agent,
            (config.worlds, self.env.robots),
            epsilon=explore.epsilon_start,
            spread=explore.spread,
            first_robot=self.first_world * self.env.robots,
            all_robots=processes.size * config.worlds * self.env.robots,
            action_noise=explore.action_noise,
        )
        self.stepper = Stepper(self.env)
        self.replay = self._make_replay(processes)
        self.statistics = RunStatistics(self.env)
        self._collecting = (
            CapturedStep(self._collect, device, enabled=config.compile),
            CapturedStep(self._collect, device, enabled=config.compile),
        )
        # Where gradients travel between processes, each update is split at its transfer.
        most = UPDATES_IN_A_GRAPH if processes.size == 1 else 1
        self._learning = [
            CapturedStep(functools.partial(self._learn, n), device, enabled=config.compile)
            for n in range(1, most + 1)
        ]
        if processes.size > 1:
            self.agent.gradient_sync = GradientAverage(processes, self._learning[0])
        self._rates: tuple[float, ...] | None = None

    def start(self, stages: Tensor) -> None:
        """Place the first scenarios, of the given stages, int64 [W]."""
        self.env.set_stage(stages)
        self.stepper.reset()

    def set_stages(self, stages: Tensor) -> None:
        """Draw the scenarios to come from the given stages, int64 [W]."""
        self.env.set_stage(stages)

    def set_rates(self, epsilon: float, learning_rate_scale: float, beta: float) -> None:
        """Set what the schedules give, in force from the next step.

        What is as it was is not written to the device again.
        """
        rates = epsilon, learning_rate_scale, beta
        before = self._rates or (None,) * len(rates)
        setters = self.policy.set_epsilon, self.agent.set_learning_rate_scale, self.replay.set_beta
        for write, rate, old in zip(setters, rates, before, strict=True):
            if rate != old:
                write(rate)
        self._rates = rates

    def collect(self) -> None:
        """Take one decision of every robot and store it."""
        parity = self.stepper.parity
        self._collecting[parity]()  # one graph for each of the two buffers
        self.stepper.parity = 1 - parity

    def learn(self, updates: int = 1) -> None:
        """Do gradient updates, several of them in one graph."""
        while updates > 0:
            now = min(updates, len(self._learning))
            self._learning[now - 1]()
            updates -= now

    def _make_replay(self, processes: Processes) -> DeviceReplay:
        """Allocate the replay once every process has seen that all of theirs fit."""
        config, layout = self._replay_config(), self._layout()
        check_memory(config, layout, self.device, processes.sharing(self.device))
        if self.device.type == "cuda" and self.config.checkpoint.with_replay:
            host = torch.device("cpu")  # a checkpoint passes through its memory
            check_memory(config, layout, host, processes.sharing(host))
        processes.wait()
        return DeviceReplay(config, layout, self.device)

    def _collect(self) -> None:
        now = self.stepper.now
        action = self.policy.explore(now.obs)
        following = self.stepper.step(action)
        self.replay.store(
            now.obs,
            action,
            following.reward,
            following.acted,
            following.terminated,
            following.truncated,
            following.obs,
        )
        self.statistics.add_decision(action, following)
        self.stepper.advance()

    def _learn(self, updates: int) -> None:
        for _ in range(updates):
            batch = self.replay.sample(self.config.updates.batch_size)
            metrics = self.agent.update(batch)
            if "priority" in metrics:
                self.replay.update_priorities(batch.index, metrics["priority"])
            self.statistics.add_update(metrics)

    def weights_finite(self) -> bool:
        """Whether all numbers of the agent's networks are finite. Reads the device."""
        weights = [value for value in self.agent.state_dict().values() if value.numel()]
        return bool(torch.stack([value.isfinite().all() for value in weights]).all())

    def state_dict(self, *, with_replay: bool) -> dict[str, Any]:
        """Return all that changes, as nested dictionaries of tensors. Reads the device.

        The replay's are its own memory where that is on the CPU; all others are copies.
        """
        random = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        return {
            "env": self.env.state_dict(),
            "current": self.stepper.parity,
            "frames": [frame.clone() for frame in self.stepper.now.frames],
            "replay": self.replay.state_dict() if with_replay else None,
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
        self._rates = None  # the agent and the replay bring their own
        self.env.load_state_dict(state["env"])
        for own, saved in zip(self.stepper.now.frames, state["frames"], strict=True):
            own.copy_(saved)
        if state["replay"] is not None:
            self.replay.load_state_dict(state["replay"])
        self.statistics.load_state_dict(state["statistics"])
        torch.set_rng_state(state["random"]["cpu"])
        if self.device.type == "cuda" and "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"], self.device)

    def _replay_config(self) -> ReplayConfig:
        algorithm, replay = self.config.algorithm, self.config.replay
        return ReplayConfig(
            capacity=replay.capacity,
            n_step=algorithm.n_step,
            gamma=algorithm.gamma,
            prioritized=algorithm.prioritized,
            alpha=replay.alpha,
            beta=replay.beta_start,
        )

    def _layout(self) -> TransitionLayout:
        spec = self.agent.spec
        discrete, size = spec.action.discrete, spec.action.size
        return TransitionLayout(
            self.config.worlds,
            self.env.robots,
            spec.observation.shapes,
            () if discrete else (size,),
            torch.int64 if discrete else torch.float32,
            choices=size if discrete else None,
        )
