"""What to tell of a vessel: how to give it, and that its numbers do not go together."""

from __future__ import annotations

import math
import sys

import yaml

from marinenav_env.config import TaskConfig
from marinenav_env.fields import Settings, plain
from marinenav_env.vessels import VesselConfig


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
    vessel = getattr(env, "vessel", None)
    for note in notes_on_vessel(vessel) if isinstance(vessel, VesselConfig) else ():
        print(note, file=sys.stderr)


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
    return notes
