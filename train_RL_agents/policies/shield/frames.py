"""Observations of several decisions, newest first; it can be scripted."""

import torch
from torch import Tensor


def decisions_of(
    observation: tuple[Tensor, Tensor, Tensor], first: int, last: int, frames: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return some of the decisions in an observation.

    Args:
        observation: of `frames` decisions.
        first: of them to return; 0 is the present one.
        last: before which to stop; nothing but empty tensors is returned where it is `first`.
        frames: decisions in the observation.
    """
    if first == 0 and last == frames:
        return observation
    ego, objects, mask = observation
    own, rows = ego.shape[-1] // frames, mask.shape[-1] // frames
    return (
        ego[..., own * first : own * last],
        objects[..., rows * first : rows * last, :],
        mask[..., rows * first : rows * last],
    )


def joined(
    now: tuple[Tensor, Tensor, Tensor], before: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the observation of a present decision and of those before it."""
    return (
        torch.cat((now[0], before[0]), -1),
        torch.cat((now[1], before[1]), -2),
        torch.cat((now[2], before[2]), -1),
    )


def remembering(
    now: tuple[Tensor, Tensor, Tensor], before: tuple[Tensor, Tensor, Tensor], frames: int
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Return what a policy of `frames` decisions sees, and what it remembers at the next one."""
    if frames == 1:
        return now, before
    seen = joined(now, before)
    return seen, decisions_of(seen, 0, frames - 1, frames)


def for_plans(
    before: tuple[Tensor, Tensor, Tensor], plans: int, frames: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what N vessels remember `[N, ...]` once for each of P plans, `[P, N, ...]`."""
    if frames == 1:
        return before
    ego, objects, mask = before
    return (
        ego.expand(plans, -1, -1),
        objects.expand(plans, -1, -1, -1),
        mask.expand(plans, -1, -1),
    )
