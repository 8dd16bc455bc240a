"""Named sets of scenarios, by their formulas; coordinates are about the meeting point (0, 0).

In self-play the policy steers all vessels, which start at rest. In a ``-scripted`` set both vessels
start at their design speed; the policy steers the first, and the other holds course and speed. Only
cases of two vessels are in it: several that hold on would collide where their courses meet. Sources
are in docs/evaluation.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from train_RL_agents.evaluation.scenarios.schema import Buoy, Scenario, Vessel

SPEED = 2.5  # m/s, design speed
RADIUS = 45.0  # m, of Imazu's problems and the clock: 18 s at design speed
SLOW = 0.7  # speed ratio of Imazu's slow vessels
IMAZU = (
    ("180",),
    ("-90",),
    ("0s",),
    ("45",),
    ("180", "-90"),
    ("-10", "-45"),
    ("0s", "-45"),
    ("180", "-90"),
    ("-30", "-90"),
    ("-90", "15"),
    ("90", "-30"),
    ("-45", "-10"),
    ("180", "10", "45"),
    ("-10", "-45", "-90"),
    ("0s", "-45", "-90"),
    ("45s", "90", "-90"),
    ("0s", "10", "-45"),
    ("-135", "-15", "-30"),
    ("15", "-15", "-135"),
    ("0s", "-15", "-90"),
    ("-15", "15", "-90"),
    ("0s", "-45", "-90"),
)
"""Headings of the other vessels, s: slow (Sawada, Sato and Majima 2021, table 4)."""

Case = tuple[str, list[Vessel], list[Buoy]]


def through(
    heading: float, reach: float, speed: float = SPEED, beyond: float | None = None
) -> Vessel:
    """Return a vessel that comes from ``reach`` before the origin and goes ``beyond`` it [m]."""
    beyond = reach if beyond is None else beyond
    north, east = math.cos(math.radians(heading)), math.sin(math.radians(heading))
    start, goal = (-reach * north, -reach * east), (beyond * north, beyond * east)
    return Vessel(start, goal, heading_deg=heading % 360.0, speed=speed)


def leg(start: tuple[float, float], goal: tuple[float, float]) -> Vessel:
    """Return a vessel at design speed from a start straight to a goal."""
    heading = math.degrees(math.atan2(goal[1] - start[1], goal[0] - start[0]))
    return Vessel(start, goal, heading_deg=heading % 360.0, speed=SPEED)


def imazu() -> Iterator[Case]:
    """Yield Imazu's 22 problems; all vessels meet at the origin after 18 s."""
    for number, headings in enumerate(IMAZU, 1):
        others = []
        for entry in headings:
            ratio = SLOW if entry.endswith("s") else 1.0
            others.append(through(float(entry.rstrip("s")), ratio * RADIUS, ratio * SPEED))
        yield f"imazu-{number:02}", [through(0.0, RADIUS), *others], []


def clock() -> Iterator[Case]:
    """Yield Around the Clock: one other vessel from each of 24 directions (Waltz, TUD_RL)."""
    for k in range(1, 25):
        yield f"clock-{k:02}", [through(0.0, RADIUS), through(14.4 * k, RADIUS)], []


def swap() -> Iterator[Case]:
    """Yield circle swaps of 2 to 16 vessels, neighbours 10 m apart or more."""
    for count in (*range(2, 11), 12, 16):
        reach = max(20.0, 10.5 / (2.0 * math.sin(math.pi / count)))
        yield f"swap-{count:02}", [through(360.0 * i / count, reach) for i in range(count)], []


def meeting(name: str, heading: float, speed: float, shift: float = 0.0) -> Case:
    """Return an encounter with one other vessel, its course moved to starboard by ``shift`` [m]."""
    time = _meeting_time(heading, speed)
    other = through(heading, speed * time, speed)
    start, goal = ((x, y + shift) for x, y in (other.start, other.goal))
    other = dataclasses.replace(other, start=start, goal=goal)
    return name, [through(0.0, SPEED * time), other], []


def singles() -> Iterator[Case]:
    """Yield head-on and crossing encounters of two vessels."""
    yield meeting("HO", 180.0, SPEED)
    yield meeting("HO+o", 180.0, SPEED, 3.0)
    yield meeting("HO-o", 180.0, SPEED, -3.0)
    for angle in (135, 90, 45):
        yield meeting(f"GW{angle}", -float(angle), SPEED)
        yield meeting(f"SO{angle}", float(angle), SPEED)


def encounters() -> Iterator[Case]:
    """Yield what trainings begin with: meetings of two from all around, many of them head-on."""
    for angle in range(30, 331, 10):
        yield meeting(f"meeting-{angle:03}", float(angle), SPEED)
    for shift in range(-8, 9, 2):
        yield meeting(f"head-on{shift:+}", 180.0, SPEED, float(shift))


