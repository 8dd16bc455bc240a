"""Vessels: the parameters of their hull, thrusters and time step.

A second vessel is a dataclass beside this one, whose fields its model in the core packs by name.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from marinenav_env.fields import PUBLISHED, Settings, setting

THRUST_RATES = (0.0, -500.0, -1000.0, 500.0, 1000.0)
MOST_SUBSTEPS = 2**24
"""Up to here every whole number is a float32, the type in which the core may hold a count."""

wamv = functools.partial(setting, source=PUBLISHED)


@dataclass(frozen=True)
class VesselConfig(Settings):
    """WAM-V 16, 3-DOF manoeuvring model after Fossen ch. 6.5."""

    dt: float = wamv(0.05, unit="s", above=0.0)  # Euler substep
    substeps: int = wamv(10, unit="substeps", low=1, high=MOST_SUBSTEPS)  # a decision
    length: float = wamv(5.0, unit="m", above=0.0)
    width: float = wamv(2.5, unit="m", above=0.0)
    radius: float = wamv(0.5 * math.hypot(5.0, 2.5), unit="m", above=0.0)  # of collision, detection
    mass: float = wamv(400.0, unit="kg")  # fully loaded
    izz: float = wamv(450.0, unit="kg m^2")  # yaw inertia
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
    min_thrust: float = wamv(-500.0, unit="N")  # each thruster
    max_thrust: float = wamv(1000.0, unit="N")
    max_thrust_rate: float = wamv(1000.0, unit="N/s")  # at continuous action 1
    power_coefficient: float = wamv(1.0, unit="-")  # energy (N s) per |thrust| and second
    # Discrete choices: the left ones are the outer index of an action, the right ones the inner.
    left_thrust_rates: tuple[float, ...] = wamv(THRUST_RATES, unit="N/s", count=5)
    right_thrust_rates: tuple[float, ...] = wamv(THRUST_RATES, unit="N/s", count=5)

    def check(self) -> None:
        """Refuse a mass matrix without a positive definite inverse, and thrusts without a range."""
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
            self.min_thrust < self.max_thrust,
            "min_thrust",
            f"must be below max_thrust = {self.max_thrust}",
        )
