"""Settings as frozen dataclasses: what a field may hold, and how plain data becomes them.

A field made with :func:`setting` carries its unit, its source and its bounds. :func:`build` turns
nested dictionaries, as YAML, JSON and command lines give them, into a dataclass; :func:`plain` is
the way back.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import operator
import reprlib
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

PUBLISHED = "published simulator"
"""Source of a value: see `marinenav_env.config`."""


class ConfigError(ValueError):
    """A setting is unknown or has a wrong value; the message names field, value and remedy."""


def require(condition: bool, name: str, value: object, remedy: str) -> None:
    """Refuse a value.

    Args:
        condition: what has to hold.
        name: dotted name of the field.
        value: what it has.
        remedy: what to give instead.

    Raises:
        ConfigError: the condition does not hold.
    """
    if not condition:
        raise ConfigError(f"{name} is {value!r}: {remedy}")


def setting(
    default: Any = dataclasses.MISSING,
    *,
    unit: str,
    source: str,
    above: float = -math.inf,
    low: float = -math.inf,
    high: float = math.inf,
    count: int | None = None,
    choices: Iterable[Any] = (),
) -> Any:
    """Return a dataclass field that knows its unit, its source and its allowed values.

    Args:
        default: value when nothing is given; without it the field has to be given.
        unit: unit of the value, ``-`` for a pure number.
        source: where the value, or the quantity, comes from.
        above: largest number that is too small.
        low: smallest allowed number.
        high: largest allowed number.
        count: how many entries a tuple has, two for the ends of a range; None allows any number.
        choices: the allowed values, when they can be listed.
    """
    metadata = {
        "unit": unit,
        "source": source,
        "above": above,
        "low": low,
        "high": high,
        "count": count,
        "choices": tuple(choices),
    }
    return dataclasses.field(default=default, metadata=metadata)


class Settings:
    """Base of the frozen dataclasses here: checks itself when built.

    Attributes:
        presets: instances with a field `name`, which plain data may give for the whole section, or
            among other values to give what these leave out.
    """

    presets: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        """Convert every field to its annotated type, and check it and what fields say together.

        Raises:
            ConfigError: a value has a wrong type, is outside its bounds or not among its choices,
                or does not go with another.
        """
        kind: type = type(self)
        for field, hint in _fields(kind):
            value = getattr(self, field.name)
            name = f"{kind.__name__}.{field.name}"
            if type(value) is not hint or hint is int:  # Python's integers have any size
                value = convert(hint, value, where=name)
                object.__setattr__(self, field.name, value)
            if field.metadata and value is not None:
                _check(field.metadata, name, value)
        self.check()

    def check(self) -> None:
        """Check what the fields say together; a subclass that has such rules states them here."""

    def require(self, condition: bool, name: str, remedy: str) -> None:
        """Refuse the value of the field ``name``, which may be dotted, unless the condition holds.

        Raises:
            ConfigError: the condition does not hold.
        """
        value = operator.attrgetter(name)(self)
        require(condition, f"{type(self).__name__}.{name}", value, remedy)

    def require_order(self, low: str, high: str, *, strict: bool = False) -> None:
        """Refuse the value of the field ``low`` above that of ``high``; if strict, at it too.

        Raises:
            ConfigError: names the field ``low``.
        """
        first, last = getattr(self, low), getattr(self, high)
        fits = first < last if strict else first <= last
        self.require(fits, low, f"must {'be below' if strict else 'not exceed'} {high} = {last}")


@functools.cache
def _fields(kind: type) -> list[tuple[dataclasses.Field, Any]]:
    """Return the fields of a dataclass with their annotated types."""
    hints = typing.get_type_hints(kind)
    return [(field, hints[field.name]) for field in dataclasses.fields(kind)]


def _check(rules: Mapping[str, Any], name: str, value: Any) -> None:
    """Check a value against the rules that `setting` gave its field; a tuple's entries singly."""
    choices, count = rules["choices"], rules["count"]
    if choices:
        require(value in choices, name, value, f"choose one of {_listed(choices)}")
    if count is not None and len(value) == 1 < count:
        lone = value[0]  # written without brackets, it seems
        such = ", ".join([str(lone)] * count)
        raise ConfigError(f"{name} is {lone!r}: give {count} values, such as [{such}]")
    if count is not None:
        require(len(value) == count, name, value, f"give {count} values")
    for number in value if isinstance(value, tuple) else (value,):
        if type(number) in (int, float) and (remedy := _remedy(rules, number)):
            raise ConfigError(f"{name} is {number!r}: {remedy}")
    if count == 2:
        require(value[0] <= value[1], name, value, "give the lower end first")


def _remedy(rules: Mapping[str, Any], number: float) -> str | None:
    """Return what to give instead of a number outside its bounds; None if it lies within."""
    unit = "" if rules["unit"] == "-" else f" [{rules['unit']}]"
    if not math.isfinite(number):
        return "give a finite number"
    if number <= rules["above"]:
        return f"give more than {rules['above']}{unit}"
    if number < rules["low"]:
        return f"give {rules['low']} or more{unit}"
    if number > rules["high"]:
        return f"give {rules['high']} or less{unit}"
    return None


