"""What a vessel has around it, moved ahead in time from one observation; it can be scripted."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from train_RL_agents.agents.relative_motion import looks_like_vessel
from train_RL_agents.policies.shield.vessel_model import Motion


class Scene(NamedTuple):
    """Goal and objects in the vessel's body frame at the decision, which then stays at rest.

    Attributes:
        goal: `[2, 1, N]`, m.
        position: `[2, 1, N, K]`, m.
        velocity: `[2, 1, N, K]` over ground, m/s; 0 for buoys.
        seen_radius: `[N, K]`, m, as observed.
        radius: `[N, K]`, m, of the object's class.
        present: `[N, K]` bool.
        vessel: `[N, K]` bool, whether the object is no buoy.
    """

    goal: Tensor
    position: Tensor
    velocity: Tensor
    seen_radius: Tensor
    radius: Tensor
    present: Tensor
    vessel: Tensor


def scene_of(
    observation: tuple[Tensor, Tensor, Tensor], buoy_radius: float, vessel_radius: float
) -> Scene:
    """Return the scene of an observation `[N, ...]`.

    The seen radius is at most the true one: an object that looks larger than the largest buoy is a
    vessel, any other one is taken as the largest buoy, and as at rest.

    Args:
        observation: of one frame.
        buoy_radius: of the largest buoy, m.
        vessel_radius: of vessels, m.
    """
    ego, objects, mask = observation
    seen = objects[..., 4]
    vessel = looks_like_vessel(seen, buoy_radius)
    radius = torch.where(vessel, seen.clamp(min=vessel_radius), torch.full_like(seen, buoy_radius))
    return Scene(
        ego[:, :2].t().unsqueeze(1),
        objects[..., :2].permute(2, 0, 1).unsqueeze(1),
        (objects[..., 2:4] * vessel.unsqueeze(-1)).permute(2, 0, 1).unsqueeze(1),
        seen,
        radius,
        mask > 0.5,
        vessel,
    )


def start(ego: Tensor, plans: int) -> Motion:
    """Return the motion `[P, N]` at the decision, from own features `[N, 7]`."""
    u, v, yaw, left, right = ego[:, 2:7].t().unsqueeze(1).expand(5, plans, -1).unbind(0)
    rest = torch.zeros_like(u)
    return Motion(rest, rest, rest, u, v, yaw, left, right)


def clearances(scene: Scene, path: Tensor, times: Tensor, own_radius: float) -> Tensor:
    """Return the least clearance `[P, N, K]` to each object along a path; infinite where none is.

    Args:
        scene: of N vessels.
        path: positions `[S, 2, P, N]`.
        times: of them after the decision, `[S]`, s.
        own_radius: m.
    """
    at = scene.velocity * times.reshape(-1, 1, 1, 1, 1) + scene.position  # [S, 2, 1, N, K]
    apart = at - path.unsqueeze(-1)  # [S, 2, P, N, K]
    centre = apart.square().sum(1).amin(0).sqrt()  # [P, N, K]
    gap = centre - scene.radius - own_radius
    return torch.where(scene.present, gap, torch.full_like(gap, math.inf))


def observe(
    scene: Scene, shown: Tensor, motion: Motion, seconds: float, closer: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what vessels are to see of a scene `[P, N, ...]`, nearest first.

    Args:
        scene: of N vessels.
        shown: `[N, K]` bool, the objects that they see.
        motion: `[P, N]` each.
        seconds: since the decision.
        closer: by how much objects seem closer along the line of sight, m.
    """
    cos, sin = motion.heading.cos(), motion.heading.sin()  # [P, N]
    goal = to_body(scene.goal[0] - motion.x, scene.goal[1] - motion.y, cos, sin)
    velocity = to_body(motion.vx, motion.vy, cos, sin)
    own = goal + velocity + [motion.yaw, motion.left, motion.right]

    cos, sin = cos.unsqueeze(-1), sin.unsqueeze(-1)  # [P, N, 1]
    at = scene.position + scene.velocity * seconds  # [2, 1, N, K]
    x, y = to_body(at[0] - motion.x.unsqueeze(-1), at[1] - motion.y.unsqueeze(-1), cos, sin)
    vx, vy = to_body(scene.velocity[0], scene.velocity[1], cos, sin)
    distance = length(x, y)  # [P, N, K]
    near = nearness(distance, closer)
    radius = scene.seen_radius.expand_as(x)
    objects = torch.stack((x * near, y * near, vx, vy, radius), -1)  # [P, N, K, 5]
    mask = shown.to(x.dtype).expand_as(x)
    far = torch.where(shown, distance - radius, torch.full_like(distance, math.inf))
    order = far.argsort(-1)
    mask = mask.gather(-1, order)
    objects = objects.gather(-2, order.unsqueeze(-1).expand(-1, -1, -1, 5)) * mask.unsqueeze(-1)
    return torch.stack(own, -1), objects, mask


def nearness(distance: Tensor, closer: float) -> Tensor:
    """Return the share of a distance [m] at which what seems closer by `closer` is seen."""
    return (1.0 - closer / distance.clamp(min=1e-3)).clamp(min=0.0)


def length(x: Tensor, y: Tensor) -> Tensor:
    """Return the length of (x, y); ONNX has no `torch.hypot`."""
    return (x.square() + y.square()).sqrt()


def to_body(x: Tensor, y: Tensor, cos: Tensor, sin: Tensor) -> list[Tensor]:
    """Return the components of a vector along and to starboard of a heading."""
    return [cos * x + sin * y, cos * y - sin * x]
