"""What to tell of a vessel: how to give it, and that its numbers do not go together."""

from __future__ import annotations

import math
import sys

import yaml

from marinenav_env.config import TaskConfig, ThrustTaskConfig
from marinenav_env.fields import Settings, plain
from marinenav_env.vessels import VESSELS, VesselConfig
from marinenav_env.water import WindConfig

SIZES = {"length": "m", "mass": "kg", "min_thrust": "N", "max_thrust": "N"}
ALIKE = 0.15
"""Share by which a size may differ before what belongs to it should too, as with a payload."""
OF_SIZE = {
    "damping": ("x_u", "x_uu", "x_uuu", "y_v", "y_vv", "n_r", "n_rr", "cross_flow"),
    "added mass": ("x_dot_u", "y_dot_v", "n_dot_r"),
}
"""Fields of a vessel that belong to its size."""
WIND_OF_SIZE = {"vrx": ("surge", "sway", "yaw"), "fossen": ("front_area", "side_area")}
"""Fields of the wind that do, by its model."""


def as_setting(vessel: Settings) -> str:
    """Return what a vessel is on a command line: its name, or what differs from that vessel."""
    given = plain(vessel)
    name = given.get("name")
    of_name = plain(vessel.presets.get(name, type(vessel)()))
    own = {key: value for key, value in given.items() if value != of_name[key]}
    if not own:
        return f"env.vessel={name}"
    if name != plain(type(vessel)()).get("name"):
        own = {"name": name, **own}
    written = yaml.safe_dump(own, default_flow_style=True, sort_keys=False, width=math.inf)
    return f"'env.vessel={written.strip()}'"


def tell_of_vessel(env: TaskConfig) -> None:
    """Print the notes on the vessel of an environment, if it has one with thrusters."""
    if isinstance(env, ThrustTaskConfig):
        for note in [*notes_on_vessel(env.vessel), *notes_on_wind(env.vessel, env.wind)]:
            print(note, file=sys.stderr)


def top_speed_of_values(env: TaskConfig) -> str | None:
    """Return what to say of the speed of a vessel that is given by values; None of a named one."""
    if not isinstance(env, ThrustTaskConfig) or env.vessel in VESSELS.values():
        return None
    return f"note: env.vessel makes {env.vessel.top_speed:.2f} m/s full ahead"


def notes_on_vessel(vessel: VesselConfig) -> list[str]:
    """Return what to say of a vessel whose numbers do not go together, as of one half changed."""
    notes = []
    circle = math.hypot(vessel.length, vessel.width) / 2.0
    if abs(vessel.radius - circle) > 0.02 * circle:
        notes.append(
            f"note: env.vessel.radius is {vessel.radius} m, and the circle around env.vessel.length"
            f" by width has {circle:.3f} m: contacts are those of env.vessel.radius"
        )
    largest = max(map(abs, vessel.left_thrust_rates + vessel.right_thrust_rates))
    if not math.isclose(largest, vessel.max_thrust_rate):
        notes.append(
            f"note: env.vessel.max_thrust_rate is {vessel.max_thrust_rate} N/s, and "
            f"env.vessel.left_thrust_rates and right_thrust_rates reach {largest}: agents with "
            "discrete actions steer another vessel than the others"
        )
    change = vessel.max_thrust_rate * vessel.dt * vessel.substeps
    span = vessel.max_thrust - vessel.min_thrust
    if change > span:
        notes.append(
            f"note: env.vessel.max_thrust_rate is {vessel.max_thrust_rate} N/s, so a decision may "
            f"change a thrust by {change:g} N, and from env.vessel.min_thrust to max_thrust it is "
            f"{span:g} N: are all in N?"
        )
    known = VESSELS[vessel.name]
    for kind, names in OF_SIZE.items():
        same = all(getattr(vessel, name) == getattr(known, name) for name in names)
        if same and (size := _other_size(vessel, known)):
            given = ", ".join(name for name in names if getattr(known, name))
            notes.append(f"note: {size}, and its {kind} is still of that one: give it ({given})")
    return notes


def notes_on_wind(vessel: VesselConfig, wind: WindConfig) -> list[str]:
    """Return what to say of a wind whose force is that on a vessel of another size."""
    if not (wind.speed[1] or wind.gust_std):
        return []
    names = WIND_OF_SIZE[wind.model]
    same = all(getattr(wind, name) == getattr(WindConfig(), name) for name in names)
    if not same or not (size := _other_size(vessel, VesselConfig())):
        return []
    given = ", ".join(f"env.wind.{name}" for name in names)
    return [f"note: {size}, and the wind's force is still on that one: give it ({given})"]


def _other_size(vessel: VesselConfig, known: VesselConfig) -> str | None:
    """Return in words how a vessel's size differs from that of another; None if it does not."""
    for name, unit in SIZES.items():
        value, usual = getattr(vessel, name), getattr(known, name)
        if not math.isclose(value, usual, rel_tol=ALIKE):
            return f"env.vessel.{name} is {value} and that of {known.name!r} {usual} {unit}"
    return None
