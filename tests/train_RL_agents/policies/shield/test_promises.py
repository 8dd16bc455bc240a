"""What the shield promises, in a million random situations (docs/shield.md).

The perception is exact, others keep their velocity and are in sight: what a plan predicts is then
what happens (`tests/marinenav_env/kernel/test_plans.py` compares the two). All ten plans of every
situation are looked at here, beside the one that the shield takes.
"""

import itertools

import torch
from torch import nn

from marinenav_env.config import EnvConfig
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.shield.core_rollout import CoreRollout
from train_RL_agents.policies.shield.frames import decisions_of
from train_RL_agents.policies.shield.shield import Shield

SITUATIONS, BATCH = 1_000_000, 20_000
MARGIN = 0.3


class Restless(nn.Module):
    """Changes its thrusts by where the goal lies, whatever is in the way."""

    def forward(self, observation):
        return (0.05 * observation[0][..., :2]).clamp(-1.0, 1.0)


def situations(generator):
    """Draw vessels within reach of each other, up to five objects around each, few in contact."""

    def uniform(*shape):
        return torch.rand(BATCH, *shape, generator=generator)

    ego = torch.cat(
        (
            60.0 * uniform(2) - 30.0,
            (2.0 * uniform(3) - 1.0) * torch.tensor([3.3, 0.6, 0.9]),
            1500.0 * uniform(2) - 500.0,
        ),
        1,
    )
    radius = torch.where(uniform(5, 1) < 0.5, 1.0, EnvConfig().vessel.radius)
    angle, far = 6.2832 * uniform(5, 1), 4.0 + 16.0 * uniform(5, 1)
    place = far * torch.cat((angle.cos(), angle.sin()), -1)
    velocity = (6.0 * uniform(5, 2) - 3.0) * (radius > 1.0)
    mask = (uniform(5) < 0.4).float()
    objects = torch.cat((place, velocity, radius), -1) * mask.unsqueeze(-1)
    return ego, objects, mask


@torch.no_grad()
def test_a_million_situations():
    env, policy = EnvConfig(), Restless()
    shield = Shield(policy, env, ShieldConfig(margin_m=MARGIN), discrete=False)
    rollout = CoreRollout(policy, env, discrete=False, closer=0.0, frames=1)
    tried = torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    held = tried.unsqueeze(1).expand(-1, BATCH, -1)
    generator, seen = torch.Generator().manual_seed(0), torch.zeros(4, dtype=torch.int64)
    for _ in range(SITUATIONS // BATCH):
        sight = situations(generator)
        guarded, shown = shield(sight), sight[2] > 0.5
        nothing = decisions_of(sight, 0, 0, 1)
        own, _ = rollout.roll(sight, shown, nothing, policy(sight).unsqueeze(0), 1, 4)
        others, _ = rollout.roll(sight, shown, nothing, held, 2, 4)
        clear = torch.cat((own, others)).amin(-1)  # [10, N]
        actions = torch.cat((policy(sight).unsqueeze(0), held))
        index = (guarded.action == actions).all(-1)  # which plans begin with the action taken
        taken = torch.where(index, clear, -torch.inf).amax(0)
        assert index.any(0).all()
        assert torch.equal(taken, torch.maximum(taken, guarded.clearance))

        same = (guarded.action == policy(sight)).all(-1)
        harmless = (shown.sum(-1) == 0) | (clear[0] >= MARGIN)
        assert same[harmless].all()
        avoidable = clear.amax(0) > 0.0
        assert (guarded.clearance[avoidable] > 0.0).all()
        assert (guarded.clearance[clear.amax(0) >= MARGIN] >= MARGIN).all()
        assert ((guarded.clearance >= MARGIN) | (guarded.clearance >= clear[0])).all()
        rescued = (clear[0] <= 0.0) & (guarded.clearance > 0.0)
        seen += torch.stack([x.sum() for x in (harmless, ~same, rescued, ~avoidable)])
    assert (seen > SITUATIONS // 100).all(), seen
