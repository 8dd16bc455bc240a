"""The program train.py, whose evaluations end after 50 decisions."""

import os
import sys
from pathlib import Path

from train_RL_agents import train
from train_RL_agents.evaluation import episodes

NUMBERS = "MARINENAV_NUMBERS"
"""The environment variable with a folder, where each process of several writes its number."""

if __name__ == "__main__":
    if NUMBERS in os.environ:
        Path(os.environ[NUMBERS], os.environ["RANK"]).write_text(str(os.getpid()))
    episodes.DECISION_LIMIT = 50
    sys.exit(train.main())
