"""Who is sampled, by priorities too, and with which weight."""

import pytest
import torch
from scipy import stats

from tests.train_RL_agents.replay.small_replays import (
    small_replay,
    store_random_activity,
    store_row,
)


@pytest.mark.parametrize("rows", [7, 20, 33])
def test_every_active_transition_is_equally_likely(rows: int, device: str) -> None:
    replay = small_replay(20, worlds=5, robots=3, device=device)
    store_random_activity(replay, rows)
    acted = replay._ring["flags"][..., 0].flatten().cpu()
    batch = replay.sample(200_000)
    counts = torch.bincount(batch.index.cpu(), minlength=len(acted))
    assert not counts[~acted].any()
    assert stats.chisquare(counts[acted]).pvalue > 1e-3
    assert (batch.weight == 1).all()
    assert len(replay) == int(acted.sum())


def test_draws_of_a_batch_are_independent() -> None:
    # A batch may be split: were draws stratified over the ring, its first half would be older.
    replay = small_replay(64)
    for t in range(64):
        store_row(replay, float(t))
    index = replay.sample(20_000).index.double()
    assert abs(index[:10_000].mean() - index[10_000:].mean()) < 4 * 18.5 * (2 / 10_000) ** 0.5
    assert abs(torch.corrcoef(torch.stack((index[:-1], index[1:])))[0, 1]) < 4 / 20_000**0.5


def test_nothing_stored_gives_weight_zero(device: str) -> None:
    batch = small_replay(5, n_step=2, device=device).sample(4)
    assert not batch.weight.any()
    assert torch.isfinite(batch.reward).all()


def test_prioritised_draws_follow_the_priorities(device: str) -> None:
    replay = small_replay(40, 5, 3, device=device, prioritized=True, alpha=0.6, beta=0.4)
    store_random_activity(replay, 55)
    acted = (replay.tree.weights > 0).nonzero().flatten()
    priority = torch.rand(len(acted), generator=torch.Generator().manual_seed(1)) * 5
    replay.update_priorities(acted, priority.to(device))
    batch = replay.sample(200_000)
    probability = (priority.double() + 1e-6) ** 0.6
    probability /= probability.sum()
    counts = torch.bincount(batch.index.cpu(), minlength=40 * 15)
    assert int(counts.sum()) == int(counts[acted.cpu()].sum())
    assert stats.chisquare(counts[acted.cpu()], 200_000 * probability).pvalue > 1e-3

    of_slot = torch.zeros(40 * 15, dtype=torch.float64)
    of_slot[acted.cpu()] = probability
    weights = (len(acted) * of_slot[batch.index.cpu()]) ** -0.4
    torch.testing.assert_close(
        batch.weight.cpu().double(), weights / weights.max(), rtol=1e-4, atol=0
    )


def test_a_new_transition_gets_the_largest_priority_so_far(device: str) -> None:
    replay = small_replay(10, device=device, prioritized=True, alpha=1.0)
    store_row(replay, 0.0)
    store_row(replay, 1.0)
    first, both = (torch.tensor(index, device=device) for index in ([0], [0, 1]))
    replay.update_priorities(both, torch.tensor([7.0, 0.5], device=device))
    replay.update_priorities(first, torch.tensor([2.0], device=device))
    store_row(replay, 2.0)
    weights = replay.tree.weights[:3] / replay.tree.weights[0]
    torch.testing.assert_close(weights.cpu(), torch.tensor([1.0, 0.25, 3.5]))


def test_an_overwritten_slot_of_an_inactive_robot_stays_unreachable(device: str) -> None:
    replay = small_replay(3, device=device, prioritized=True)
    for t in range(3):
        store_row(replay, float(t))
    batch = replay.sample(100)
    store_row(replay, 3.0, acted=torch.tensor([[False]]))
    replay.update_priorities(batch.index, torch.ones(100, device=device))
    assert set(replay.sample(1000).index.tolist()) == {1, 2}


def test_uniform_sampling_ignores_priorities() -> None:
    replay = small_replay(4)
    for t in range(4):
        store_row(replay, float(t))
    before = replay.tree.weights.clone()
    replay.update_priorities(torch.tensor([1]), torch.tensor([9.0]))
    assert torch.equal(replay.tree.weights, before)


def test_beta_can_be_changed_between_batches() -> None:
    replay = small_replay(2, prioritized=True, alpha=1.0, beta=1.0)
    for t in range(2):
        store_row(replay, float(t))
    index = torch.tensor([0, 1])
    replay.update_priorities(index, torch.tensor([1.0, 4.0]))
    for beta, smallest in ((0.5, 0.5), (torch.tensor(1.0), 0.25), (0.0, 1.0)):
        replay.set_beta(beta)
        weight = replay.gather(index, replay.tree.weights).weight
        torch.testing.assert_close(weight, torch.tensor([1.0, smallest]))
