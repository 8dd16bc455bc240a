"""The program train.py, whose evaluations end after 50 decisions."""

import sys

from train_RL_agents import train
from train_RL_agents.evaluation import episodes

if __name__ == "__main__":
    episodes.DECISION_LIMIT = 50
    sys.exit(train.main())
