"""Settings as frozen dataclasses: what a field may hold, and how plain data becomes them.

A field made with :func:`setting` carries its unit, its source and its bounds. :func:`build` turns
nested dictionaries, as YAML, JSON and command lines give them, into a dataclass; :func:`plain` is
the way back.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any


class ConfigError(ValueError):
    """A setting is unknown or has a wrong value; the message names field, value and remedy."""


def setting(
    default: Any,
    *,
    unit: str,
    source: str,
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[Any] = (),
) -> Any:
    """Return a dataclass field that knows its unit, its source and its allowed values.

    Args:
        default: value when nothing is given.
        unit: unit of the value, ``-`` for a pure number.
        source: where the value, or the quantity, comes from.
        low: smallest allowed value, itself allowed.
        high: largest allowed value, itself allowed.
        choices: the allowed values, when they can be listed.
    """
    metadata = {"unit": unit, "source": source, "low": low, "high": high, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata=metadata)


class Settings:
    """Base of the frozen dataclasses here: checks every field against its bounds when built."""

    def __post_init__(self) -> None:
        """Check the bounds that the fields state.

        Raises:
            ConfigError: a value is outside its bounds or not among its choices.
        """
        for field in dataclasses.fields(self):
            _check_bounds(field, getattr(self, field.name))


def _check_bounds(field: dataclasses.Field, value: Any) -> None:
    low, high = field.metadata.get("low"), field.metadata.get("high")
    choices = field.metadata.get("choices", ())
    if choices and value not in choices:
        raise ConfigError(f"{field.name} is {value!r}: choose one of {_listed(choices)}")
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if not math.isfinite(number):
            raise ConfigError(f"{field.name} is {number!r}: give a finite number")
        if low is not None and number < low:
            raise ConfigError(f"{field.name} is {number!r}: give {low} or more")
        if high is not None and number > high:
            raise ConfigError(f"{field.name} is {number!r}: give {high} or less")


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
        values: a mapping of field names, a list of the fields in order, or an instance of ``kind``.
        where: dotted name of this part, for messages; empty at the root.
        concrete: for fields declared with a base class, the class to build, by field name.
        base: an instance of ``kind`` that gives what ``values`` leaves out; None takes the
            defaults of ``kind``.

    Raises:
        ConfigError: a key is unknown, or a value has a wrong type or is out of its bounds.
    """
    if isinstance(values, kind):
        return values
    hints = {**typing.get_type_hints(kind), **(concrete or {})}
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    if isinstance(values, list | tuple):
        if len(values) != len(names):
            raise ConfigError(
                f"{where or kind.__name__} is {values!r}: give {len(names)} values {names}"
            )
        values = dict(zip(names, values, strict=True))
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{where or kind.__name__} is {values!r}: give a section with the keys {_listed(names)}"
        )
    for key in values:
        if key not in names:
            known = dotted_keys(kind, concrete=concrete)
            raise ConfigError(_unknown(key, where, known))
    bases = {field.name: _default(field) for field in dataclasses.fields(kind)}
    if base is not None:
        bases = {name: getattr(base, name) for name in names}
    arguments = {
        name: convert(hints[name], value, where=_join(where, name), base=bases[name])
        for name, value in values.items()
    }
    try:
        return kind(**arguments) if base is None else dataclasses.replace(base, **arguments)
    except ConfigError as error:
        section, _, own = where.rpartition(".")
        place = section if str(error).startswith(f"{own}.") else where
        raise ConfigError(_join(place, str(error))) from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where or kind.__name__}: {error}") from error


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
            if len(value) != len(arguments):
                raise ConfigError(f"{where} is {value!r}: give {len(arguments)} values")
            pairs = zip(arguments, value, strict=True)
        else:
            pairs = ((arguments[0], entry) for entry in value)
        return tuple(
            convert(kind, entry, where=f"{where}[{i}]") for i, (kind, entry) in enumerate(pairs)
        )
    if dataclasses.is_dataclass(hint):
        return build(hint, value, where=where, base=base if isinstance(base, hint) else None)
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and is_number and float(value).is_integer():
        return int(value)
    if hint is float and is_number:
        return float(value)
    if hint is str and isinstance(value, str):
        return value
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    raise ConfigError(
        f"{where} is {value!r} ({type(value).__name__}): give {wanted.get(hint, hint)}"
    )


def dotted_keys(
    kind: type, *, prefix: str = "", concrete: Mapping[str, type] | None = None
) -> list[str]:
    """Return the dotted names of all fields below ``kind``, sections included."""
    hints = {**typing.get_type_hints(kind), **(concrete or {})}
    keys = []
    for field in dataclasses.fields(kind):
        key = _join(prefix, field.name)
        keys.append(key)
        if dataclasses.is_dataclass(hints[field.name]):
            keys += dotted_keys(hints[field.name], prefix=key)
    return keys


def nearest(key: str, known: Iterable[str]) -> str:
    """Return the entry of ``known`` most like ``key``, by its whole name or by its last part."""

    def likeness(candidate: str) -> float:
        last = candidate.rpartition(".")[2]
        whole = difflib.SequenceMatcher(None, key, candidate).ratio()
        return max(whole, difflib.SequenceMatcher(None, key.rpartition(".")[2], last).ratio())

    return max(known, key=likeness)


def plain(value: Any) -> Any:
    """Return settings as plain dictionaries, lists and scalars, fit for JSON and ``torch.save``."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields if field.init}
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    return value


def _unknown(key: str, where: str, known: list[str]) -> str:
    closest = _join(where, nearest(key, known))
    return f"unknown setting {_join(where, key)!r}: the nearest valid one is {closest!r}"


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in values)
