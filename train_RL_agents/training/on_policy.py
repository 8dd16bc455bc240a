"""A learner without a replay: it learns from the latest decisions alone, then drops them."""

from __future__ import annotations

from typing import Any

import torch

from train_RL_agents.agents.encoders import Encoder
from train_RL_agents.agents.ppo import PPO
from train_RL_agents.config.checks import check_rounds
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import GradientAverage, Processes
from train_RL_agents.training.learner import Learner
from train_RL_agents.training.rollout import Rollout, check_rollout_memory


class OnPolicyLearner(Learner):
    """Collects `turns` decisions of every world, then does the updates that have come due.

    Args:
        config: all settings, of PPO.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: as for `Learner`; or the decisions do not fit the memory; or so many processes
            end before the actor has learned.
    """

    agent: PPO
    rates = ("learning_rate_scale",)

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        check_rounds(config, processes.size)
        super().__init__(config, device, processes)
        settings = self.agent.config
        example = self._encoder.inputs(tuple(self.stepper.now.obs))
        sharing = processes.sharing(device)
        check_rollout_memory(settings.turns, example, self.agent.actions, device, sharing)
        processes.wait()  # all have seen that theirs fit
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

    def set_rates(self, epsilon: float, learning_rate_scale: float, beta: float) -> None:
        """Set the scale of the learning rates; the others belong to a replay."""
        if learning_rate_scale != self._scale:
            self.agent.set_learning_rate_scale(learning_rate_scale)
        self._scale = learning_rate_scale

    @torch.no_grad()
    def _collect(self) -> None:
        inputs = self._encoder.inputs(tuple(self.stepper.now.obs))
        drawn = self.agent.draw(inputs)
        following, own = self._step(drawn[0].clamp(-1.0, 1.0))
        self.rollout.store(inputs, drawn, following, own)
        self.statistics.add_stored(own)
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
        if not done:
            return 0
        if self._rounds == self.agent.config.settling_rounds:
            self.agent.settle()
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
        """Return all that changes, as `Learner.state_dict`."""
        return {**super().state_dict(with_replay=with_replay), "rounds": self._rounds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a `state_dict`; without the decisions stored a round begins anew."""
        self._scale = None  # the agent brings its own
        self._rounds, self._stored, self._due = state["rounds"], 0, 0
        self.rollout.row.zero_()
        super().load_state_dict(state)

    def memory_state(self) -> dict[str, Any]:
        """Return the decisions stored since the last round, and the updates that are due."""
        return {"rollout": self.rollout.state_dict(self._stored), "due": self._due}

    def load_memory_state(self, state: dict[str, Any]) -> None:
        """Take over a `memory_state`, from any device."""
        self._stored, self._due = self.rollout.load_state_dict(state["rollout"]), state["due"]
