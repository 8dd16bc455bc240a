"""A guard that fails where code would make a GPU's host wait, on any device.

A dispatch mode sees the operators; what becomes host code before it reaches an operator
(``tolist``, ``numpy``, ``print``, ...) is seen by a function mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

READING_OPERATORS = {
    f"aten::{name}"
    for name in (
        *("_local_scalar_dense", "_unique", "_unique2", "allclose", "bincount", "equal", "histc"),
        *("is_nonzero", "item", "masked_scatter", "masked_select", "multinomial", "nonzero"),
        *("nonzero_numpy", "repeat_interleave", "unique_consecutive", "unique_dim"),
    )
}
INDEXING_OPERATORS = {"aten::index", "aten::index_put", "aten::index_put_"}
READING_METHODS = {
    getattr(torch.Tensor, name)
    for name in (
        *("__array__", "__bool__", "__complex__", "__contains__", "__float__", "__format__"),
        *("__index__", "__int__", "__repr__", "allclose", "cpu", "equal", "item", "numpy"),
        "tolist",
    )
} | {torch.allclose, torch.equal}
UPLOADING_FUNCTIONS = {torch.as_tensor, torch.tensor}


class HostReadError(AssertionError):
    """Code would read the device, or made a shape depend on data."""


class _Operators(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        name = func._schema.name
        if name in READING_OPERATORS:
            raise HostReadError(f"{name} reads the device")
        if name in INDEXING_OPERATORS:
            for index in args[1]:
                if index is not None and index.dtype in (torch.bool, torch.uint8):
                    raise HostReadError(f"{name} with a mask has a data-dependent shape")
        result = func(*args, **(kwargs or {}))
        if name == "aten::_to_copy" and not result.is_cuda and args[0].is_cuda:
            raise HostReadError("a tensor was copied to the CPU")
        return result


class _Functions(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in READING_METHODS:
            raise HostReadError(f"Tensor.{func.__name__} reads the device")
        if func in UPLOADING_FUNCTIONS and not isinstance(args[0], torch.Tensor):
            raise HostReadError(f"{func.__name__} waits for a copy from the host's memory")
        if func is torch.Tensor.new_tensor:
            raise HostReadError("new_tensor waits for a copy from the host's memory")
        if func is torch.Tensor.to and "cpu" in (*args[1:], *(kwargs or {}).values()):
            raise HostReadError("Tensor.to('cpu') reads the device")
        return func(*args, **(kwargs or {}))


@contextmanager
def no_host_reads() -> Iterator[None]:
    """Raise :class:`HostReadError` at whatever would synchronise a GPU inside the block."""
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    previous = torch.cuda.get_sync_debug_mode() if on_gpu else 0
    if on_gpu:
        torch.cuda.set_sync_debug_mode("error")
    try:
        with _Functions(), _Operators():
            yield
    finally:
        if on_gpu:
            torch.cuda.set_sync_debug_mode(previous)
