"""The published simulator's decision without noise, in NumPy, after its equations and not the core.

A second statement of docs/physics.md: matrices where the core has sums, angles where it has complex
numbers, one robot at a time. Frames: x north, y east in the world; forward, starboard on a hull.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from marinenav_env.config import EnvConfig

NEAREST = 5


@dataclass
class Hull:
    """A robot: `pose` x, y, heading; `water` its velocity through the water, world frame."""

    pose: np.ndarray
    water: np.ndarray
    angles: np.ndarray
    thrusts: np.ndarray
    goal: np.ndarray
    ground: np.ndarray | None = None
    energy: float = 0.0
    progress: float = 0.0


def rotation(heading: float) -> np.ndarray:
    """Body frame to world frame, of (surge, sway, yaw)."""
    c, s = math.cos(heading), math.sin(heading)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def current(config: EnvConfig, vortices: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Velocity of the water; vortices [C, 3] of x, y and circulation, positive clockwise."""
    flow, core = np.zeros(2), config.current.core_radius
    for x, y, circulation in vortices:
        to_core = np.array([x, y]) - place
        distance = np.linalg.norm(to_core)
        speed = abs(circulation) / (2 * math.pi) * min(distance / core**2, 1 / distance)
        v = to_core / distance
        flow += speed * np.array([-v[1], v[0]] if circulation > 0 else [v[1], -v[0]])
    return flow


def acceleration(p, tau: np.ndarray, ground: np.ndarray, water: np.ndarray) -> np.ndarray:
    """Fossen, ch. 6.5: M acc = tau - C_RB V - (C_A + D + D_n) V_r, body frame."""
    u_r, v_r, r = water
    m, added = (
        p.mass,
        np.array([[p.x_dot_u, 0, 0], [0, p.y_dot_v, p.y_dot_r], [0, p.n_dot_v, p.n_dot_r]]),
    )
    inertia = np.diag([m, m, p.izz]) - added
    rigid = np.array([[0, -m * r, 0], [m * r, 0, 0], [0, 0, 0]])
    sway = p.y_dot_v * v_r + p.y_dot_r * r
    coriolis = np.array([[0, 0, sway], [0, 0, -p.x_dot_u * u_r], [-sway, p.x_dot_u * u_r, 0]])
    linear = -np.array([[p.x_u, 0, 0], [0, p.y_v, p.y_r], [0, p.n_v, p.n_r]])
    v, w = abs(v_r), abs(r)
    quadratic = -np.array(
        [
            [p.x_uu * abs(u_r), 0, 0],
            [0, p.y_vv * v + p.y_rv * w, p.y_vr * v + p.y_rr * w],
            [0, p.n_vv * v + p.n_rv * w, p.n_vr * v + p.n_rr * w],
        ]
    )
    force = tau - rigid @ ground - (coriolis + linear + quadratic) @ water
    return np.linalg.solve(inertia, force)


def move(config: EnvConfig, hull: Hull, rates: np.ndarray, vortices: np.ndarray) -> None:
    """Advance a robot by one decision; `rates` of thrust, left and right [N/s]."""
    p, before = config.vessel, np.linalg.norm(hull.goal - hull.pose[:2])
    for substep in range(p.substeps):
        hull.ground = hull.water + np.append(current(config, vortices, hull.pose[:2]), 0.0)
        hull.pose = hull.pose + hull.ground * p.dt
        hull.pose[2] %= 2 * math.pi
        if substep == 0:
            changed = hull.thrusts + rates * p.dt * p.substeps
            hull.thrusts = np.clip(changed, p.min_thrust, p.max_thrust)
        left, right = hull.thrusts
        l_angle, r_angle = hull.angles
        across = left * math.sin(l_angle) + right * math.sin(r_angle)
        lever = (
            left * math.cos(l_angle) - right * math.cos(r_angle)
        ) * p.width / 2 - across * p.length / 2
        tau = np.array([left * math.cos(l_angle) + right * math.cos(r_angle), across, lever])
        turned = rotation(hull.pose[2])
        water = turned.T @ hull.water
        gained = acceleration(p, tau, turned.T @ hull.ground, water) * p.dt
        hull.water = turned @ (water + gained)
    hull.energy = p.power_coefficient * np.abs(hull.thrusts).sum() * p.dt * p.substeps
    hull.progress = before - np.linalg.norm(hull.goal - hull.pose[:2])


def observe(
    config: EnvConfig, hulls: list[Hull], own: int, buoys: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return own features [7], objects [n, 5] nearest first, and whether it touches one."""
    hull, p, sensor = hulls[own], config.vessel, config.perception
    into_body = rotation(hull.pose[2]).T[:2, :2]
    others = [(h.pose[:2], h.ground[:2], p.radius) for i, h in enumerate(hulls) if i != own]
    others += [(buoy[:2], np.zeros(2), buoy[2]) for buoy in buoys]
    seen = []
    for place, velocity, radius in others:
        position = into_body @ (place - hull.pose[:2])
        distance = np.linalg.norm(position)
        bearing = abs(math.atan2(position[1], position[0]))
        if distance <= sensor.range + radius and bearing <= sensor.angle / 2:
            row = np.array([*position, *(into_body @ velocity), radius])
            seen.append((distance - radius - p.radius, row))
    seen.sort(key=lambda pair: pair[0])
    goal = into_body @ (hull.goal - hull.pose[:2])
    ego = np.array([*goal, *(into_body @ hull.ground[:2]), hull.ground[2], *hull.thrusts])
    objects = np.array([row for _, row in seen[:NEAREST]]).reshape(-1, 5)
    return ego, objects, any(surface <= 0 for surface, _ in seen)


def angle_of(vector: np.ndarray) -> float:
    return math.atan2(vector[1], vector[0])


def wrapped(angle: float) -> float:
    return (angle + math.pi) % (2 * math.pi) - math.pi


def turn(config: EnvConfig, velocity: np.ndarray, objects: np.ndarray) -> float:
    """Return phi of the nearest vessel that COLREGs tell to avoid by a turn to starboard, or 0."""
    zone, own_speed = config.colregs, np.linalg.norm(velocity)
    for row in objects:
        position, speed, radius = row[:2], np.linalg.norm(row[2:4]), row[4] + zone.margin
        distance = np.linalg.norm(position)
        if min(speed, own_speed) < zone.min_speed or distance < radius:
            continue
        course = angle_of(row[2:4])
        x, y = rotation(course).T[:2, :2] @ -position
        a = wrapped(angle_of(velocity) - course)
        slope = zone.crossing_y_corner / zone.crossing_x_max
        crossing = (
            zone.crossing_x_min <= x <= zone.crossing_x_max
            and zone.crossing_y_min <= y <= 0
            and not y - zone.crossing_y_corner > slope * (x - zone.crossing_x_max)
            and math.pi / 4 <= a <= 3 * math.pi / 4
        )
        head_on = (
            0 <= x <= zone.head_on_x_max
            and abs(y) <= zone.head_on_y_half
            and abs(a) > 3 * math.pi / 4
        )
        if not crossing and not head_on:
            continue
        tangent = math.sqrt(distance**2 - radius**2)
        aside = math.asin(radius / distance) + math.atan2(config.vessel.radius, tangent)
        phi = wrapped(angle_of(position) + aside - angle_of(velocity))
        if phi > 0:
            return phi
    return 0.0
