"""A replay's own operators: schemas, and errors that name the argument.

What they find is compared in `tests/train_RL_agents/replay`, with plain sums and loops.
"""

import pytest
import torch

from marinenav_env.kernel import ops
from tests.marinenav_env.kernel.calls import OPS, turned


def tree(device: str) -> dict[str, object]:
    """Arguments of `find_slots`: two blocks of weights, their sums, three targets."""
    weights = torch.arange(128, device=device)
    sums = weights.view(2, 64).sum(1)
    target = torch.tensor([0, 2016, 8127], device=device)
    return {
        "levels": [weights, sums],
        "running": sums.cumsum(0),
        "target": target,
    }


def ring(device: str, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Arguments of `windows`: four rows of 2 x 3 slots, five draws, two decisions."""
    real = {"dtype": dtype, "device": device}
    index = torch.tensor([0, 7, 23, 6, 11], device=device)
    return {
        "index": index,
        "flags": torch.ones(4, 2, 3, 3, dtype=torch.bool, device=device),
        "reward": torch.ones(4, 2, 3, **real),
        "position": torch.tensor([2], device=device),
        "discounts": torch.tensor([1.0, 0.5, 0.25], **real),
    }


def test_slots_are_found_in_the_running_sum(device):
    arguments = tree(device)
    torch.library.opcheck(OPS.find_slots.default, tuple(arguments.values()))
    slot, weight = ops.find_slots(*arguments.values())
    assert slot.tolist() == weight.tolist() == [1, 64, 127]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_windows_end_with_the_episode(dtype, device):
    arguments = ring(device, dtype)
    torch.library.opcheck(OPS.windows.default, tuple(arguments.values()))
    arguments["flags"][..., 1:] = False
    terms, last, discount = ops.windows(*arguments.values())
    assert terms.tolist() == [[1.0, 0.5], [1.0, 0.0], [1.0, 0.5], [1.0, 0.0], [1.0, 0.0]]
    assert last.tolist() == [6, 7, 5, 6, 11]
    assert discount.tolist() == [0.25, 0.5, 0.25, 0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("levels", lambda t: [], "`levels` holds 0 tensors, expected 1 to 8"),
        ("levels", lambda t: t * 5, "`levels` holds 10 tensors"),
        ("levels", lambda t: [t[0], t[1][:0]], "the last of `levels` holds 0 sums"),
        ("levels", lambda t: [t[0][:100].clone(), t[1]], "level 0 of `levels` has 100 entries"),
        (
            "levels",
            lambda t: [t[0], t[1][:1].clone()],
            "level 0 of `levels` has 128 entries, expected up to 1 blocks",
        ),
        ("levels", lambda t: [t[0].int(), t[1]], "`levels` must be 128 int64"),
        ("running", lambda t: t[:1].clone(), "`running` must be 2 int64"),
        ("target", lambda t: t.double(), "`target` must be 3 int64"),
        ("target", lambda t: t.repeat_interleave(2)[::2], "`target` must be 3 int64 side by side"),
    ],
)
def test_a_tree_that_is_none_is_refused(name, spoil, message, device):
    arguments = tree(device)
    arguments[name] = spoil(arguments[name])
    with pytest.raises(RuntimeError, match=f"marinenav: {message}"):
        OPS.find_slots(*arguments.values())


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("index", lambda t: t.int(), "`index` must be 5 of Long"),
        ("flags", lambda t: t[..., :2].clone(), "`flags` must be 72 of Bool"),
        ("flags", turned, "`flags` must be 72 of Bool, contiguous"),
        ("reward", lambda t: t.flatten(), r"`reward` has shape \[24\], expected \[rows, slots"),
        ("reward", lambda t: t.half(), "`reward` has dtype Half, expected Float or Double"),
        ("position", lambda t: t.repeat(2), "`position` must be 1 of Long"),
        ("discounts", lambda t: t[:1].clone(), "`discounts` has 1 entries"),
        ("discounts", lambda t: t.double(), "`discounts` must be 3 of Float"),
        ("index", lambda t: t.unsqueeze(1), r"`index` has shape \[5, 1\], expected \[B\]"),
    ],
)
def test_a_ring_that_is_none_is_refused(name, spoil, message, device):
    arguments = ring(device)
    arguments[name] = spoil(arguments[name])
    with pytest.raises(RuntimeError, match=f"marinenav: {message}"):
        OPS.windows(*arguments.values())
