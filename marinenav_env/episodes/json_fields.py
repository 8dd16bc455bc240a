"""Checked reading of JSON: every complaint names the file, the field, the value and the remedy."""

from __future__ import annotations

import functools
import json
import math
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn, Self, get_type_hints

import numpy as np

Shape = tuple[int | None, ...]
"""Lengths of the nested lists, outermost first; None takes any length."""


@dataclass(frozen=True)
class Rule:
    """Which numbers a field accepts.

    Attributes:
        remedy: what to do about a number that the rule refuses, for the message.
        low: smallest accepted number.
        high: largest accepted number.
        open_low: whether ``low`` itself is refused.
        whole: whether only whole numbers (JSON integers) are accepted.
    """

    remedy: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    whole: bool = False

    def accepts(self, values: np.ndarray) -> np.ndarray:
        """Return elementwise whether finite ``values`` of any shape satisfy the rule."""
        kind_fits = not self.whole or values.dtype.kind in "iu"
        above = values > self.low if self.open_low else values >= self.low
        return above & (values <= self.high) & kind_fits & np.isfinite(values)


FINITE = Rule("give a finite number")
POSITIVE = Rule("give a finite number above 0", low=0.0, open_low=True)
NOT_NEGATIVE = Rule("give a finite number, 0 or more", low=0.0)
WHOLE = Rule("give a whole number", whole=True)
COUNT = Rule("give a whole number, 1 or more", low=1, whole=True)
BIT = Rule("give 0 or 1", low=0, high=1, whole=True)
UNIT = Rule("give a number from -1 to 1", low=-1.0, high=1.0)


def load_json(path: Path, what: str) -> object:
    """Return the parsed content of a JSON file.

    Args:
        path: the file.
        what: what the file should be, for the message (for example ``episode file``).

    Raises:
        ValueError: the file cannot be read, is not UTF-8 text or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"{what} {str(path)!r} cannot be read ({reason}): give the path of a readable file"
        ) from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"{what} {str(path)!r} is damaged or no JSON ({error}): write or copy it again"
        ) from error


class JsonSection:
    """One JSON object, from which fields are taken by key and checked.

    Args:
        data: the parsed JSON value, which has to be an object.
        source: the file, as messages name it.
        path: dotted place of the object in the file, empty for the whole file.

    Raises:
        ValueError: ``data`` is no JSON object.
    """

    def __init__(self, data: object, source: str, path: str = "") -> None:
        """Take the object; see the class."""
        self.source = source
        self.path = path
        if not isinstance(data, dict):
            self.fail("", data, "give a JSON object")
        self.data = data

    def fail(self, key: str, value: object, remedy: str) -> NoReturn:
        """Raise the ValueError that names the file, the field ``key``, its value and the remedy."""
        field = f"{self.path}.{key}".strip(".") or "the whole file"
        raise ValueError(f"{self.source}: {field} is {reprlib.repr(value)}: {remedy}")

    def expect_keys(self, required: Iterable[str], optional: Iterable[str] = ()) -> None:
        """Check that every required key is there and no unknown one is.

        Raises:
            ValueError: a key is missing, or one is unknown.
        """
        required, optional = tuple(required), tuple(optional)
        inside = f" in {self.path!r}" if self.path else ""
        for key in required:
            if key not in self.data:
                raise ValueError(
                    f"{self.source}: key {key!r} is missing{inside}: add it, "
                    f"the format needs {', '.join(required)}"
                )
        for key in self.data:
            if key not in required and key not in optional:
                raise ValueError(
                    f"{self.source}: key {key!r}{inside} is unknown: remove or rename it, "
                    f"the format has {', '.join(required + optional)}"
                )

    def section(self, key: str) -> JsonSection:
        """Return the JSON object under ``key``."""
        return JsonSection(self.data[key], self.source, f"{self.path}.{key}".strip("."))

    def flag(self, key: str) -> bool:
        """Return the boolean under ``key``."""
        value = self.data[key]
        if not isinstance(value, bool):
            self.fail(key, value, "give true or false")
        return value

    def array(self, key: str, shape: Shape, rule: Rule) -> np.ndarray:
        """Return the nested lists of numbers under ``key`` as an array of int64 or float64.

        Args:
            key: name of the field.
            shape: expected lengths, outermost first.
            rule: which numbers are accepted.

        Raises:
            ValueError: a list has a wrong length, or an element is no number that the rule accepts.
        """
        return self.array_of(key, self.data[key], shape, rule)

    def array_of(self, key: str, value: object, shape: Shape, rule: Rule) -> np.ndarray:
        """Check ``value``, which stands at ``key``, as :meth:`array` does."""
        values = _as_array(value)
        kind = values.dtype.kind
        fits = kind in "iuf" and _fits(values.shape, shape) and not _holds_flag(value)
        if fits and bool(np.all(rule.accepts(values))):
            return values
        if values.size == 0 and kind == "f" and _is_empty(value, shape):
            lengths = [length or 0 for length in shape]
            return np.zeros(lengths, dtype=np.int64 if rule.whole else np.float64)
        return self._explain(key, value, shape, rule)

    def _explain(self, key: str, value: object, shape: Shape, rule: Rule) -> NoReturn:
        """Raise for the first element of ``value`` that does not fit."""
        if shape:
            if not isinstance(value, list):
                self.fail(key, value, "give a list")
            if shape[0] is not None and len(value) != shape[0]:
                self.fail(f"{key} (length {len(value)})", value, f"give {shape[0]} entries")
            for index, element in enumerate(value):
                if not self._matches(element, shape[1:], rule):
                    self._explain(f"{key}[{index}]", element, shape[1:], rule)
        self.fail(key, value, rule.remedy)

    def _matches(self, value: object, shape: Shape, rule: Rule) -> bool:
        """Return whether ``value`` alone would pass :meth:`array_of`."""
        if shape:
            if not isinstance(value, list) or shape[0] not in (None, len(value)):
                return False
            return all(self._matches(element, shape[1:], rule) for element in value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return bool(abs(value) < 2**63 and rule.accepts(np.asarray(value)))

    def flags(self, key: str, shape: Shape) -> np.ndarray:
        """Return the nested lists of booleans under ``key`` as a boolean array."""
        value = self.data[key]
        values = _as_array(value)
        if values.dtype.kind != "b" or not _fits(values.shape, shape):
            self.fail(key, value, f"give true and false in lists of lengths {_shown(shape)}")
        return values

    def choices(self, key: str, shape: Shape, known: Sequence[str]) -> np.ndarray:
        """Return the nested lists of strings under ``key`` as an array; only known ones pass."""
        value = self.data[key]
        values = _as_array(value)
        if values.dtype.kind != "U" or not _fits(values.shape, shape):
            self.fail(key, value, f"give strings in lists of lengths {_shown(shape)}")
        strange = values[~np.isin(values, known)]
        if strange.size:
            self.fail(key, str(strange.flat[0]), f"use only {', '.join(map(repr, known))}")
        return values


def _as_array(value: object) -> np.ndarray:
    """Return nested lists as an array; of objects if their lengths differ."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty(0, dtype=object)


