"""What values of an episode file have to be; every complaint names file, place, value, remedy."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from marinenav_env.fields import ConfigError

THRUST_CHANGES = 5
"""Rates of change that one thruster can choose from; a discrete action is a pair of them."""
TOO_LONG = "too long episode"
STATES = (
    "normal",
    "collision",
    "reach goal",
    TOO_LONG,
    "deactivated after collision",
    "deactivated after reaching goal",
)
"""What ``recorded.infos`` may say of a robot after a decision."""


class Rule(NamedTuple):
    """What a single value has to be, and what to do about one that is not."""

    remedy: str
    accepts: Callable[[Any], bool]


def number(
    remedy: str,
    low: float = -sys.float_info.max,
    high: float = sys.float_info.max,
    *,
    above: bool = False,
    whole: bool = False,
) -> Rule:
    """Return the rule for numbers from ``low`` (only above it, if so asked) to ``high``."""
    kinds = int if whole else (int, float)

    def accepts(value: Any) -> bool:
        fits = isinstance(value, kinds) and not isinstance(value, bool)
        return fits and low <= value <= high and not (above and value == low)

    return Rule(remedy, accepts)


INT64_MAX = 2**63 - 1
FINITE = number("give a finite number")
POSITIVE = number("give a finite number above 0", 0.0, above=True)
NOT_NEGATIVE = number("give a finite number, 0 or more", 0.0)
WHOLE = number("give a whole number", -INT64_MAX, INT64_MAX, whole=True)
COUNT = number("give a whole number, 1 or more", 1, INT64_MAX, whole=True)
BIT = number("give 0 or 1", 0, 1, whole=True)
ANYTHING = Rule("", lambda _: True)
UNIT = number("give a number from -1 to 1", -1.0, 1.0)
ANGLE = number("give an angle above 0, at most 2 pi rad", 0.0, 6.2831853072, above=True)
RATIO = number("give a ratio from 0 to 1", 0.0, 1.0)
ACTION_INDEX = number(
    f"give a whole number from 0 to {THRUST_CHANGES**2 - 1}", 0, THRUST_CHANGES**2 - 1, whole=True
)
FLAG = Rule("give true or false", lambda value: isinstance(value, bool))
STATE = Rule(f"use only {', '.join(map(repr, STATES))}", lambda value: value in STATES)
TURN = Rule(
    "give a finite number, or null where no rule applies",
    lambda value: value is None or FINITE.accepts(value),
)


class Entry(NamedTuple):
    """One key of a section.

    Attributes:
        rule: for every single value.
        lengths: of the nested lists, outermost first; R robots, C vortices, B buoys, T decisions
            and T+1 states by name.
        parameters: dotted names in `EnvConfig`; several are the entries of a list.
    """

    rule: Rule
    lengths: tuple[int | str, ...] = ()
    parameters: tuple[str, ...] = ()


class Check:
    """Checks of parts of a file, which raise ConfigError in one form of words.

    Args:
        source: the file, as messages name it.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, place: str, value: Any, remedy: str) -> NoReturn:
        """Raise the error that names the file, the place in it, the value and the remedy."""
        raise ConfigError(
            f"{self.source}: {place or 'the whole file'} is {reprlib.repr(value)}: {remedy}"
        )

    def keys(
        self, place: str, data: Any, required: Iterable[str], optional: Iterable[str] = ()
    ) -> None:
        """Check that a section is an object with all its keys and no other."""
        if not isinstance(data, dict):
            self.fail(place, data, "give a JSON object")
        required, known = tuple(required), (*required, *optional)
        inside = f" in {place!r}" if place else ""
        for key in required:
            if key not in data:
                raise ConfigError(
                    f"{self.source}: key {key!r} is missing{inside}: add it, the format needs "
                    f"{', '.join(required)}"
                )
        for key in data:
            if key not in known:
                raise ConfigError(
                    f"{self.source}: key {key!r}{inside} is unknown: remove or rename it, the "
                    f"format has {', '.join(known)}"
                )

    def section(
        self,
        place: str,
        data: Any,
        table: Mapping[str, Entry],
        lengths: Mapping[str, int | None],
        others: Iterable[str] = (),
    ) -> None:
        """Check a section's keys and the values of those in ``table``.

        A length that is None is that of the first list.
        """
        self.keys(place, data, (*table, *others))
        known: dict[Any, Any] = dict(lengths)
        for key, entry in table.items():
            shape: list[Any] = [known.get(length, length) for length in entry.lengths]
            self.values(f"{place}.{key}", data[key], entry.rule, *shape)
            if None in shape:
                known[entry.lengths[0]] = len(data[key])

    def values(self, place: str, value: Any, rule: Rule, *shape: int | None) -> None:
        """Check nested lists of the lengths ``shape``, None for any, and each value in them."""
        if not shape:
            if not rule.accepts(value):
                self.fail(place, value, rule.remedy)
            return
        if not isinstance(value, list):
            self.fail(place, value, "give a list")
        if shape[0] not in (None, len(value)):
            self.fail(f"{place} (length {len(value)})", value, f"give {shape[0]} entries")
        for index, entry in enumerate(value):
            self.values(f"{place}[{index}]", entry, rule, *shape[1:])
