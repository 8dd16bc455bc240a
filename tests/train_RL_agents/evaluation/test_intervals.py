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


@pytest.mark.parametrize(("share", "most"), [(0.3, 0.99), (0.97, 1.0), (0.01, 1.0)])
def test_intervals_hold_as_often_as_they_say(share, most):
    generator = torch.Generator().manual_seed(3)
    held, trials, bootstrap = 0, 200, WorldBootstrap(80)
    for _ in range(trials):
        count = torch.randint(1, 6, (80,), generator=generator).double()
        hits = torch.binomial(count, torch.full_like(count, share), generator=generator)
        estimate = bootstrap.share(hits, count)
        held += estimate.low <= share <= estimate.high
    assert 0.90 <= held / trials <= most


def test_one_event_says_more_than_none():
    """Limits rise with the events, though a bootstrap knows no other world than those seen."""
    bootstrap, trials, hours = (
        WorldBootstrap(500),
        torch.full((500,), 5.0),
        torch.full((500,), 0.04),
    )
    shares, rates, none = [], [], torch.zeros(500)
    for events in range(4):
        hits = (torch.arange(500) < events).double()
        shares.append(bootstrap.share(hits, trials))
        rates.append(bootstrap.rate(hits, hours))
        won = bootstrap.difference_of_shares((hits, hours * 25), (none, hours * 25))
        assert won.low < 0.0 < won.high
    for found in (shares, rates):
        assert found[0].high < found[1].high < found[2].high < found[3].high
        assert 0.0 == found[0].low < found[1].low < found[3].low
    assert rates[3][1:] == pytest.approx(
        (stats.chi2.ppf(0.025, 6) / 40, stats.chi2.ppf(0.975, 8) / 40)
    )
    # Both of two that met: one event, which counts twice.
    twice = bootstrap.rate(2.0 * (torch.arange(500) < 3).double(), hours)
    assert twice == pytest.approx([2.0 * number for number in rates[3]])


@pytest.mark.parametrize("only_second", [0, 1])
def test_differences_agree_with_the_exact_test(only_second):
    """Few worlds differ: the interval leaves out zero about where McNemar's test says so."""
    trials, bootstrap = torch.ones(400), WorldBootstrap(400)
    for only_first in range(10 - only_second):
        first, second = torch.zeros(400), torch.zeros(400)
        first[:only_first], second[400 - only_second :] = 1.0, 1.0
        found = bootstrap.difference_of_shares((first, trials), (second, trials))
        assert found.value == pytest.approx((only_first - only_second) / 400)
        p = mcnemar(only_first, only_second)
        if p > 0.1:
            assert found.low < 0.0 < found.high
        if p < 0.03:
            assert found.low > 0.0


def test_a_share_of_none_has_wilsons_interval():
    estimate = WorldBootstrap(10).share(torch.zeros(10), torch.full((10,), 5.0))
    assert (estimate.low, estimate.high) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_nothing_and_one_world():
    nothing = WorldBootstrap(0).mean(torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    assert nothing.as_json() == {"value": None, "ci95": [None, None]}
    one = WorldBootstrap(1).mean(torch.zeros(4, dtype=torch.int64), torch.arange(4.0))
    assert one.as_json() == {"value": 1.5, "ci95": [None, None]}
    median = WorldBootstrap(1).quantile(torch.zeros(4, dtype=torch.int64), torch.arange(4.0), 0.5)
    assert median.as_json() == {"value": 1.0, "ci95": [None, None]}


def test_quantiles_are_those_of_the_sample():
    values = torch.randn(501, generator=torch.Generator().manual_seed(0))
    bootstrap = WorldBootstrap(501)
    for share in (0.05, 0.5):
        estimate = bootstrap.quantile(torch.arange(501), values, share)
        assert estimate.value == values.sort().values[math.ceil(501 * share) - 1]
        known = stats.quantile_test(values.numpy(), p=share).confidence_interval(0.95)
        assert (estimate.low, estimate.high) == pytest.approx((known.low, known.high), abs=0.08)


def test_differences_of_few_worlds_hold_as_often_as_they_say():
    """What speaks for one does not speak for the other: their shares are correlated."""
    generator, held = torch.Generator().manual_seed(5), 0
    trials, bootstrap = torch.ones(12), WorldBootstrap(12)
    for _ in range(300):
        drawn = torch.rand(12, generator=generator)
        first, second = (drawn < 0.45).double(), (drawn > 0.55).double()
        found = bootstrap.difference_of_shares((first, trials), (second, trials))
        held += found.low <= 0.0 <= found.high
    assert held / 300 >= 0.93


def test_of_few_worlds_that_all_have_both_the_bootstrap_knows_enough():
    bootstrap, generator = WorldBootstrap(9), torch.Generator().manual_seed(2)
    hits = torch.randint(25, 36, (9,), generator=generator).double()
    trials, hours = torch.full((9,), 60.0), torch.full((9,), 0.2)
    assert bootstrap.share(hits, trials) == bootstrap.ratio(hits, trials)
    assert bootstrap.rate(hits, hours) == bootstrap.ratio(hits, hours)


def test_a_quantile_that_is_not_seen_may_lie_just_beyond():
    """490 of 1,000 are finite: the median is not, but the lower limit is."""
    values = torch.full((1_000,), math.inf)
    values[:490] = torch.arange(490)
    estimate = WorldBootstrap(1_000).quantile(torch.arange(1_000), values, 0.5)
    assert 450 < estimate.low < 490
    assert (estimate.value, estimate.high) == (math.inf, math.inf)
    nowhere = WorldBootstrap(50).quantile(torch.arange(50), torch.full((50,), math.inf), 0.5)
    assert tuple(nowhere) == (math.inf,) * 3


def test_what_three_worlds_have_has_no_half_interval():
    world = torch.tensor([3, 500, 800])
    estimate = WorldBootstrap(1_000).mean(world, torch.tensor([0.1, 0.3, 0.5]))
    assert estimate.as_json() == {"value": 0.3, "ci95": [None, None]}


def test_a_quantile_among_equal_values():
    values = torch.arange(100) // 50
    estimate = WorldBootstrap(100).quantile(torch.arange(100), values.double(), 0.5)
    assert tuple(estimate) == (0.0, 0.0, 1.0)


def test_distribution_and_band():
    share, low, high = WorldBootstrap(4).distribution(
        torch.arange(4), torch.tensor([0.0, 1.0, 2.0, math.inf]), torch.tensor([0.0, 1.5, 9.0])
    )
    assert share.tolist() == [0.25, 0.5, 0.75]
    ends = [wilson_interval(below, 4) for below in (1, 2, 3)]
    assert torch.stack((low, high), 1).tolist() == [pytest.approx(end) for end in ends]


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
    often, events = WorldBootstrap(30), (torch.arange(30) % 2).double()
    assert often.rate(events, events * 0 + 0.1) == often.ratio(events, events * 0 + 0.1)


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
    assert apart == pytest.approx((1.0, 1.0 - math.hypot(most, most), 1.0))
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
