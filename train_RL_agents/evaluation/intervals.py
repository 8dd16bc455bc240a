"""Intervals of 95%: Wilson for shares of worlds, the bootstrap over worlds for all else.

The robots of a world are not independent, so the world is the unit that is drawn anew. A bootstrap
knows no more than it has seen: where fewer than `RARE` worlds differ from the rest, the interval is
Wilson's or Poisson's for as many worlds or hours.
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
RARE = 10
"""So many worlds that differ from the rest suffice for the bootstrap, or all worlds there are.
After one event in 1,000 worlds its upper limit lies below the one after none."""


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

        Where nearly all worlds differ alike, or none, what speaks for the first and what speaks for
        the second are shares of the worlds with Wilson's intervals, from which that of their
        difference follows by square-and-add (Newcombe 1998).
        """
        estimate = self.difference(first, second)
        worlds = int((first[1] > 0).sum())
        one, other = (hits.double() / trials.double().sum() for hits, trials in (first, second))
        gain = one - other
        if math.isnan(estimate.value) or int((gain != gain.mode().values).sum()) >= RARE:
            return estimate
        up, down = (min(part.clamp(min=0.0).sum().item(), 1.0) for part in (gain, -gain))
        (up_low, up_high), (down_low, down_high) = (
            wilson_interval(part * worlds, worlds) for part in (up, down)
        )
        # Minus their correlation: a world that speaks for one does not speak for the other.
        apart = math.sqrt(up * down / ((1.0 - up) * (1.0 - down))) if 0.0 < up < 1.0 > down else 0.0

        def beyond(one: float, other: float) -> float:
            return math.sqrt(one**2 + other**2 + 2.0 * apart * one * other)

        low = estimate.value - beyond(up - up_low, down_high - down)
        high = estimate.value + beyond(up_high - up, down - down_low)
        return Estimate(estimate.value, max(low, -1.0), min(high, 1.0))

    def rate(self, events: Tensor, exposure: Tensor) -> Estimate:
        """Return how often something happens, for instance in an hour.

        Where it hardly ever did, the interval is that of a Poisson process (Garwood 1936) whose
        events are the worlds in which it did.

        Args:
            events: [W].
            exposure: [W], in the unit of the rate.
        """
        seen, span = int((events > 0).sum()), exposure.sum().item()
        if not span or seen >= min(RARE, int((exposure > 0).sum())):
            return self.ratio(events, exposure)
        # What comes to several robots at once is one event, and counts as often in both limits.
        count, tail = events.sum().item(), (1.0 - LEVEL) / 2.0
        unit = (count / seen if seen else 1.0) / span
        low = special.gammaincinv(seen, tail) if seen else 0.0
        return Estimate(count / span, low * unit, special.gammaincinv(seen + 1, 1.0 - tail) * unit)

    def share(self, hits: Tensor, trials: Tensor) -> Estimate:
        """Return a share of things in worlds.

        Where it is nearly 0 or 1, the interval is Wilson's for as many trials as there are worlds.

        Args:
            hits: [W].
            trials: [W].
        """
        worlds = int((trials > 0).sum())
        if not worlds or _rarer(hits, trials) >= min(RARE, worlds):
            return self.ratio(hits, trials)
        value = (hits.double().sum() / trials.double().sum()).item()
        return Estimate(value, *wilson_interval(value * worlds, worlds))

    def mean(self, world: Tensor, values: Tensor) -> Estimate:
        """Return the mean of values [N] of the worlds [N]."""
        return self.ratio(self.sums(world, values), self.sums(world, torch.ones_like(world)))

    def distribution(self, world: Tensor, values: Tensor, grid: Tensor) -> Tensor:
        """Return the share of values [N] up to each of the grid [G], and its band: [3, G].

        At each of the grid it is the interval of `share`. Neither end of it falls over the grid.
        """
        steps = len(grid) + 1
        place = world * steps + torch.searchsorted(grid, values.to(grid.dtype).contiguous())
        tally = torch.bincount(place, minlength=self.worlds * steps).view(self.worlds, steps)
        below, count = tally.cumsum(1)[:, :-1].double(), tally.sum(1).double()
        share = _divided(below.sum(0), count.sum())
        low, high = self._interval(self._ratios(below, count))
        if worlds := int((count > 0).sum()):
            limits = [wilson_interval(part * worlds, worlds) for part in share.tolist()]
            rare = _rarer(below, count.unsqueeze(1)) < min(RARE, worlds)
            low, high = torch.where(rare, torch.tensor(limits).double().T, torch.stack((low, high)))
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
        # All values lie up to one that is infinite: those below it tell how near it is.
        below = values <= value if math.isfinite(value) else values < value
        found, low, high = self.share(
            self.sums(world, below), self.sums(world, torch.ones_like(world))
        )
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
        """Return the interval of each row [G, B].

        It is NaN where one world says nothing of others, or too few have what is measured to be in
        nearly every resample.
        """
        if self.worlds < 2:
            return (torch.full(resampled.shape[:1], math.nan, dtype=torch.float64),) * 2
        tail = round((1.0 - LEVEL) / 2.0 * (RESAMPLES - 1))
        # `kthvalue` counts from 1 and has NaN last, as a sort has that takes twice as long.
        low, high = (resampled.kthvalue(rank, 1).values for rank in (tail + 1, RESAMPLES - tail))
        return torch.where(high.isnan(), high, low), high


@functools.lru_cache(maxsize=1)
def bootstrap_of(worlds: int) -> WorldBootstrap:
    """Return the bootstrap over so many worlds: stages mostly have the same number."""
    return WorldBootstrap(worlds)


def _rarer(hits: Tensor, trials: Tensor) -> Tensor:
    """Return in how many worlds, the first dimension, the rarer of hit and miss was seen."""
    return torch.minimum((hits > 0).sum(0), (hits < trials).sum(0))


def _divided(total: Tensor, count: Tensor) -> Tensor:
    return torch.where(count > 0, total / count.clamp(min=1e-300), math.nan)


def listed(numbers: Tensor) -> list[float | None]:
    """Return numbers as JSON has them."""
    return [_rounded(number) for number in numbers.tolist()]
