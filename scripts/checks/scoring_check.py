"""Measures what the scores of an evaluation cost beside the evaluation itself, on one thread.

``python -m scripts.checks.scoring_check pretrained/ac_iqn`` plays 1,000 episodes of each of the six
stages several times, and prints CPU seconds of following, measuring and scoring, of all else, and
their ratio. Exit status: 0; 1 if the median ratio is a fifth or more.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import torch

from train_RL_agents.commands.parser import Parser
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.watches import NavigationWatch
from train_RL_agents.policies.load import load_policy

LIMIT = 0.2
"""Share of an evaluation that its scores may cost."""


class Clock:
    """Adds up the CPU seconds of functions."""

    seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, on this clock."""

        def call(*arguments: Any) -> Any:
            start = time.process_time()
            result = function(*arguments)
            self.seconds += time.process_time() - start
            return result

        return call


def measure(path: str, count: int) -> tuple[float, float]:
    """Return CPU seconds of the scores of an evaluation, and of all else in it.

    Args:
        path: of the policy.
        count: episodes of each stage.
    """
    agent, config = load_policy(path)
    evaluation = Evaluation.of_agent(agent, config, (count,) * 6, seed=1)
    clock = Clock()

    methods = ("__init__", "follow", "note", "parts")
    on_clock = {name: clock.timed(getattr(NavigationWatch, name)) for name in methods}
    watch = type("TimedWatch", (NavigationWatch,), on_clock)
    with mock.patch.object(episodes, "watch_of", return_value=watch):
        start = time.process_time()
        rows = evaluation.run(agent.act)
        clock.timed(lambda: [row.safety for row in rows])()
        whole = time.process_time() - start
    return clock.seconds, whole - clock.seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = Parser(description=__doc__)
    parser.add_argument("policy", help="a policy's file or folder")
    parser.add_argument(
        "--episodes", type=int, default=1_000, help="play so many episodes of each stage"
    )
    parser.add_argument("--repeats", type=int, default=5, help="evaluate so many times")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    ratios = []
    for _ in range(arguments.repeats):
        scores, rest = measure(arguments.policy, arguments.episodes)
        ratios.append(scores / rest)
        print(f"scores {scores:.2f} s, all else {rest:.2f} s, ratio {ratios[-1]:.3f}", flush=True)
    median = statistics.median(ratios)
    print(f"median ratio {median:.3f}")
    return int(median >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
