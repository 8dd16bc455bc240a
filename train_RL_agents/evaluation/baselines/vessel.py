"""The vessel as the classical controllers know it: how it holds a velocity."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig

CHOSEN_ON = VesselConfig()
"""Speeds, yaw rates and margins of hulls were chosen on the WAM-V 16."""
MOST_YAW_RATE = 0.95  # rad/s, of the WAM-V 16
LEAST_SURGE = -1.0  # m/s, slowest velocity astern that is asked for; of the WAM-V 16


class Gains(NamedTuple):
    """Gains of the velocity controller.

    Attributes:
        lead: share of the velocity error that the course aims beyond the desired one.
        course: yaw rate per course error [1/s].
        yaw_s: time constant of the yaw rate [s].
        surge_s: time constant of the surge velocity [s].
    """

    lead: float = 0.35
    course: float = 0.83
    yaw_s: float = 0.6
    surge_s: float = 0.57

    def for_thrusters(self, slowness: float) -> Gains:
        """Return the gains for thrusters that take so many times longer than the WAM-V 16's.

        By its root: a loop whose actuator is limited in rate may be as fast as that.
        """
        pace = math.sqrt(max(slowness, 1.0))
        return Gains(self.lead, self.course / pace, self.yaw_s * pace, self.surge_s * pace)


TRACKING = Gains()
"""By random search over steps of 10 to 120 degrees at 1.5 and 2.5 m/s, on the WAM-V 16."""


class VesselModel(NamedTuple):
    """A vessel, with what follows from its parameters.

    Attributes:
        vessel: the parameters.
        speed_ratio: top speed, in that of the WAM-V 16.
        yaw_ratio: top yaw rate, likewise.
        hull_ratio: radius, likewise.
        slowness: time in which a thruster changes from its least to its greatest thrust, likewise.
    """

    vessel: VesselConfig
    speed_ratio: float
    yaw_ratio: float
    hull_ratio: float
    slowness: float

    @property
    def decision_s(self) -> float:
        """Time of a decision, s."""
        return self.vessel.dt * self.vessel.substeps

    @property
    def arm(self) -> float:
        """Lever of a thruster, m."""
        return 0.5 * self.vessel.width * self.vessel.thruster_spread

    @property
    def most_yaw_rate(self) -> float:
        """Largest yaw rate that is asked for, rad/s."""
        return MOST_YAW_RATE * self.yaw_ratio

    @property
    def least_surge(self) -> float:
        """Slowest velocity astern that is asked for, m/s."""
        return LEAST_SURGE * self.speed_ratio


def model_of(vessel: VesselConfig) -> VesselModel:
    """Return what the controllers take from a vessel.

    Raises:
        ConfigError: it has no top speed or no top yaw rate.
    """
    for name, top, damping in (
        ("speed", vessel.top_speed, "x_u, x_uu or x_uuu"),
        ("yaw rate", vessel.top_yaw_rate, "n_r, n_rr or cross_flow"),
    ):
        if math.isinf(top):
            raise ConfigError(f"env.vessel has no top {name}: give it damping ({damping})")
    return VesselModel(
        vessel,
        vessel.top_speed / CHOSEN_ON.top_speed,
        vessel.top_yaw_rate / CHOSEN_ON.top_yaw_rate,
        vessel.radius / CHOSEN_ON.radius,
        thrust_time(vessel) / thrust_time(CHOSEN_ON),
    )


def thrust_time(vessel: VesselConfig) -> float:
    """Return how long a thruster takes from its least to its greatest thrust, s."""
    return (vessel.max_thrust - vessel.min_thrust) / vessel.max_thrust_rate


def hold_velocity(
    model: VesselModel, ego: Tensor, desired: Tensor, gains: Gains = TRACKING
) -> Tensor:
    """Return the thrusts that lead to a velocity [..., 2] (N, left and right).

    Feedback on yaw rate and surge, with the model's own forces fed forward.

    Args:
        model: of the vessel.
        ego: [..., 7] observed features.
        desired: [..., 2] velocity over ground in the body frame [m/s].
        gains: of the controller.
    """
    aim = desired + gains.lead * (desired - ego[..., 2:4])
    course = torch.atan2(aim[..., 1], aim[..., 0])
    course = torch.where(aim.norm(dim=-1) < 0.05, 0.0, course)
    return hold_course(model, ego, course, desired[..., 0].clamp(min=model.least_surge), gains)


def hold_course(
    model: VesselModel, ego: Tensor, course: Tensor, surge: Tensor, gains: Gains
) -> Tensor:
    """Return the thrusts that turn by a course error [rad] and lead to a surge velocity [m/s]."""
    hull, gains = model.vessel, gains.for_thrusters(model.slowness)
    _, _, u, v, r, _, _ = ego.unbind(-1)
    rate = (gains.course * course).clamp(-model.most_yaw_rate, model.most_yaw_rate)
    yaw = -(hull.n_r + hull.n_rr * rate.abs()) * rate
    yaw = yaw + (hull.izz - hull.n_dot_r) * (rate - r) / gains.yaw_s
    yaw = yaw + hull.x_dot_u * u * v
    speed = u.abs()
    forward = -(hull.x_u + (hull.x_uu + hull.x_uuu * speed) * speed) * u
    forward = forward + (hull.mass - hull.x_dot_u) * (surge - u) / gains.surge_s
    forward = forward - hull.mass * r * v
    most = hull.max_thrust - hull.min_thrust
    difference = (yaw / model.arm).clamp(-most, most)
    forward = torch.maximum(forward, 2.0 * hull.min_thrust + difference.abs())
    forward = torch.minimum(forward, 2.0 * hull.max_thrust - difference.abs())
    return torch.stack((forward + difference, forward - difference), -1) / 2.0


def action_for(model: VesselModel, ego: Tensor, thrust: Tensor) -> Tensor:
    """Return the action [..., 2] in [-1, 1] that leads to thrusts as far as one decision can."""
    change = model.vessel.max_thrust_rate * model.decision_s
    return ((thrust - ego[..., 5:7]) / change).clamp(-1.0, 1.0)
