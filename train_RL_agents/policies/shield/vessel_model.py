"""The vessel's manoeuvring model as tensor operations, for looking ahead in calm water.

It can be scripted. In calm water its decisions are those of the simulator
(`csrc/marine/vessels/wamv16.h`).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from marinenav_env.vessels import VesselConfig

STRIPS = 21  # of the cross-flow drag
RV, UR = 10, 12  # places of the terms r v and u r in `accelerations`


class Motion(NamedTuple):
    """A vessel under way, as it observes itself; tensors of one shape `[...]`.

    Attributes:
        x: position in a frame at rest, m.
        y: position, m.
        heading: clockwise, rad; not wrapped.
        vx: velocity over ground in that frame, m/s.
        vy: velocity over ground, m/s.
        yaw: yaw rate, rad/s.
        left: thrust, N.
        right: thrust, N.
    """

    x: Tensor
    y: Tensor
    heading: Tensor
    vx: Tensor
    vy: Tensor
    yaw: Tensor
    left: Tensor
    right: Tensor


class VesselModel(nn.Module):
    """Advances vessels by decisions.

    A vessel observes the velocity with which it moved last. So a substep here is the acceleration,
    then the move, and the thrusts change between those two of the first substep.

    Args:
        config: of the vessel.
    """

    acceleration: Tensor
    strips: Tensor

    def __init__(self, config: VesselConfig) -> None:
        super().__init__()
        self.cubic = config.x_uuu != 0.0
        self.has_strips = config.cross_flow != 0.0
        strips = torch.linspace(-0.5, 0.5, STRIPS, dtype=torch.float64) * config.length
        self.register_buffer("strips", strips, persistent=False)
        self.dt, self.substeps = config.dt, config.substeps
        self.decision_s = config.dt * config.substeps
        self.low, self.high = config.min_thrust, config.max_thrust
        self.register_buffer("acceleration", accelerations(config), persistent=False)

    def decide(self, motion: Motion, rates: Tensor) -> tuple[Motion, Tensor]:
        """Advance by one decision.

        Args:
            motion: `[...]` each.
            rates: thrust rates `[2, ...]` of the left and the right thruster, N/s.

        Returns:
            The motion after the decision, and the positions `[substeps, 2, ...]`.
        """
        change = rates * self.decision_s
        left = (motion.left + change[0]).clamp(self.low, self.high)
        right = (motion.right + change[1]).clamp(self.low, self.high)
        path = []
        for i in range(self.substeps):
            motion = self.advance(motion)
            path.append(torch.stack((motion.x, motion.y)))
            if i == 0:
                x, y, heading, vx, vy, yaw, _, _ = motion
                motion = Motion(x, y, heading, vx, vy, yaw, left, right)
        return motion, torch.stack(path)

    def advance(self, motion: Motion) -> Motion:
        """Accelerate by the present thrusts, then move; one substep (Fossen 2021, ch. 6.5)."""
        cos, sin = motion.heading.cos(), motion.heading.sin()
        u, v, r = cos * motion.vx + sin * motion.vy, cos * motion.vy - sin * motion.vx, motion.yaw
        size_u, size_v, size_r = u.abs(), v.abs(), r.abs()
        linear = [u, v, r, motion.left, motion.right]
        damping = [size_u * u, size_v * v, size_r * v, size_v * r, size_r * r]
        coupling = [r * v, r * r, u * r, u * v]
        further: list[Tensor] = []
        if self.cubic:
            further = [u * u * u]
        if self.has_strips:
            further = further + self.cross_flow(v, r)
        terms = torch.stack(linear + damping + coupling + further)  # [14 or more, ...]
        gain = self.acceleration.to(terms.dtype) @ terms.flatten(1)  # [3, N]
        gained = (gain * self.dt).reshape(gain.shape[:1] + u.shape)
        u, v, r = u + gained[0], v + gained[1], r + gained[2]
        vx, vy = cos * u - sin * v, sin * u + cos * v
        return Motion(
            motion.x + vx * self.dt,
            motion.y + vy * self.dt,
            motion.heading + r * self.dt,
            vx,
            vy,
            r,
            motion.left,
            motion.right,
        )

    def cross_flow(self, v: Tensor, r: Tensor) -> list[Tensor]:
        """Return what the strips resist, and its moment (`csrc/marine/vessels/hull_terms.h`)."""
        place = self.strips.to(v.dtype)
        across = v.unsqueeze(-1) + place * r.unsqueeze(-1)  # [..., strips]
        drag = across.abs() * across
        return [drag.sum(-1), (place * drag).sum(-1)]


def accelerations(p: VesselConfig) -> Tensor:
    """Return the acceleration `[3, 14]` (surge, sway, yaw) of each term of `VesselModel.advance`.

    M^-1 times the coefficients of tau - C(V) V - D(V) V in calm water, thrusters straight astern
    (Fossen, Handbook of Marine Craft Hydrodynamics and Motion Control, ch. 6.5). Cubic damping and
    cross-flow, where a hull has them, are one and two terms more.
    """
    half, moved = 0.5 * p.width * p.thruster_spread, p.mass * p.x_g
    #         u      v      r   left  right
    linear = [
        [p.x_u, 0.0, 0.0, 1.0, 1.0],
        [0.0, p.y_v, p.y_r, 0.0, 0.0],
        [0.0, p.n_v, p.n_r, half, -half],
    ]
    #         |u|u    |v|v    |r|v    |v|r    |r|r
    damping = [
        [p.x_uu, 0.0, 0.0, 0.0, 0.0],
        [0.0, p.y_vv, p.y_rv, p.y_vr, p.y_rr],
        [0.0, p.n_vv, p.n_rv, p.n_vr, p.n_rr],
    ]
    #          r v    r r    u r    u v
    coupling = [
        [p.mass - p.y_dot_v, moved - p.y_dot_r, 0.0, 0.0],
        [0.0, 0.0, p.x_dot_u - p.mass, 0.0],
        [0.0, 0.0, p.y_dot_r - moved, p.y_dot_v - p.x_dot_u],
    ]
    parts = [linear, damping, coupling]
    if p.x_uuu:
        parts.append([[p.x_uuu], [0.0], [0.0]])
    if p.cross_flow:
        strip = -p.cross_flow * p.length / (STRIPS - 1)
        parts.append([[0.0, 0.0], [strip, 0.0], [0.0, strip]])
    mass = [
        [p.mass - p.x_dot_u, 0.0, 0.0],
        [0.0, p.mass - p.y_dot_v, moved - p.y_dot_r],
        [0.0, moved - p.n_dot_v, p.izz - p.n_dot_r],
    ]
    forces = torch.cat([torch.tensor(part, dtype=torch.float64) for part in parts], 1)
    gain = torch.linalg.solve(torch.tensor(mass, dtype=torch.float64), forces)
    if p.transport_term:
        gain[0, RV] -= 1.0
        gain[1, UR] += 1.0
    return gain
