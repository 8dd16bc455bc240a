"""Situations around a vessel, and shields of policies that always do the same."""

import torch
from torch import nn

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.shield.shield import Shield

ENV = EnvConfig()
HULL = ENV.vessel.radius
STEADY_THRUST = 400.0
"""N, of each thruster: the drag at 2 m/s is 100 * 2 + 150 * 2^2 = 800 N."""


class Constant(nn.Module):
    """Always the same action; it keeps what it saw."""

    def __init__(self, action):
        super().__init__()
        self.action = torch.as_tensor(action)
        self.seen = []

    def forward(self, observation):
        self.seen.append(observation)
        action, lead = self.action, observation[2].shape[:-1]
        if action.is_floating_point():
            action = action.to(observation[0].dtype)
        return action.expand(*lead, *action.shape)


def seen(*objects, goal=(30.0, 0.0), dtype=torch.float64):
    """Return what a vessel observes [1, ...] that sails at 2 m/s among objects (x, y, v, w, r)."""
    ego = torch.tensor([[*goal, 2.0, 0.0, 0.0, STEADY_THRUST, STEADY_THRUST]], dtype=dtype)
    rows, mask = torch.zeros(1, 5, 5, dtype=dtype), torch.zeros(1, 5, dtype=dtype)
    for i, row in enumerate(objects):
        rows[0, i], mask[0, i] = torch.tensor(row, dtype=dtype), 1.0
    return Observation(ego, rows, mask)


def random_situations(count, dtype=torch.float64, seed=4):
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape, low, high):
        return low + (high - low) * torch.rand(*shape, generator=generator, dtype=dtype)

    ego = torch.cat(
        (
            uniform(count, 2, low=-30.0, high=30.0),
            uniform(count, 3, low=-1.0, high=1.0) * torch.tensor([3.0, 0.5, 0.8]),
            uniform(count, 2, low=-500.0, high=1000.0),
        ),
        1,
    ).to(dtype)
    radius = torch.where(uniform(count, 5, low=0.0, high=1.0) < 0.5, 0.9, 2.5)
    place = uniform(count, 5, 2, low=-15.0, high=15.0)
    speed = uniform(count, 5, 2, low=-2.0, high=2.0) * (radius > 1.0).unsqueeze(-1)
    order = (torch.linalg.vector_norm(place, dim=-1) - radius).argsort(dim=-1, stable=True)
    objects = torch.cat((place, speed, radius.unsqueeze(-1)), -1).to(dtype)
    objects = objects.gather(1, order.unsqueeze(-1).expand(-1, -1, 5))
    return Observation(ego, objects, torch.ones(count, 5, dtype=dtype))


def remembered(now, *earlier):
    """Return the observation of a decision and of those before it, newest first."""
    ego, objects, mask = zip(now, *earlier, strict=True)
    return Observation(torch.cat(ego, -1), torch.cat(objects, -2), torch.cat(mask, -1))


def shield(policy=(0.0, 0.0), frames=1, **settings):
    policy = policy if isinstance(policy, nn.Module) else Constant(policy)
    discrete = not policy.action.is_floating_point()
    return Shield(policy, ENV, ShieldConfig(**settings), discrete=discrete, frames=frames)
