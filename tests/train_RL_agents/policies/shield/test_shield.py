"""The shield: what it leaves alone, what it changes, and what it takes when nothing is safe."""

import torch
from torch import nn

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from train_RL_agents.policies.shield.config import ShieldConfig
from train_RL_agents.policies.shield.shield import Shield

FULL_AHEAD = 24 - 6  # the index of (500, 500) N/s
HULL = EnvConfig().vessel.radius


class Constant(nn.Module):
    """Always the same action."""

    def __init__(self, action):
        super().__init__()
        self.action = torch.as_tensor(action)

    def forward(self, observation):
        lead = observation[2].shape[:-1]
        action = self.action
        if action.is_floating_point():
            action = action.to(observation[0].dtype)
        return action.expand(*lead, *self.action.shape)


def seen(*objects, speed=2.0, goal=(30.0, 0.0), thrust=500.0, dtype=torch.float64):
    """Return what a vessel observes [1, ...] that sails ahead among objects (x, y, vx, vy, r)."""
    ego = torch.tensor([[*goal, speed, 0.0, 0.0, thrust, thrust]], dtype=dtype)
    rows = torch.zeros(1, 5, 5, dtype=dtype)
    mask = torch.zeros(1, 5, dtype=dtype)
    for i, row in enumerate(objects):
        rows[0, i], mask[0, i] = torch.tensor(row, dtype=dtype), 1.0
    return Observation(ego, rows, mask)


def shield(policy=(0.0, 0.0), **settings):
    policy = policy if isinstance(policy, nn.Module) else Constant(policy)
    discrete = not policy.action.is_floating_point()
    return Shield(policy, EnvConfig(), ShieldConfig(**settings), discrete=discrete)


def test_a_clear_path_leaves_the_decisions_alone():
    observation = seen((0.0, 12.0, 0.0, 0.0, 1.0), (-9.0, 0.0, -1.0, 0.0, 2.5))
    guarded = shield((0.25, 0.125))(observation)
    assert torch.equal(guarded.action, guarded.proposed)
    assert guarded.action.tolist() == [[0.25, 0.125]]


def test_alone_it_sees_no_threat():
    guarded = shield((1.0, 1.0))(seen())
    assert torch.equal(guarded.action, guarded.proposed)
    assert guarded.predicted.item() > 1e5


def test_a_buoy_ahead_is_avoided():
    """At 2 m/s with 0.7 m to the hull, holding on means contact within a second."""
    observation = seen((HULL + 1.0 + 0.7, 0.2, 0.0, 0.0, 0.8))
    guarded = shield((0.0, 0.0))(observation)
    assert guarded.predicted.item() < 0.0
    assert guarded.clearance.item() > guarded.predicted.item()
    assert guarded.action.tolist() == [[-1.0, -1.0]]
