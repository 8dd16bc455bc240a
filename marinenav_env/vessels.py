"""Vessels: the parameters of their hull, thrusters and time step.

`VESSELS` holds those that a configuration may name, as in ``env.vessel=otter``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from marinenav_env.fields import PUBLISHED, Settings, setting

THRUST_RATES = (0.0, -500.0, -1000.0, 500.0, 1000.0)
MOST_SUBSTEPS = 2**24
"""Up to here every whole number is a float32, the type in which the core may hold a count."""

wamv = functools.partial(setting, source=PUBLISHED)


further = functools.partial(setting, source="of further vessels: docs/physics.md")


@dataclass(frozen=True)
class VesselConfig(Settings):
    """3-DOF manoeuvring model after Fossen ch. 6.5 with two thrusters; by default the WAM-V 16."""

    presets: ClassVar[Mapping[str, Any]] = {}

    name: str = wamv("wamv16", unit="-")
    """Of the vessel whose values the fields have that are not given."""
    dt: float = wamv(0.05, unit="s", above=0.0)  # Euler substep
    substeps: int = wamv(10, unit="substeps", low=1, high=MOST_SUBSTEPS)  # a decision
    length: float = wamv(5.0, unit="m", above=0.0)
    width: float = wamv(2.5, unit="m", above=0.0)
    radius: float = wamv(0.5 * math.hypot(5.0, 2.5), unit="m", above=0.0)  # of collision, detection
    mass: float = wamv(400.0, unit="kg")  # fully loaded
    izz: float = wamv(450.0, unit="kg m^2", above=0.0)  # yaw inertia
    x_dot_u: float = wamv(20.0, unit="kg")  # added mass (sign as published)
    y_dot_v: float = wamv(0.0, unit="kg")
    y_dot_r: float = wamv(0.0, unit="kg m")
    n_dot_r: float = wamv(-980.0, unit="kg m^2")
    n_dot_v: float = wamv(0.0, unit="kg m")
    x_u: float = wamv(-100.0, unit="N s/m", high=0.0)  # linear damping
    x_uu: float = wamv(-150.0, unit="N s^2/m^2", high=0.0)  # quadratic damping
    y_v: float = wamv(-100.0, unit="N s/m", high=0.0)
    y_vv: float = wamv(-150.0, unit="N s^2/m^2", high=0.0)
    y_r: float = wamv(0.0, unit="N s")
    y_rv: float = wamv(0.0, unit="N s^2/m")
    y_vr: float = wamv(0.0, unit="N s^2/m")
    y_rr: float = wamv(0.0, unit="N s^2")
    n_r: float = wamv(-980.0, unit="N m s", high=0.0)
    n_rr: float = wamv(-950.0, unit="N m s^2", high=0.0)
    n_v: float = wamv(0.0, unit="N s")
    n_vv: float = wamv(0.0, unit="N s^2/m")
    n_rv: float = wamv(0.0, unit="N s^2")
    n_vr: float = wamv(0.0, unit="N s^2")
    x_g: float = further(0.0, unit="m")  # centre of gravity ahead of the origin
    x_uuu: float = further(0.0, unit="N s^3/m^3", high=0.0)  # cubic damping
    cross_flow: float = further(0.0, unit="N s^2/m^3", low=0.0)
    """Cross-flow drag of a metre of the hull: half the density times draught and coefficient."""
    thruster_spread: float = further(1.0, unit="-", above=0.0)
    """Distance between the thrusters, as a share of the hull's width."""
    transport_term: bool = further(False, unit="-")
    """Take the turning of the body frame out of the acceleration, since the velocity is kept in the
    world frame; the published simulator leaves it in."""
    min_thrust: float = wamv(-500.0, unit="N")  # each thruster
    max_thrust: float = wamv(1000.0, unit="N")
    max_thrust_rate: float = wamv(1000.0, unit="N/s", above=0.0)  # at continuous action 1
    power_coefficient: float = wamv(1.0, unit="-")  # energy (N s) per |thrust| and second
    # Discrete choices: the left ones are the outer index of an action, the right ones the inner.
    left_thrust_rates: tuple[float, ...] = wamv(THRUST_RATES, unit="N/s", count=5)
    right_thrust_rates: tuple[float, ...] = wamv(THRUST_RATES, unit="N/s", count=5)

    @property
    def discrete_thrust_rates(self) -> tuple[tuple[float, float], ...]:
        """Rates of the left and the right thruster, N/s, of every index of a discrete action."""
        return tuple(itertools.product(self.left_thrust_rates, self.right_thrust_rates))

    def check(self) -> None:
        """Refuse a mass matrix without a positive definite inverse, and thrusts without a range."""
        self.require(
            self.name in (self.presets or [self.name]),
            "name",
            f"choose one of {', '.join(self.presets)}",
        )
        if self.name != type(self).name:
            own = [f for f in fields(self) if f.name != "name"]
            self.require(
                any(getattr(self, field.name) != field.default for field in own),
                "name",
                f"the fields have the values of another vessel: take VESSELS[{self.name!r}]",
            )
        self.require(
            self.mass > max(self.x_dot_u, self.y_dot_v),
            "mass",
            "the mass must exceed x_dot_u and y_dot_v, or the mass matrix is singular",
        )
        self.require(self.izz > self.n_dot_r, "izz", "the inertia must exceed n_dot_r")
        sway_yaw = (self.mass - self.y_dot_v) * (self.izz - self.n_dot_r)
        self.require(
            sway_yaw > self.y_dot_r * self.n_dot_v,
            "y_dot_r",
            f"y_dot_r * n_dot_v (n_dot_v = {self.n_dot_v!r}) must be below (mass - y_dot_v) *"
            f" (izz - n_dot_r) = {sway_yaw!r}, or the mass matrix is singular or indefinite",
        )
        moved = self.mass * self.x_g
        self.require(
            sway_yaw > (self.y_dot_r - moved) * (self.n_dot_v - moved),
            "x_g",
            f"(mass * x_g)^2 = {moved * moved:g} must be well below (mass - y_dot_v) *"
            f" (izz - n_dot_r) = {sway_yaw:g}, or the mass matrix is singular or indefinite; izz is"
            " about the origin",
        )
        for name, damping, inertia in (
            ("x_u", self.x_u, self.mass - self.x_dot_u),
            ("y_v", self.y_v, self.mass - self.y_dot_v),
            ("n_r", self.n_r, self.izz - self.n_dot_r),
        ):
            self.require(
                -damping * self.dt <= inertia,
                name,
                f"one step of dt {self.dt} s would more than stop a vessel of inertia {inertia:g}; "
                "give less damping, a shorter dt or more mass",
            )
        self.require(
            self.min_thrust <= 0.0, "min_thrust", "vessels begin without thrust; give 0 or less"
        )
        self.require(self.max_thrust > 0.0, "max_thrust", "give more than 0")

    @property
    def top_speed(self) -> float:
        """Speed straight ahead at full thrust, m/s; infinite without damping."""
        return _balance(2.0 * self.max_thrust, -self.x_u, -self.x_uu, -self.x_uuu)

    @property
    def top_yaw_rate(self) -> float:
        """Yaw rate at opposite full thrusts without sway, rad/s; infinite without damping."""
        lever = 0.5 * self.width * self.thruster_spread
        # The integral of |x|^3; as products, since powers of huge lengths raise an error.
        strips = self.cross_flow * self.length * self.length * self.length * self.length / 32.0
        moment = lever * (self.max_thrust - self.min_thrust)
        return _balance(moment, -self.n_r, strips - self.n_rr, 0.0)


