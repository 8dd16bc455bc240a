"""The page: charts, tables and playback in one file that needs no network."""

from __future__ import annotations

import hashlib
import html
import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import plotly.graph_objects as go
import torch
from plotly.offline import get_plotlyjs

from marinenav_env.fields import plain
from marinenav_env.files import write_atomically
from train_RL_agents.evaluation.report import charts, robustness, seeds, tables, throughput
from train_RL_agents.evaluation.report.evaluated import Evaluated
from train_RL_agents.evaluation.report.playback import episodes_of
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioResults
from train_RL_agents.evaluation.score import V1
from train_RL_agents.run.source import device_name, source_commit, source_diff, versions

PAGE = "index.html"
PLAYBACK = """\
<div class="controls"><select id="episode"></select> <select id="vessel"></select></div>
<div class="controls"><button id="play">Play</button>
<input id="scrub" type="range" min="0" value="0" step="0.05" aria-label="Time">
<span id="time"></span>
<select id="speed" aria-label="Speed">
<option>1</option><option selected>4</option><option>10</option>
</select> times real time</div>
<canvas id="map"></canvas><canvas id="gaps"></canvas>
<p>Failures come first, then near misses. A vessel nearer than 2 m to another is red.
Dashed: what the chosen vessel can see; yellow: the objects it observes, with noise. Squares are
goals. Below: its gap to the nearest vessel, and dashed to the nearest buoy.</p>
"""


class Records(NamedTuple):
    """What other programs have recorded and the page shows beside the evaluation.

    Attributes:
        trainings: runs, or sweeps over seeds.
        benchmarks: label and record of each.
        robustness: records of success under disturbances.
    """

    trainings: Sequence[seeds.Training] = ()
    benchmarks: Sequence[tuple[str, dict[str, Any]]] = ()
    robustness: Sequence[dict[str, Any]] = ()


NOTHING = Records()


def read_records(
    runs: Sequence[str] = (), benchmarks: Sequence[str] = (), disturbed: Sequence[str] = ()
) -> Records:
    """Read runs' folders, records of ``bench.py`` and of ``robustness.py``.

    Raises:
        ConfigError: one is missing, damaged or something else.
        ValueError: a run's records are missing or damaged.
    """
    return Records(
        [seeds.read_training(Path(folder)) for folder in runs],
        [(Path(file).stem, throughput.read_benchmark(Path(file))) for file in benchmarks],
        [robustness.read_robustness(Path(file)) for file in disturbed],
    )


