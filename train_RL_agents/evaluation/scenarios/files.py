"""Where scenarios come from: a named set, a named case, or a YAML file."""

from __future__ import annotations

from pathlib import Path

import yaml

from marinenav_env.fields import ConfigError, build, nearest
from train_RL_agents.evaluation.scenarios.schema import Scenario
from train_RL_agents.evaluation.scenarios.sets import named_sets


def find_scenarios(name: str) -> list[Scenario]:
    """Return the scenarios of a set, a case or a file.

    Raises:
        ConfigError: there is none of the name, or the file holds something else.
    """
    sets = named_sets()
    cases = {scenario.name: [scenario] for group in sets.values() for scenario in group}
    known = {**cases, **sets}
    if name in known:
        return known[name]
    if Path(name).is_file():
        return read_scenarios(Path(name))
    raise ConfigError(
        f"scenario is {name!r}, which is no set, case or file: the nearest name is "
        f"{nearest(name, known)!r}; sets are {', '.join(sets)}"
    )


def read_scenarios(path: Path) -> list[Scenario]:
    """Read a YAML file: a scenario, or a list of them.

    Raises:
        ConfigError: it is no YAML, or a field is missing, unknown or has a wrong value.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"scenario file {str(path)!r} cannot be read ({error})") from error
    entries = content if isinstance(content, list) else [content]
    if not entries:
        raise ConfigError(f"scenario file {str(path)!r} is empty: give at least one scenario")
    scenarios = [
        build(Scenario, entry, where=f"{path.name}[{i}]") for i, entry in enumerate(entries)
    ]
    names = [scenario.name for scenario in scenarios]
    if len(set(names)) < len(names):
        raise ConfigError(f"{path.name}: name is {names}: give every scenario one of its own")
    return scenarios
