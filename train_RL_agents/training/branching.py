"""A learner whose replay keeps what actions that were tried in branches would have brought."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import PerceptionConfig, TaskConfig
from train_RL_agents.agents.rpi import RPI
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout
from train_RL_agents.training.branches import Branches
from train_RL_agents.training.replay_learner import ReplayLearner
from train_RL_agents.training.start import take_actor


class BranchingLearner(ReplayLearner):
    """Collects with the learning actor, and keeps what each tried action would have brought.

    Args:
        config: all settings, of RPI.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: as for `ReplayLearner`; or the branches do not fit the memory.
    """

    agent: RPI

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        super().__init__(config, device, processes)
        settings = self.agent.config
        self.branches = Branches(
            self.env,
            without_noise(config.collecting_env),
            tried=settings.tried,
            hold=settings.hold,
            horizon=settings.horizon,
        )
        self._followed = functools.partial(self.agent.act, mean=True)
        self._updates = 0

    def start(self, stages: Tensor) -> None:
        """Take over the actor to begin with, if one is named, and place the first scenarios.

        Raises:
            CheckpointError: there is no such policy.
            ConfigError: it has another network.
        """
        if self.agent.config.start:
            take_actor(self.agent, self.agent.config.start, self.config)
        super().start(stages)

    def learn(self, updates: int = 1) -> int:
        """Do gradient updates, see `Learner.learn`; after some of them the actor learns too."""
        settling = self.agent.config.settling_updates
        if self._updates < settling <= self._updates + updates or settling == self._updates == 0:
            self.agent.settle()
        self._updates += updates
        return super().learn(updates)

    def state_dict(self, *, with_replay: bool) -> dict[str, Any]:
        """Return all that changes, as `Learner.state_dict`."""
        return {**super().state_dict(with_replay=with_replay), "updates": self._updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a `state_dict`, as `Learner.load_state_dict`."""
        self._updates = state["updates"]
        super().load_state_dict(state)

    def _choose(self, observation: Any) -> tuple[Tensor, Tensor]:
        own = self._followed(observation)  # [W, R, A]
        tried = self.agent.propose(own)  # [W, R, K, A]
        returns = self.branches.returns(self.stepper.now, self._followed, own, tried)
        kept = torch.cat((tried, returns.unsqueeze(-1)), dim=-1)  # [W, R, K, A + 1]
        return self.policy.explore(observation), kept

    def _replay_config(self) -> ReplayConfig:
        config = self.config
        return ReplayConfig(config.replay.capacity, n_step=1, gamma=config.algorithm.gamma)

    def _layout(self) -> TransitionLayout:
        shape = self.agent.config.tried, self.agent.actions + 1
        return dataclasses.replace(super()._layout(), action=shape)


def without_noise(config: TaskConfig) -> TaskConfig:
    """Return a task without noise in its perception, if it has one.

    The branches of a robot then differ by the action alone.
    """
    perception = getattr(config, "perception", None)
    if not isinstance(perception, PerceptionConfig):
        return config
    changes: Any = {"perception": perception.noiseless()}
    return dataclasses.replace(config, **changes)
