"""The sum tree against plain arithmetic over its slots."""

import pytest
import torch
from scipy import stats
from torch import Tensor

from tests.host_reads import no_host_reads
from train_RL_agents.replay.sum_tree import (
    FANOUT,
    LARGEST_WEIGHT,
    UNIT,
    SumTree,
    importance_weights,
    weight_of_priority,
)

TEN_MILLION = 10_000_000


def filled_tree(weights: Tensor, device: str = "cpu") -> SumTree:
    tree = SumTree(len(weights), device)
    tree.load_weights(weights)
    return tree


def assert_sums_right(tree: SumTree) -> None:
    for below, sums in zip(tree.levels, tree.levels[1:], strict=False):
        blocks = below.view(-1, FANOUT).sum(1)
        torch.testing.assert_close(sums[: len(blocks)], blocks, rtol=0, atol=0)
        assert not sums[len(blocks) :].any()


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 4096, 4097, 262_145, 1_000_000])
def test_find_is_the_search_in_the_running_sum(size: int, device: str) -> None:
    generator = torch.Generator().manual_seed(size)
    weights = torch.randint(0, 1000, (size,), generator=generator)
    weights *= torch.rand(size, generator=generator) < 0.3
    weights[size // 2] = 5
    sums = weights.cumsum(0)
    target = torch.randint(0, int(sums[-1]), (5000,), generator=generator)
    target[0], target[1] = 0, sums[-1] - 1
    index, weight = filled_tree(weights, device).find(target.to(device))
    expected = torch.searchsorted(sums, target, right=True)
    assert torch.equal(index.cpu(), expected)
    assert torch.equal(weight.cpu(), weights[expected])
    assert (weight > 0).all()


def test_ten_million_slots_are_drawn_in_proportion() -> None:
    # Half of the slots weigh 1 unit, so a float32 running sum would stop growing long before the
    # end; the last 1,000 slots hold a tenth of the total.
    generator = torch.Generator().manual_seed(0)
    weights = torch.randint(1, 3, (TEN_MILLION,), generator=generator)
    weights[-1000:] = int(weights.sum()) // 9000
    tree = filled_tree(weights)
    draws = 400_000
    index, _ = tree.sample(draws, generator)

    parts = weights.view(100, -1).sum(1).double()
    counts = torch.bincount(index // (TEN_MILLION // 100), minlength=100)
    assert stats.chisquare(counts, draws * parts / parts.sum()).pvalue > 1e-3
    tail = index[index >= TEN_MILLION - 1000] - (TEN_MILLION - 1000)
    assert abs(len(tail) / draws - 0.1) < 0.002
    tail_counts = torch.bincount(tail, minlength=1000)
    assert stats.chisquare(tail_counts).pvalue > 1e-3

    sums = weights.cumsum(0)
    target = torch.randint(int(sums[-1]) - 10**9, int(sums[-1]), (2000,), generator=generator)
    assert torch.equal(tree.find(target)[0], torch.searchsorted(sums, target, right=True))


def test_draws_are_fine_enough_for_small_weights() -> None:
    # Every other slot holds 1 of 4,096 units; 24 random bits over 2**27 units would hit it 8 times
    # too often.
    pairs = 2**15
    tree = filled_tree(torch.tensor([1, 4095]).repeat(pairs))
    index, _ = tree.sample(500_000, torch.Generator().manual_seed(0))
    hits = int((index % 2 == 0).sum())
    assert abs(hits - 500_000 / 4096) < 4 * (500_000 / 4096) ** 0.5


def test_the_largest_of_a_repeated_slot_counts(device: str) -> None:
    tree = filled_tree(torch.full((5000,), 100), device)
    index = torch.tensor([7, 4999, 7, 7, 64, 4999], device=device)
    tree.set(index, torch.tensor([3, 1, 9, 5, 2, 8], device=device))
    assert tree.weights[[7, 64, 4999]].tolist() == [9, 2, 8]
    assert int(tree.total()) == 100 * 4997 + 9 + 2 + 8
    assert_sums_right(tree)


def test_sums_stay_exact_under_updates(device: str) -> None:
    generator = torch.Generator().manual_seed(1)
    size, span = 300_000, 1000
    tree = SumTree(size, device, span=span)
    expected = torch.zeros(size, dtype=torch.int64)
    for _ in range(50):
        start = int(torch.randint(0, size - span, (1,), generator=generator))
        weights = torch.randint(0, LARGEST_WEIGHT, (span,), generator=generator)
        expected[start : start + span] = weights
        tree.set_span(torch.tensor([start], device=device), weights.to(device))
        index = torch.randperm(size, generator=generator)[:500]
        weights = torch.randint(0, LARGEST_WEIGHT, (500,), generator=generator)
        expected[index] = weights
        tree.set(index.to(device), weights.to(device))
    assert torch.equal(tree.weights.cpu(), expected)
    assert int(tree.total()) == int(expected.sum())
    assert_sums_right(tree)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 128, 4097])
