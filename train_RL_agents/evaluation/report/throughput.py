"""Records of the benchmark on the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from train_RL_agents.evaluation.report.charts import colour_of, finished
from train_RL_agents.evaluation.report.records import read_rows

DASHES = {"step": "solid", "inference": "dash", "train": "dot"}
NEEDED = ("mode", "agent", "worlds", "resets", "robot_steps_per_s")


def read_benchmark(path: Path) -> dict[str, Any]:
    """Read a record of ``bench.py``.

    Raises:
        ConfigError: it cannot be read, or is no such record.
    """
    return read_rows(path, "report-benchmarks", "bench.py", NEEDED)


def lines_of(record: dict[str, Any]) -> dict[str, tuple[str, list[tuple[int, float]]]]:
    """Return name, and worlds and robot-steps/s, by mode, for the agent with most rows of each.

    Resets are those of a training, without vortices; the fastest row of each number of worlds.
    """
    lines: dict[str, tuple[str, list[tuple[int, float]]]] = {}
    for mode in DASHES:
        rows = [
            row
            for row in record["rows"]
            if row["mode"] == mode
            and row["resets"] == "natural"
            and not row.get("vortices", row.get("cores", 0))
        ]
        agents = [row["agent"] for row in rows]
        if not agents:
            continue
        agent = max(dict.fromkeys(agents), key=agents.count)
        fastest: dict[int, float] = {}
        for row in rows:
            if row["agent"] == agent:
                rate = row["robot_steps_per_s"]
                fastest[row["worlds"]] = max(fastest.get(row["worlds"], 0.0), rate)
        name = {"step": "step", "inference": f"+ {agent}", "train": f"+ learning {agent}"}[mode]
        lines[mode] = name, sorted(fastest.items())
    return lines


def throughput(records: Sequence[tuple[str, dict[str, Any]]]) -> go.Figure:
    """Draw robot-steps/s over worlds: step, with a policy, and with learning."""
    figure = go.Figure()
    for index, (label, record) in enumerate(records):
        for mode, (name, points) in lines_of(record).items():
            worlds, rates = zip(*points, strict=True)
            line = {"color": colour_of(index), "dash": DASHES[mode]}
            figure.add_scatter(
                x=worlds, y=rates, name=f"{label}: {name}", line=line, mode="lines+markers"
            )
    figure.update_xaxes(title="worlds", type="log")
    figure.update_yaxes(title="robot-steps/s", type="log")
    return finished(figure, 420)


def facts_of(label: str, record: dict[str, Any]) -> tuple[str, ...]:
    """Return label, machine and commit of a record."""
    machine = record.get("machine") or {}
    named = machine.get("gpu") or machine.get("cpu") or "unknown"
    threads = machine.get("cpu_threads")
    return (
        label,
        f"{named}, {threads} threads" if threads else str(named),
        str(record.get("commit")),
    )