def _balance(force: float, linear: float, quadratic: float, cubic: float) -> float:
    """Return the positive speed at which damping equals a force, by bisection."""
    if linear <= 0.0 and quadratic <= 0.0 and cubic <= 0.0:
        return math.inf
    low, high = 0.0, 1.0

    def damping(speed: float) -> float:
        return (linear + (quadratic + cubic * speed) * speed) * speed

    while damping(high) < force:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if damping(middle) < force else (low, middle)
    return low


def _rates(largest: float) -> dict[str, Any]:
    """Return the thrust rates of a vessel, N/s: its discrete choices are those of the WAM-V 16."""
    choices = tuple(share * largest for share in (0.0, -0.5, -1.0, 0.5, 1.0))
    return {
        "max_thrust_rate": largest,
        "left_thrust_rates": choices,
        "right_thrust_rates": choices,
    }


OTTER_DRAUGHT = 80.0 / 1025.0 / (2.0 * 0.4 * 0.25 * 2.0)  # m, 80 kg on two pontoons
OTTER = VesselConfig(
    name="otter",
    length=2.0,
    width=1.08,
    radius=0.5 * math.hypot(2.0, 1.08),
    mass=80.0,  # 55 kg and 25 kg of payload
    izz=16.97788,  # about the origin
    x_g=0.153125,
    x_dot_u=-5.5,
    y_dot_v=-82.5,
    n_dot_r=-25.67357,
    x_u=-77.55443,
    x_uu=0.0,
    y_v=-162.5,
    y_vv=0.0,
    n_r=-42.65145,
    n_rr=-426.5145,
    cross_flow=0.5 * 1026.0 * OTTER_DRAUGHT * 1.0042,
    thruster_spread=2.0 * 0.395 / 1.08,
    transport_term=True,
    min_thrust=-66.71,
    max_thrust=119.68,
    **_rates(120.0),
)
"""Maritime Robotics Otter (PythonVehicleSimulator c717e07, otter.py, surge, sway and yaw of it)."""

