"""Reads `TrainConfig` from files of tasks and agents, presets, ``--config`` and ``key=value``."""

from __future__ import annotations

import io
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, convert
from marinenav_env.files import read_parsed
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.agents.settings import AgentConfig, ReplayAgentConfig
from train_RL_agents.config.plain import (
    changed,
    check_names,
    config_from_plain,
    with_present_keys,
)
from train_RL_agents.config.published import PublishedSettings, from_published
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.config.shipped import shipped_folder

NAMED = ("env.vessel",)
"""Sections that a name stands for."""
KEYS_OF_A_RUN = (
    *("agent", "seed", "device", "threads", "total_steps", "worlds", "stack_k", "env"),
    *("curriculum", "exploration", "updates", "replay", "algorithm"),
    *("evaluation", "checkpoint", "log"),
)
"""What the settings that a run leaves have had in every version."""

CONFIGS = shipped_folder("configs")

OF_OMEGACONF = (ValueError, TypeError, LookupError, RecursionError)
"""What OmegaConf raises of overrides that contradict each other, besides its own errors."""


def load_config(
    *,
    task: str | None = None,
    agent: str | None = None,
    preset: str | None = None,
    path: str | Path | None = None,
    overrides: Sequence[str] = (),
) -> tuple[TrainConfig, tuple[int, ...], str | None]:
    """Read a run's settings; later sources win.

    They are: defaults, the task's file, the agent's file, preset, ``path``, overrides. With a
    published training JSON the task's file is left out, and that of an agent that was published.

    Args:
        task: name of the environment; None takes it from the files.
        agent: name of the algorithm; None takes it from the files.
        preset: name of a file in ``configs/``, without its suffix.
        path: a YAML or JSON file of settings, which may name a preset to begin with; or a published
            training JSON.
        overrides: ``key=value`` with dotted keys.

    Returns:
        The settings (with the first seed), all seeds, and the folder for the folders of runs, if a
        file names one.

    Raises:
        ConfigError: a file is missing or damaged, a key unknown, or a value wrong.
    """
    named = _named_layers(preset, path)
    layers = [*named.values(), read_overrides(overrides)]
    if "preset" in layers[-1]:
        raise ConfigError(f"preset is {layers[-1]['preset']!r}: give it as --preset NAME")
    for key, option in {"agent": agent, "task": task}.items():
        given = layers[-1].get(key, option)
        if option is not None and given != option:
            raise ConfigError(f"{key} is {given!r}: --{key} says {option!r}, give one of them")
    try:
        return _merged(layers, agent, task)
    except ConfigError:
        for count, where in enumerate(named, 1):
            _check_without_others(where, layers[:count], agent, task)
        raise


def task_named(
    *,
    task: str | None = None,
    preset: str | None = None,
    path: str | Path | None = None,
    overrides: Sequence[str] = (),
) -> str:
    """Return the name of the task that `load_config` takes from the same arguments.

    Raises:
        ConfigError: a file is missing or damaged, or there is no such task.
    """
    layers = [*_named_layers(preset, path).values(), read_overrides(overrides)]
    name = task or _last(layers, "task", TrainConfig.task)
    check_names(TrainConfig.agent, name)
    return name


def made_for(
    *, preset: str | None = None, path: str | Path | None = None
) -> tuple[str, str] | tuple[None, None]:
    """Return which of a preset and a file names an algorithm, and the name; None if none does.

    Raises:
        ConfigError: one is missing or damaged.
    """
    named = _named_layers(preset, path)
    naming = [(where, str(layer["agent"])) for where, layer in named.items() if "agent" in layer]
    return naming[-1] if naming else (None, None)


class FileOfWorlds(NamedTuple):
    """What a file of settings says of the worlds that a policy meets.

    Attributes:
        env: what it changes in the environment, as nested dictionaries.
        stages: of its evaluations; empty where it names none.
    """

    env: dict[str, Any]
    stages: tuple[Stage, ...]


