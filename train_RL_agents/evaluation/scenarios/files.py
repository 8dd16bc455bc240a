"""Where scenarios come from: a named set, a named case, or a file."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from marinenav_env.episodes.config import check_first_task
from marinenav_env.episodes.format import Episode, read_episode
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.fields import ConfigError, build, nearest
from marinenav_env.files import read_parsed
from train_RL_agents.config.files import parse_yaml
from train_RL_agents.evaluation.scenarios.schema import Buoy, Scenario, Vessel, Vortex
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
    """Read a YAML file, a scenario or a list of them, or a recorded episode (``.json``).

    Raises:
        ConfigError: the file cannot be read, or a field is missing, unknown, given twice or has a
            wrong value.
    """
    if path.suffix == ".json":
        return [scenario_of(read_episode(path), path.stem)]
    content = read_parsed(path, parse_yaml, "give one of YAML", "scenario file")
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


def scenario_of(episode: Episode, name: str) -> Scenario:
    """Return the start of a recorded episode as a scenario; the policy steers all vessels.

    Raises:
        ConfigError: it is of the ICRA 2024 task.
    """
    check_first_task(episode)
    tracks = tracks_of(episode)
    columns = ("x", "y", "goal_x", "goal_y", "heading", "vx_water", "vy_water")
    starts = torch.stack([tracks.field(column)[0, 0] for column in columns], 1).tolist()
    vessels = [
        Vessel(
            (x, y),
            (goal_x, goal_y),
            heading_deg=math.degrees(heading) % 360.0,
            speed=math.hypot(vx, vy),
        )
        for x, y, goal_x, goal_y, heading, vx, vy in starts
    ]
    buoys = [Buoy((x, y), radius) for x, y, radius in tracks.buoys[0].tolist()]
    vortices = [Vortex((x, y), circulation) for x, y, circulation in tracks.vortices[0].tolist()]
    return Scenario(name, tuple(vessels), tuple(buoys), tuple(vortices))
