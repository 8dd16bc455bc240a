"""Compares evaluated policies with the published weights of an algorithm, stage by stage.

    python scripts/compare_published.py pretrained/ac_iqn [FOLDER|FILE ...] [--against AC-IQN]

Prints a Markdown table for each. "p" is that of Fisher's exact test that the success is higher than
the published one, times the number of stages (Bonferroni's correction); a success is called higher
where it is below 0.05. The published figures are those of `tests/reference/published_success.json`:
published weights in the published simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from train_RL_agents.commands.parser import Parser
from train_RL_agents.policies.comparison import ComparisonError, comparison_table

FIGURES = Path(__file__).resolve().parents[1] / "tests/reference/published_success.json"


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
        "--against",
        metavar="AGENT",
        help="compare with this published algorithm (default: its own)",
    )
    options = parser.parse_args(arguments)
    try:
        tables = [
            (path, comparison_table(path, FIGURES, options.against)) for path in options.evaluations
        ]
    except ComparisonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path, text in tables:
        print(f"{path}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