def check_folder(folder: Path) -> None:
    """Make the folder of a report, before any work.

    Raises:
        OSError: it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OSError(
            f"--report {str(folder)!r} cannot be written ({error}): name another"
        ) from error


def provenance(policies: Sequence[Evaluated], seed: int, device: torch.device) -> dict[str, Any]:
    """Return what it takes to make the page again."""
    changed = " with changes" if source_diff() else ""
    hashes = {
        f"settings of {evaluated.name} (SHA-256)": hashlib.sha256(
            json.dumps(plain(evaluated.config), sort_keys=True).encode()
        ).hexdigest()[:16]
        for evaluated in policies
    }
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items() if number)
    return {
        "command": shlex.join(sys.argv),
        "commit": f"{source_commit() or 'unknown'}{changed}",
        "seed of the episodes": seed,
        "score": V1.version,
        **hashes,
        "machine": f"{device_name(device)}, {os.cpu_count()} cores, {platform.platform()}",
        "versions": numbers,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_report(
    folder: Path,
    policies: Sequence[Evaluated],
    *,
    seed: int,
    device: torch.device,
    more: Records = NOTHING,
) -> Path:
    """Write the page.

    Args:
        folder: where; it exists.
        policies: at least one, evaluated in the same episodes.
        seed: of the episodes.
        device: what they ran on.
        more: what other programs have recorded.

    Raises:
        OSError: the disk refuses.
    """
    content = page(policies, provenance(policies, seed, device), more).encode()
    write_atomically(folder / PAGE, lambda file: file.write(content))
    return folder / PAGE


def page(policies: Sequence[Evaluated], facts: dict[str, Any], more: Records = NOTHING) -> str:
    """Return the page as HTML."""
    figures: dict[str, go.Figure] = {}
    sections = [*_sections(policies, figures), *_of_records(more, figures)]
    sections.append(("Provenance", tables.provenance(facts)))
    body = "".join(f"<section><h2>{title}</h2>\n{part}</section>\n" for title, part in sections)
    title = html.escape(
        f"{', '.join(one.name for one in policies)}: evaluation, score {V1.version}"
    )
    room = files("train_RL_agents.evaluation.report")
    style, script = ((room / name).read_text("utf-8") for name in ("report.css", "report.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f'{title}</title>\n<meta name="viewport" content="width=device-width">\n'
        f"<style>\n{style}</style></head>\n<body><h1>{title}</h1>\n{body}"
        f'<script type="application/json" id="report-data">{_data(policies, figures)}</script>\n'
        f'<script id="plotly">{get_plotlyjs()}</script>\n'
        f"<script>\n{script}</script></body></html>\n"
    )


def _sections(
    policies: Sequence[Evaluated], figures: dict[str, go.Figure]
) -> list[tuple[str, str]]:
    """Return titles and contents; the figures that they have room for are added to ``figures``."""

    def chart(name: str, figure: go.Figure) -> str:
        figures[name] = figure
        return f'<div id="{name}"></div>\n'

    pairs = ""
    if len(policies) > 1:
        name = html.escape(policies[0].name)
        pairs = f"<h3>Differences to {name} in the same episodes</h3>\n{tables.paired(policies)}"
    sections = [
        ("Success", tables.ends(policies) + "<p>Shares with 95% intervals.</p>\n" + pairs),
        ("Time and energy", chart("times", charts.times_and_energies(policies))),
        ("Separation", chart("separation", charts.separation(policies))),
    ]
    sections[-1] = ("Separation", sections[-1][1] + tables.near_misses(policies))
    shields = tables.shields(policies)
    if shields:
        sections.append(("Shield", shields))
    if isinstance(policies[0].results, ScenarioResults):
        sections[0] = ("Success", sections[0][1] + _folded(tables.ends(policies, single=True)))
        rules = tables.rules(policies) + tables.passing(policies)
        sections.append((f"Rules, score {V1.version}", rules))
        crowds = charts.crowds(policies)
        if crowds:
            sections.append(("Circle swaps", chart("crowds", crowds)))
        polar = charts.clock(policies)
        if polar:
            sections.append(("Around the Clock", chart("clock", polar)))
        grids = "".join(
            f"<h3>{html.escape(evaluated.name)}</h3>\n"
            + chart(f"grid-{index}", charts.trajectories(evaluated, index))
            for index, evaluated in enumerate(policies)
        )
        sections.append(("Trajectories", grids))
    return [("Playback", PLAYBACK), *sections]


def _of_records(more: Records, figures: dict[str, go.Figure]) -> Iterator[tuple[str, str]]:
    """Yield titles and contents of what other programs have recorded."""
    for index, record in enumerate(more.robustness):
        name = f"robustness-{index}"
        figures[name] = robustness.robustness(record)
        note = f"<p>Stage {record['stage']}, episodes of seed {record['seed']}, one thing changed. "
        settings = html.escape(" ".join(record.get("settings", ())))  # of all levels alike
        but = f", but for {settings}" if settings else ""
        note += f"Dotted: the interval of the same episodes undisturbed{but}.</p>\n"
        yield "Robustness", f'<div id="{name}"></div>\n{note}'
    if more.trainings:
        figures["seeds"] = seeds.curves(more.trainings)
        few = min(len(training.success) for training in more.trainings) < seeds.FEW
        note = f"<p>With fewer than {seeds.FEW} seeds these say little.</p>\n" if few else ""
        rows = tables.table(tables.SEEDS, seeds.rows_of(more.trainings))
        yield "Across seeds", f'<div id="seeds"></div>\n{rows}{note}'
    if more.benchmarks:
        figures["throughput"] = throughput.throughput(more.benchmarks)
        rows = tables.table(tables.MACHINES, [throughput.facts_of(*one) for one in more.benchmarks])
        yield "Throughput", f'<div id="throughput"></div>\n{rows}'


def _folded(content: str) -> str:
    return f"<details><summary>Every scenario</summary>\n{content}</details>\n"


def _data(policies: Sequence[Evaluated], figures: dict[str, go.Figure]) -> str:
    """Return what the script reads, as JSON that cannot end its element."""
    env = policies[0].config.env
    hull = {"length": env.vessel.length, "width": env.vessel.width, "radius": env.vessel.radius}
    data = {
        "policies": [evaluated.name for evaluated in policies],
        "colours": charts.COLOURS,
        "hull": hull,
        "range": env.perception.range,
        "near": V1.near_miss_m,
        "charts": {name: json.loads(figure.to_json()) for name, figure in figures.items()},
        "episodes": episodes_of(policies),
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
