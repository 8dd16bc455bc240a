"""The program train.py, whose evaluations end after 50 decisions."""

import os
import sys
from pathlib import Path

from marinenav_env.envs.checks import UnusableError
from train_RL_agents import train
from train_RL_agents.evaluation import episodes
from train_RL_agents.training.evaluations import RunEvaluation
from train_RL_agents.training.trainer import TorchRLTrainer

NUMBERS = "MARINENAV_NUMBERS"
"""The environment variable with a folder, where each process of several writes its number."""

FAILING = "MARINENAV_FAILING"
"""The environment variable with the rank of a process that fails in its second log."""


def fail_in_the_second_log():
    """Make this process fail then, by an error that nobody foresaw."""
    log = TorchRLTrainer.log

    def failing(self):
        if self.counters.logged_step:
            raise RuntimeError("it fails alone")
        return log(self)

    TorchRLTrainer.log = failing


UNUSABLE = "MARINENAV_UNUSABLE"
"""The environment variable with the seed of a run whose periodic evaluations fail."""


def fail_in_evaluations(seed):
    """Make the periodic evaluations of runs of a seed fail as those of a broken policy do."""
    periodic = RunEvaluation.periodic

    def failing(self, *arguments):
        if self._config.seed == seed:
            raise UnusableError("3 actions were no numbers")
        return periodic(self, *arguments)

    RunEvaluation.periodic = failing


if __name__ == "__main__":
    if os.environ.get(FAILING, "") == os.environ.get("RANK", "0"):
        fail_in_the_second_log()
    if UNUSABLE in os.environ:
        fail_in_evaluations(int(os.environ[UNUSABLE]))
    if NUMBERS in os.environ:
        Path(os.environ[NUMBERS], os.environ["RANK"]).write_text(str(os.getpid()))
    episodes.DECISION_LIMIT = 50
    sys.exit(train.main())
