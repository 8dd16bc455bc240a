"""The guard itself: it must trip on every way of reading the device, and let ordinary code pass."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.host_reads import HostReadError, no_host_reads

READS = {
    "item": lambda x: x[0].item(),
    "bool": lambda x: bool(x[0] > 0),
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "index": lambda x: [1, 2, 3][x.long()[0]],
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "cpu": lambda x: x.cpu(),
    "print": lambda x: str(x),
    "format": lambda x: f"{x[0]:.1f}",
    "allclose": lambda x: torch.allclose(x, x),
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0),
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, x.long()),
    "contains": lambda x: 1.0 in x,
    "min": lambda x: min(x),
    "slice": lambda x: x[: x.long()[0]],
    "arange": lambda x: torch.arange(x[0]),
    "multinomial": lambda x: torch.multinomial(x, 1),
    "mask_assignment": lambda x: x.__setitem__(x > 0, torch.ones(2)),
    "to_cpu": lambda x: x.to("cpu"),
    "tensor": lambda x: x + torch.tensor([1.0]),
    "as_tensor": lambda x: x + torch.as_tensor([1.0]),
    "new_tensor": lambda x: x + x.new_tensor([1.0]),
    "bincount": lambda x: torch.bincount(x.long()),
    "one_hot": lambda x: torch.nn.functional.one_hot(x.long(), 3),
}


@pytest.mark.parametrize("name", READS)
def test_guard_trips_on_a_read(name: str) -> None:
    read: Callable[[Tensor], object] = READS[name]
    x = torch.tensor([1.0, 0.0, 2.0])
    with pytest.raises(HostReadError), no_host_reads():
        read(x)


def test_guard_lets_device_code_pass() -> None:
    x = torch.rand(8)
    weight = torch.nn.Parameter(torch.rand(8))
    with no_host_reads():
        y = torch.where(x > 0.5, x, 0.0).cumsum(0)
        y = y.masked_fill(y > 1, 1.0).index_select(0, y.argsort())
        x.index_copy_(0, torch.arange(8), y)
        len(x)
        x.to(torch.float64).to(x.device).clone().add_(torch.as_tensor(y))
        weight.sum().backward()
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        for row in y:
            row.exp()
