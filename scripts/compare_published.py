"""Compares evaluated policies with the published weights of an algorithm, stage by stage.

    python scripts/compare_published.py pretrained/ac_iqn [FOLDER|FILE ...] [--against AC-IQN]
    python scripts/compare_published.py pretrained/icra2024_iqn --against "adaptive IQN"

Prints a Markdown table for each. "p" is that of Fisher's exact test that the success is higher than
the published one, times the number of stages (Bonferroni's correction); a success is called higher
where it is below 0.05. The published figures are those of `tests/reference/published_success.json`,
or of `tests/reference/icra2024`: published weights in the published simulator of their task.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from marinenav_env.fields import ConfigError
from train_RL_agents.commands.parser import Parser, tells
from train_RL_agents.policies.comparison import ComparisonError, comparison_table

REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "reference"
FIGURES = {
    "marine": REFERENCE / "published_success.json",
    "icra2024": REFERENCE / "icra2024" / "published_success.json",
}


@tells(ComparisonError, ConfigError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 if a file cannot be compared."""
    parser = Parser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "evaluations",
        type=Path,
        nargs="+",
        metavar="FOLDER|FILE",
        help="folders of pretrained/ or JSON files of evaluate.py",
    )
    parser.add_argument(
        "--task",
        choices=list(FIGURES),
        help="compare in this task (default: that beside the file, else marine)",
    )
    parser.add_argument(
        "--against",
        metavar="AGENT",
        help="compare with this published algorithm (default: its own)",
    )
    options = parser.parse_args(arguments)
    tables = [
        (path, comparison_table(path, FIGURES, options.task, options.against))
        for path in options.evaluations
    ]
    for path, text in tables:
        print(f"{path}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
