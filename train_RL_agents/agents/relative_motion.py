"""Features of relative motion, worked out from a raw observation before any weight.

A network of two layers on raw positions and velocities has to learn when two vessels meet and how
far apart; these features tell it. They are those of a radar plotting sheet: range, bearing, and
time and distance of the closest point of approach (TCPA, DCPA) on straight courses. All are of the
order of 1, and both modules can be scripted.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

RANGE = 20.0  # m, published sensing range
SPEED = 3.0  # m/s, near the published vessel's largest
TURNING_AND_THRUSTS = (1.0, 1000.0, 1000.0)  # rad/s and N, the latter its largest
LATEST_TCPA = 10.0  # s, encounters later than that are alike
SOON = 3.0  # s, about the time in which a last escape is possible
NEAR, FAR = 1.0, 5.0  # m, clearances that a policy has to tell apart
SLOW = 0.2  # m/s, below it the direction of a relative velocity is noise


class OwnMotion(nn.Module):
    """What a robot's own features say of its way to the goal.

    Direction of the goal, its distance (linear, and resolved near it), velocity in the body frame,
    along the line to the goal and across it; then whatever else the robot knows of itself.

    Args:
        rest: divisors of the features after goal_x, goal_y, u and v.
    """

    def __init__(self, rest: Sequence[float]) -> None:
        super().__init__()
        self.range, self.near, self.speed = 2.0 * RANGE, FAR, SPEED
        self.rest: Tensor  # here, because TorchScript cannot read it in the class
        self.register_buffer("rest", torch.tensor(tuple(rest)), persistent=False)
        self.features = 8 + len(rest)

    def forward(self, ego: Tensor) -> Tensor:
        """Return features `[..., 8 + E]` of the simulator's `[..., 4 + E]`."""
        x, y, u, v = ego[..., :4].unbind(-1)  # [...] each
        distance = length(x, y).clamp(min=1e-3)
        x, y = x / distance, y / distance
        u, v = u / self.speed, v / self.speed
        along, across = x * u + y * v, x * v - y * u
        far, near = distance / self.range, torch.exp(-distance / self.near)
        way = torch.stack((x, y, far, near, u, v, along, across), -1)
        return torch.cat((way, ego[..., 4:] / self.rest), -1)


class RelativeMotion(nn.Module):
    """How objects move as seen from a robot.

    Direction, relative velocity, the object's own velocity, clearance (linear, and resolved at two
    scales), TCPA, clearance at it (linear, resolved, and resolved where it is soon), on which side
    the object passes and how far off, whether it is a vessel.

    With p the relative position and w the relative velocity, TCPA = -p w / w^2 and
    DCPA = |p + w TCPA|.
    """

    features = 15

    def __init__(self) -> None:
        super().__init__()
        self.range, self.speed, self.near, self.far = RANGE, SPEED, NEAR, FAR
        self.latest, self.soon, self.slow = LATEST_TCPA, SOON, SLOW

    def forward(
        self,
        place: tuple[Tensor, Tensor, Tensor, Tensor],
        reach: Tensor,
        vessel: Tensor,
        u: Tensor,
        v: Tensor,
    ) -> Tensor:
        """Return features `[..., 15]`; every argument is `[...]` or broadcasts to it.

        Args:
            place: x, y [m] and v_x, v_y [m/s] of each object, body frame of the robot.
            reach: distance of the centres at contact, m.
            vessel: whether the object is one.
            u: forward velocity of the robot itself, m/s.
            v: to starboard, likewise.
        """
        x, y, vx, vy = place
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
            vessel.to(x.dtype),
        )
        return torch.stack(parts, 0).movedim(0, -1)

    def closeness(self, gap: Tensor, scale: float) -> Tensor:
        """Return 1 at contact and 1/e at the scale [m]; a hull's overlap counts to 1 m."""
        return torch.exp(-gap.clamp(min=-self.near) / scale)


def columns(rows: Tensor) -> Tensor:
    """Return `[F, ...]` of features `[..., F]`: operations need whole rows to be quick."""
    return rows.movedim(rows.dim() - 1, 0).contiguous()  # ONNX Runtime refuses -1


def looks_like_vessel(seen_radius: Tensor, buoy_radius: float) -> Tensor:
    """Return whether objects look larger than the largest buoy.

    By more than float32 rounds: in float64 a buoy that a float32 observation shows as 1.2 m, which
    is 1.2000000477, is none.
    """
    return seen_radius > buoy_radius * (1.0 + 1e-6)


def length(x: Tensor, y: Tensor) -> Tensor:
    """Return the length of a vector; quicker than hypot, and far from overflow here."""
    return torch.sqrt(x * x + y * y)
