"""Settings as dataclasses: what a field states is checked, however the settings are made."""

import dataclasses

import pytest

from marinenav_env.fields import ConfigError, Settings, build, nearest, plain, setting


@dataclasses.dataclass(frozen=True)
class Inner(Settings):
    """An inner section."""

    depth: float = setting(1.0, unit="m", source="here", low=0.0)
    name: str | None = setting(None, unit="-", source="here", choices=("x", "y", None))


@dataclasses.dataclass(frozen=True)
class Outer(Settings):
    """A section with a default that differs from its class's."""

    inner: Inner = dataclasses.field(default_factory=lambda: Inner(depth=7.0))
    pair: tuple[int, float] = setting((1, 2.0), unit="-", source="here")

    def check(self):
        self.require(self.pair[0] < self.inner.depth, "inner.depth", "give more than pair[0]")


@dataclasses.dataclass(frozen=True)
class Whole(Settings):
    """Sections in sections, one of them without defaults."""

    outer: Outer = dataclasses.field(default_factory=Outer)
    points: tuple["Point", ...] = setting((), unit="-", source="here")


@dataclasses.dataclass(frozen=True)
class Point(Settings):
    """Fields that have to be given."""

    x: int = setting(unit="m", source="here", above=0)
    label: str = setting(unit="-", source="here")


def test_build_takes_what_is_left_out_from_the_default_of_that_place():
    assert build(Outer, {"inner": {"name": "x"}}) == Outer(inner=Inner(7.0, "x"))
    assert build(Outer, {"pair": [3.0, 4]}).pair == (3, 4.0)
    whole = build(Whole, {"outer": {"inner": {"name": "y"}}, "points": [[1, "a"]]})
    assert whole == Whole(outer=Outer(inner=Inner(7.0, "y")), points=(Point(1, "a"),))
    assert build(Whole, plain(whole)) == whole


def test_settings_made_in_python_are_converted_and_checked_too():
    point = Point(x=2.0, label="a")
    assert type(point.x) is int
    with pytest.raises(ConfigError, match=r"^Point\.x is 0: give more than 0 \[m\]$"):
        Point(0, "a")
    with pytest.raises(ConfigError, match=r"^Outer\.inner\.depth is 0\.5: give more than pair"):
        Outer(inner=Inner(0.5))
    with pytest.raises(ConfigError, match=r"^Inner\.name is 'z': choose one of x, y"):
        Inner(name="z")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"outer": {"inner": {"depth": -1}}}, r"outer\.inner\.depth is -1\.0: give 0\.0 or more"),
        ({"outer": {"inner": 3}}, r"outer\.inner is 3: give a section"),
        ({"outer": {"pair": [9, 1.0]}}, r"outer\.inner\.depth is 7\.0: give more than pair"),
        ({"points": [[1, "a"], [0, "b"]]}, r"points\[1\]\.x is 0: give more than 0"),
        ({"points": [[1]]}, r"points\[0\] is \[1\]: give 2 values"),
        ({"points": [{"x": 1}]}, r"points\[0\]\.label is missing: give it$"),
        (
            {"outer": {"iner": {}}},
            "unknown setting 'outer.iner': the nearest valid one is 'outer.inner'",
        ),
        ({"points": [{"z": 1}]}, r"unknown setting 'points\[0\]\.z': choose one of x, label$"),
    ],
)
def test_wrong_values_are_named_by_their_place(values, message):
    with pytest.raises(ConfigError, match=rf"^{message}"):
        build(Whole, values)


def test_a_missing_value_at_the_root_is_named():
    with pytest.raises(ConfigError, match=r"^x is missing: give it$"):
        build(Point, {})


def test_nearest():
    assert nearest("inner.dept", ["pair", "inner.depth", "inner.name"]) == "inner.depth"
