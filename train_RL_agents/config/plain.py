"""`TrainConfig` from nested dictionaries, as files, checkpoints and command lines give them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError, build, dotted_keys, require
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.schema import TrainConfig

KEYS_BEFORE = {"updates": {"replay_ratio": "samples_per_insert"}, "stages": {"cores": "vortices"}}
"""By section, the keys of older versions, which settings may still have."""


def config_from_plain(values: Mapping[str, Any]) -> TrainConfig:
    """Build a `TrainConfig` from nested dictionaries, as `fields.plain` gives them.

    Raises:
        ConfigError: a key is unknown, or a value has a wrong type or is out of its bounds.
    """
    values = with_present_keys(values)
    if not isinstance(values, Mapping):
        raise ConfigError(f"the settings are {reprlib.repr(values)}: give keys with their values")
    name = values.get("agent", TrainConfig.agent)
    task = values.get("task", TrainConfig.task)
    check_names(name, task)
    check_of_task(values.get("env"), task)
    try:
        base = TrainConfig(task=task, agent=name)
    except ConfigError as error:
        raise ConfigError(str(error).removeprefix("TrainConfig.")) from error
    return changed(base, values)


def changed(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """Return settings of the same task and agent, with what nested dictionaries give in its place.

    Raises:
        ConfigError: a key is unknown, or a value has a wrong type or is out of its bounds.
    """
    concrete = {"algorithm": AGENTS[config.agent].Config, "env": TASKS[config.task].config_type}
    return build(TrainConfig, values, concrete=concrete, base=config)


def check_of_task(values: Any, task: str, within: str = "") -> None:
    """Check that no key below `env`, at any depth, is one of other tasks alone.

    Raises:
        ConfigError: names the tasks that have it.
    """
    known = dotted_keys(TASKS[task].config_type)
    for key, value in values.items() if isinstance(values, Mapping) else ():
        dotted = f"{within}{key}"
        if dotted in known:
            check_of_task(value, task, f"{dotted}.")
            continue
        having = [name for name, kind in TASKS.items() if dotted in dotted_keys(kind.config_type)]
        if having:
            raise ConfigError(
                f"env.{dotted} is a setting of {' and '.join(having)}, and the task is {task}: "
                "give another --task, or leave it out"
            )


def config_of_file(values: Any, path: Path) -> TrainConfig:
    """Build a `TrainConfig` from what a file holds.

    Raises:
        ConfigError: as `config_from_plain`; the message names the file too.
    """
    try:
        return config_from_plain(values)
    except ConfigError as error:
        raise ConfigError(f"{path} holds settings of no use: {error}") from error


def with_present_keys(values: Any, section: str = "") -> Any:
    """Return nested settings with the keys of older versions under their names of today."""
    if isinstance(values, Mapping):
        before = KEYS_BEFORE.get(section, {})
        return {
            before.get(key, key): with_present_keys(value, str(key))
            for key, value in values.items()
        }
    if isinstance(values, list | tuple):
        return [with_present_keys(value, section) for value in values]
    return values


def check_names(agent: Any, task: Any) -> None:
    """Check that there are such an agent and such a task.

    Raises:
        ConfigError: there is not.
    """
    for key, name, known in (("agent", agent, AGENTS), ("task", task, TASKS)):
        there = isinstance(name, str) and name in known
        require(there, key, name, f"choose one of {', '.join(known)}")
