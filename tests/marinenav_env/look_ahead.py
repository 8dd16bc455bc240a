"""Looking ahead from an observation, in NumPy: a vessel at a time, to check the core with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from marinenav_env.config import EnvConfig
from tests.marinenav_env.reference_model import Around, Hull, acceleration, move, rotation, wrapped

STILL = Around(np.zeros((0, 3)))


class Vessel:
    """A vessel that resumes from what it observes: `ego` [7], `objects` [K, 5], `mask` [K]."""

    def __init__(self, config: EnvConfig, ego, objects, mask) -> None:
        self.config = config
        p = config.vessel
        self.one = dataclasses.replace(config, vessel=dataclasses.replace(p, substeps=1))
        left, right = ego[5:]
        tau = np.array([left + right, 0.0, (left - right) * p.width / 2])
        water = ego[2:5] + acceleration(p, tau, ego[2:5], ego[2:5]) * p.dt
        nothing = np.zeros(4)
        self.hull = Hull(
            np.zeros(3),
            water,
            np.zeros(2),
            ego[5:].copy(),
            ego[:2],
            given=ego[5:].copy(),
            lost=nothing[:2],
            past=nothing,
            ground=ego[2:5],
        )
        largest = config.scenario.buoy_radius_max
        self.others = []
        for (x, y, vx, vy, seen), there in zip(objects, mask, strict=True):
            if not there:
                self.others.append(None)
            elif seen > largest:
                radius = max(seen, p.radius)
                self.others.append((np.array([x, y]), np.array([vx, vy]), radius, seen))
            else:
                self.others.append((np.array([x, y]), np.zeros(2), largest, seen))
        self.time, self.arrived = 0.0, self.distance() <= config.reward.goal_distance

    def distance(self) -> float:
        return float(np.linalg.norm(self.hull.goal - self.hull.pose[:2]))

    def decide(self, rates: np.ndarray) -> Iterator[int]:
        """Take a decision at thrust rates [N/s]; yields after each substep."""
        p = self.config.vessel
        for i in range(p.substeps):
            move(self.one, self.hull, rates * p.substeps if i == 0 else 0.0 * rates, STILL)
            self.time += p.dt
            yield i
        self.arrived |= self.distance() <= self.config.reward.goal_distance

    def seen(self, shown, closer: float) -> tuple[np.ndarray, list]:
        """Return own features [7], and what is shown, nearest first."""
        into_body = rotation(self.hull.pose[2]).T[:2, :2]
        place, ground = self.hull.pose[:2], self.hull.ground
        rows = []
        for other, here in zip(self.others, shown, strict=True):
            if other is None or not here:
                continue
            to = into_body @ (other[0] + other[1] * self.time - place)
            far = np.linalg.norm(to)
            near = max(0.0, 1.0 - closer / max(far, 1e-3))
            rows.append((far - other[3], [*(to * near), *(into_body @ other[1]), other[3]]))
        rows.sort(key=lambda row: row[0])
        own = [*(into_body @ (self.hull.goal - place)), *(into_body @ ground[:2]), ground[2]]
        return np.array([*own, *self.hull.thrusts]), [row for _, row in rows]


def rates_of(config: EnvConfig, action) -> np.ndarray:
    """Thrust rates [N/s] of an index or of two numbers."""
    p = config.vessel
    if np.ndim(action) == 0:
        left, right = divmod(int(action), len(p.right_thrust_rates))
        return np.array([p.left_thrust_rates[left], p.right_thrust_rates[right]])
    return np.clip(action, -1.0, 1.0) * p.max_thrust_rate


def plan(vessel: Vessel, action, decisions: int) -> np.ndarray:
    """Hold an action; return the least clearance [K] of the decisions before the arrival."""
    least = np.full(len(vessel.others), np.inf)
    for _ in range(decisions):
        gone = vessel.arrived
        for i in vessel.decide(rates_of(vessel.config, action)):
            for k, other in enumerate(vessel.others):
                if other is None or gone or i == 0:
                    continue
                apart = other[0] + other[1] * vessel.time - vessel.hull.pose[:2]
                gap = np.linalg.norm(apart) - other[2] - vessel.config.vessel.radius
                least[k] = min(least[k], gap)
    return least


def course_rates(vessel: Vessel, offset: float, factor: float, q: dict) -> np.ndarray:
    """Return the thrust rates of the velocity controller that follows a course."""
    p = vessel.config.vessel
    ego, _ = vessel.seen([False] * len(vessel.others), 0.0)
    goal, (u, v, r), thrusts = ego[:2], ego[2:5], ego[5:]
    bearing = math.atan2(goal[1], goal[0]) + offset
    speed = factor * min(max(np.linalg.norm(goal), q["least_speed"]), q["speed"])
    desired = speed * np.array([math.cos(bearing), math.sin(bearing)])
    aim = desired + q["lead"] * (desired - np.array([u, v]))
    course = 0.0 if np.linalg.norm(aim) < 0.05 else math.atan2(aim[1], aim[0])
    rate = np.clip(q["course"] * course, -q["most_yaw_rate"], q["most_yaw_rate"])
    yaw = -(p.n_r + p.n_rr * abs(rate)) * rate + p.x_dot_u * u * v
    yaw += (p.izz - p.n_dot_r) * (rate - r) / q["yaw_s"]
    forward = -(p.x_u + p.x_uu * abs(u)) * u - p.mass * r * v
    forward += (p.mass - p.x_dot_u) * (max(desired[0], q["least_surge"]) - u) / q["surge_s"]
    span = p.max_thrust - p.min_thrust
    apart = np.clip(2.0 * yaw / p.width, -span, span)
    forward = max(forward, 2.0 * p.min_thrust + abs(apart))
    forward = min(forward, 2.0 * p.max_thrust - abs(apart))
    wanted = np.array([forward + apart, forward - apart]) / 2.0
    change = p.max_thrust_rate * p.dt * p.substeps
    return np.clip((wanted - thrusts) / change, -1.0, 1.0) * p.max_thrust_rate


def danger(vessel: Vessel, q: dict) -> float:
    """Return the cost of a moment, of the worst object."""
    worst, course = 0.0, vessel.hull.pose[2]
    own = vessel.hull.ground[:2]
    for other in filter(None, vessel.others):
        to = other[0] + other[1] * vessel.time - vessel.hull.pose[:2]
        far, its = np.linalg.norm(to), other[1]
        contact = other[2] + vessel.config.vessel.radius
        safe, cost = contact + q["safe_m"], 0.0
        if far < safe:
            squared = max(((own - its) ** 2).sum(), 1.0)
            cost += 0.5 * squared * (safe / far) ** q["nearness_power"] / vessel.time
        if far < contact + q["contact_m"]:
            cost += q["contact_cost"] / vessel.time
        bearing = math.degrees(wrapped(math.atan2(to[1], to[0]) - course))
        if far < min(safe + q["rule_margin_m"], q["close_m"]) and 0.0 < bearing < q["abeam_deg"]:
            cost += q["rule_cost"] * breaks(own, its, to, q)
        worst = max(worst, cost)
    return worst


def breaks(own: np.ndarray, its: np.ndarray, to: np.ndarray, q: dict) -> bool:
    """Whether a vessel to starboard comes head-on or crosses; a buoy does neither."""
    if not its.any():
        return False
    between = angle(own, its)
    head_on = between > 180.0 - q["head_on_deg"] and angle(own, to) < q["ahead_deg"]
    return head_on or between > q["overtaking_deg"]


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Return the angle [deg] between two vectors."""
    return abs(math.degrees(wrapped(math.atan2(a[1], a[0]) - math.atan2(b[1], b[0]))))


def follow(vessel: Vessel, offset: float, factor: float, q: dict) -> tuple[float, float]:
    """Return the worst cost of a course until the arrival, and the distance left."""
    p, worst = vessel.config.vessel, 0.0
    for _ in range(round(q["horizon_s"] / (p.dt * p.substeps))):
        gone = vessel.arrived
        for _ in vessel.decide(course_rates(vessel, offset, factor, q)):
            pass
        worst = worst if gone else max(worst, danger(vessel, q))
    return worst, 0.0 if vessel.arrived else vessel.distance()