def test_span_at_every_alignment(count: int) -> None:
    size = 4 * 4096 + 17
    for start in [*range(0, 70), size - count - 1, size - count]:
        tree = SumTree(size, "cpu", span=count)
        tree.set_span(torch.tensor([start]), torch.ones(count, dtype=torch.int64))
        assert int(tree.total()) == count
        assert_sums_right(tree)


def test_a_slot_of_weight_zero_is_never_drawn(device: str) -> None:
    weights = torch.zeros(100_000, dtype=torch.int64)
    weights[[0, 63, 64, 70_001, 99_999]] = torch.tensor([1, 2, LARGEST_WEIGHT, 1, 1])
    tree = filled_tree(weights, device)
    index, _ = tree.sample(100_000)
    assert set(index.tolist()) == {64}
    index, _ = tree.find(torch.tensor([0, 1, 2, 3, LARGEST_WEIGHT + 3], device=device))
    assert index.tolist() == [0, 63, 63, 64, 70_001]


def test_an_empty_tree_returns_slot_zero_with_weight_zero(device: str) -> None:
    index, weight = SumTree(10_000, device).sample(8)
    assert not index.any()
    assert not weight.any()


def test_weight_is_the_priority_to_the_power_alpha() -> None:
    weights = weight_of_priority(torch.tensor([0.0, 1.0, -4.0, 100.0]), alpha=0.5)
    expected = torch.tensor([1e-3, 1.0, 2.0, 10.0]) * UNIT
    torch.testing.assert_close(weights.float(), expected, rtol=1e-4, atol=0)
    assert weight_of_priority(torch.tensor([5.0, 0.1]), alpha=0.0).tolist() == [UNIT, UNIT]


def test_no_priority_can_damage_the_sums() -> None:
    odd = torch.tensor([float("nan"), float("inf"), float("-inf"), 1e30, 0.0])
    weights = weight_of_priority(odd, alpha=1.0)
    assert weights[:4].tolist() == [LARGEST_WEIGHT] * 4
    assert weights[4] >= 1
    assert (2**24 * LARGEST_WEIGHT) < 2**63


def test_importance_weights_are_the_formula() -> None:
    weight, beta = torch.tensor([1, 4, 16, 4]), torch.tensor(0.5)
    probability = weight / 100.0  # any normalisation, and any N, cancels
    formula = (1000 * probability) ** -0.5
    got = importance_weights(weight, beta)
    torch.testing.assert_close(got, formula / formula.max())
    torch.testing.assert_close(got, torch.tensor([1.0, 0.5, 0.25, 0.5]))
    assert importance_weights(weight, torch.tensor(0.0)).tolist() == [1.0] * 4
    nothing = torch.zeros(3, dtype=torch.int64)
    for exponent in (beta, torch.tensor(0.0)):
        assert importance_weights(nothing, exponent).tolist() == [0.0] * 3


def test_the_device_is_not_read(device: str) -> None:
    tree = SumTree(300_000, device, span=100)
    start = torch.tensor([12_345], device=device)
    weights = torch.full((100,), UNIT, device=device)
    with no_host_reads():
        tree.set_span(start, weights)
        index, weight = tree.sample(64)
        tree.set(index, weight_of_priority(weight, 0.6))
        importance_weights(weight, torch.full((), 0.4, device=device))


def test_required_bytes_are_those_allocated() -> None:
    for size, span in ((10, 1), (5000, 320), (1_000_000, 77)):
        assert SumTree.required_bytes(size, span) == SumTree(size, "cpu", span=span).nbytes
