"""One configuration with several seeds, one after another, and their joint curve."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from marinenav_env.files import write_json
from marinenav_env.render.figures import save_figure
from train_RL_agents.metrics.writer import METRICS, read_metrics

SWEEP = "sweep.json"
CURVE = "success.png"


def seed_folder(output_dir: Path, seed: int) -> Path:
    """Return the folder of one seed's run."""
    return output_dir / f"seed_{seed}"


def write_sweep(output_dir: Path, seeds: Sequence[int], config: dict[str, Any]) -> None:
    """Note the seeds and the settings of a sweep, so that it can be resumed."""
    output_dir.mkdir(parents=True, exist_ok=True)
    write_json(output_dir / SWEEP, {"seeds": list(seeds), "config": config})


def read_sweep(output_dir: Path) -> tuple[list[int], dict[str, Any]] | None:
    """Return the seeds and the settings of a sweep, or None if the folder holds none."""
    path = output_dir / SWEEP
    if not path.exists():
        return None
    values = json.loads(path.read_text())
    return values["seeds"], values["config"]


def joint_curve(folders: Sequence[Path]) -> list[dict[str, float]]:
    """Join the evaluations of several runs.

    Args:
        folders: the runs; what they have evaluated at the same step is joined.

    Returns:
        Per step in which every run has an evaluation: the step, the mean success over runs, the
        lowest and the highest, and the mean time since the start [s].
    """
    curves = []
    for folder in folders:
        records = [r for r in read_metrics(folder / METRICS) if r["mode"] == "evaluation"]
        curves.append({record["step"]: record for record in records})
    points = []
    for step in sorted(set.intersection(*(set(curve) for curve in curves))):
        success = [curve[step]["success"] for curve in curves]
        point = {"step": step, "runs": len(curves), "success": float(np.mean(success))}
        point |= {"lowest": min(success), "highest": max(success)}
        points.append(point | {"elapsed_s": float(np.mean([c[step]["elapsed_s"] for c in curves]))})
    return points


def draw_curve(points: Sequence[dict[str, float]], title: str, path: Path) -> None:
    """Draw the mean success over runs, and the span from the lowest to the highest."""
    steps = [point["step"] for point in points]
    with mpl.rc_context({"font.size": 10}):
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.plot(steps, [point["success"] for point in points], marker="o")
        lowest, highest = ([p[key] for p in points] for key in ("lowest", "highest"))
        axes.fill_between(steps, lowest, highest, alpha=0.25)
        axes.set(xlabel="decisions, summed over worlds", ylabel="episode success", title=title)
        axes.set_ylim(0.0, 1.0)
        axes.grid(visible=True, alpha=0.3)
        save_figure(figure, path, dpi=120)
