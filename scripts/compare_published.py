"""Compares evaluated policies with the published weights of an algorithm, stage by stage.

    python scripts/compare_published.py pretrained/ac_iqn [FOLDER|FILE ...] [--against AC-IQN]

Prints a Markdown table for each. "p" is that of Fisher's exact test that the success is higher than
the published one, times the number of stages (Bonferroni's correction); a success is called higher
where it is below 0.05. The published figures are those of `tests/reference/published_success.json`:
published weights in the published simulator.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from scipy.stats import fisher_exact

from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from train_RL_agents.policies.pretrained import CONFIG, EVALUATION
from train_RL_agents.run.provenance import run_record_of

PUBLISHED = Path(__file__).resolve().parents[1] / "tests/reference/published_success.json"
SIGNIFICANT = 0.05
STAGE = ("robots", "buoys", "vortices", "min_distance_m")
"""Keys of an evaluation's row that say which stage it is."""
HEADER = (
    "| stage | success (95% CI) | published | p | collision | time-out | time s | published |\n"
    "|---|---|---|---|---|---|---|---|"
)


class ComparisonError(ValueError):
    """A file cannot be compared; the message says which and why."""


@dataclass(frozen=True)
class Comparison:
    """One stage of a policy beside the published policy.

    Attributes:
        row: of the evaluation, as `evaluate.py --json` writes it.
        published: of the published policy.
        p: probability of so high a success if it were not higher, corrected for all stages.
    """

    row: Mapping[str, Any]
    published: Mapping[str, Any]
    p: float

    @property
    def higher(self) -> bool:
        """Whether the success is significantly higher."""
        return self.p < SIGNIFICANT

    def markdown(self) -> str:
        """Return the line of the table."""
        row, published = self.row, self.published
        low, high = row["success_ci95"]
        success = f"{row['success']:.3f} ({low:.3f} to {high:.3f})"
        cells = (
            f"{row['robots']} robots, {row['buoys']} buoys",
            f"**{success}**" if self.higher else success,
            f"{published['success']:.3f}",
            "< 0.001" if self.p < 0.001 else f"{self.p:.3f}",
            f"{row['collision']:.3f}",
            f"{row['timeout']:.3f}",
            "-" if row["mean_time_s"] is None else f"{row['mean_time_s']:.1f}",
            f"{published['mean_time_s']:.1f}",
        )
        return f"| {' | '.join(cells)} |"


def compare(
    rows: Sequence[Mapping[str, Any]], published: Sequence[Mapping[str, Any]]
) -> list[Comparison]:
    """Compare an evaluation with the published one.

    Args:
        rows: the stages of the evaluation, in the published order.
        published: the stages of the published policy.

    Raises:
        ComparisonError: these are not the published stages.
    """
    # Older evaluations lack the vortices and the distance.
    names = [name for name in STAGE if all(name in row for row in rows)]
    stages = [tuple(row[name] for name in names) for row in rows]
    wanted = [tuple(getattr(stage, name) for name in names) for stage in PUBLISHED_STAGES]
    if stages != wanted:
        raise ComparisonError(
            f"stages of ({', '.join(names)}) {stages}, the published policy has {wanted}: evaluate "
            "it on the published stages"
        )
    return [
        Comparison(row, figure, min(1.0, len(rows) * p_higher(row, figure)))
        for row, figure in zip(rows, published, strict=True)
    ]


def p_higher(row: Mapping[str, Any], published: Mapping[str, Any]) -> float:
    """Return the p of Fisher's one-sided exact test for two shares with their numbers."""
    table = [
        [round(side["success"] * side["episodes"]), round((1 - side["success"]) * side["episodes"])]
        for side in (row, published)
    ]
    return float(fisher_exact(table, alternative="greater").pvalue)


def published_stages(agent: str) -> list[dict[str, Any]]:
    """Return the published figures of an algorithm.

    Raises:
        ComparisonError: there are none.
    """
    policies = json.loads(PUBLISHED.read_text())["policies"]
    name = agent.replace("-", "_")
    if name not in policies:
        known = ", ".join(policies)
        raise ComparisonError(f"no published figures of {agent!r}: choose --against from {known}")
    return policies[name]


def read(path: Path, against: str | None) -> tuple[list[dict[str, Any]], str]:
    """Return an evaluation's stages, and the algorithm to compare it with.

    Args:
        path: a folder of `pretrained/` or of a run, or the JSON file of an evaluation.
        against: the algorithm; None takes that of the folder.

    Raises:
        ComparisonError: the file is not there or is no evaluation, or the algorithm is not known.
    """
    file = path / EVALUATION if path.is_dir() else path
    try:
        stages = json.loads(file.read_text())["stages"]
    except (OSError, ValueError, KeyError) as error:
        raise ComparisonError(f"{file} holds no evaluation ({error})") from error
    if against is None:
        against = _agent_of(file)
    return stages, against


def _agent_of(file: Path) -> str:
    config, record = file.with_name(CONFIG), run_record_of(file)
    if config.is_file():
        return yaml.safe_load(config.read_text())["agent"]
    if record is None:
        raise ComparisonError(f"{file} does not name its algorithm: give --against")
    return record["config"]["agent"]


def table(path: Path, against: str | None = None) -> str:
    """Return the Markdown table of one evaluation.

    Raises:
        ComparisonError: it cannot be compared.
    """
    stages, against = read(path, against)
    lines = [line.markdown() for line in compare(stages, published_stages(against))]
    return "\n".join([HEADER, *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 if a file cannot be compared."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("evaluations", type=Path, nargs="+", metavar="FOLDER|FILE")
    parser.add_argument("--against", metavar="AGENT", help="published algorithm (default: its own)")
    options = parser.parse_args(arguments)
    try:
        tables = [(path, table(path, options.against)) for path in options.evaluations]
    except ComparisonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path, text in tables:
        print(f"{path}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