def read_worlds(path: str | Path, policy: TrainConfig) -> FileOfWorlds:
    """Read from a file of a training, which `load_config` takes, what it says of the worlds.

    Args:
        path: the file, which may name a preset to begin with.
        policy: settings of the one that is to meet them.

    Raises:
        ConfigError: the file is missing or damaged, or made for another task; or anything in it is
            what no training would take. Without an algorithm's name `algorithm` may be any's.
    """
    layers = list(_named_layers(None, path).values())
    task = _last(layers, "task", policy.task)
    if task != policy.task:
        raise ConfigError(
            f"{path}: task is {task!r}, and the policy's {policy.task!r}: give a file of its task"
        )
    agent = None
    if all("agent" not in layer for layer in layers):
        agent, layers = policy.agent, [{**layer, "algorithm": {}} for layer in layers]
    try:
        config, _, _ = _merged(layers, agent, task)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    merged: Any = OmegaConf.to_container(OmegaConf.merge({"env": {}}, *map(dict, layers)))
    stages = "stages" in merged.get("evaluation", {})
    return FileOfWorlds(merged["env"], config.evaluation.stages if stages else ())


def _named_layers(preset: str | None, path: str | Path | None) -> dict[str, dict[str, Any]]:
    """Return what a preset and a file hold, by their names in messages.

    A file may name a preset to begin with, by its key ``preset``, and so may a preset.

    Raises:
        ConfigError: one is missing or damaged, or the file names another preset than is given.
    """
    named = {} if path is None else {str(path): _read(Path(path))}
    below, asks = next(iter(named.values()), {}).pop("preset", None), f"{path}: "
    if preset is not None and below not in (None, preset):
        raise ConfigError(
            f"{asks}preset is {below!r}, and --preset says {preset!r}: give one of them"
        )
    if preset is not None:
        below, asks = preset, ""
    while below is not None:
        values, name = preset_settings(below, asks), f"preset {below}"
        if name in named:
            raise ConfigError(
                f"{asks}preset is {below!r}, which begins with this one: leave it out"
            )
        named = {name: values, **named}
        below, asks = values.pop("preset", None), f"{name}: "
    return named


def _merged(
    layers: Sequence[dict[str, Any]], agent: str | None, task: str | None
) -> tuple[TrainConfig, tuple[int, ...], str | None]:
    """Return what `load_config` does, of what the files and the command line hold."""
    name = agent or _last(layers, "agent", TrainConfig.agent)
    task = task or _last(layers, "task", TrainConfig.task)
    check_names(name, task)
    published = any(isinstance(layer, PublishedSettings) for layer in layers)
    base = [] if published or any(map(_is_complete, layers)) else _task_layers(task, name)
    # Of an algorithm that was not published there is no other setting than the project's.
    own = [] if published and name in REPLAY_AGENTS else [_read(_agent_file(name))]
    # What a task needs comes first, but PPO's sizes suit the marine tasks: others keep theirs.
    rounds = AGENTS[name].learns_from == "rounds"
    layers = [*own, *base, *layers] if rounds else [*base, *own, *layers]
    _check_sections(layers)
    merged = OmegaConf.merge(*map(dict, layers))
    values: Any = OmegaConf.to_container(merged, resolve=True)
    values |= {"agent": name, "task": task}
    output = convert(str | None, values.pop("output", None), where="output")
    seeds = convert(tuple[int, ...], values.pop("seed", TrainConfig.seed), where="seed")
    if not seeds:
        raise ConfigError("seed is empty: give at least one")
    values["seed"] = seeds[0]
    return config_from_plain(values), seeds, output


def _check_sections(layers: Sequence[dict[str, Any]], within: str = "") -> None:
    """Check that what is a section in one of the layers is one in all, at any depth.

    Raises:
        ConfigError: it is something else in another, where they could not be merged.
    """
    for key in {key for layer in layers for key in layer}:
        given = [layer[key] for layer in layers if key in layer]
        sections = [value for value in given if isinstance(value, dict)]
        if sections and len(sections) < len(given):
            value = next(value for value in given if not isinstance(value, dict))
            parts = ", ".join(f"{within}{key}.{name}" for name in sections[0])
            named = f"{within}{key}" in NAMED and isinstance(value, str)
            name = f", or {within}{key}.name={value}" if named else ""
            raise ConfigError(
                f"{within}{key} is {value!r}: give a section, as other settings do ({parts}){name}"
            )
        _check_sections(sections, f"{within}{key}.")


