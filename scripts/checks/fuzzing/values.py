"""Values for settings: allowed ones, ones at or beyond the bounds, and something else."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from train_RL_agents.config.plain import config_from_plain

ODD = (
    *(10**400, -(10**400), 2**63, -(2**63) - 1, 2**31, 1e300, -1e300, 5e-324, 1e-30, -0.0),
    *(math.nan, math.inf, -math.inf, "", "nan", "1e3", "null", "true", "0x10", "1_000", "12:30"),
    *("${x}", "${", "a.b", "-1", "[1", "{a: 1", " ", "\n"),
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(ODD), TEXT)
JUNK = st.recursive(
    st.one_of(SCALAR, st.dates(), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(TEXT, st.integers()), inner, max_size=2),
    ),
    max_leaves=4,
)


class Leaf(typing.NamedTuple):
    """A setting: its type, its rules as `setting` keeps them, and its default."""

    hint: Any
    rules: Mapping[str, Any]
    default: Any


def leaves(config: Any, prefix: str = "") -> dict[str, Leaf]:
    """Return the settings below a configuration by their dotted names, sections included."""
    found = {}
    hints = typing.get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value, key = getattr(config, field.name), f"{prefix}{field.name}"
        found[key] = Leaf(hints[field.name], field.metadata, value)
        if dataclasses.is_dataclass(value):
            found |= leaves(value, f"{key}.")
    return found


@functools.cache
def settings_of(agent: str, task: str) -> dict[str, Leaf]:
    """Return all settings of an algorithm in a task; empty where they do not go together."""
    try:
        return leaves(config_from_plain({"agent": agent, "task": task}))
    except ConfigError:
        return {}


def fitting(hint: Any, rules: Mapping[str, Any], default: Any) -> SearchStrategy:
    """Return values that a field's type and bounds allow."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(st.none(), fitting(inner[0], rules, default))
    if rules.get("choices"):
        return st.sampled_from(rules["choices"])
    if origin is tuple and inner[0] is Stage:
        small = st.tuples(
            st.integers(0, 6), st.integers(0, 4), st.integers(0, 4), st.floats(0.0, 60.0)
        )
        return st.lists(small.map(list), max_size=3)
    if origin is tuple:
        size = rules.get("count") or (None if inner[-1] is Ellipsis else len(inner))
        entry = fitting(inner[0], {**rules, "count": None}, None)
        return st.lists(entry, min_size=size or 0, max_size=size or 3)
    if hint is bool:
        return st.booleans()
    if hint in (int, float):
        low, high = max(rules["low"], rules["above"]), rules["high"]
        size = abs(default) if isinstance(default, int | float) and default else 1.0
        low, high = max(low, -3 * size), min(high, 3 * size)
        if low > high:
            low, high = high, low
        if hint is int:
            return st.integers(math.ceil(low), max(math.ceil(low), math.floor(high)))
        return st.floats(low, high)
    return TEXT


def edges(rules: Mapping[str, Any]) -> SearchStrategy:
    """Return numbers at a field's bounds, and next to them."""
    bounds = [rules[name] for name in ("low", "high", "above") if name in rules]
    near = [
        x
        for b in bounds
        if math.isfinite(b)
        for x in (b, b - 1, b + 1, math.nextafter(b, -math.inf))
    ]
    return st.sampled_from([*near, 0, 1, -1, 0.5])


@functools.cache
def value_for(agent: str, task: str, key: str) -> SearchStrategy:
    """Return values to give a setting."""
    leaf = settings_of(agent, task)[key]
    if dataclasses.is_dataclass(leaf.default):
        return JUNK
    others = st.one_of(edges(leaf.rules), SCALAR, JUNK)
    good = fitting(leaf.hint, leaf.rules, leaf.default)
    return st.integers(0, 9).flatmap(lambda number: good if number else others)
