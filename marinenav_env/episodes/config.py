"""The simulator's configuration from an episode file, and back."""

from __future__ import annotations

import functools
import json
import operator
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from marinenav_env.config import EnvConfig, EpisodeConfig, ScenarioConfig, VesselTaskConfig
from marinenav_env.envs.state import NEAREST_OBJECTS
from marinenav_env.episodes.checks import Check, Entry
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.schema import ENV, FURTHER, PERCEPTION, vessel_keys
from marinenav_env.fields import ConfigError, build

NOT_IN_A_REPLAY = (
    *("scenario.start_margin", "scenario.buoy_margin", "scenario.placement_tries"),
    *("episode.max_steps", "episode.stop_on_collision", "episode.stop_on_end"),
)
"""Parameters without effect on a replay: the file says what stands where and who acted how long."""

UNUSED = {"angular_speed_max": 0.5 * np.pi, "angular_speed_penalty": -1.0}
"""A published penalty that the published simulator does not apply; files carry it all the same."""

T = TypeVar("T")


def config_of(episode: Episode) -> EnvConfig:
    """Return the configuration in which an episode took place, its robots never cut by a limit.

    Raises:
        ConfigError: the robots differ in a parameter, or one has a value that this simulator does
            not know; the message names the file, the field, the value and the remedy.
    """
    check_first_task(episode)
    config = _config_of_sections(episode.env, episode.robots, f"episode file {episode.name!r}")
    return replace(config, episode=EpisodeConfig(max_steps=episode.decisions + 1))


def check_recordable(config: EnvConfig, remedy: str = "") -> None:
    """Check that episode files hold every parameter that a replay depends on.

    Args:
        config: in which episodes are recorded.
        remedy: what to do for the recording; left out: the settings to give.

    Raises:
        ConfigError: a replay of the file would run with another value of a parameter.
    """
    read = _config_of_sections(*sections_of(config, seed=0, robots=1), "recording")
    check_replayed(config, read, remedy)


def check_replayed(config: VesselTaskConfig, read: VesselTaskConfig, remedy: str = "") -> None:
    """Check that a replay would take the same parameters.

    Args:
        config: in which episodes are recorded.
        read: what their files say of it.
        remedy: what to do for the recording; left out: the settings to give.

    Raises:
        ConfigError: a parameter would be another one.
    """
    pairs = zip(config.named_numbers(), read.named_numbers(), strict=True)
    differ = {
        re.sub(r"\.\d+$", "", name): None  # an entry of a range is set with the others
        for (name, value), (_, replayed) in pairs
        if value != replayed and name not in NOT_IN_A_REPLAY
    }
    if not differ:
        return
    given, taken = ([operator.attrgetter(key)(whole) for key in differ] for whole in (config, read))
    are = ", ".join(f"env.{key} is {value!r}" for key, value in zip(differ, given, strict=True))
    settings = (
        f" env.{key}={json.dumps(value, separators=(',', ':'))}"
        for key, value in zip(differ, taken, strict=True)
    )
    other = f", or {remedy or 'set' + ''.join(settings)} for the recording"
    if any(key.startswith("vessel.") for key in differ):
        other = ""  # it would be of another vessel
    raise ConfigError(
        f"{are}: the episode format has no place for it and a replay would take "
        f"{', '.join(map(repr, taken))}; record into NAME.npz, which holds any episode{other}"
    )


def _config_of_sections(env: dict[str, Any], robots: dict[str, Any], source: str) -> EnvConfig:
    """Return what the sections ``env`` and ``robots`` say of the configuration."""
    check, most = Check(source), robots["perception"]["max_obj_num"]
    if robots["detect_r"] != robots["r"]:
        check.fail("robots.detect_r", robots["detect_r"], "give the collision radius r")
    if set(most) != {NEAREST_OBJECTS}:
        remedy = f"give {NEAREST_OBJECTS}, the number this simulator observes"
        check.fail("robots.perception.max_obj_num", most, remedy)
    tables = ENV, vessel_keys("vessel" in robots), PERCEPTION
    groups = parameters_of(check, env, robots, tables)
    # All in a file has its place, so it has no margins: the published ones, or what the map allows.
    within = 0.25 * min(env["width"], env["height"])
    for name in ("start_margin", "buoy_margin"):
        groups["scenario"][name] = min(getattr(ScenarioConfig, name), within)
    return built(EnvConfig, groups, check)


