"""A decision without noise, in NumPy, after its equations and not the core.

A second statement of docs/physics.md: matrices where the core has sums, angles where it has complex
numbers, one robot at a time. Frames: x north, y east in the world; forward, starboard on a hull.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from marinenav_env.config import EnvConfig

NEAREST = 5
STRIPS = 21  # of the cross-flow drag
GRAVITY = 9.81
WAVES = 5


@dataclass
class Hull:
    """A robot: `pose` x, y, heading; `water` its velocity through the water, world frame.

    `given` is what lagging thrusters give; `lost` the time [s] at which one is lost, and which one:
    -1 left, 1 right, 0 none. `past` is x, y, vx, vy as a late sensor has it.
    """

    pose: np.ndarray
    water: np.ndarray
    angles: np.ndarray
    thrusts: np.ndarray
    goal: np.ndarray
    given: np.ndarray
    lost: np.ndarray
    past: np.ndarray
    ground: np.ndarray | None = None
    energy: float = 0.0
    progress: float = 0.0


@dataclass
class Around:
    """What a world has around its robots: vortices [C, 3] of x, y and circulation, and the rest.

    `wind` is its speed now, gust included, and cosine and sine of its direction; `wave` those of
    the waves and the five phases; `factors` those of the vessels; `time` [s] into the episode.
    """

    vortices: np.ndarray
    stream: np.ndarray = field(default_factory=lambda: np.zeros(2))
    wind: np.ndarray = field(default_factory=lambda: np.zeros(3))
    wave: np.ndarray = field(default_factory=lambda: np.zeros(2 + WAVES))
    factors: dict[str, float] = field(default_factory=dict)
    time: float = 0.0


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
    """Fossen, ch. 6.5: M acc = tau - C_RB V - (C_A + D + D_n) V_r, body frame.

    With the transport term C_RB takes the velocity through the water, and the turning of the body
    frame comes out.
    """
    u_r, v_r, r = water
    if p.transport_term:
        ground = water
    m, added = (
        p.mass,
        np.array([[p.x_dot_u, 0, 0], [0, p.y_dot_v, p.y_dot_r], [0, p.n_dot_v, p.n_dot_r]]),
    )
    moved = m * p.x_g
    inertia = np.diag([m, m, p.izz]) - added
    inertia[1, 2] += moved
    inertia[2, 1] += moved
    rigid = np.array([[0, -m * r, 0], [m * r, 0, 0], [0, 0, 0]])
    off_centre = np.array([[0, 0, -moved * r], [0, 0, 0], [moved * r, 0, 0]])
    sway = p.y_dot_v * v_r + p.y_dot_r * r
    coriolis = np.array([[0, 0, sway], [0, 0, -p.x_dot_u * u_r], [-sway, p.x_dot_u * u_r, 0]])
    linear = -np.array([[p.x_u, 0, 0], [0, p.y_v, p.y_r], [0, p.n_v, p.n_r]])
    v, w = abs(v_r), abs(r)
    quadratic = -np.array(
        [
            [p.x_uu * abs(u_r) + p.x_uuu * u_r**2, 0, 0],
            [0, p.y_vv * v + p.y_rv * w, p.y_vr * v + p.y_rr * w],
            [0, p.n_vv * v + p.n_rv * w, p.n_vr * v + p.n_rr * w],
        ]
    )
    place = np.linspace(-p.length / 2, p.length / 2, STRIPS)
    across = v_r + place * r
    strip = -p.cross_flow * p.length / (STRIPS - 1) * np.abs(across) * across
    cross = np.array([0.0, strip.sum(), (place * strip).sum()])
    against = rigid @ ground + (off_centre + coriolis + linear + quadratic) @ water
    gained = np.linalg.solve(inertia, tau + cross - against)
    turning = np.array([-r * v_r, r * u_r, 0.0])
    return gained + turning if p.transport_term else gained


def varied_vessel(config: EnvConfig, factors: dict[str, float]) -> SimpleNamespace:
    """Return the parameters of a vessel with its factors."""
    p = SimpleNamespace(**vars(config.vessel))
    rows = {"x_": "surge_damping", "y_": "sway_damping", "n_": "yaw_damping"}
    for name in vars(config.vessel):
        derivative = name[:2] in rows and "dot" not in name and name != "x_g"
        setattr(
            p,
            name,
            getattr(p, name) * factors.get(rows[name[:2]], 1.0) if derivative else getattr(p, name),
        )
    p.mass, p.izz = p.mass * factors.get("mass", 1.0), p.izz * factors.get("mass", 1.0)
    p.n_dot_r = p.n_dot_r * factors.get("added_inertia", 1.0)
    p.cross_flow = p.cross_flow * factors.get("sway_damping", 1.0)
    return p


def wind_force(
    config: EnvConfig, wind: np.ndarray, heading: float, ground: np.ndarray
) -> np.ndarray:
    """Force of the wind, body frame; `ground` is the velocity over ground there."""
    c, (speed, toward_x, toward_y) = config.wind, wind
    blown = speed * np.array([toward_x, toward_y, 0.0])
    a, b, _ = rotation(heading).T @ blown - ground
    if c.model == "vrx":
        return np.array([c.surge * a * abs(a), c.sway * b * abs(b), -2 * c.yaw * a * b])
    pressure, w = 0.5 * c.air_density, math.hypot(a, b)
    turn = -2 * pressure * c.c_n * c.side_area * config.vessel.length * a * b
    return np.array(
        [pressure * c.c_x * c.front_area * a * w, pressure * c.c_y * c.side_area * b * w, turn]
    )


def wave_frequencies(config: EnvConfig) -> np.ndarray:
    """Median frequencies of the fifths of the spectrum [rad/s]."""
    share = (np.arange(1, WAVES + 1) - 0.5) / WAVES
    return 2 * math.pi / config.waves.period * (-1.25 / np.log(share)) ** 0.25


def wave_force(config: EnvConfig, wave: np.ndarray, pose: np.ndarray, elapsed: float) -> np.ndarray:
    """Force of the waves, body frame; the phases are those of the decision's beginning."""
    p, omega = config.vessel, wave_frequencies(config)
    k, amplitude = omega**2 / GRAVITY, config.waves.height / 4 * math.sqrt(2 / WAVES)
    cos, sin = wave[:2]
    phi = k * (pose[0] * cos + pose[1] * sin) - omega * elapsed + wave[2:]
    mu = math.atan2(sin, cos) - pose[2]
    size = p.mass * GRAVITY * amplitude * k * np.exp(-k * config.waves.draught / 2)
    push = (size * np.sinc(k * p.length * math.cos(mu) / 2 / math.pi) * np.sin(phi)).sum()
    turn = size * k * p.length**2 / 12 * math.sin(mu) * math.cos(mu) * np.cos(phi)
    return np.array([push * math.cos(mu), push * math.sin(mu), turn.sum()])


