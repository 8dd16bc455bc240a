"""The latest decisions of all worlds, in order, and what they were worth: PPO learns from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from marinenav_env.kernel.state import StepBuffers
from train_RL_agents.agents.ppo import FreshBatch


class Rollout:
    """T decisions of W worlds of R robots; nothing here reads the device.

    Args:
        turns: T.
        example: what the encoders take for all robots `[W, R, ...]`; shapes and types count.
        actions: number of coordinates of an action.
    """

    def __init__(self, turns: int, example: Sequence[Tensor], actions: int) -> None:
        worlds, robots = example[0].shape[:2]
        device = example[0].device

        def kept(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(turns, worlds, robots, *shape, dtype=dtype, device=device)

        self.turns = turns
        self.inputs = [kept(*part.shape[2:], dtype=part.dtype) for part in example]
        self.drawn = kept(actions)
        self.log_probability, self.value, self.reward = kept(), kept(), kept()
        self.acted, self.terminated, self.truncated = (kept(dtype=torch.bool) for _ in range(3))
        self.advantage, self.target = kept(), kept()
        self.row = torch.zeros(1, dtype=torch.int64, device=device)
        """[1], where the next decision goes."""
        self.last = self.acted.flatten().cumsum(0)
        """How many robots acted, up to and with each row."""

    def store(
        self,
        inputs: Sequence[Tensor],
        drawn: tuple[Tensor, Tensor, Tensor],
        following: StepBuffers,
        robots: Tensor,
    ) -> None:
        """Keep one decision.

        Args:
            inputs: of the encoders, on which robots acted, `[W, R, ...]`.
            drawn: action, log-probability and value, `[W, R, ...]`.
            following: what it brought.
            robots: [W, R] bool, those that acted and are to learn from.
        """
        pairs = [
            *zip(self.inputs, inputs, strict=True),
            *zip((self.drawn, self.log_probability, self.value), drawn, strict=True),
            (self.reward, following.reward),
            (self.acted, robots),
            (self.terminated, following.terminated),
            (self.truncated, following.truncated),
        ]
        for kept, new in pairs:
            kept.index_copy_(0, self.row, new.unsqueeze(0))
        self.row.add_(1).remainder_(self.turns)

    def judge(self, value: Tensor, gamma: float, trace: float) -> None:
        """Work out advantages and targets of all decisions, once T are stored.

        The generalised advantage of Schulman et al. 2016, "High-Dimensional Continuous Control
        Using Generalized Advantage Estimation", eq. 16. A robot whose world was truncated is worth
        what it was worth one decision before.

        Args:
            value: `[W, R]`, of the observation after the last decision.
            gamma: discount of a decision.
            trace: lambda.
        """
        advantage = torch.zeros_like(value)
        for row in reversed(range(self.turns)):
            now, terminated = self.value[row], self.terminated[row]
            coming = torch.where(self.truncated[row], now, value)
            coming = torch.where(terminated, 0.0, coming)
            error = self.reward[row] + gamma * coming - now
            ended = terminated | self.truncated[row]
            advantage = error + gamma * trace * torch.where(ended, 0.0, advantage)
            self.advantage[row].copy_(advantage)
            value = now
        torch.add(self.advantage, self.value, out=self.target)
        acted = self.acted.to(self.advantage.dtype)
        count = acted.sum().clamp(min=1.0)
        mean = (self.advantage * acted).sum() / count
        spread = (((self.advantage - mean) * acted).square().sum() / count).sqrt()
        self.advantage.sub_(mean).div_(spread + 1e-6)
        torch.cumsum(self.acted.flatten(), 0, out=self.last)

    def sample(self, size: int) -> FreshBatch:
        """Draw decisions of robots that acted, all alike likely, with replacement."""
        share = torch.rand(size, dtype=torch.float64, device=self.last.device)
        ranks = (share * self.last[-1]).long() + 1  # the first, second, ... robot that acted
        rows = torch.searchsorted(self.last, ranks).clamp_(max=len(self.last) - 1)  # [B]

        def of(kept: Tensor) -> Tensor:
            return kept.flatten(0, 2).index_select(0, rows)

        return FreshBatch(
            tuple(of(part) for part in self.inputs),
            of(self.drawn),
            of(self.log_probability),
            of(self.advantage),
            of(self.target),
        )

    def _named(self) -> dict[str, Tensor]:
        kept = {f"inputs_{i}": part for i, part in enumerate(self.inputs)}
        names = ("drawn", "log_probability", "value", "reward", "acted", "terminated", "truncated")
        return kept | {name: getattr(self, name) for name in names}

    def state_dict(self, stored: int) -> dict[str, Tensor]:
        """Return copies of the first decisions, as many as are stored since the last round."""
        return {name: tensor[:stored].clone() for name, tensor in self._named().items()}

    def load_state_dict(self, state: dict[str, Any]) -> int:
        """Take over a `state_dict`, from any device; return how many decisions it holds.

        Raises:
            ValueError: it has more turns than this one, or other worlds, robots or inputs.
        """
        own = self._named()
        shapes = {name: tuple(tensor.shape[1:]) for name, tensor in own.items()}
        found = {name: tuple(tensor.shape[1:]) for name, tensor in state.items()}
        stored = {len(tensor) for tensor in state.values()}
        if shapes != found or len(stored) != 1 or max(stored) >= max(self.turns, 1):
            raise ValueError(f"the rollout has {stored} turns of {found}, expected {shapes}")
        (count,) = stored
        for name, tensor in own.items():
            tensor[:count].copy_(state[name])
        self.row.fill_(count)
        return count


def check_rollout_memory(
    turns: int, example: Sequence[Tensor], actions: int, device: torch.device, processes: int = 1
) -> None:
    """Check that a rollout fits into the free memory of a device; allocates nothing.

    Raises:
        ConfigError: it does not.
    """
    robots = example[0].shape[:2].numel()
    bytes_of_inputs = sum(part.numel() * part.element_size() for part in example)
    # Five numbers, three flags and a count for each, and as much again while it is judged.
    required = turns * (bytes_of_inputs + robots * (4 * actions + 31 + 20))
    free = memory.free_bytes(device) / processes
    if required > free:
        raise ConfigError(
            f"algorithm.turns is {turns}: the decisions of {example[0].shape[0]} worlds need "
            f"{required / 2**30:.2f} GiB and {free / 2**30:.2f} GiB are free on {device}; lower it"
            " or worlds"
        )
