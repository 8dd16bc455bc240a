"""Hand-made motion of vessels, as the tests of the scores need it."""

import torch

from train_RL_agents.evaluation.measures import Measures, measure
from train_RL_agents.evaluation.motion import Motion

HULL_RADIUS = 2.795085


def vessel(start, course, speed, *, changes=None):
    """Start (x, y), and course [deg] and speed from decision 0 on and from those in changes."""
    return start, {0: (course, speed), **(changes or {})}


def motion_of(vessels, steps) -> Motion:
    """Motion of one world: heading = course, p(k+1) = p(k) + 0.5 v(k)."""
    position = torch.tensor([list(start) for start, _ in vessels], dtype=torch.float64)
    rows = []
    for step in range(steps + 1):
        orders = [changes[max(k for k in changes if k <= step)] for _, changes in vessels]
        course, speed = torch.tensor(orders, dtype=torch.float64).T
        heading = torch.deg2rad(course)
        velocity = speed.unsqueeze(1) * torch.stack((heading.cos(), heading.sin()), 1)
        columns = (*position.T, heading.remainder(2 * torch.pi), *velocity.T)
        rows.append(torch.stack(columns).unsqueeze(-1))
        position = position + 0.5 * velocity
    x, y, heading, vx, vy = torch.stack(rows, 1)
    return Motion(x, y, heading, vx, vy, torch.ones_like(x, dtype=torch.bool))


def measured(vessels, steps=60, buoys=(), present=None) -> Measures:
    motion = motion_of(vessels, steps)
    if present is not None:
        motion = motion._replace(present=present)
    buoys = torch.tensor(buoys, dtype=torch.float64).reshape(-1, 3).T.unsqueeze(-1)
    worlds = torch.zeros(1, dtype=torch.int64)
    scales = {"hull_radius": HULL_RADIUS, "decision_time": 0.5}
    return measure([(worlds, motion)], buoys, **scales)
