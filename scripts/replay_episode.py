"""Replays episode files: ``python scripts/replay_episode.py``, as ``scripts/episode.py replay``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from scripts.episode import REPLAY, define_replay, replay
from train_RL_agents.commands.parser import Parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the files named on the command line; return the exit status."""
    style = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=REPLAY, formatter_class=style)
    define_replay(parser)
    return replay(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
