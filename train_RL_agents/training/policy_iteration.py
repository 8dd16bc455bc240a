"""A learner whose replay keeps what other actions would have brought, wherever its actor leads."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from train_RL_agents.agents.dpi import DPI
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.training.lookahead import Lookahead
from train_RL_agents.training.replay_learner import Choice, ReplayLearner


class PolicyIterationLearner(ReplayLearner):
    """Collects with the actor, and keeps what its actions are worth beside others.

    The policy that the rollouts follow is the one that acts as deployed. Between the decisions that
    are looked ahead at lie some that are not, and are not kept.

    Args:
        config: all settings, of DPI.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        ConfigError: as for `ReplayLearner` and `Lookahead`.
    """

    agent: DPI

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        super().__init__(config, device, processes)
        settings: Any = config.algorithm
        self.lookahead = Lookahead(self.env, self._act, settings.lookahead, self.traffic)
        self._passing = self._captured(self._pass)
        self._every, self._decision = settings.look_every, 0

    def collect(self) -> None:
        """Take one decision of every robot, and keep it if it is one to look ahead at."""
        looks = self._decision == 0
        self._decision = (self._decision + 1) % self._every
        self._run(self._collecting if looks else self._passing)

    def state_dict(self, *, with_replay: bool) -> dict[str, Any]:
        """Return all that changes, as `Learner.state_dict`."""
        return super().state_dict(with_replay=with_replay) | {"decision": self._decision}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a `state_dict`, as `Learner.load_state_dict`."""
        kept = state["replay"] is not None  # else there has to be something to learn from
        self._decision = state.get("decision", 0) % self._every if kept else 0
        super().load_state_dict(state)

    @torch.no_grad()
    def _act(self, observation: Any) -> Tensor:
        """As `Agent.act`, but with bfloat16 products where the agent learns with them."""
        with self.agent.precision(self.agent.actor):
            action = self.agent.choose(self.agent.actor, observation, mean=True)
        return action.to(observation[0].dtype)

    def _pass(self) -> None:
        self._step(self.policy.explore(self.stepper.now.obs))
        self.stepper.advance()

    def _choose(self, observation: Any) -> Choice:
        action = self._act(observation)  # [W, R, A]
        advantages = self.lookahead.value(self.stepper.now, action)
        kept = torch.cat([action, advantages], -1)  # [W, R, A + K]
        return Choice(self.policy.explore(observation), kept)
