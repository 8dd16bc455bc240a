"""How this project's policies compare with the published ones: tables with a test of each stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, Settings, build, setting
from marinenav_env.files import parse_json, read_parsed
from train_RL_agents.policies.pretrained import CONFIG, EVALUATION
from train_RL_agents.run.provenance import run_record_of

SIGNIFICANT = 0.05
STAGE = ("robots", "buoys", "vortices", "min_distance_m")
"""Keys of an evaluation's row that say which stage it is."""
HEADER = (
    "| stage | success (95% CI) | published | p | collision | time-out | time s | published |\n"
    "|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class EvaluatedStage(Settings):
    """What of a row of `evaluate.py --json` is compared."""

    robots: int = setting(unit="-", source=EVALUATION, low=0)
    buoys: int = setting(unit="-", source=EVALUATION, low=0)
    episodes: int = setting(unit="episodes", source=EVALUATION, low=1)
    success: float = setting(unit="share", source=EVALUATION, low=0.0, high=1.0)
    success_ci95: tuple[float, ...] = setting(unit="share", source=EVALUATION, count=2)
    collision: float = setting(unit="share", source=EVALUATION, low=0.0, high=1.0)
    timeout: float = setting(unit="share", source=EVALUATION, low=0.0, high=1.0)
    mean_time_s: float | None = setting(unit="s", source=EVALUATION)
    # Older evaluations lack them.
    vortices: int | None = setting(None, unit="-", source=EVALUATION, low=0)
    min_distance_m: float | None = setting(None, unit="m", source=EVALUATION, low=0.0)


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
        vortices = f", {row['vortices']} vortices" if row.get("vortices") else ""
        cells = (
            f"{row['robots']} robots, {row['buoys']} buoys{vortices}",
            f"**{success}**" if self.higher else success,
            f"{published['success']:.3f}",
            "< 0.001" if self.p < 0.001 else f"{self.p:.3f}",
            f"{row['collision']:.3f}",
            f"{row['timeout']:.3f}",
            *(
                "-" if s is None else f"{s:.1f}"
                for s in (row["mean_time_s"], published["mean_time_s"])
            ),
        )
        return f"| {' | '.join(cells)} |"


def compare(
    rows: Sequence[Mapping[str, Any]],
    published: Sequence[Mapping[str, Any]],
    published_on: Sequence[Stage],
) -> list[Comparison]:
    """Compare an evaluation with the published one.

    Args:
        rows: the stages of the evaluation, in the published order.
        published: figures of the published policy, in the same order.
        published_on: the stages that they are of.

    Raises:
        ComparisonError: these are not the published stages.
    """
    # Older evaluations lack the vortices and the distance.
    names = [name for name in STAGE if all(name in row for row in rows)]
    stages = [tuple(row[name] for name in names) for row in rows]
    expected = [tuple(getattr(stage, name) for name in names) for stage in published_on]
    if stages != expected:
        raise ComparisonError(
            f"stages of ({', '.join(names)}) {stages}, the published policy has {expected}: "
            "evaluate it on the published stages"
        )
    return [
        Comparison(row, figure, min(1.0, len(rows) * p_higher(row, figure)))
        for row, figure in zip(rows, published, strict=True)
    ]


def p_higher(row: Mapping[str, Any], published: Mapping[str, Any]) -> float:
    """Return the p of Fisher's one-sided exact test for two shares with their numbers."""
    from scipy.stats import fisher_exact  # slow to import, and who loads a policy has no use for it

    table = [
        [round(side["success"] * side["episodes"]), round((1 - side["success"]) * side["episodes"])]
        for side in (row, published)
    ]
    return float(fisher_exact(table, alternative="greater").pvalue)


def published_figures(file: Path, agent: str) -> list[dict[str, Any]]:
    """Return the published figures of an algorithm, a row a stage.

    Args:
        file: success of the published policies in the published simulator.
        agent: the algorithm.

    Raises:
        ComparisonError: there are none.
    """
    policies = read_parsed(file, _policies, "fetch it again")
    name = agent if agent in policies else agent.replace("-", "_")
    if name not in policies:
        known = ", ".join(policies)
        raise ComparisonError(f"no published figures of {agent!r}: choose --against from {known}")
    return policies[name]


def _policies(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every policy in a file of either layout."""
    figures = parse_json(text)
    if "policies" in figures:
        return figures["policies"]
    # Times there are of all robots that arrive, ours of successful episodes: no two to compare.
    common = {"episodes": figures["episodes"], "mean_time_s": None}
    return {
        name: [{"success": share, **common} for share in shares]
        for name, shares in figures["success"].items()
    }


def read_evaluation(
    path: Path, task: str | None, against: str | None
) -> tuple[list[dict[str, Any]], str, str]:
    """Return an evaluation's stages, its task, and the algorithm to compare it with.

    Args:
        path: a folder of `pretrained/` or of a run, or the JSON file of an evaluation.
        task: of the evaluation; None takes that of the folder, if it names one, else the first.
        against: the algorithm; None takes that of the folder.

    Raises:
        ComparisonError: the file is not there or is no evaluation, or the algorithm is not known.
    """
    file = path / EVALUATION if path.is_dir() else path
    try:
        stages = read_parsed(file, _stages, "give an evaluation")
    except ConfigError as error:
        raise ComparisonError(f"{file} holds no evaluation ({error})") from error
    settings = _settings_of(file)
    task, against = task or settings.get("task", "marine"), against or settings.get("agent")
    if against is None:
        raise ComparisonError(f"{file} does not name its algorithm: give --against")
    return stages, task, against


def _stages(text: str) -> list[dict[str, Any]]:
    """Return the rows of an evaluation, with what is compared of them."""
    names = [field.name for field in dataclasses.fields(EvaluatedStage)]
    table, rows = parse_json(text), []
    if "stages" not in table:
        held = next((kind for kind in ("policies", "scenarios") if kind in table), "no stages")
        raise ValueError(f"it holds {held}, and stages of one policy are compared")
    given = [name for name in ("traffic", "shield", "settings", "config") if table.get(name)]
    if given:
        raise ValueError(f"it was played with {', '.join(given)}, and the published ones without")
    for i, row in enumerate(table["stages"]):
        known = {name: row[name] for name in names if name in row}
        build(EvaluatedStage, known, where=f"stages[{i}]")
        rows.append(known)
    return rows


def _settings_of(file: Path) -> Mapping[str, Any]:
    """Return the settings that lie beside an evaluation; none if there are none."""
    config, record = file.with_name(CONFIG), run_record_of(file)
    if config.is_file():
        return read_parsed(config, lambda text: dict(yaml.safe_load(text)), "repair it")
    return {} if record is None else record["config"]


def comparison_table(
    path: Path, figures: Mapping[str, Path], task: str | None = None, against: str | None = None
) -> str:
    """Return the Markdown table of one evaluation beside the published figures.

    Args:
        path: as `read_evaluation` takes it.
        figures: of each task, as `published_figures` takes them.
        task: as `read_evaluation` takes it.
        against: as `read_evaluation` takes it.

    Raises:
        ComparisonError: it cannot be compared.
        ConfigError: the settings beside it are damaged.
    """
    stages, task, against = read_evaluation(path, task, against)
    if task not in figures:
        raise ComparisonError(
            f"no published figures of the task {task!r}: choose --task from {', '.join(figures)}"
        )
    published = published_figures(figures[task], against)
    lines = [line.markdown() for line in compare(stages, published, TASKS[task].evaluation_stages)]
    return "\n".join([HEADER, *lines])
