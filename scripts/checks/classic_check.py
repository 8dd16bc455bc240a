"""Compares the classic tasks with Gymnasium, decision by decision, in float64 on the CPU.

``python scripts/checks/classic_check.py`` takes 100,000 decisions of each with random actions and
restarts. States, rewards and ends have to agree to the bit, observations as float32. Exit status:
0; 1 if anything differs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch

from marinenav_env.config import TaskConfig
from marinenav_env.envs.classic import CLASSIC, ClassicEnv
from marinenav_env.stepper import Stepper
from train_RL_agents.commands.parser import Parser

STEADY = 25
"""Decisions for which half of the worlds repeat an action: at random no car leaves the valley."""


class Twins:
    """W worlds of a task, and as many environments of Gymnasium in the same states.

    Args:
        kind: the task.
        worlds: W.
        seed: of starts and actions.
        config: of the task; None takes Gymnasium's numbers.
    """

    def __init__(
        self, kind: type[ClassicEnv], worlds: int, seed: int, config: TaskConfig | None = None
    ) -> None:
        self.env = kind(worlds, config=config, dtype=torch.float64, seed=seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.stepper = Stepper(self.env)
        self.stepper.reset()
        self.others: list[Any] = [
            gymnasium.make(kind.gymnasium_id).unwrapped for _ in range(worlds)
        ]
        self.size = len(self.others[0].reset()[0]) if kind.kernel != "pendulum" else 2
        self.differences: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self._align(range(worlds))

    def state(self) -> np.ndarray:
        """Return the state [W, n] of all worlds."""
        return self.env.state.robot[: self.size, 0, : self.env.worlds].T.numpy().copy()

    def actions(self, decision: int) -> torch.Tensor:
        """Draw an action for every world."""
        action = self.env.make_action()
        fresh = torch.rand(action.shape, generator=self.generator)
        if decision % STEADY == 0:
            self._steady = torch.rand(action.shape, generator=self.generator)
        fresh[::2] = self._steady[::2]
        if self.env.discrete:
            return (fresh * self.env.kernel_spec.discrete).long()
        return (3.0 * fresh - 1.5).clamp(-1.0, 1.0).double()  # float32 numbers, also the ends

    def step(self, decision: int) -> None:
        """Take one decision on both sides and compare what it brought."""
        action = self.actions(decision)
        following = self.stepper.step(action)
        states = self.state()
        scale = 2.0 if self.env.kernel == "pendulum" else 1.0  # there an action is a torque
        for w, other in enumerate(self.others):
            given = int(action[w]) if self.env.discrete else np.float32(scale * action[w, 0])
            seen, reward, terminated, _, _ = other.step(given)
            self._compare("state", states[w], np.asarray(other.state, dtype=np.float64))
            self._compare("reward", following.reward[w, 0].item(), float(reward))
            self._compare("terminated", following.terminated[w, 0].item(), bool(terminated))
            self._compare("observation", following.obs.state[w, 0].float().numpy(), seen)
        self.ends["terminated"] += int(following.terminated.sum())
        self.ends["truncated"] += int(following.truncated.sum())
        done = following.done.nonzero().flatten().tolist()
        self.stepper.advance()
        self._align(done)

    def _compare(self, name: str, own: Any, theirs: Any) -> None:
        self.differences[name] += not np.array_equal(own, theirs)

    def _align(self, worlds: Sequence[int]) -> None:
        states = self.state()
        for w in worlds:
            self.others[w].reset()
            self.others[w].state = states[w]


def compare(
    kind: type[ClassicEnv],
    decisions: int,
    worlds: int,
    *,
    seed: int = 0,
    config: TaskConfig | None = None,
) -> Twins:
    """Take so many decisions in each world and return what was counted; arguments as `Twins`."""
    twins = Twins(kind, worlds, seed, config)
    for decision in range(decisions):
        twins.step(decision)
    return twins


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare every task; return the exit status."""
    parser = Parser(description=__doc__)
    parser.add_argument(
        "--decisions",
        type=int,
        default=1000,
        help="take so many decisions in each world (default %(default)s)",
    )
    parser.add_argument(
        "--worlds", type=int, default=100, help="compare in so many worlds (default %(default)s)"
    )
    options = parser.parse_args(arguments)
    wrong = 0
    for kind in CLASSIC:
        twins = compare(kind, options.decisions, options.worlds)
        total = options.decisions * options.worlds
        found = {name: count for name, count in twins.differences.items() if count}
        print(f"{kind.gymnasium_id}: {total:,} decisions, {dict(twins.ends)}, differ: {found or 0}")
        wrong += sum(found.values())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
