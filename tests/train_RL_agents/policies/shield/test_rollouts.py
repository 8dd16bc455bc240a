"""Plans in TorchScript are those of the core."""

import dataclasses

import pytest
import torch

from tests.train_RL_agents.policies.shield.situations import (
    ENV,
    Constant,
    random_situations,
    remembered,
    seen,
)
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.interface import acting_network
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.core_rollout import CoreRollout
from train_RL_agents.policies.shield.frames import decisions_of
from train_RL_agents.policies.shield.shield import Shield
from train_RL_agents.policies.shield.torch_rollout import TorchRollout


@pytest.mark.parametrize("frames", [1, 2, 4])
@pytest.mark.parametrize("action", [(0.3, -0.2), 7])
def test_scripted_plans_are_the_cores(action, frames):
    """Different actions held in every plan, then the policy, which sees all but one object."""
    policy, discrete = Constant(action), isinstance(action, int)
    sight = tuple(random_situations(200))
    generator = torch.Generator().manual_seed(1)
    held = torch.randint(25, (3, 200, 1), generator=generator)
    if not discrete:
        held = (held.double() / 12.0 - 1.0).repeat(1, 1, 2)
    shown = sight[2] > 0.5
    shown[:, 2] = False
    kinds = [
        kind(policy, ENV, discrete=discrete, closer=0.3, frames=frames)
        for kind in (CoreRollout, TorchRollout)
    ]
    past = remembered(*(random_situations(200, seed=seed) for seed in range(4)))
    before = decisions_of(past, 0, frames - 1, 4)
    found, expected = (kind.roll(sight, shown, before, held, 2, 4) for kind in kinds)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert (found[1] == 0.0).any()
    seen = policy.seen
    assert [part.shape[-1] for part in seen[0]] == [7 * frames, 5, 5 * frames]
    for ours, theirs in ((seen[0], seen[2]), (seen[1], seen[3])):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    now, torch_now = (kind.seen(sight, shown) for kind in kinds)
    torch.testing.assert_close(now, torch_now, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [CoreRollout, TorchRollout])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_buoy_whose_radius_float32_rounds_up_stays_a_buoy(kind, dtype):
    """As a vessel it would have the own radius, which is 1.6 m more, and move."""
    env = dataclasses.replace(ENV, scenario=dataclasses.replace(ENV.scenario, buoy_radius_max=1.2))
    sight = tuple(part.to(dtype) for part in seen((12.0, 0.0, -1.0, 0.0, 1.2), dtype=torch.float32))
    ahead = kind(Constant((0.0, 0.0)), env, discrete=False, closer=0.0, frames=1)
    nothing = decisions_of(sight, 0, 0, 1)
    clear, _ = ahead.roll(sight, sight[2] > 0.5, nothing, torch.zeros(1, 1, 2, dtype=dtype), 1, 4)
    expected = 12.0 - 2.0 * 2.0 - 1.2 - env.vessel.radius  # 2 s at 2 m/s
    assert clear[0, 0, 0].item() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("frames", "hidden"), [(1, 0.7), (3, None)])
def test_a_scripted_shield_decides_alike(tmp_path, frames, hidden):
    agent, config = load_policy(save_policy(tmp_path / "policy.pt", "AC-IQN", stack_k=frames))
    settings = ShieldConfig(closer_m=0.5, hidden_buoy_m=hidden, planned_share=0.5)
    network = acting_network(agent, torch.float64)
    options = {"discrete": False, "frames": frames}
    guard = Shield(network, config.env, settings, **options)
    copy = Shield(network, config.env, settings, **options, rollout=TorchRollout)
    situations = (random_situations(64, seed=seed) for seed in range(frames))
    observation = tuple(remembered(*situations))
    scripted = torch.jit.script(copy)(observation)
    for found, expected in zip(scripted, guard(observation), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
