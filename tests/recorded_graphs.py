"""CUDA graphs that are not there: operators on the CPU are recorded once and run again.

A replay computes from the tensors that the operators had when they were recorded, and from the
Python numbers of that moment, as a CUDA graph does: what is no tensor is frozen, and a tensor that
has moved is not seen. Unlike there, no memory is used twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from train_RL_agents.device import cuda_graphs


class RecordedGraph:
    """Stands for `torch.cuda.CUDAGraph`.

    Attributes:
        calls: operator, arguments, keyword arguments and results, in order.
        token: what stands for its memory pool.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple, dict, Any]] = []
        self.token = object()

    def pool(self) -> object:
        """Return the memory pool."""
        return self.token

    def replay(self) -> None:
        """Run the operators again, into the tensors that they gave first."""
        with torch.no_grad():
            for function, args, kwargs, results in self.calls:
                again = function(*args, **kwargs)
                if any(returned.alias_info for returned in function._schema.returns):
                    continue  # in place, or a view of what has been computed already
                for old, new in zip(tree_leaves(results), tree_leaves(again), strict=True):
                    if isinstance(old, Tensor):
                        old.copy_(new)


class _Recording(TorchDispatchMode):
    """Record operators; what they change is put back at the end, since a capture runs nothing."""

    def __init__(self, graph: RecordedGraph) -> None:
        super().__init__()
        self._graph = graph
        self._before: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        given = dict(zip((a.name for a in func._schema.arguments), args, strict=False))
        given |= kwargs or {}
        for argument in func._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                written = tree_leaves(given.get(argument.name))
                self._before += [(t, t.clone()) for t in written if isinstance(t, Tensor)]
        result = func(*args, **(kwargs or {}))
        self._graph.calls.append((func, args, kwargs or {}, result))
        return result

    def restore(self) -> None:
        """Undo all changes, the last one first."""
        for tensor, value in reversed(self._before):
            tensor.copy_(value)


@contextmanager
def _record(
    graph: RecordedGraph, *, pool: object, stream: None, capture_error_mode: str
) -> Iterator[None]:
    """Stand for `torch.cuda.graph`."""
    graph.token = graph.token if pool is None else pool
    random = torch.get_rng_state()
    with _Recording(graph) as recording:
        yield
    with torch.no_grad():
        recording.restore()
    torch.set_rng_state(random)


@contextmanager
def recorded_graphs() -> Iterator[list[RecordedGraph]]:
    """Let every captured step record graphs on the CPU; they are listed in the order of capture."""
    made = []

    def make() -> RecordedGraph:
        made.append(RecordedGraph())
        return made[-1]

    def init(step: cuda_graphs.CapturedStep, *args: Any, **kwargs: Any) -> None:
        original(step, *args, **kwargs)
        step.captures = kwargs.get("enabled", True)

    original = cuda_graphs.CapturedStep.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_graphs.CapturedStep, "__init__", init)
        patch.setattr(cuda_graphs, "_warming_up", nullcontext)
        patch.setattr(cuda_graphs, "side_stream", lambda _: None)
        patch.setattr(torch.cuda, "device", nullcontext)
        patch.setattr(torch.cuda, "graph", _record)
        patch.setattr(torch.cuda, "CUDAGraph", make)
        yield made