def _holds_flag(value: object) -> bool:
    """Return whether a boolean stands in nested lists; an array would take it for 0 or 1."""
    if isinstance(value, list):
        return any(map(_holds_flag, value))
    return isinstance(value, bool)


def _fits(actual: tuple[int, ...], expected: Shape) -> bool:
    return len(actual) == len(expected) and all(
        want in (None, length) for length, want in zip(actual, expected, strict=True)
    )


def _is_empty(value: object, shape: Shape) -> bool:
    """Return whether ``value`` is a list without entries where ``shape`` allows none."""
    return isinstance(value, list) and not value and shape[0] in (None, 0)


def _shown(shape: Shape) -> str:
    return " x ".join("any" if length is None else str(length) for length in shape)


@dataclass(frozen=True)
class JsonField:
    """Where a dataclass field stands in a JSON object, as the extra of its ``Annotated`` type.

    Attributes:
        key: name in the file.
        rule: accepted numbers; None for booleans.
        shape: lengths of the nested lists; a string names a length known when the file is read.
    """

    key: str
    rule: Rule | None = FINITE
    shape: tuple[int | str | None, ...] = ()


class SameValues:
    """Base of dataclasses (``eq=False``) that hold arrays and can be compared.

    Two are equal if all their compared fields are, arrays by shape and content, NaN equal to NaN.
    """

    def __eq__(self, other: object) -> bool:
        """Compare field by field."""
        if type(self) is not type(other):
            return NotImplemented
        return all(
            same_values(getattr(self, item.name), getattr(other, item.name))
            for item in fields(self)
            if item.compare
        )


class JsonRecord(SameValues):
    """Base of frozen dataclasses (``eq=False``) whose fields are ``Annotated`` by a JsonField."""

    @classmethod
    @functools.cache
    def json_fields(cls) -> dict[str, JsonField]:
        """Return the place in the file of every field, by the field's name."""
        hints = get_type_hints(cls, include_extras=True)
        return {item.name: hints[item.name].__metadata__[0] for item in fields(cls)}

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys of all fields in the order of the file."""
        return tuple(place.key for place in cls.json_fields().values())

    @classmethod
    def from_section(cls, section: JsonSection, **lengths: int) -> Self:
        """Read all fields from a JSON object, whose keys have been checked.

        Args:
            section: the object.
            **lengths: value of every named length.

        Raises:
            ValueError: a field has a wrong length or a value that its rule refuses.
        """
        values = {}
        for name, place in cls.json_fields().items():
            if place.rule is None:
                values[name] = section.flag(place.key)
                continue
            shape = tuple(lengths.get(length, length) for length in place.shape)
            array = section.array(place.key, shape, place.rule)
            values[name] = array if shape else array.item()
        return cls(**values)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object, keys in the order of the fields."""
        values = ((place.key, getattr(self, name)) for name, place in self.json_fields().items())
        return {
            key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in values
        }


def same_values(left: object, right: object) -> bool:
    """Return whether two values, arrays or tuples of arrays are equal; NaN equals NaN."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_values, left, right))
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        inexact = left.dtype.kind == "f" and right.dtype.kind == "f"
        return np.array_equal(left, right, equal_nan=inexact)
    return left == right
