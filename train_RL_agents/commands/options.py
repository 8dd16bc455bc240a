"""Options of the command line, alike in every program: the worlds a policy meets, its shield."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from collections.abc import Sequence

from marinenav_env.config import TaskConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, build, plain
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.files import read_overrides, read_worlds
from train_RL_agents.config.plain import check_of_task
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.evaluation.scenarios.schema import Scenario

SETTING = re.compile(r"env\.[\w.]+=.*", re.DOTALL)
SHARE = 0.25
"""Of the worlds that a training begins with ``--scenario``, where nothing says another."""
SETTINGS_HELP = (
    "env.KEY=VALUE, anywhere, changes the environment, for example env.stream.speed=[0.3,0.3]; "
    "docs/physics.md lists the keys."
)


def stage_of(text: str) -> Stage | int:
    """Return the stage that ``--stage`` spells out, or the number of one of the task's own.

    Raises:
        argparse.ArgumentTypeError: it is neither a number nor four of them.
    """
    if text.isdecimal():
        return int(text)
    remedy = (
        "give the number of a stage of the task, or robots,vortices,buoys,distance such as 6,6,4,40"
    )
    if "," not in text:
        raise argparse.ArgumentTypeError(f"no stage is called {text!r}: {remedy}")
    try:
        return build(Stage, [float(number) for number in text.split(",")], where="stage")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: {remedy}") from error


def stages_of(given: Sequence[Stage | int], task: str) -> tuple[Stage, ...]:
    """Return the stages that ``--stage`` names, for a task.

    Raises:
        ConfigError: the task has no stage of that number.
    """
    own = TASKS[task].evaluation_stages
    for stage in given:
        if isinstance(stage, int) and not 1 <= stage <= len(own):
            raise ConfigError(
                f"stage is {stage}: give 1 to {len(own)} for a stage of the task {task!r}, or "
                "robots,vortices,buoys,distance such as 6,6,4,40"
            )
    return tuple(own[stage - 1] if isinstance(stage, int) else stage for stage in given)


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
        help=f"{stages}: the number of a stage of the task's evaluation, from 1, or "
        "robots,vortices,buoys,distance in m such as 6,6,4,40; may be given several times",
    )
    chosen.add_argument(
        "--scenario",
        metavar="NAME",
        help=f"{scenario}: a named set such as imazu, one of its cases such as imazu-05, or a YAML "
        "file (docs/evaluation.md)",
    )


def add_config_option(parser: argparse.ArgumentParser, taken: str) -> None:
    """Add ``--config``.

    Args:
        parser: where to.
        taken: the keys that are taken from the file, for the help.
    """
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"take {taken} from this file of settings, as train.py --config does, but no limits "
        "of episodes; the options of this command line win, and what else the file says has no "
        "effect",
    )


def split_settings(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without ``env.KEY=VALUE``, and these."""
    settings = [argument for argument in arguments if SETTING.fullmatch(argument)]
    return [argument for argument in arguments if not SETTING.fullmatch(argument)], settings


def world_settings(arguments: argparse.Namespace, task: str) -> list[str]:
    """Return the settings of a training that ``--stage`` and ``--scenario`` stand for.

    Raises:
        ConfigError: the task has no stage of that number.
    """
    settings = []
    if arguments.stage:
        rows = [list(plain(stage).values()) for stage in stages_of(arguments.stage, task)]
        settings += [f"{section}.stages={rows}" for section in ("curriculum", "evaluation")]
    if arguments.scenario:
        settings.append(f"scenarios.set={json.dumps(arguments.scenario)}")
    return settings


def with_share(config: TrainConfig, overrides: Sequence[str]) -> TrainConfig:
    """Return settings of a training in which the scenarios of ``--scenario`` have some worlds.

    Args:
        config: of the training, `overrides` included.
        overrides: of the command line; what they say of the share counts, also that it is 0, which
            a preset or a file says that has no scenarios.
    """
    values = read_overrides(overrides).get("scenarios")
    said = isinstance(values, dict) and "share" in values
    if said or config.scenarios.share:
        return config
    return dataclasses.replace(config, scenarios=dataclasses.replace(config.scenarios, share=SHARE))