def build(
    kind: type,
    values: Any,
    *,
    where: str = "",
    concrete: Mapping[str, type] | None = None,
    base: Any = None,
) -> Any:
    """Build the dataclass ``kind`` from nested dictionaries and lists.

    Args:
        kind: the dataclass.
        values: a mapping of field names, a list of the fields in order, the name of one of the
            presets of ``kind``, or an instance of ``kind``.
        where: dotted name of this part, for messages; empty at the root.
        concrete: for fields declared with a base class, the class to build, by field name.
        base: an instance of ``kind`` that gives what ``values`` leaves out; None takes the
            defaults of ``kind``.

    Raises:
        ConfigError: a key is unknown or missing, or a value has a wrong type or is out of its
            bounds.
    """
    if isinstance(values, kind):
        return values
    place = where or kind.__name__
    presets: Mapping[str, Any] = getattr(kind, "presets", {})
    if isinstance(values, str) and presets:
        values = {"name": values}
    hints = {**{field.name: hint for field, hint in _fields(kind)}, **(concrete or {})}
    names = list(hints)
    if isinstance(values, list | tuple):
        require(len(values) == len(names), place, values, f"give {len(names)} values {names}")
        values = dict(zip(names, values, strict=True))
    remedy = f"give a section with the keys {_listed(names)}"
    require(isinstance(values, Mapping), place, values, remedy)
    for key in values:
        if not isinstance(key, str):
            raise ConfigError(f"{place} has the key {key!r}: give names, of {_listed(names)}")
        if key not in names:
            closest = nearest(key, dotted_keys(kind, concrete=concrete))
            remedy = f"the nearest valid one is {_join(where, closest)!r}"
            if likeness(key, closest) < NEAR:
                remedy = f"choose one of {_listed(names)}"
            raise ConfigError(f"unknown setting {_join(where, key)!r}: {remedy}")
    name = values.get("name", getattr(base, "name", None)) if presets else None
    if name != getattr(base, "name", None) and isinstance(name, str):
        require(name in presets, _join(where, "name"), name, f"choose one of {_listed(presets)}")
        base = presets[name]
    bases = {field.name: _default(field) for field in dataclasses.fields(kind)}
    if base is not None:
        bases = {name: getattr(base, name) for name in names}
    for field in dataclasses.fields(kind) if base is None else ():
        if field.name not in values and _is_required(field):
            raise ConfigError(f"{_join(where, field.name)} is missing: give it")
    arguments = {
        name: convert(hints[name], value, where=_join(where, name), base=bases[name])
        for name, value in values.items()
    }
    try:
        return kind(**arguments) if base is None else dataclasses.replace(base, **arguments)
    except ConfigError as error:
        message = str(error).removeprefix(f"{kind.__name__}.")
        raise ConfigError(_join(where, message)) from error


def _is_required(field: dataclasses.Field) -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def convert(hint: Any, value: Any, *, where: str, base: Any = None) -> Any:
    """Convert ``value`` to the annotated type ``hint``, without guessing.

    Whole floats pass as ``int`` (YAML reads ``1e6`` as a float) and whole numbers as ``float``. For
    a dataclass ``base`` gives what ``value`` leaves out.

    Raises:
        ConfigError: the value is not of that type.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        remaining = [argument for argument in arguments if argument is not type(None)]
        return convert(remaining[0], value, where=where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            value = [value]
        if arguments[-1] is not Ellipsis:
            count = len(arguments)
            require(len(value) == count, where, value, f"give {count} values")
            kinds = arguments
        else:
            kinds = arguments[:1] * len(value)
        return tuple(
            convert(kind, entry, where=f"{where}[{i}]")
            for i, (kind, entry) in enumerate(zip(kinds, value, strict=True))
        )
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return build(hint, value, where=where, base=base if isinstance(base, hint) else None)
    return _scalar(hint, value, where)


_LARGEST = {int: 2**63 - 1, float: sys.float_info.max}


def _scalar(hint: Any, value: Any, where: str) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is bool and isinstance(value, bool):
        return value
    if is_number and hint in (int, float):
        if math.inf > abs(value) > _LARGEST[hint]:
            raise ConfigError(f"{where} is {reprlib.repr(value)}: its size is beyond any use")
        if hint is float or isinstance(value, int) or value.is_integer():
            return hint(value)
    if hint is str and isinstance(value, str):
        return value
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    raise ConfigError(
        f"{where} is {value!r} ({type(value).__name__}): give {kinds.get(hint, hint)}"
    )


def dotted_keys(
    kind: type, *, prefix: str = "", concrete: Mapping[str, type] | None = None
) -> list[str]:
    """Return the dotted names of all fields below ``kind``, sections included."""
    keys = []
    for field, hint in _fields(kind):
        key = _join(prefix, field.name)
        keys.append(key)
        section = (concrete or {}).get(field.name, hint)
        if isinstance(section, type) and dataclasses.is_dataclass(section):
            keys += dotted_keys(section, prefix=key)
    return keys


ELSEWHERE = {
    **{"lr": "learning_rate", "tau": "polyak", "discount": "gamma", "clip": "max_grad_norm"},
    **{"buffer_size": "capacity", "num_envs": "worlds", "total_timesteps": "total_steps"},
}
"""What other libraries call a setting, and the last part of its name here."""
NEAR = 0.6
"""Likeness from which an unknown key may be a misspelled one, as `difflib` has it."""


def nearest(key: str, known: Iterable[str]) -> str:
    """Return the entry of ``known`` most like ``key``."""
    return max(known, key=functools.partial(likeness, key))


def likeness(key: str, candidate: str) -> float:
    """Return from 0 to 1 how like two dotted names are, by the whole or by their last parts.

    A word of `ELSEWHERE` is like what it means.
    """
    meant, last = (name.rpartition(".")[2] for name in (key, candidate))
    whole = difflib.SequenceMatcher(None, key, candidate).ratio()
    return max(whole, difflib.SequenceMatcher(None, ELSEWHERE.get(meant, meant), last).ratio())


def plain(value: Any) -> Any:
    """Return settings as plain dictionaries, lists and scalars, fit for JSON and ``torch.save``."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    return value


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in values)
