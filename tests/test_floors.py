"""The floors of the house: who may import whom."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TRAINING_FLOORS = (
    ("device",),
    ("agents", "metrics"),
    ("replay",),
    ("config",),
    ("evaluation", "run"),
    ("policies",),
    ("training",),
    ("commands",),
)
"""Rooms of train_RL_agents from the ground up; a room imports its own floor and those below."""

FORBIDDEN = (
    ("marinenav_env", "train_RL_agents"),
    ("marinenav_env", "scripts"),
    ("train_RL_agents", "scripts"),
    ("marinenav_env.envs", "marinenav_env.episodes"),
    ("marinenav_env.envs", "marinenav_env.render"),
    ("marinenav_env.kernel", "marinenav_env.episodes"),
    ("marinenav_env.kernel", "marinenav_env.render"),
    ("marinenav_env.stepper", "marinenav_env.tracks"),
    ("marinenav_env.tracks", "marinenav_env.episodes"),
    ("marinenav_env.tracks", "marinenav_env.render"),
    ("marinenav_env.episodes", "marinenav_env.render"),
    ("marinenav_env.render", "marinenav_env.episodes"),
)
"""Pairs of places: the first does not import the second."""


@functools.cache
def imports() -> list[tuple[str, str]]:
    """(module, module it imports) of both packages."""
    pairs = []
    for package in ("marinenav_env", "train_RL_agents"):
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    pairs += [(module, f"{node.module}.{alias.name}") for alias in node.names]
                elif isinstance(node, ast.Import):
                    pairs += [(module, alias.name) for alias in node.names]
    return pairs


def inside(module: str, place: str) -> bool:
    return f"{module}.".startswith(f"{place}.")


@pytest.mark.parametrize(("place", "other"), FORBIDDEN)
def test_a_place_does_not_import_another(place, other):
    found = [(a, b) for a, b in imports() if inside(a, place) and inside(b, other)]
    assert not found


def test_no_room_imports_a_floor_above():
    floor = {room: i for i, rooms in enumerate(TRAINING_FLOORS) for room in rooms}
    wrong = []
    for module, imported in imports():
        here, there = (name.split(".")[1:2] for name in (module, imported))
        both_there = inside(module, "train_RL_agents") and inside(imported, "train_RL_agents")
        if both_there and here[0] in floor and floor[here[0]] < floor.get(there[0], 99):
            wrong.append((module, imported))
    assert not wrong


CORE = ROOT / "marinenav_env" / "csrc"
CORE_FLOORS = {
    "kernel": ("kernel",),
    "marine": ("kernel", "marine"),
    "classic": ("kernel", "classic"),
}
"""Rooms of the core and those whose headers they include."""


@pytest.mark.parametrize("room", CORE_FLOORS)
def test_a_room_of_the_core_includes_only_what_it_may(room):
    wrong = []
    for path in (CORE / room).rglob("*.*h"):
        for included in re.findall(r'^#include "(.+)"', path.read_text(), flags=re.MULTILINE):
            if included.split("/")[0] not in CORE_FLOORS[room]:
                wrong.append((path.name, included))
    assert not wrong
    assert {path.name for path in CORE.iterdir() if path.is_dir()} == set(CORE_FLOORS)


def test_every_room_has_a_floor():
    rooms = {path.parent.name for path in (ROOT / "train_RL_agents").glob("*/__init__.py")}
    assert rooms == {room for rooms in TRAINING_FLOORS for room in rooms}
