"""Intervals of 95%: Wilson for shares of worlds, the bootstrap over worlds for all else.

The robots of a world are not independent, so the world is the unit that is drawn anew. A bootstrap
knows no more than it has seen: where something never happened, or always, the interval is Wilson's
or Poisson's for as many worlds or hours.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch
from scipy import special
from torch import Tensor

from train_RL_agents.metrics.reductions import wilson_interval

RESAMPLES = 1_000
LEVEL = 0.95
SEED = 1
"""Of the resampling: the same episodes give the same intervals."""


class Estimate(NamedTuple):
    """A number with its interval; NaN where there was nothing to measure."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, Any]:
        """Return value and interval, rounded to what they can mean; None for what is not finite."""
        value, *ci95 = (_rounded(number) for number in self)
        return {"value": value, "ci95": ci95}


def _rounded(number: float) -> float | None:
    return float(f"{number:.5g}") if math.isfinite(number) else None


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact p-value of McNemar's test (McNemar 1947).

    Args:
        only_first: worlds in which the first alone succeeded.
        only_second: worlds in which the second alone did.
    """
    either = only_first + only_second
    return min(1.0, 2.0 * float(special.bdtr(min(only_first, only_second), either, 0.5)))


class WorldBootstrap:
    """Percentile bootstrap (Efron 1979) with the world as the unit.

    Args:
        worlds: W.

    Attributes:
        counts: [W, B] float64, how often each resample has drawn each world.
    """

    def __init__(self, worlds: int) -> None:
        generator = torch.Generator().manual_seed(SEED)
        drawn = torch.randint(max(worlds, 1), (worlds, RESAMPLES), generator=generator)
        self.worlds = worlds
        self.counts = torch.zeros(worlds, RESAMPLES, dtype=torch.float64)
        self.counts.scatter_add_(0, drawn, torch.ones_like(self.counts))

    def sums(self, world: Tensor, values: Tensor) -> Tensor:
        """Return the sums [W, ...] of values [N, ...] of the worlds [N]."""
        total = torch.zeros(self.worlds, *values.shape[1:], dtype=torch.float64)
        return total.index_add_(0, world, values.double())

    def ratio(self, total: Tensor, count: Tensor) -> Estimate:
        """Return a sum over worlds over another, for instance a mean over vessels.

        Args:
            total: [W].
            count: [W], not negative.
        """
        low, high = self._interval(self._ratios(total.unsqueeze(1), count))
        return Estimate(_divided(total.sum(), count.sum()).item(), low.item(), high.item())

    def difference(self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> Estimate:
        """Return the difference of two ratios over the same worlds (see `ratio`)."""
        (total, count), (total_2, count_2) = first, second
        resampled = self._ratios(total.unsqueeze(1), count)
        low, high = self._interval(resampled - self._ratios(total_2.unsqueeze(1), count_2))
        value = _divided(total.sum(), count.sum()) - _divided(total_2.sum(), count_2.sum())
        return Estimate(value.item(), low.item(), high.item())

    def difference_of_shares(
        self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> Estimate:
        """Return the difference of two shares of things in the same worlds (see `share`).

        Where all worlds differ alike, or none, the share of worlds that differ otherwise has
        Wilson's interval.
        """
        estimate = self.difference(first, second)
        if estimate.low != estimate.high:
            return estimate
        most = wilson_interval(0, int((first[1] > 0).sum()))[1]
        value = estimate.value
        return Estimate(value, max(value - most, -1.0), min(value + most, 1.0))

    def rate(self, events: Tensor, exposure: Tensor) -> Estimate:
        """Return how often something happens, for instance in an hour.

        Where it never did, the interval is that of a Poisson process (Garwood 1936).

        Args:
            events: [W].
            exposure: [W], in the unit of the rate.
        """
        estimate = self.ratio(events, exposure)
        if estimate.value == 0.0:
            most = -math.log((1.0 - LEVEL) / 2.0) / exposure.sum().item()
            return Estimate(0.0, 0.0, most)
        return estimate

    def share(self, hits: Tensor, trials: Tensor) -> Estimate:
        """Return a share of things in worlds.

        Where it is 0 or 1, the interval is Wilson's for as many trials as there are worlds.

        Args:
            hits: [W].
            trials: [W].
        """
        estimate = self.ratio(hits, trials)
        if estimate.value in (0.0, 1.0):
            worlds = int((trials > 0).sum())
            return Estimate(estimate.value, *wilson_interval(int(estimate.value) * worlds, worlds))
        return estimate

    def mean(self, world: Tensor, values: Tensor) -> Estimate:
        """Return the mean of values [N] of the worlds [N]."""
        return self.ratio(self.sums(world, values), self.sums(world, torch.ones_like(world)))

    def distribution(self, world: Tensor, values: Tensor, grid: Tensor) -> Tensor:
        """Return the share of values [N] up to each of the grid [G], and its band: [3, G].

        Where it is 0 or 1, the band is that of `share`, and neither end of it falls over the grid.
        """
        steps = len(grid) + 1
        place = world * steps + torch.searchsorted(grid, values.to(grid.dtype).contiguous())
        tally = torch.bincount(place, minlength=self.worlds * steps).view(self.worlds, steps)
        below, count = tally.cumsum(1)[:, :-1].double(), tally.sum(1).double()
        share = _divided(below.sum(0), count.sum())
        band = torch.stack(self._interval(self._ratios(below, count)))
        worlds = int((count > 0).sum())
        for end in (0, 1) if worlds else ():
            limits = torch.tensor(wilson_interval(end * worlds, worlds)).double().unsqueeze(1)
            band = torch.where(share == end, limits, band)
        low, high = band
        low = low.flip(0).cummin(0).values.flip(0)
        return torch.stack((share, low, high.cummax(0).values))

    def quantile(self, world: Tensor, values: Tensor, share: float) -> Estimate:
        """Return the least value up to which at least this share of the values [N] lie.

        The interval is Woodruff's (1952): that of the share found below the quantile, read off as
        quantiles.
        """
        if not len(values):
            return Estimate(math.nan, math.nan, math.nan)
        ordered = values.double().sort().values

        def value_at(part: float) -> float:
            rank = math.ceil(part * len(ordered) - 1e-9) - 1
            return ordered[min(max(rank, 0), len(ordered) - 1)].item()

        value = value_at(share)
        found, low, high = self.mean(world, values <= value)
        if math.isnan(low):
            return Estimate(value, math.nan, math.nan)
        return Estimate(value, value_at(share + low - found), value_at(share + high - found))

    def median_survival(self, world: Tensor, times: Tensor, events: Tensor) -> Estimate:
        """Return the median time to an event (Kaplan and Meier 1958), infinite if never reached.

        Args:
            world: [N].
            times: [N] whole numbers, to the event or to the end of its watch.
            events: [N] bool, whether it came.
        """
        if not len(times):
            return Estimate(math.nan, math.nan, math.nan)
        span = int(times.max()) + 1
        place = world * span + times.long()

        def tally(flags: Tensor) -> Tensor:
            table = torch.zeros(self.worlds * span, dtype=torch.float64)
            return table.index_add_(0, place, flags.double()).view(self.worlds, span)

        at_risk = tally(torch.ones_like(times)).flip(1).cumsum(1).flip(1)
        ended = tally(events)

        def median(events: Tensor, at_risk: Tensor) -> Tensor:
            below = (1.0 - events / at_risk.clamp(min=1.0)).cumprod(0) <= 0.5 + 1e-12
            return torch.where(below.any(0), below.int().argmax(0).double(), math.inf)

        resampled = median(ended.T @ self.counts, at_risk.T @ self.counts)
        low, high = self._interval(resampled.unsqueeze(0))
        return Estimate(median(ended.sum(0), at_risk.sum(0)).item(), low.item(), high.item())

    def _ratios(self, total: Tensor, count: Tensor) -> Tensor:
        """Return [G, B] ratios of resampled sums of [W, G] and [W]."""
        both = torch.cat((total.double().T, count.double().unsqueeze(0)))
        *totals, count = both @ self.counts
        return _divided(torch.stack(totals), count)

    def _interval(self, resampled: Tensor) -> tuple[Tensor, Tensor]:
        """Return the interval of each row [G, B]; NaN where one world says nothing of others."""
        if self.worlds < 2:
            return (torch.full(resampled.shape[:1], math.nan),) * 2
        tail = round((1.0 - LEVEL) / 2.0 * (RESAMPLES - 1))
        # `kthvalue` counts from 1 and has NaN last, as a sort has that takes twice as long.
        low, high = (resampled.kthvalue(rank, 1).values for rank in (tail + 1, RESAMPLES - tail))
        return low, high


@functools.lru_cache(maxsize=1)
def bootstrap_of(worlds: int) -> WorldBootstrap:
    """Return the bootstrap over so many worlds: stages mostly have the same number."""
    return WorldBootstrap(worlds)


def _divided(total: Tensor, count: Tensor) -> Tensor:
    return torch.where(count > 0, total / count.clamp(min=1e-300), math.nan)


def listed(numbers: Tensor) -> list[float | None]:
    """Return numbers as JSON has them."""
    return [_rounded(number) for number in numbers.tolist()]
