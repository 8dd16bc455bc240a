"""Features of relative motion, worked out from a raw observation before any weight.

A network of two layers on raw positions and velocities has to learn when two vessels meet and how
far apart; these features tell it. They are those of a radar plotting sheet: range, bearing, and
time and distance of the closest point of approach (TCPA, DCPA) on straight courses. All are of the
order of 1, and both modules can be scripted.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

RANGE = 20.0  # m, published sensing range
SPEED = 3.0  # m/s, near the published vessel's largest
THRUST = 1000.0  # N, the published vessel's largest
LATEST_TCPA = 10.0  # s, encounters later than that are alike
SOON = 3.0  # s, about the time in which a last escape is possible
NEAR, FAR = 1.0, 5.0  # m, clearances that a policy has to tell apart
SLOW = 0.2  # m/s, below it the direction of a relative velocity is noise


class OwnMotion(nn.Module):
    """What a robot's own features say of its way to the goal.

    Direction of the goal, its distance (linear, and resolved near it), velocity in the body frame,
    along the line to the goal and across it, yaw rate, thrusts.
    """

    features = 11

    def __init__(self) -> None:
        super().__init__()
        self.range, self.near, self.speed, self.thrust = 2.0 * RANGE, FAR, SPEED, THRUST

    def forward(self, ego: Tensor) -> Tensor:
        """Return features `[..., 11]` of the simulator's `[..., 7]`."""
        x, y, u, v, yaw, left, right = ego.unbind(-1)  # [...] each
        distance = length(x, y).clamp(min=1e-3)
        x, y = x / distance, y / distance
        u, v = u / self.speed, v / self.speed
        along, across = x * u + y * v, x * v - y * u
        far, near = distance / self.range, torch.exp(-distance / self.near)
        thrusts = left / self.thrust, right / self.thrust
        return torch.stack((x, y, far, near, u, v, along, across, yaw, thrusts[0], thrusts[1]), -1)


class RelativeMotion(nn.Module):
    """How objects move as seen from a robot.

    Direction, relative velocity, the object's own velocity, clearance (linear, and resolved at two
    scales), TCPA, clearance at it (linear, resolved, and resolved where it is soon), on which side
    the object passes and how far off, whether it is a vessel.

    With p the relative position and w the relative velocity, TCPA = -p w / w^2 and
    DCPA = |p + w TCPA|. Vessels and buoys are told apart by their observed radius, which is at most
    the true one: what looks larger than the largest buoy is a vessel, with a hull like the robot's.

    Args:
        own_radius: of the robot's hull, m.
        buoy_radius: of the largest buoy, m.
    """

    features = 15

    def __init__(self, own_radius: float, buoy_radius: float) -> None:
        super().__init__()
        self.own_radius, self.buoy_radius = own_radius, buoy_radius
        self.range, self.speed, self.near, self.far = RANGE, SPEED, NEAR, FAR
        self.latest, self.soon, self.slow = LATEST_TCPA, SOON, SLOW

    def forward(self, objects: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Return features `[..., 15]` of objects `[..., 5]` as the simulator writes them.

        Args:
            objects: of one decision.
            u: forward velocity of the robot itself, broadcast to `[...]`, m/s.
            v: to starboard, likewise.
        """
        # Features first: operations on whole rows, where the last dimension is too short for them.
        x, y, vx, vy, seen = objects.movedim(-1, 0).contiguous().unbind(0)  # [...] each
        vessel = seen > self.buoy_radius
        reach = torch.where(vessel, seen.clamp(min=self.own_radius), seen) + self.own_radius
        distance = length(x, y).clamp(min=1e-3)
        clearance = distance - reach
        wx, wy = vx - u, vy - v
        speed = length(wx, wy) + self.slow
        tcpa = (-(x * wx + y * wy) / speed.square()).clamp(0.0, self.latest)
        passing = length(x + wx * tcpa, y + wy * tcpa) - reach
        tight = self.closeness(passing, self.near)
        parts = (
            x / distance,
            y / distance,
            wx / self.speed,
            wy / self.speed,
            vx / self.speed,
            vy / self.speed,
            clearance / self.range,
            self.closeness(clearance, self.near),
            self.closeness(clearance, self.far),
            tcpa / self.latest,
            passing / self.range,
            tight,
            tight * torch.exp(-tcpa / self.soon),
            (x * wy - y * wx) / (speed * self.range),
            vessel.to(seen.dtype),
        )
        return torch.stack(parts, 0).movedim(0, -1)

    def closeness(self, gap: Tensor, scale: float) -> Tensor:
        """Return 1 at contact and 1/e at the scale [m]; a hull's overlap counts to 1 m."""
        return torch.exp(-gap.clamp(min=-self.near) / scale)


def length(x: Tensor, y: Tensor) -> Tensor:
    """Return the length of a vector; quicker than hypot, and far from overflow here."""
    return torch.sqrt(x * x + y * y)
