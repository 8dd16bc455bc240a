"""Trains the classic tasks by DQN and SAC with their settings, and judges the best weights.

``python scripts/checks/learning_check.py`` takes ten minutes on one core. A policy acts as deployed
in 100 episodes of its own, in the task as Gymnasium has it, whatever it was trained in. Thresholds
are Gymnasium's; Pendulum has none there, and the best average over its starts is about -150. Exit
status: 0; 1 if a threshold is missed.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium
import torch

from marinenav_env.envs.make import TASKS
from train_RL_agents.commands.parser import Parser
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import training_env
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.policies.load import load_policy
from train_RL_agents.training.trainer import TorchRLTrainer

EPISODES = 100
EVALUATION_SEED = 7
"""Not that of the evaluations during training, which chose the weights."""


class Problem(NamedTuple):
    """A task, its agent, and the mean return to reach."""

    task: str
    agent: str
    threshold: float


def threshold_of(task: str) -> float:
    """Return what Gymnasium asks of a task's mean return."""
    threshold = gymnasium.spec(TASKS[task].gymnasium_id).reward_threshold
    assert threshold is not None  # not every task has one; these do
    return threshold


PROBLEMS = (
    Problem("cartpole", "DQN", threshold_of("cartpole")),
    Problem("pendulum", "SAC", -200.0),
    Problem("mountain_car", "DQN", threshold_of("mountain_car")),
    Problem("mountain_car_continuous", "SAC", threshold_of("mountain_car_continuous")),
)


def learn(
    problem: Problem, seed: int, folder: Path, overrides: Sequence[str] = ()
) -> dict[str, float]:
    """Train and return what `ReturnResult.as_json` says of the best weights, and the seconds."""
    config, _, _ = load_config(
        task=problem.task, agent=problem.agent, overrides=[f"seed={seed}", *overrides]
    )
    begun = time.monotonic()
    TorchRLTrainer(config, folder, torch.device("cpu")).train()
    seconds = time.monotonic() - begun
    agent, config = load_policy(folder)
    config = dataclasses.replace(config, env=training_env(problem.task))
    evaluation = Evaluation.of_agent(agent, config, (EPISODES,), seed=EVALUATION_SEED)
    (row,) = evaluation.run(agent.act)
    return {**row.as_json(), "steps": config.total_steps, "seconds": seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train everything; return the exit status."""
    parser = Parser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="train with these seeds")
    tasks = [problem.task for problem in PROBLEMS]
    parser.add_argument(
        "--tasks", nargs="+", choices=tasks, default=tasks, help="train in these tasks"
    )
    options = parser.parse_args(arguments)
    missed = 0
    for problem in (problem for problem in PROBLEMS if problem.task in options.tasks):
        for seed in options.seeds:
            with tempfile.TemporaryDirectory() as folder:
                result = learn(problem, seed, Path(folder))
            reached = result["mean_return"] >= problem.threshold
            missed += not reached
            print(
                f"{problem.task}, {problem.agent}, seed {seed}: mean return "
                f"{result['mean_return']:.1f} of {EPISODES} episodes (threshold "
                f"{problem.threshold:g}), {result['steps']:,} steps in {result['seconds']:.0f} s"
                f"{'' if reached else ', MISSED'}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