def thrusts_given(config: EnvConfig, hull: Hull, around: Around, elapsed: float) -> np.ndarray:
    """What the thrusters give, which may not be what they are told [N]."""
    lag = config.thrusters.lag
    share = 1 - math.exp(-config.vessel.dt / lag) if lag > 0 else 1.0
    hull.given = hull.given + (hull.thrusts - hull.given) * share
    given, (when, side) = hull.given.copy(), hull.lost
    if side and around.time + elapsed > when:
        given[0 if side < 0 else 1] = 0.0
    sides = (around.factors.get(f"{name}_thrust", 1.0) for name in ("left", "right"))
    return given * np.array(list(sides))


def move(config: EnvConfig, hull: Hull, rates: np.ndarray, around: Around) -> None:
    """Advance a robot by one decision; `rates` of thrust, left and right [N/s]."""
    p, before = varied_vessel(config, around.factors), np.linalg.norm(hull.goal - hull.pose[:2])
    rates = rates * around.factors.get("thrust_rate", 1.0)
    for substep in range(p.substeps):
        elapsed = (substep + 1) * p.dt
        flow = current(config, around.vortices, hull.pose[:2]) + around.stream
        hull.ground = hull.water + np.append(flow, 0.0)
        hull.pose = hull.pose + hull.ground * p.dt
        hull.pose[2] %= 2 * math.pi
        if substep == 0:
            changed = hull.thrusts + rates * p.dt * p.substeps
            hull.thrusts = np.clip(changed, p.min_thrust, p.max_thrust)
        left, right = thrusts_given(config, hull, around, elapsed)
        l_angle, r_angle = hull.angles
        across = left * math.sin(l_angle) + right * math.sin(r_angle)
        lever = (
            left * math.cos(l_angle) - right * math.cos(r_angle)
        ) * p.width / 2 * p.thruster_spread - across * p.length / 2
        tau = np.array([left * math.cos(l_angle) + right * math.cos(r_angle), across, lever])
        turned = rotation(hull.pose[2])
        water, ground = turned.T @ hull.water, turned.T @ hull.ground
        if around.wind[0]:
            tau = tau + wind_force(config, around.wind, hull.pose[2], ground)
        tau = tau + wave_force(config, around.wave, hull.pose, elapsed)
        gained = acceleration(p, tau, ground, water) * p.dt
        hull.water = turned @ (water + gained)
    hull.energy = p.power_coefficient * np.abs(hull.thrusts).sum() * p.dt * p.substeps
    hull.progress = before - np.linalg.norm(hull.goal - hull.pose[:2])


def observe(
    config: EnvConfig, hulls: list[Hull], own: int, buoys: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return own features [7], objects [n, 5] nearest first, and whether it touches one."""
    hull, p, sensor = hulls[own], config.vessel, config.perception
    into_body = rotation(hull.pose[2]).T[:2, :2]
    late = sensor.delay == 1.0
    others = [
        (h.pose[:2], *((h.past[:2], h.past[2:]) if late else (h.pose[:2], h.ground[:2])), p.radius)
        for i, h in enumerate(hulls)
        if i != own
    ]
    others += [(buoy[:2], buoy[:2], np.zeros(2), buoy[2]) for buoy in buoys]
    seen, contact = [], False
    for true_place, place, velocity, radius in others:
        position = into_body @ (place - hull.pose[:2])
        distance = np.linalg.norm(position)
        bearing = abs(math.atan2(position[1], position[0]))
        if distance <= sensor.range + radius and bearing <= sensor.angle / 2:
            row = np.array([*position, *(into_body @ velocity), radius])
            seen.append((distance - radius - p.radius, row))
            contact |= np.linalg.norm(true_place - hull.pose[:2]) <= radius + p.radius
    seen.sort(key=lambda pair: pair[0])
    goal = into_body @ (hull.goal - hull.pose[:2])
    ego = np.array([*goal, *(into_body @ hull.ground[:2]), hull.ground[2], *hull.thrusts])
    objects = np.array([row for _, row in seen[:NEAREST]]).reshape(-1, 5)
    return ego, objects, bool(contact)


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