def _meeting_time(heading: float, speed: float) -> float:
    """Return T: at least 8 s, and so long that the vessels start 25 m apart or more."""
    angle = math.radians(heading)
    relative = math.hypot(SPEED - speed * math.cos(angle), speed * math.sin(angle))
    return max(8.0, 25.0 / relative)


def intersections() -> Iterator[Case]:
    """Yield crossings of four vessels, and of two on each of four arms."""
    yield "X4", [through(90.0 * i, 20.0) for i in range(4)], []
    arms = [
        through(90.0 * i, reach, beyond=52.0 - reach) for i in range(4) for reach in (20.0, 32.0)
    ]
    yield "X8", arms, []


def merge() -> Iterator[Case]:
    """Yield merging lanes."""
    two = [leg((-40.0, 0.0), (40.0, 0.0)), leg((-34.64, 20.0), (28.0, 0.0))]
    more = [leg((-52.0, 0.0), (16.0, 0.0)), leg((-45.03, 26.0), (4.0, 0.0))]
    yield "MERGE2", two, []
    yield "MERGE4", two + more, []


def channels() -> Iterator[Case]:
    """Yield channels between two rows of seven buoys, 12 and 20 m wide."""
    rows = {
        half: [Buoy((x, side * half)) for x in range(-18, 19, 6) for side in (-1.0, 1.0)]
        for half in (6.0, 10.0)
    }
    north, south = leg((-32.0, 4.0), (32.0, 4.0)), leg((32.0, -4.0), (-32.0, -4.0))
    swapped = [leg((-32.0, -4.0), (32.0, 4.0)), leg((32.0, 4.0), (-32.0, -4.0))]
    centre = [leg((-32.0, 0.0), (44.0, 0.0)), leg((32.0, 0.0), (-44.0, 0.0))]
    yield "CHAN1", [leg((-32.0, 0.0), (32.0, 0.0))], rows[6.0]
    yield "CHAN2", [north, south], rows[10.0]
    yield "CHAN2S", swapped, rows[10.0]
    yield "CHAN2C", centre, rows[10.0]


def gates() -> Iterator[Case]:
    """Yield three vessels before one gate in a row of buoys."""
    buoys = [Buoy((0.0, float(y))) for y in range(-30, 31, 6) if y]
    ways = [leg((-25.0, y), (25.0, -y)) for y in (-12.0, 0.0, 12.0)]
    yield "GATE3", ways, buoys


CASES = {
    "imazu": imazu,
    "clock": clock,
    "swap": swap,
    "singles": singles,
    "encounters": encounters,
    "intersections": intersections,
    "merge": merge,
    "channels": channels,
    "gates": gates,
}
OFFSETS_M = {"swap": 0.1}
"""Exactly symmetric swaps deadlock controllers that are symmetric themselves."""
SCRIPTED = "-scripted"
FAST = 3.0
"""m/s, of 3.33 at full thrust: what comes from astern."""


def overtaking() -> Iterator[Case]:
    """Yield encounters of unequal speed: the policy comes from astern (OT), or the other one (OD).

    No policy keeps a slow speed, so it begins with one where it is to be overtaken.
    """
    for name, heading in (("OT", 0.0), ("OT+30", 30.0), ("OT-30", -30.0)):
        yield meeting(name, heading, SPEED / 2.0)
    slow = through(0.0, 50.0, SPEED / 1.5)
    yield "OT67", [through(0.0, 75.0), slow], []
    own = Vessel((0.0, 0.0), (60.0, 0.0), speed=SPEED / 2.0)
    for name, heading in (("OD", 0.0), ("OD+30", 30.0), ("OD-30", -30.0)):
        yield name, [own, through(heading, 16.0, FAST, beyond=80.0)], []


def named_sets() -> dict[str, list[Scenario]]:
    """Return all sets by name, self-play and scripted."""
    sets: dict[str, list[Scenario]] = {}
    for name, cases in CASES.items():
        offset = OFFSETS_M.get(name, 0.0)
        plays = [
            Scenario(case, _at_rest(vessels), tuple(buoys), offset_m=offset)
            for case, vessels, buoys in cases()
        ]
        more = overtaking() if name == "singles" else ()
        scripted = [
            Scenario(case + SCRIPTED, _scripted(vessels), tuple(buoys), offset_m=offset)
            for case, vessels, buoys in (*cases(), *more)
            if len(vessels) == 2
        ]
        sets |= {name: plays} | ({name + SCRIPTED: scripted} if scripted else {})
    return sets


def _at_rest(vessels: list[Vessel]) -> tuple[Vessel, ...]:
    return tuple(dataclasses.replace(vessel, speed=0.0) for vessel in vessels)


def _scripted(vessels: list[Vessel]) -> tuple[Vessel, ...]:
    own, other = vessels
    return own, dataclasses.replace(other, steer="straight")
