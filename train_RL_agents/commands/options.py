"""Options of the command line that say which worlds a policy meets, alike in every program."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from collections.abc import Sequence

from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.fields import ConfigError, build, plain
from train_RL_agents.config.files import read_overrides
from train_RL_agents.config.schema import TrainConfig

SETTING = re.compile(r"env\.[\w.]+=.*", re.DOTALL)
SHARE = 0.25
"""Of the worlds that a training begins with ``--scenario``, where nothing else is said."""
SETTINGS_HELP = (
    "env.KEY=VALUE, anywhere, changes the environment, for example env.stream.speed=[0.3,0.3]; "
    "docs/physics.md lists the keys."
)


def stage_of(text: str) -> Stage:
    """Return the stage that ``--stage`` names.

    Raises:
        argparse.ArgumentTypeError: it is neither a published one nor four numbers.
    """
    published = {str(i + 1): stage for i, stage in enumerate(PUBLISHED_STAGES)}
    if text in published:
        return published[text]
    remedy = (
        f"give 1 to {len(published)} for a published stage, or robots,vortices,buoys,distance such "
        "as 6,6,4,40"
    )
    if "," not in text:
        raise argparse.ArgumentTypeError(f"no published stage is called {text!r}: {remedy}")
    try:
        return build(Stage, [float(number) for number in text.split(",")], where="stage")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: {remedy}") from error


def add_world_options(parser: argparse.ArgumentParser, *, stages: str, scenario: str) -> None:
    """Add ``--stage`` and ``--scenario``.

    Args:
        parser: where to.
        stages: what is done in the stages, for the help.
        scenario: what is done in scenarios.
    """
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--stage",
        type=stage_of,
        action="append",
        metavar="N",
        help=f"{stages}: a published stage from 1 to {len(PUBLISHED_STAGES)}, or "
        "robots,vortices,buoys,distance in m such as 6,6,4,40; may be given several times",
    )
    chosen.add_argument(
        "--scenario",
        metavar="NAME",
        help=f"{scenario}: a named set such as imazu, one of its cases such as imazu-05, or a YAML "
        "file (docs/evaluation.md)",
    )


def split_settings(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without ``env.KEY=VALUE``, and these."""
    settings = [argument for argument in arguments if SETTING.fullmatch(argument)]
    return [argument for argument in arguments if not SETTING.fullmatch(argument)], settings


def world_settings(arguments: argparse.Namespace) -> list[str]:
    """Return the settings of a training that ``--stage`` and ``--scenario`` stand for."""
    settings = []
    if arguments.stage:
        rows = [list(plain(stage).values()) for stage in arguments.stage]
        settings += [f"{section}.stages={rows}" for section in ("curriculum", "evaluation")]
    if arguments.scenario:
        settings += [f"scenarios.set={json.dumps(arguments.scenario)}", f"scenarios.share={SHARE}"]
    return settings


def with_world_options(config: TrainConfig, arguments: argparse.Namespace) -> TrainConfig:
    """Return a policy's settings with the environment and the stages of the command line.

    Args:
        config: of the policy.
        arguments: has ``settings`` and ``stage``.

    Raises:
        ConfigError: a key is unknown, or a value has a wrong type or is out of its bounds.
    """
    changes: dict = {}
    if arguments.settings:
        values = read_overrides(arguments.settings)["env"]
        if not isinstance(values, dict):
            raise ConfigError(f"env is {values!r}: give its keys, such as env.stream.speed=[0,1]")
        changes["env"] = build(type(config.env), values, where="env", base=config.env)
    if arguments.stage:
        evaluation = dataclasses.replace(
            config.evaluation, stages=tuple(arguments.stage), episodes=(1,)
        )
        changes["evaluation"] = evaluation
    return dataclasses.replace(config, **changes)
