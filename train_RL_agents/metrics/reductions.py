"""Reductions of statistics on the device, as values that one packed copy carries to the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import special  # scipy.stats takes a second to import
from torch import Tensor

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
QUANTILE_NAMES = [f"p{round(100 * share):02d}" for share in QUANTILES]
BINS = 32
"""Bins of the histogram of an array that brings no bins of its own."""


class Mean(NamedTuple):
    """A mean as its two sums: a total and the number of what was added."""

    total: Tensor | float
    number: Tensor | float


class Histogram(NamedTuple):
    """Counts [N] of N equal bins from ``low`` to ``high``; what lies outside is in the end bins."""

    counts: Tensor
    low: float
    high: float


@dataclass(frozen=True)
class Reduced:
    """Values [n] in float64 on some device, and what they mean once on the host.

    What the host knows already has no values.
    """

    values: Tensor | None
    decode: Callable[[list[float]], Any]


def reduce(value: Any) -> Reduced:
    """Reduce one quantity on the device it lies on, without a host read.

    Args:
        value: a tensor or array of any shape, a number, a `Mean` or a `Histogram`.

    Returns:
        What decodes to a number, to a dictionary with mean, spread, quantiles and histogram, or to
        None where there was nothing to reduce.
    """
    if isinstance(value, int | float):
        return Reduced(None, lambda _: float(value))
    if isinstance(value, Mean):
        if not any(isinstance(part, Tensor) for part in value):
            return Reduced(None, lambda _: _decode_mean([float(part) for part in value]))
        return Reduced(_pair(value.total, value.number), _decode_mean)
    if isinstance(value, Histogram):
        low, high = value.low, value.high
        return Reduced(_flat(value.counts), lambda counts: spread(low, high, counts))
    flat = _flat(value)
    if flat.numel() == 0:
        return Reduced(flat, lambda _: None)
    if flat.numel() == 1:
        return Reduced(flat, lambda values: values[0])
    return Reduced(_describe(flat), _decode_description)


def _flat(value: Any) -> Tensor:
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value)
    if not isinstance(value, Tensor):
        value = torch.as_tensor(value, dtype=torch.float64)
    return value.detach().to(torch.float64).reshape(-1)


def _pair(first: Tensor | float, second: Tensor | float) -> Tensor:
    """Return two numbers as [2], on the device of one that is a tensor."""
    anchor = next(part for part in (first, second) if isinstance(part, Tensor))
    # A number is filled in on the device: a copy of it would wait for the host's memory.
    numbers = [
        part if isinstance(part, Tensor) else anchor.new_full((), part, dtype=torch.float64)
        for part in (first, second)
    ]
    return torch.cat([_flat(number) for number in numbers])


def _decode_mean(sums: list[float]) -> float | None:
    total, count = sums
    return total / count if count else None


def _describe(flat: Tensor) -> Tensor:
    """Return mean, standard deviation, minimum, maximum, quantiles and bin counts of [n]."""
    ordered = flat.sort().values
    ranks = [round(share * (flat.numel() - 1)) for share in QUANTILES]
    quantiles = [ordered[rank] for rank in ranks]
    low, high = ordered[0], ordered[-1]
    position = (flat - low) / (high - low) * BINS
    bins = position.nan_to_num(0.0).clamp(0, BINS - 1).long()
    counts = torch.zeros(BINS, dtype=torch.float64, device=flat.device)
    counts.scatter_add_(0, bins, torch.ones_like(flat))
    moments = [flat.mean(), flat.std(correction=0), low, high]
    return torch.cat([torch.stack(moments + quantiles), counts])


def _decode_description(values: list[float]) -> dict[str, Any]:
    mean, std, low, high = values[:4]
    end = 4 + len(QUANTILE_NAMES)
    quantiles = dict(zip(QUANTILE_NAMES, values[4:end], strict=True))
    counts = values[end:]
    return {
        **{"mean": mean, "std": std, "min": low, "max": high},
        **quantiles,
        "histogram": _histogram(low, high, counts),
    }


def _histogram(low: float, high: float, counts: list[float]) -> dict[str, Any]:
    return {"low": low, "high": high, "counts": [int(count) for count in counts]}


def spread(low: float, high: float, counts: list[float]) -> dict[str, Any] | None:
    """Describe a histogram: moments from the bins' centres, quantiles by the bins' edges.

    Args:
        low: lower edge of the first bin.
        high: upper edge of the last.
        counts: content of each bin.

    Returns:
        Mean, standard deviation, range of the filled bins, quantiles and the histogram itself; None
        for an empty one.
    """
    total = sum(counts)
    if not total:
        return None
    width = (high - low) / len(counts)
    centres = [low + width * (i + 0.5) for i in range(len(counts))]
    mean = sum(c * x for c, x in zip(counts, centres, strict=True)) / total
    variance = sum(c * (x - mean) ** 2 for c, x in zip(counts, centres, strict=True)) / total
    filled = [i for i, count in enumerate(counts) if count]
    return {
        "mean": mean,
        "std": math.sqrt(variance),
        "min": low + width * filled[0],
        "max": low + width * (filled[-1] + 1),
        **{
            name: _histogram_quantile(low, width, counts, share * total)
            for name, share in zip(QUANTILE_NAMES, QUANTILES, strict=True)
        },
        "histogram": _histogram(low, high, counts),
    }


def _histogram_quantile(low: float, width: float, counts: list[float], rank: float) -> float:
    below = 0.0
    for i, count in enumerate(counts):
        if count and below + count >= rank:
            return low + width * (i + (rank - below) / count)
        below += count
    return low + width * len(counts)


def t_quantile(degrees: int) -> float:
    """Return the 97.5% quantile of Student's t distribution."""
    return float(special.stdtrit(degrees, 0.975))


def mean_interval(values: Tensor) -> list[float | None]:
    """Return the ends of the 95% interval of the mean of independent values [n], by Student's t.

    Those of a single value are None.
    """
    count = len(values)
    if count < 2:
        return [None, None]
    mean, spread = values.double().mean().item(), values.double().std().item()
    half = t_quantile(count - 1) * spread / count**0.5
    return [mean - half, mean + half]


NORMAL_QUANTILE = float(special.ndtri(0.975))


def wilson_interval(successes: float, trials: int) -> tuple[float, float]:
    """Return the 95% Wilson score interval of a share (Wilson 1927).

    Args:
        successes: not whole where the share of other trials is that of so many.
        trials: 1 or more.

    Raises:
        ValueError: there are no trials, or not as many as successes.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(
            f"{successes} successes of {trials} trials: give 1 trial or more, and no more successes"
        )
    share = successes / trials
    scale = 2.0 * (trials + NORMAL_QUANTILE**2)
    centre = (2.0 * successes + NORMAL_QUANTILE**2) / scale
    spread = 4.0 * successes * (1.0 - share) + NORMAL_QUANTILE**2
    half = NORMAL_QUANTILE / scale * math.sqrt(spread)
    low = centre - half if successes > 0 else 0.0
    high = centre + half if successes < trials else 1.0
    return low, high