def env_given(config: TrainConfig, settings: Sequence[str], path: str | None) -> TaskConfig:
    """Return the environment of a policy, changed by that of ``--config``, then by the settings.

    Raises:
        ConfigError: as `read_worlds` and `env_with`.
    """
    env = config.env
    if path is not None:
        values = read_worlds(path, config).env
        try:
            env = build(type(env), values, where="env", base=env)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
    return env_with(settings, config.task, env)


def env_with(settings: Sequence[str], task: str, env: TaskConfig) -> TaskConfig:
    """Return the environment of a task, changed by ``env.KEY=VALUE``.

    Raises:
        ConfigError: a key is unknown, or a value has a wrong type or is out of its bounds.
    """
    if not settings:
        return env
    values = read_overrides(settings)["env"]
    if not isinstance(values, dict):
        raise ConfigError(f"env is {values!r}: give its keys, such as env.stream.speed=[0,1]")
    check_of_task(values, task)
    changed: TaskConfig = build(type(env), values, where="env", base=env)
    return changed


def stages_given(arguments: argparse.Namespace, config: TrainConfig) -> tuple[Stage, ...]:
    """Return the stages of ``--stage``, else those of ``--config``; none where both name none.

    Raises:
        ConfigError: the task has no stage of that number, or the file is of no use.
    """
    if arguments.stage:
        return stages_of(arguments.stage, config.task)
    return read_worlds(arguments.config, config).stages if arguments.config else ()


def groups_in(settings: Sequence[str]) -> set[str]:
    """Return which groups of the environment settings ``env.KEY=VALUE`` change, however written."""
    values = read_overrides(settings)["env"] if settings else {}
    return set(values) if isinstance(values, dict) else set()


def scenarios_given(arguments: argparse.Namespace) -> list[Scenario]:
    """Return the scenarios of ``--scenario``.

    Raises:
        ConfigError: there are none of that name, or one has its own of what the settings give.
    """
    scenarios = find_scenarios(arguments.scenario)
    for scenario in scenarios:
        for name in sorted(groups_in(arguments.settings) & set(scenario.disturbances())):
            raise ConfigError(
                f"env.{name} is given in {' '.join(arguments.settings)!r}, and scenario "
                f"{scenario.name!r} has {name} of its own: leave one of them out"
            )
    return scenarios


def with_true_hulls(config: TrainConfig) -> TrainConfig:
    """Return a policy's settings with the hulls that its evaluation has, whatever its training had.

    What the larger ones would not fit into is no matter then.
    """
    true = dataclasses.replace(config.curriculum, hull_margin=0.0, fringe=0.0)
    return dataclasses.replace(config, curriculum=true)


def with_world_options(config: TrainConfig, arguments: argparse.Namespace) -> TrainConfig:
    """Return a policy's settings with the environment and the stages of the command line.

    Args:
        config: of the policy.
        arguments: has ``settings``, ``stage`` and ``config``.

    Raises:
        ConfigError: as `env_given` and `stages_given`.
    """
    changes: dict = {"env": env_given(config, arguments.settings, arguments.config)}
    if stages := stages_given(arguments, config):
        changes["evaluation"] = dataclasses.replace(config.evaluation, stages=stages, episodes=(1,))
    return dataclasses.replace(config, **changes)


def read_shield(overrides: Sequence[str] | None) -> ShieldConfig | None:
    """Return the settings that a command line gives as ``KEY=VALUE``; None for no shield.

    Raises:
        ConfigError: a setting is unknown or wrong.
    """
    if overrides is None:
        return None
    return build(ShieldConfig, read_overrides(list(overrides)), where="shield")
