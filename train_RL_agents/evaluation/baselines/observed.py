"""What the classical controllers make of an observation; body frame, x forward, y starboard."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.kernel.plans import Sight

VESSEL_FROM = 1.3
"""m, observed radius above which an object is a vessel: noise shows a buoy of 1 m at 0.6 to 1 m, a
WAM-V 16 at 1.7 to 2.8 m."""
LEAST_SEEN = 2.0 * PerceptionConfig().radius_mean_ratio - 1.0
"""Share of its radius that an object has at least as observed."""
STATIC_BELOW = 0.3  # m/s, of a buoy with noise
BUOY_RADIUS = EnvConfig().scenario.buoy_radius_max


class Objects(NamedTuple):
    """The objects that a vessel observes; vectors are [..., K, 2].

    Attributes:
        position: relative [m].
        velocity: over ground [m/s].
        radius: [..., K] as it is if it is one of the known two kinds [m]; the larger one of the
            two where the vessels are so small that radii do not tell.
        static: [..., K] bool.
        present: [..., K] bool.
    """

    position: Tensor
    velocity: Tensor
    radius: Tensor
    static: Tensor
    present: Tensor


def objects_of(observation: Observation, hull_radius: float) -> Objects:
    """Return the observed objects."""
    rows = observation.objects
    velocity, seen = rows[..., 2:4], rows[..., 4]
    vessel_from, smallest = math.inf, max(BUOY_RADIUS, hull_radius)
    if are_told_apart(hull_radius):
        vessel_from = min(VESSEL_FROM, 0.5 * (BUOY_RADIUS + LEAST_SEEN * hull_radius))
        smallest = BUOY_RADIUS
    small = seen <= vessel_from
    radius = torch.where(small, smallest, hull_radius)
    static = small & (velocity.norm(dim=-1) < STATIC_BELOW)
    return Objects(rows[..., :2], velocity, radius, static, observation.mask > 0.0)


def are_told_apart(hull_radius: float) -> bool:
    """Return whether vessels always look larger than buoys."""
    return LEAST_SEEN * hull_radius > BUOY_RADIUS


def flat(observation: Observation) -> tuple[Sight, list[int]]:
    """Return an observation as the core takes it, [N, ...], and the dimensions that N is."""
    lead = list(observation.ego.shape[:-1])
    ego, objects, mask = (
        part.reshape(-1, *part.shape[len(lead) :]).contiguous() for part in observation
    )
    return (ego, objects, mask), lead
