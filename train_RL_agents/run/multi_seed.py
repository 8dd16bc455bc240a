"""One configuration with several seeds, one after another, and their joint curve."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from marinenav_env.fields import ConfigError, convert
from marinenav_env.files import parse_json, read_parsed, write_json

SWEEP = "sweep.json"
CURVE = "success.png"


def seed_folder(output_dir: Path, seed: int) -> Path:
    """Return the folder of one seed's run."""
    return output_dir / f"seed_{seed}"


def sweep_of(folder: Path) -> Path | None:
    """Return the folder of the sweep that a run is a seed of, by a record that can be read."""
    folder = folder.absolute()
    whole, noted = folder.parent, None
    with suppress(ConfigError):
        noted = read_sweep(whole)
    seeds = [] if noted is None else noted[0]
    return whole if folder in [seed_folder(whole, seed) for seed in seeds] else None


def write_sweep(output_dir: Path, seeds: Sequence[int], config: dict[str, Any]) -> None:
    """Note the seeds and the settings of a sweep, so that it can be resumed."""
    output_dir.mkdir(parents=True, exist_ok=True)
    write_json(output_dir / SWEEP, {"seeds": list(seeds), "config": config})


def read_sweep(output_dir: Path) -> tuple[list[int], dict[str, Any]] | None:
    """Return the seeds and the settings of a sweep, or None if the folder holds none.

    Raises:
        ConfigError: its file is damaged or incomplete.
    """
    path = output_dir / SWEEP
    if not path.exists():
        return None

    def parse(text: str) -> tuple[list[int], dict[str, Any]]:
        values = parse_json(text)
        seeds, config = convert(tuple[int, ...], values["seeds"], where="seeds"), values["config"]
        if not seeds or not isinstance(config, dict):
            raise ValueError("no seeds, or no settings")
        return list(seeds), config

    return read_parsed(path, parse, f"put it back, or --resume each folder {output_dir}/seed_*")


def draw_curve(folders: Sequence[Path], label: str, path: Path) -> None:
    """Draw the joint curves of several runs: mean success, and the span over their seeds.

    Args:
        folders: the runs; what all of them have evaluated at the same step is joined.
        label: in the legend.
        path: where it goes.
    """
    # Here, as in `evaluation.figures`: most runs draw none.
    from marinenav_env.render.figures import save_figure
    from train_RL_agents.metrics.curves import plot_runs, read_runs

    save_figure(plot_runs([read_runs(folders, label)]), path, dpi=120)