CYBERSHIP2 = VesselConfig(
    name="cybership2",
    length=1.255,
    width=0.29,
    radius=0.5 * math.hypot(1.255, 0.29),
    mass=23.8,
    izz=1.76,
    x_g=0.046,
    x_dot_u=-2.0,
    y_dot_v=-10.0,
    n_dot_r=-1.0,
    x_u=-0.72253,
    x_uu=-1.32742,
    x_uuu=-5.86643,
    y_v=-0.88965,
    y_vv=-36.47287,
    y_rv=-0.805,
    y_r=-7.25,
    y_vr=-0.845,
    y_rr=-3.45,
    n_v=0.0313,
    n_vv=3.95645,
    n_rv=0.13,
    n_r=-1.9,
    n_vr=0.08,
    n_rr=-0.75,
    thruster_spread=0.2 / 0.29,
    transport_term=True,
    min_thrust=-0.5,
    max_thrust=1.0,
    **_rates(1.0),
)
"""CyberShip II (Skjetne et al. 2004, as in TUD_RL 92a34ba, CybershipII.py). Its thrusters are an
estimate: two of them give gym-auv's largest thrust, 2 N, and moment, 0.15 N m."""

HERON = VesselConfig(
    name="heron",
    length=1.3,
    width=1.0,
    radius=0.5 * math.hypot(1.3, 1.0),
    mass=35.96,
    izz=35.96 * (1.3**2 + 1.0**2) / 12.0,  # of a plate: none was traced
    x_dot_u=0.0,
    n_dot_r=0.0,
    x_u=0.0,
    x_uu=-17.2576,
    y_v=-99.99,
    y_vv=-99.99,
    n_r=-0.83,
    n_rr=-17.336,
    thruster_spread=0.75,  # an estimate: none was traced
    transport_term=True,
    min_thrust=-5.0,
    max_thrust=24.0,
    **_rates(20.0),
)
"""Clearpath Heron, before: Kingfisher (RANS b3a6770, the hydrodynamics of its IROS 2024 study)."""

VESSELS = {vessel.name: vessel for vessel in (VesselConfig(), OTTER, CYBERSHIP2, HERON)}
"""Vessels by the name that a configuration may give."""
VesselConfig.presets = VESSELS
