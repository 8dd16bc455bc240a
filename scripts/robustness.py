"""Measures success with one thing changed at a time: water, wind, sensor, vessel, thrusters.

    python scripts/robustness.py --checkpoint pretrained/ac_iqn --json robustness.json

Each quantity has its undisturbed level and some more; those that a policy's task lacks are left
out. Settings of the command line hold in all worlds, but for what a level itself sets.
`evaluate.py --report FOLDER --report-robustness FILE` draws the record.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from rich.console import Console

from marinenav_env.config import TaskConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.fields import dotted_keys, require
from marinenav_env.files import write_json
from scripts.bench.machine import record_head
from train_RL_agents import evaluate as program
from train_RL_agents.commands.evaluation import check_together, evaluate
from train_RL_agents.commands.options import (
    SETTINGS_HELP,
    env_with,
    split_settings,
    with_true_hulls,
)
from train_RL_agents.commands.parser import Parser, output_file, tells
from train_RL_agents.config.files import preset_settings
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run.checkpoint import CheckpointError


class Quantity(NamedTuple):
    """What is changed.

    Attributes:
        name: with its unit.
        calm: the undisturbed level; None where the least level is a disturbance, too.
        levels: others.
        keys: settings that get the level; ``{}`` stands for it.
        scales_noise: whether it does nothing to a sensor without noise.
    """

    name: str
    calm: float | None
    levels: tuple[float, ...]
    keys: tuple[str, ...]
    scales_noise: bool = False

    def fits(self, env: TaskConfig) -> bool:
        """Return whether the environment has what is changed."""
        known = dotted_keys(type(env), prefix="env")
        if not all(key.partition("=")[0] in known for key in self.keys):
            return False
        return not self.scales_noise or env.perception.noisy


def everything() -> tuple[str, ...]:
    """Return the settings of the preset `randomised`, which takes all at once; not its prices."""
    groups = preset_settings("randomised")["env"]
    return tuple(
        f"env.{group}.{name}={json.dumps(value)}"
        for group, values in groups.items()
        if group != "reward"
        for name, value in values.items()
    )


KEPT = ("episodes", "success", "success_ci95", "collision", "timeout", "mean_time_s")
"""Of a row of `evaluate.py --json`."""

QUANTITIES = (
    Quantity("uniform current (m/s)", 0.0, (0.3, 0.6), ("env.stream.speed=[{0},{0}]",)),
    Quantity("wind (m/s)", 0.0, (3.0, 5.0, 8.0), ("env.wind.speed=[{0},{0}]",)),
    Quantity(
        "gusts of a wind of 5 m/s (m/s)",
        None,
        (1.0, 2.0),
        ("env.wind.speed=[5,5]", "env.wind.gust_std={0}"),
    ),
    Quantity("significant wave height (m)", 0.0, (0.1, 0.2, 0.3), ("env.waves.height={0}",)),
    Quantity("noise (times)", 1.0, (2.0, 4.0), ("env.perception.noise_factor=[{0},{0}]",), True),
    Quantity("noise of a distance (m)", 0.0, (0.2, 0.5), ("env.perception.range_std={0}",)),
    Quantity("seen a decision late (share)", 0.0, (0.5, 1.0), ("env.perception.delay={0}",)),
    Quantity("objects or rays missed (share)", 0.0, (0.1, 0.2), ("env.perception.miss={0}",)),
    Quantity("nothing seen (share of decisions)", 0.0, (0.1, 0.2), ("env.perception.dropout={0}",)),
    Quantity("range (times)", 1.0, (0.75, 0.5), ("env.perception.range_factor=[{0},{0}]",)),
    Quantity("mass (times)", 1.0, (0.7, 1.3), ("env.variation.mass=[{0},{0}]",)),
    Quantity(
        "thrust (times)",
        1.0,
        (0.7, 0.85),
        ("env.variation.left_thrust=[{0},{0}]", "env.variation.right_thrust=[{0},{0}]"),
    ),
    Quantity(
        "damping (times)",
        1.0,
        (0.7, 1.3),
        tuple(f"env.variation.{axis}_damping=[{{0}},{{0}}]" for axis in ("surge", "sway", "yaw")),
    ),
    Quantity("lag of thrusters (s)", 0.0, (0.3, 0.6), ("env.thrusters.lag={0}",)),
    Quantity(
        "a thruster lost (share of vessels)",
        0.0,
        (0.1, 0.3),
        ("env.thrusters.loss_probability={0}", "env.thrusters.loss_time=[0,20]"),
    ),
    Quantity("all at once, as the preset randomised has it (off or on)", 0.0, (1.0,), everything()),
)


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield for each policy a row of the undisturbed worlds and of each level of each quantity.

    All policies meet the worlds of the first.

    Raises:
        ConfigError: a policy cannot act in the worlds of the first.
    """
    check_together(_arguments(options, ()))
    first = options.checkpoint[0]
    config = with_true_hulls(load_policy(first)[1])
    env = env_with(options.settings, config.task, config.env)
    quantities = fitting(options.quantities, first, dataclasses.replace(config, env=env))
    options.stage = options.stage or str(len(TASKS[config.task].evaluation_stages))
    changes: list[tuple[str | None, float | None, tuple[str, ...]]] = [(None, None, ())]
    changes += [
        (quantity.name, level, tuple(key.format(level) for key in quantity.keys))
        for quantity in quantities
        for level in quantity.levels
    ]
    worlds: dict[tuple[str, ...], TrainConfig] = {}
    for path in options.checkpoint:
        policy = path if options.shield is None else f"{path}, shield"
        for name, level, settings in changes:
            arguments = _arguments(options, settings)
            evaluated = evaluate(arguments, path, Console(quiet=True), worlds.get(settings))
            worlds.setdefault(settings, evaluated.config)
            (stage,) = evaluated.as_json()["stages"]
            known = {"policy": policy, "quantity": name, "level": level, "settings": settings}
            yield {**known, **{key: stage[key] for key in KEPT}}


