"""Intervals: against scipy, by hand, and by how often they hold."""

import math

import pytest
import torch
from scipy import stats

from train_RL_agents.evaluation.intervals import WorldBootstrap, mcnemar
from train_RL_agents.metrics.reductions import wilson_interval


@pytest.mark.parametrize(
    ("successes", "low", "high"), [(8, 0.4902, 0.9433), (0, 0.0, 0.2775), (10, 0.7225, 1.0)]
)
def test_wilson_interval_of_ten(successes, low, high):
    assert wilson_interval(successes, 10) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("counts", [(0, 0), (3, 2), (-1, 2)])
def test_wilson_interval_of_no_share(counts):
    with pytest.raises(ValueError, match="give 1 trial or more"):
        wilson_interval(*counts)


def test_wilson_intervals_are_those_of_scipy():
    for successes in range(301):
        low, high = stats.binomtest(successes, 300).proportion_ci(method="wilson")
        assert wilson_interval(successes, 300) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize(("first", "second", "p"), [(0, 0, 1.0), (5, 5, 1.0), (0, 8, 2 / 2**8)])
def test_mcnemar(first, second, p):
    assert mcnemar(first, second) == pytest.approx(p)


def test_the_world_is_the_unit():
    """Copies of a world's vessels tell nothing new: the interval is that of the worlds."""
    flags = (torch.arange(200) % 4 == 0).double()
    single = WorldBootstrap(200).mean(torch.arange(200), flags)
    world = torch.arange(200).repeat_interleave(5)
    copied = WorldBootstrap(200).mean(world, flags.repeat_interleave(5))
    assert copied == single
    low, high = wilson_interval(50, 200)
    assert (single.low, single.high) == pytest.approx((low, high), abs=0.01)


def test_intervals_hold_as_often_as_they_say():
    generator = torch.Generator().manual_seed(3)
    held, trials = 0, 200
    for _ in range(trials):
        count = torch.randint(1, 6, (80,), generator=generator).double()
        hits = torch.binomial(count, torch.full_like(count, 0.3), generator=generator)
        bootstrap = WorldBootstrap(80)
        estimate = bootstrap.share(hits, count)
        held += estimate.low <= 0.3 <= estimate.high
    assert 0.90 <= held / trials <= 0.99


def test_a_share_of_none_has_wilsons_interval():
    estimate = WorldBootstrap(10).share(torch.zeros(10), torch.full((10,), 5.0))
    assert (estimate.low, estimate.high) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_nothing_and_one_world():
    nothing = WorldBootstrap(0).mean(torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    assert nothing.as_json() == {"value": None, "ci95": [None, None]}
    one = WorldBootstrap(1).mean(torch.zeros(4, dtype=torch.int64), torch.arange(4.0))
    assert one.as_json() == {"value": 1.5, "ci95": [None, None]}


def test_quantiles_are_those_of_the_sample():
    values = torch.randn(501, generator=torch.Generator().manual_seed(0))
    bootstrap = WorldBootstrap(501)
    for share in (0.05, 0.5):
        estimate = bootstrap.quantile(torch.arange(501), values, share)
        assert estimate.value == values.sort().values[math.ceil(501 * share) - 1]
        known = stats.quantile_test(values.numpy(), p=share).confidence_interval(0.95)
        assert (estimate.low, estimate.high) == pytest.approx((known.low, known.high), abs=0.08)


def test_a_quantile_among_equal_values():
    values = torch.arange(100) // 50
    estimate = WorldBootstrap(100).quantile(torch.arange(100), values.double(), 0.5)
    assert tuple(estimate) == (0.0, 0.0, 1.0)


def test_distribution_and_band():
    share, low, high = WorldBootstrap(4).distribution(
        torch.arange(4), torch.tensor([0.0, 1.0, 2.0, math.inf]), torch.tensor([0.0, 1.5, 9.0])
    )
    assert share.tolist() == [0.25, 0.5, 0.75]
    assert torch.all((low <= share) & (share <= high))
    assert (low[0], high[2]) == (0.0, 1.0)


def test_median_survival_against_scipy():
    generator = torch.Generator().manual_seed(1)
    times = torch.randint(0, 40, (300,), generator=generator).double()
    events = torch.rand(300, generator=generator) < 0.7
    found = WorldBootstrap(300).median_survival(torch.arange(300), times, events)
    data = stats.CensoredData(uncensored=times[events].numpy(), right=times[~events].numpy())
    curve = stats.ecdf(data).sf
    assert found.value == curve.quantiles[curve.probabilities <= 0.5][0]
    assert found.low < found.value < found.high
    never = torch.zeros(300, dtype=torch.bool)
    assert WorldBootstrap(300).median_survival(torch.arange(300), times, never).value == math.inf


@pytest.mark.parametrize("hits", [0.0, 1.0])
def test_a_share_of_none_or_all_has_an_interval_too(hits):
    trials = torch.ones(20, dtype=torch.float64)
    estimate = WorldBootstrap(20).share(hits * trials, trials)
    assert estimate == (hits, *wilson_interval(int(hits) * 20, 20))


def test_what_never_happened_in_some_hours_has_poissons_limit():
    """No event in an hour: exp(-3.69) = .025, whatever the bootstrap has seen."""
    bootstrap, hours = WorldBootstrap(10), torch.full((10,), 0.1)
    never = bootstrap.rate(torch.zeros(10), hours)
    assert never == pytest.approx((0.0, 0.0, stats.chi2.ppf(0.975, 2) / 2.0), rel=1e-6)
    events = (torch.arange(10) % 2).double()
    assert bootstrap.rate(events, hours) == bootstrap.ratio(events, hours)


def test_policies_that_no_world_tells_apart_may_differ_all_the_same():
    hits, trials = torch.tensor([3.0, 0.0] * 10), torch.full((20,), 5.0)
    bootstrap = WorldBootstrap(20)
    most = wilson_interval(0, 20)[1]
    same = bootstrap.difference_of_shares((hits, trials), (hits, trials))
    assert same == pytest.approx((0.0, -most, most))
    other = hits.flip(0)
    found = bootstrap.difference_of_shares((hits, trials), (other, trials))
    assert found == bootstrap.difference((hits, trials), (other, trials))
    won, lost = torch.ones(20), torch.zeros(20)
    apart = bootstrap.difference_of_shares((won, won), (lost, won))
    assert apart == pytest.approx((1.0, 1.0 - most, 1.0))
    nobody = bootstrap.difference_of_shares((hits * 0, trials * 0), (hits * 0, trials * 0))
    assert nobody.as_json() == {"value": None, "ci95": [None, None]}


def test_the_band_where_all_or_none_lie_below():
    _, low, high = WorldBootstrap(20).distribution(
        torch.arange(20), torch.full((20,), 3.0), torch.tensor([1.0, 5.0])
    )
    assert (low[0], high[0]) == pytest.approx(wilson_interval(0, 20))
    assert (low[1], high[1]) == pytest.approx(wilson_interval(20, 20))


def test_the_band_falls_nowhere():
    world, gaps = torch.arange(500) // 5, torch.linspace(1.0, 40.0, 500)
    found = WorldBootstrap(100).distribution(world, gaps, torch.linspace(0.0, 42.0, 200))
    for row in found:
        assert (row.diff() >= 0.0).all()