def parameters_of(
    check: Check,
    env: dict[str, Any],
    robots: dict[str, Any],
    tables: tuple[dict[str, Entry], dict[str, Entry], dict[str, Entry]],
) -> dict[str, dict[str, Any]]:
    """Return the values of parameters by group and name.

    Args:
        check: fails with the file's name.
        env: the section.
        robots: the section.
        tables: keys of ``env``, of ``robots``, and of ``robots.perception``.

    Raises:
        ConfigError: the robots differ in a parameter.
    """
    of_env, of_robots, of_perception = tables
    own = {key: (robots[key], entry) for key, entry in of_robots.items() if entry.parameters}
    seen = robots["perception"]
    own |= {f"perception.{key}": (seen[key], entry) for key, entry in of_perception.items()}
    values: dict[str, Any] = {}
    for key, entry in of_env.items():
        values |= zip(entry.parameters, env[key] if entry.lengths else [env[key]], strict=False)
    for key, (given, entry) in own.items():
        if any(value != given[0] for value in given):
            remedy = "give all robots one value, this simulator knows no other"
            check.fail(f"robots.{key}", given, remedy)
        values |= zip(entry.parameters, given, strict=False)
    groups: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for parameter, value in values.items():
        group, _, name = parameter.partition(".")
        groups[group][name] = value
    return groups


def built(kind: type[T], groups: dict[str, dict[str, Any]], check: Check) -> T:
    """Return a configuration of these values.

    Raises:
        ConfigError: one is impossible; the message names the file too.
    """
    try:
        return build(kind, groups)
    except ConfigError as error:
        raise ConfigError(f"{check.source}: {error}") from error


def sections_of(
    config: EnvConfig, *, seed: int, robots: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``env`` and ``robots`` say of the configuration, for R equal robots."""
    env = {"seed": seed, "is_eval_env": True, "num_robots": robots, **UNUSED}
    own, implied = (robots_section(of, FURTHER, robots, {}) for of in (config, EnvConfig()))
    vessels = robots_section(config, vessel_keys(own != implied), robots, {})
    perception = robots_section(config, PERCEPTION, robots, {"max_obj_num": NEAREST_OBJECTS})
    return env_section(config, ENV, env), {**vessels, "perception": perception}


def env_section(
    config: VesselTaskConfig, table: Mapping[str, Entry], others: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the section ``env`` of a configuration; ``others`` holds what it does not say."""
    section = {}
    for key, entry in table.items():
        known = _values(config, entry) or [others[key]]
        section[key] = known if entry.lengths else known[0]
    return section


def robots_section(
    config: VesselTaskConfig, table: Mapping[str, Entry], robots: int, others: Mapping[str, Any]
) -> dict[str, Any]:
    """Return keys of ``robots`` for R equal robots; ``others`` holds more of them."""
    section = {key: _values(config, entry) * robots for key, entry in table.items()}
    return section | {key: [value] * robots for key, value in others.items()}


def _values(config: VesselTaskConfig, entry: Entry) -> list[Any]:
    found = [functools.reduce(getattr, name.split("."), config) for name in entry.parameters]
    return [list(value) if isinstance(value, tuple) else value for value in found]


def check_first_task(episode: Episode) -> None:
    """Refuse an episode of the ICRA 2024 task.

    Raises:
        ConfigError: it is one.
    """
    if episode.of_icra2024:
        raise ConfigError(
            f"episode file {episode.name!r} is of the ICRA 2024 task: it can be replayed and drawn;"
            " give a file of the first task"
        )
