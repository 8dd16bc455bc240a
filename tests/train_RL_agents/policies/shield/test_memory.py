"""Policies that observe several decisions behind the shield."""

import dataclasses

import pytest
import torch
from torch import nn

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.stepper import Stepper
from tests.train_RL_agents.policies.shield.situations import (
    ENV,
    Constant,
    random_situations,
    remembered,
    seen,
    shield,
)

ALONE = Stage(robots=1, vortices=0, buoys=4, min_distance_m=30.0)
HEAD_ON = 10.0
"""m ahead, where a vessel that comes at 2 m/s makes every plan unsafe."""


class Turning(nn.Module):
    """Acts by its yaw rate, and by that of the last of the decisions that it observes."""

    def __init__(self, frames):
        super().__init__()
        self.last = 7 * (frames - 1)
        self.action = torch.zeros(2)  # of the kind of its actions
        self.seen = []

    def forward(self, observation):
        self.seen.append(observation)
        now, last = observation[0][..., 4], observation[0][..., self.last + 4]
        return torch.stack((0.5 - now, 0.2 + last), -1).clamp(-1.0, 1.0)


@pytest.mark.parametrize("frames", [2, 3])
def test_what_it_sees_in_its_plan_is_what_it_observes_then(frames):
    """Among buoys in calm water without noise, the decisions before the plan included."""
    exact = dataclasses.replace(ENV.perception.noiseless(), range=100.0)  # all stay in sight
    config = dataclasses.replace(ENV, perception=exact)
    options = {"dtype": torch.float64, "seed": 3, "stack_k": frames}
    stepper = Stepper(MarineNavEnv(200, stages=(ALONE,), config=config, **options), restarts=False)
    stepper.reset()
    policy = Turning(frames)

    def step():
        stepper.step(policy(stepper.now.obs))
        stepper.advance()
        return [part[:, 0].clone() for part in stepper.now.obs]

    for _ in range(6):
        now = step()
    policy.seen.clear()
    shield(policy, frames)(Observation(*now))
    planned = policy.seen[:4]  # now, and along its own plan of 2 s
    under_way = torch.ones(200, dtype=torch.bool)
    for predicted in planned[1:]:
        found = step()
        under_way &= stepper.env.alive[:, 0]
        for part, other in zip(predicted, found, strict=True):
            torch.testing.assert_close(part[0, under_way], other[under_way], rtol=0.0, atol=1e-9)
    assert under_way.sum() > 150


@pytest.mark.parametrize("settings", [{}, {"closer_m": 0.5, "planned_share": 0.3}])
def test_decisions_that_a_policy_does_not_look_at_change_nothing(settings):
    now, past = random_situations(300), [random_situations(300, seed=seed) for seed in (5, 6)]
    guarded = shield(Turning(1), **settings)(now)
    with_past = shield(Turning(1), 3, **settings)(remembered(now, *past))
    for part, other in zip(with_past, guarded, strict=True):
        assert torch.equal(part, other)
    assert (guarded.action != guarded.proposed).any(-1).sum() > 20


def test_decisions_that_it_looks_at_change_its_plans():
    now, past = random_situations(300), random_situations(300, seed=5)
    found = shield(Turning(2), 2)(remembered(now, past))
    other = shield(Turning(2), 2)(remembered(now, now))
    assert (found.predicted != other.predicted).sum() > 100


def test_each_vessel_has_its_own_memory():
    """Guarded in a batch as alone, also where candidates are tried for some of them only."""
    now, past = random_situations(100), random_situations(100, seed=5)
    every, some = (
        shield(Turning(2), 2, planned_share=share)(remembered(now, past)) for share in (1.0, 0.3)
    )
    for i in range(0, 100, 3):
        alone = shield(Turning(2), 2)(Observation(*(x[i : i + 1] for x in remembered(now, past))))
        torch.testing.assert_close(every.action[i : i + 1], alone.action, rtol=0.0, atol=0.0)
        torch.testing.assert_close(every.clearance[i : i + 1], alone.clearance)
    planned = every.predicted <= every.predicted.sort().values[29]
    assert torch.equal(some.action[planned], every.action[planned])
    torch.testing.assert_close(some.clearance[planned], every.clearance[planned])
    assert (every.action != every.proposed).any(-1)[planned].sum() > 5


def test_a_candidate_that_is_held_is_remembered():
    """Held for 1.5 s, then the policy: it sees the decisions of 1.5, 1 and 0.5 s."""
    policy, still = Constant((0.0, 0.0)), seen((HEAD_ON, 0.0, -2.0, 0.0, 2.5))
    shield(policy, 3, hold_s=1.5)(remembered(still, still, still))
    thrusts = policy.seen[4][0][:, 0].unflatten(-1, (3, 7))[..., 5]  # after its own plan
    assert thrusts[0].tolist() == [-500.0, -500.0, -100.0]  # from 400 N down by 500 N each


def test_earlier_decisions_seem_closer_too():
    policy = Constant((0.0, 0.0))
    now, past = seen(), seen((3.0, 4.0, 0.1, 0.2, 2.0))
    shield(policy, 2, closer_m=0.5)(remembered(now, past))
    rows = policy.seen[0][1][0]
    torch.testing.assert_close(rows[5], rows.new_tensor([2.7, 3.6, 0.1, 0.2, 2.0]))
    assert not rows[:5].any()
    assert not rows[6:].any()