def _arguments(options: argparse.Namespace, settings: Sequence[str]) -> argparse.Namespace:
    """Return the command line of an evaluation with these settings too."""
    worlds = ["--episodes", str(options.episodes), "--seed", str(options.seed)]
    worlds += ["--stage", options.stage] if options.stage else []
    shield = [] if options.shield is None else ["--shield", *options.shield]
    changed = [*options.settings, *settings]  # of two of a key the last counts
    return program.parse(["--checkpoint", *options.checkpoint, *worlds, *changed, *shield])


def chosen(words: Sequence[str]) -> list[Quantity]:
    """Return the quantities with one of these words in their names; all for none."""
    return [q for q in QUANTITIES if not words or any(word in q.name for word in words)]


def fitting(words: Sequence[str], path: str, config: TrainConfig) -> list[Quantity]:
    """Return the chosen quantities that the environment of a policy has.

    Raises:
        ConfigError: it has none of them.
    """
    asked = chosen(words)
    found = [quantity for quantity in asked if quantity.fits(config.env)]
    named = ", ".join(quantity.name for quantity in asked)
    remedy = f"its task {config.task!r} has none of {named}; choose others or leave it out"
    require(bool(found), "checkpoint", path, remedy)
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    headline = __doc__.partition("\n")[0]
    parser = Parser(description=f"{headline} {SETTINGS_HELP}")
    parser.add_argument(
        "--checkpoint",
        nargs="+",
        required=True,
        metavar="PATH",
        help="judge these policies, as evaluate.py takes them, in the worlds of the first",
    )
    parser.add_argument(
        "--stage",
        metavar="N",
        help="change this stage of the first policy's task (default: its last evaluation stage)",
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=300,
        metavar="N",
        help="play so many episodes of each level (default %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=3, help="draw the episodes from this seed (default %(default)s)"
    )
    parser.add_argument(
        "--quantities",
        nargs="+",
        default=[],
        metavar="WORD",
        help="change only what has one of these words in its name",
    )
    parser.add_argument(
        "--shield",
        nargs="*",
        metavar="KEY=VALUE",
        help="guard the policies with a shield, with these settings where given (docs/shield.md)",
    )
    parser.add_argument(
        "--json",
        type=output_file(),
        required=True,
        metavar="FILE",
        help="write the record to this file",
    )
    rest, settings = split_settings(arguments)
    options = parser.parse_args(rest, argparse.Namespace(settings=settings))
    if len(set(options.checkpoint)) < len(options.checkpoint):
        parser.error(f"--checkpoint {' '.join(options.checkpoint)}: give each policy once")
    if not chosen(options.quantities):
        names = ", ".join(quantity.name for quantity in QUANTITIES)
        parser.error(f"--quantities {' '.join(options.quantities)}: none of {names} holds one")
    return options


@tells(CheckpointError, ValueError, OSError)
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all policies; the record grows row by row. Return 1 if one cannot be evaluated."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    record = {
        **record_head(torch.device("cpu")),
        "command": ["scripts/robustness.py", *arguments],
        "stage": options.stage or "last",
        "seed": options.seed,
        "settings": options.settings,
        "calm": {quantity.name: quantity.calm for quantity in chosen(options.quantities)},
    }
    rows: list[dict[str, Any]] = []
    for row in measure(options):
        rows.append(row)
        what = f"{row['quantity']} {row['level']:g}" if row["quantity"] else "undisturbed"
        time = row["mean_time_s"]
        print(f"{row['policy']}, {what}: {row['success']:.3f}, {time or float('nan'):.1f} s")
        write_json(options.json, {**record, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