def _check_without_others(
    where: str, layers: Sequence[dict[str, Any]], agent: str | None, task: str | None
) -> None:
    """Check a preset or a file, with those that it stands on, to name it where it is at fault.

    Raises:
        ConfigError: it is.
    """
    try:
        _merged(layers, agent, task)
    except ConfigError as error:
        own = _last(layers, "agent", agent)
        meant = "" if agent in (None, own) else f"; its settings are for --agent {own}"
        raise ConfigError(f"{where}: {error}{meant}") from error


def with_overrides(config: TrainConfig, overrides: Sequence[str]) -> TrainConfig:
    """Return the settings of a run with some changed by dotted ``key=value``.

    Raises:
        ConfigError: a key is unknown, or a value has a wrong type or is out of its bounds.
    """
    return changed(config, read_overrides(overrides))


def _last(layers: Sequence[Mapping[str, Any]], key: str, default: Any) -> Any:
    return next((layer[key] for layer in reversed(layers) if key in layer), default)


def presets() -> list[str]:
    """Return the names that ``--preset`` takes."""
    others = {name.lower().replace("-", "_") for name in AGENTS} | set(TASKS)
    return sorted(path.stem for path in CONFIGS.glob("*.yaml") if path.stem not in others)


def preset_settings(name: str, asks: str = "") -> dict[str, Any]:
    """Return what a preset's file says.

    Args:
        name: of the preset.
        asks: begins a message: the file that names it.

    Raises:
        ConfigError: there is no such preset.
    """
    if name not in presets():
        raise ConfigError(f"{asks}preset is {name!r}: choose one of {', '.join(presets())}")
    return _read(CONFIGS / f"{name}.yaml")


def _is_complete(values: Mapping[str, Any]) -> bool:
    """Whether settings are those of a run, which may be older than the file of its task."""
    return {*KEYS_OF_A_RUN} <= values.keys()


def _task_layers(name: str, agent: str) -> list[dict[str, Any]]:
    """Return the settings that trainings in a task need, if it has a file of them.

    What belongs to a replay of own transitions is left out for an agent without one.
    """
    path = CONFIGS / f"{name}.yaml"
    if not path.is_file():
        return []
    values, has_them = _read(path), issubclass(AGENTS[agent].Config, ReplayAgentConfig)
    if not has_them and isinstance(values.get("algorithm"), dict):
        of_a_replay = {f.name for f in fields(ReplayAgentConfig)} - {
            f.name for f in fields(AgentConfig)
        }
        kept = {k: v for k, v in values["algorithm"].items() if k not in of_a_replay}
        values = {**values, "algorithm": kept}
    return [values]


def _agent_file(name: str) -> Path:
    path = CONFIGS / f"{name.lower().replace('-', '_')}.yaml"
    if not path.is_file():
        raise ConfigError(
            f"no file {str(path)!r} with the settings of {name}, without which it would be another "
            "algorithm: install marinenav again, or add the file"
        )
    return path


def _read(path: Path) -> dict[str, Any]:
    values = read_parsed(path, parse_yaml, "give --config a file of YAML or JSON")
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds no settings: write 'key: value' lines")
    if {"agent_type", "total_timesteps", "training_schedule"} & values.keys():
        try:
            return from_published(values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
    return with_present_keys(values)


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text that a user wrote.

    Raises:
        Exception: it is none, or has a key twice, of which YAML's own reader drops the first.
    """
    return OmegaConf.to_container(OmegaConf.load(io.StringIO(text)), resolve=True)


def read_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of dotted ``key=value`` texts as nested dictionaries.

    Raises:
        ConfigError: a text is none of these, or cannot be read.
    """
    for override in overrides:
        if "=" not in override or override.startswith(("-", "=")):
            raise ConfigError(f"{override!r} is no setting: write key=value, with dotted keys")
    try:
        values = OmegaConf.to_container(OmegaConf.from_dotlist(list(overrides)), resolve=True)
    except (*OF_OMEGACONF, OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigError(f"{reprlib.repr(overrides)} cannot be read: {error}") from error
    keys = [override.partition("=")[0] for override in overrides]
    for key, override in zip(keys, overrides, strict=True):
        below = next((other for other in keys if other.startswith(f"{key}.")), None)
        if below and not override.partition("=")[2].lstrip().startswith("{"):
            raise ConfigError(
                f"{override!r} gives {key} a value, and {below} a part of it: give one, or the "
                f"value as {key}.name, which sections with presets have"
            )
    return with_present_keys(values)
