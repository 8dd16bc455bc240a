"""A learner without a replay: it learns from the latest decisions alone, then drops them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError
from train_RL_agents.agents.encoders import Encoder
from train_RL_agents.agents.ppo import PPO
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import GradientAverage, Processes
from train_RL_agents.policies.load import load_policy
from train_RL_agents.training.learner import Learner
from train_RL_agents.training.rollout import Rollout, check_rollout_memory


class OnPolicyLearner(Learner):
    """Collects `turns` decisions of every world, then does the updates that have come due.

    Args:
        config: all settings, of PPO.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: as for `Learner`; or the decisions do not fit the memory.
    """

    agent: PPO

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        super().__init__(config, device, processes)
        settings = self.agent.config
        example = self._encoder.inputs(tuple(self.stepper.now.obs))
        sharing = processes.sharing(device)
        check_rollout_memory(settings.turns, example, device, sharing)
        self.rollout = Rollout(settings.turns, example, self.agent.actions)
        self._stored = self._rounds = self._due = 0
        captured = {"enabled": config.compile}
        self._judging = tuple(CapturedStep(self._judge, device, **captured) for _ in range(2))
        self._learning = CapturedStep(self._learn, device, **captured)
        if processes.size > 1:
            self.agent.gradient_sync = GradientAverage(processes, self._learning)
        self._scale: float | None = None

    @property
    def _encoder(self) -> Encoder:
        return self.agent.policy.encoder

    def start(self, stages: Tensor) -> None:
        """Take over the actor to begin with, if one is named, and place the first scenarios.

        Raises:
            CheckpointError: there is no such policy.
            ConfigError: it has another network.
        """
        if self.agent.config.start:
            take_actor(self.agent, self.agent.config.start)
        super().start(stages)

    def set_rates(self, epsilon: float, learning_rate_scale: float, beta: float) -> None:
        """Set the scale of the learning rates; the others belong to a replay."""
        if learning_rate_scale != self._scale:
            self.agent.set_learning_rate_scale(learning_rate_scale)
        self._scale = learning_rate_scale

    @torch.no_grad()
    def _collect(self) -> None:
        inputs = self._encoder.inputs(tuple(self.stepper.now.obs))
        drawn = self.agent.draw(inputs)
        action = drawn[0].clamp(-1.0, 1.0)
        following = self.stepper.step(action)
        self.rollout.store(inputs, drawn, following)
        self.statistics.add_decision(action, following)
        self.stepper.advance()

    def learn(self, updates: int = 1) -> int:
        """Once `turns` decisions are stored, do all updates that have come due since the last time.

        Arguments and result as `Learner.learn`.
        """
        self._due += updates
        self._stored += 1
        if self._stored < self.rollout.turns:
            return 0
        done, self._stored, self._due = self._due, 0, 0
        self.agent.settled.fill_(float(self._rounds >= self.agent.config.settling_rounds))
        self._rounds += 1
        self._judging[self.stepper.parity]()  # one graph for each of the two buffers
        for _ in range(done):
            self._learning()
        return done

    @torch.no_grad()
    def _judge(self) -> None:
        settings = self.agent.config
        value = self.agent.value(self._encoder.inputs(tuple(self.stepper.now.obs)))
        self.rollout.judge(value, settings.gamma, settings.trace)

    def _learn(self) -> None:
        batch = self.rollout.sample(self.config.updates.batch_size)
        self.statistics.add_update(self.agent.update(batch))

    def state_dict(self, *, with_replay: bool) -> dict[str, Any]:
        """Return all that changes; the decisions that were not learned from yet always."""
        return super().state_dict(with_replay=True)

    def memory_state(self) -> dict[str, Any]:
        """Return the decisions stored, and how many there are."""
        counts = {"stored": self._stored, "rounds": self._rounds, "due": self._due}
        return {"rollout": self.rollout.state_dict(), **counts}

    def load_memory_state(self, state: dict[str, Any]) -> None:
        """Take over a `memory_state`, from any device."""
        self._scale = None  # the agent brings its own
        self.rollout.load_state_dict(state["rollout"])
        self._stored, self._rounds, self._due = (state[n] for n in ("stored", "rounds", "due"))


def take_actor(agent: PPO, path: str) -> None:
    """Copy the actor of a policy into an agent.

    Args:
        agent: takes it over, its average too.
        path: what `load_policy` takes.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: its network is another one.
    """
    start, config = load_policy(path)
    weights = start.actor.state_dict() if isinstance(start, torch.nn.Module) else {}
    own = agent.policy.state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items()}
    if {name: tuple(tensor.shape) for name, tensor in weights.items()} != shapes:
        raise ConfigError(
            f"algorithm.start is {path!r}, whose network is not that of this actor: it is of"
            f" {config.agent} with algorithm.encoder={config.algorithm.encoder} and"
            f" algorithm.widening={config.algorithm.widening}; give a policy of AC-IQN, DDPG or PPO"
            " and its encoder and widening"
        )
    for network in (agent.policy, agent.actor):
        network.load_state_dict(weights)
