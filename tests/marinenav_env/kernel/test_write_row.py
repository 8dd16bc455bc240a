"""Rows of rings: the operator that writes them, and errors that name the part."""

import pytest
import torch

from marinenav_env.kernel import ops
from tests.marinenav_env.kernel.calls import OPS, turned


def row_of_rings(device: str) -> tuple[list[torch.Tensor], list[torch.Tensor], list[int]]:
    """Rings of three types, four rows of 2 x 3 slots, parts of every width, how many each takes."""
    kinds = [(torch.float32, (7, 10, 1)), (torch.float64, (2,)), (torch.bool, (1, 1, 4)),
             (torch.int64, (1,))]  # fmt: skip
    rings, parts = [], []
    for kind, widths in kinds:
        rings.append(torch.zeros(4, 2, 3, sum(widths), device=device, dtype=kind))
        for width in widths:
            parts.append((torch.rand(2, 3, width, device=device) * 9 - 4).to(kind))
    return rings, parts, [len(widths) for _, widths in kinds]


def test_a_row_of_rings_holds_its_parts_side_by_side(device):
    rings, parts, counts = row_of_rings(device)
    position = torch.tensor([2], device=device)
    torch.library.opcheck(OPS.write_row.default, (rings, parts, counts, position))
    left = iter(parts)
    grouped = [[next(left) for _ in range(count)] for count in counts]
    ops.write_row(list(zip(rings, grouped, strict=True)), position)
    left = iter(parts)
    for ring, count in zip(rings, counts, strict=True):
        assert torch.equal(ring[2], torch.cat([next(left) for _ in range(count)], -1))
        assert not ring[[0, 1, 3]].any()


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_a_part_may_be_a_piece_of_every_slot(shape, device):
    whole = torch.rand(*shape, 8, 5, device=device)
    pieces = [whole[:, :, :3], whole[:, :, 2], whole[..., :1, 1:4]]
    odd = [whole[..., 0:3, 0], whole.transpose(2, 3)[..., 5:], whole[:, :, 0, :1].expand(*shape, 2)]
    for parts, width in ((pieces, 15 + 5 + 3), (odd, 3 + 15 + 2)):
        ring = torch.zeros(4, *shape, width, device=device)
        position = torch.tensor([1], device=device)
        with torch.profiler.profile() as profile:
            ops.write_row([(ring, parts)], position)
        assert torch.equal(ring[1], torch.cat([piece.flatten(2) for piece in parts], -1))
        copied = any(event.name == "aten::clone" for event in profile.events())
        assert copied == (parts is odd)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r, p, n: (r, p, n[:-1]), "`counts` has 3 entries, expected one for each of 4"),
        (lambda r, p, n: (r, p, [*n[:-1], 2]), "`parts` holds 8 tensors, fewer than"),
        (lambda r, p, n: (r[:-1], p, n[:-1]), "`parts` holds 8 tensors, more than"),
        (lambda r, p, n: (r, p[1:2] * 25, n), "`parts` holds 25 tensors, expected 24 at most"),
        (lambda r, p, n: (r, [p[0].double(), *p[1:]], n), "ring 0 has dtype Double .* expected Fl"),
        (lambda r, p, n: (r, [p[1], *p[1:]], n), "parts of ring 0 have 21 numbers a slot, exp"),
        (lambda r, p, n: (r, [p[0][:, :2].contiguous(), *p[1:]], n), "and whole slots of 6"),
        (
            lambda r, p, n: ([r[0], r[1][:, :1].clone(), *r[2:]], p, n),
            "ring 1 has 3 slots in 4",
        ),
        (lambda r, p, n: ([r[0], r[1][:3], *r[2:]], p, n), "ring 1 has 6 slots in 3 rows, expec"),
        (lambda r, p, n: ([r[0][:0], *r[1:]], p, n), "a ring has shape"),
        (lambda r, p, n: ([turned(r[0]), *r[1:]], p, n), "`rings` must be contiguous"),
        (lambda r, p, n: ([], p, []), "`rings` holds no tensor"),
    ],
)
def test_parts_that_make_no_row_are_named(spoil, message, device):
    position = torch.zeros(1, dtype=torch.int64, device=device)
    with pytest.raises(RuntimeError, match=f"marinenav: .*{message}"):
        OPS.write_row(*spoil(*row_of_rings(device)), position)


def test_a_row_wants_a_whole_position(device):
    with pytest.raises(RuntimeError, match="`position` must be one int64"):
        OPS.write_row(*row_of_rings(device), torch.zeros(1, device=device))


@pytest.mark.parametrize("row", [-1, 4])
def test_a_row_that_is_not_there_is_not_written(row):
    with pytest.raises(RuntimeError, match=f"`position` is {row}, expected 0 to 3"):
        OPS.write_row(*row_of_rings("cpu"), torch.tensor([row]))
