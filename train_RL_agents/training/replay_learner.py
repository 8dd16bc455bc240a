"""A learner with a replay: decisions are stored, and old ones are learned from too."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.spec import tuple_like
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import GradientAverage, Processes
from train_RL_agents.replay.buffer import DeviceReplay
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout, check_memory
from train_RL_agents.training.learner import Learner

UPDATES_IN_A_GRAPH = 8
"""Most updates in one graph: each number of them, up to this one, has a graph of its own."""


class Choice(NamedTuple):
    """What a decision is to be, and what is learned from it.

    Attributes:
        taken: actions `[W, R, ...]` to take.
        kept: actions to learn from.
    """

    taken: Tensor
    kept: Tensor


class ReplayLearner(Learner):
    """Collects with epsilon-greedy exploration and learns from a replay.

    Args:
        config: all settings.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: as for `Learner`; or the replay does not fit the memory, or holds too few rows.
    """

    rates = ("epsilon", "learning_rate_scale", "beta")

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        super().__init__(config, device, processes)
        explore = config.exploration
        self.policy = PolicyWrapper(
            self.agent,
            (config.worlds, self.env.robots),
            epsilon=explore.epsilon_start,
            spread=explore.spread,
            first_robot=self.first_world * self.env.robots,
            all_robots=processes.size * config.worlds * self.env.robots,
            action_noise=0.0 if self.agent.discrete else explore.action_noise,
        )
        self.replay = self._make_replay(processes)
        # Where gradients travel between processes, each update is split at its transfer.
        most = UPDATES_IN_A_GRAPH if processes.size == 1 else 1
        self._learning = [
            CapturedStep(functools.partial(self._learn, n), device, enabled=config.compile)
            for n in range(1, most + 1)
        ]
        if processes.size > 1:
            self.agent.gradient_sync = GradientAverage(processes, self._learning[0])
        self._rates: tuple[float, ...] | None = None

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

    def learn(self, updates: int = 1) -> int:
        """Do gradient updates, several of them in one graph; all at once, see `Learner.learn`."""
        left = updates
        while left > 0:
            now = min(left, len(self._learning))
            self._learning[now - 1]()
            left -= now
        return updates

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
        action, kept = self._choose(now.obs)
        following, own = self._step(action)
        self.replay.store(
            self.agent.read(now.obs),
            kept,
            following.reward,
            own,
            following.terminated,
            following.truncated,
            self.agent.read(following.obs),
        )
        self.statistics.add_stored(own)
        self.stepper.advance()

    def _choose(self, observation: Any) -> Choice:
        action = self.policy.explore(observation)
        return Choice(action, action)

    def _learn(self, updates: int) -> None:
        for _ in range(updates):
            batch = self.replay.sample(self.config.updates.batch_size)
            metrics = self.agent.update(batch)
            if "priority" in metrics:
                self.replay.update_priorities(batch.index, metrics["priority"])
            self.statistics.add_update(metrics)

    def memory_state(self) -> dict[str, Any]:
        """Return the replay's state."""
        return self.replay.state_dict()

    def load_memory_state(self, state: dict[str, Any]) -> None:
        """Take over the replay's state."""
        self.replay.load_state_dict(state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a `state_dict`, as `Learner.load_state_dict`."""
        self._rates = None  # the agent and the replay bring their own
        super().load_state_dict(state)

    def _replay_config(self) -> ReplayConfig:
        algorithm: Any = self.config.algorithm
        replay = self.config.replay
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
        shapes: Any = spec.observation.shapes
        whole = tuple_like(shapes, (torch.empty(shape, device="meta") for shape in shapes))
        read = self.agent.read(whole)
        return TransitionLayout(
            self.config.worlds,
            self.env.robots,
            tuple_like(shapes, (tuple(part.shape) for part in read)),
            self.agent.kept_shape,
            torch.int64 if discrete else torch.float32,
            choices=size if discrete else None,
            keeps_next=self.agent.bootstraps,
        )
