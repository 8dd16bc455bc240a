"""The vessel as the classical controllers know it: how it holds a velocity."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.vessels import VesselConfig

HULL = VesselConfig()
MASS, INERTIA = HULL.mass - HULL.x_dot_u, HULL.izz - HULL.n_dot_r
"""Of surge [kg] and yaw [kg m^2], with added mass."""
ARM = HULL.width / 2.0
DECISION_S = HULL.dt * HULL.substeps
THRUST_CHANGE = HULL.max_thrust_rate * DECISION_S
"""N, of a decision at action 1."""
LEAST_SURGE = -1.0  # m/s, slowest velocity astern that is asked for


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


TRACKING = Gains()
"""By random search over steps of 10 to 120 degrees at 1.5 and 2.5 m/s."""
MOST_YAW_RATE = 0.95  # rad/s


def hold_velocity(ego: Tensor, desired: Tensor, gains: Gains = TRACKING) -> Tensor:
    """Return the thrusts that lead to a velocity [..., 2] (N, left and right).

    Feedback on yaw rate and surge, with the model's own forces fed forward.

    Args:
        ego: [..., 7] observed features.
        desired: [..., 2] velocity over ground in the body frame [m/s].
        gains: of the controller.
    """
    aim = desired + gains.lead * (desired - ego[..., 2:4])
    course = torch.atan2(aim[..., 1], aim[..., 0])
    course = torch.where(aim.norm(dim=-1) < 0.05, 0.0, course)
    return hold_course(ego, course, desired[..., 0].clamp(min=LEAST_SURGE), gains)


def hold_course(ego: Tensor, course: Tensor, surge: Tensor, gains: Gains) -> Tensor:
    """Return the thrusts that turn by a course error [rad] and lead to a surge velocity [m/s]."""
    _, _, u, v, r, _, _ = ego.unbind(-1)
    rate = (gains.course * course).clamp(-MOST_YAW_RATE, MOST_YAW_RATE)
    yaw = -(HULL.n_r + HULL.n_rr * rate.abs()) * rate + INERTIA * (rate - r) / gains.yaw_s
    yaw = yaw + HULL.x_dot_u * u * v
    forward = -(HULL.x_u + HULL.x_uu * u.abs()) * u + MASS * (surge - u) / gains.surge_s
    forward = forward - HULL.mass * r * v
    most = HULL.max_thrust - HULL.min_thrust
    difference = (yaw / ARM).clamp(-most, most)
    forward = torch.maximum(forward, 2.0 * HULL.min_thrust + difference.abs())
    forward = torch.minimum(forward, 2.0 * HULL.max_thrust - difference.abs())
    return torch.stack((forward + difference, forward - difference), -1) / 2.0


def action_for(ego: Tensor, thrust: Tensor) -> Tensor:
    """Return the action [..., 2] in [-1, 1] that leads to thrusts as far as one decision can."""
    return ((thrust - ego[..., 5:7]) / THRUST_CHANGE).clamp(-1.0, 1.0)
