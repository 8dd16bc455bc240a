"""Sampling in proportion to a weight, exactly, on the device: an integer sum hierarchy.

Every slot of a replay owns one int64 weight. Weights are summed in blocks of 64, the sums again in
blocks of 64, and so on until at most 4,096 sums are left (two levels above ten million slots). A
draw searches the running sums of the top level, then those of one block per level; an update sums
the touched blocks again. Neither reads the device nor costs more as the replay grows, but for a
level each 64-fold.

Weights are integers in fixed point (2**-24 of a priority), not floats, so that no sum ever rounds:
the tree is exact at any size, independent of the order of updates, equal on every device, and a
slot of weight 0 can never be drawn. Uniform sampling is the same tree with weights 1 and 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from marinenav_env.kernel import ops

FANOUT = 64  # as `FindSlot::kFanout` of the core
TOP_LEVEL = 4096
UNIT = 1 << 24
"""Fixed point: the weight that stands for 1.0."""
LARGEST_WEIGHT = 1 << 38
"""Largest weight of a slot: 16,384.0."""
MOST_WEIGHTED_SLOTS = (1 << 63) // LARGEST_WEIGHT - 1
"""So many slots of the largest weight have a sum that fits in int64."""
EPSILON = 1e-6
"""Added to every priority, so that no stored transition becomes unreachable."""


def weight_of_priority(priority: Tensor, alpha: float) -> Tensor:
    """Return the weight (abs(p) + eps)^alpha in fixed point, never 0, of priorities [B].

    Proportional prioritisation: Schaul et al. 2016, "Prioritized Experience Replay", section 3.3.
    A priority that is not finite counts as the largest, so that it cannot damage the sums.
    """
    weight = (priority.double().abs() + EPSILON).pow(alpha) * UNIT
    weight = weight.nan_to_num(nan=LARGEST_WEIGHT, posinf=LARGEST_WEIGHT)
    return weight.round().clamp(max=LARGEST_WEIGHT).to(torch.int64)


def importance_weights(weight: Tensor, beta: Tensor) -> Tensor:
    """Return (N P(i))^-beta divided by its maximum over the batch, float32 [B].

    N and the sum of all weights cancel: w_i = (min_j weight_j / weight_i)^beta (Schaul et al. 2016,
    section 3.4, with the maximum taken over the batch). A slot of weight 0, which only an empty
    tree returns, gets 0.

    Args:
        weight: int64 [B], weights of the drawn slots.
        beta: 0-d tensor, 0 (no correction) to 1 (full).
    """
    ratio = weight.min() / weight.clamp(min=1)
    return ratio.pow(beta).masked_fill(weight == 0, 0.0)


class SumTree:
    """Weights of ``size`` slots and their block sums.

    Attributes:
        levels: int64 tensors, slots first; all but the last are a whole number of blocks long.
    """

    def __init__(self, size: int, device: torch.device | str, *, span: int = 1) -> None:
        """Allocate the tree with all weights 0.

        Args:
            size: number of slots.
            device: where it lives.
            span: largest number of slots that :meth:`set_span` sets at once.
        """
        self.size = size
        self.levels = [
            torch.zeros(length, dtype=torch.int64, device=device) for length in _lengths(size)
        ]
        self._offsets = torch.arange(span, device=device)

    @staticmethod
    def required_bytes(size: int, span: int = 1) -> int:
        """Return the bytes that a tree over ``size`` slots allocates."""
        return 8 * (sum(_lengths(size)) + span)

    @property
    def weights(self) -> Tensor:
        """Weights of all slots, int64 [size]: a view, not to be written to."""
        return self.levels[0][: self.size]

    def total(self) -> Tensor:
        """Return the sum of all weights, int64 0-d."""
        return self.levels[-1].sum()

    def set(self, index: Tensor, weight: Tensor) -> None:
        """Set the weights of slots; of the entries of a repeated slot the largest counts.

        Args:
            index: int64 [B], slots.
            weight: int64 [B], not negative.
        """
        self.levels[0].scatter_reduce_(0, index, weight, "amax", include_self=False)
        for below, sums in zip(self.levels, self.levels[1:], strict=False):
            index = index // FANOUT
            _sum_blocks(below, sums, index)

    def set_span(self, start: Tensor, weight: Tensor) -> None:
        """Set the weights of the slots ``start`` to ``start + B``.

        Args:
            start: int64 [1], the first slot; the span must lie inside the tree.
            weight: int64 [B], not negative.
        """
        count = weight.shape[0]
        self.levels[0].index_copy_(0, start + self._offsets[:count], weight)
        for below, sums in zip(self.levels, self.levels[1:], strict=False):
            start = start // FANOUT
            count = min((count + FANOUT - 2) // FANOUT + 1, sums.shape[0])
            blocks = (start + self._offsets[:count]).clamp(max=below.shape[0] // FANOUT - 1)
            _sum_blocks(below, sums, blocks)

    def find(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the slots in which the running sum of weights passes ``target``.

        That is the first slot i with weight[0] + ... + weight[i] > target.

        Args:
            target: int64 [B], from 0 to the total - 1; slot 0 is returned for a negative one.

        Returns:
            slots and their weights, int64 [B] each.
        """
        return ops.find_slots(self.levels, self.levels[-1].cumsum(0), target)

    def sample(
        self, batch_size: int, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw slots independently, each with probability weight / total.

        Args:
            batch_size: number of draws B.
            generator: random numbers; the default generator of the device when None.

        Returns:
            slots and their weights, int64 [B] each. All 0 when every weight is 0.
        """
        total = self.total()
        uniform = torch.rand(
            batch_size, dtype=torch.float64, device=total.device, generator=generator
        )
        return self.find(torch.minimum((uniform * total).to(torch.int64), total - 1))

    def load_weights(self, weights: Tensor) -> None:
        """Take over the weights [size] of all slots, from any device, and sum them again."""
        self.weights.copy_(weights)
        for below, sums in zip(self.levels, self.levels[1:], strict=False):
            blocks = below.view(-1, FANOUT).sum(1)
            sums[: blocks.shape[0]].copy_(blocks)

    @property
    def nbytes(self) -> int:
        """Bytes that the tree has allocated."""
        return sum(tensor.nbytes for tensor in (*self.levels, self._offsets))


def _lengths(size: int) -> list[int]:
    """Return the length of each level over ``size`` slots."""
    lengths = [size]
    while lengths[-1] > TOP_LEVEL:
        blocks = math.ceil(lengths[-1] / FANOUT)
        lengths[-1] = blocks * FANOUT
        lengths.append(blocks)
    return lengths


def _sum_blocks(below: Tensor, sums: Tensor, blocks: Tensor) -> None:
    """Write the sums of the blocks [n] of ``below`` to ``sums``; repeated blocks do no harm."""
    sums.index_copy_(0, blocks, below.view(-1, FANOUT).index_select(0, blocks).sum(1))
