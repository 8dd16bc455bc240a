"""CUDA graphs, in one place: a function of persistent tensors is captured once, then replayed."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from weakref import WeakSet

import torch

WARM_UP_CALLS = 3
"""Calls run eagerly before the capture, so that lazily created handles and buffers exist."""

_captured: defaultdict[torch.device, WeakSet[torch.cuda.CUDAGraph]] = defaultdict(WeakSet)


@cache
def side_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream on which everything on a device is warmed up and captured.

    It is one, since the memory that a stream has used is only used again on it.
    """
    return torch.cuda.Stream(device)


def shared_pool(device: torch.device) -> Any:
    """Return the memory pool of the graphs that live on a device; None where there is none.

    Graphs that are replayed one after another, and whose tensors nobody reads after their replay,
    can use the same memory.
    """
    return next((graph.pool() for graph in _captured[device]), None)


class CapturedStep:
    """Runs a function eagerly, or, on a GPU, as CUDA graphs after a few calls.

    The function reads and writes tensors that stay where they are, takes no argument, returns
    nothing and reads nothing on the host. Every call is one execution of it, warm-up included, so
    a run does the same work with and without graphs. Random numbers come from the device's default
    generator, whose counter advances with every replay.

    Args:
        function: what to run.
        device: where its tensors are.
        enabled: False keeps it eager on a GPU too.
    """

    def __init__(
        self,
        function: Callable[[], None],
        device: torch.device,
        *,
        enabled: bool = True,
    ) -> None:
        self._function = function
        self._device = device
        self._parts: list[Callable[[], object]] = []  # replays, and what runs between them
        self._capturing: ExitStack | None = None
        self._calls = 0
        self.captures = enabled and device.type == "cuda"

    def __call__(self) -> None:
        """Run the function once."""
        if not self.captures:
            self._function()
        elif self._calls < WARM_UP_CALLS:
            with _warming_up(self._device):
                self._function()
        else:
            if not self._parts:
                self._capture()
            for part in self._parts:
                part()
        self._calls += 1

    def between_graphs(self, action: Callable[[], object]) -> None:
        """Run, from within the function, what no graph can hold: the graph is split around it.

        Args:
            action: is called again at every replay, and reads and writes persistent tensors.
        """
        if self._capturing is None:
            action()
        else:
            self._capturing.close()
            self._parts.append(action)
            self._capturing.enter_context(self._graph())

    def _capture(self) -> None:
        """Record the function without running it."""
        collects = gc.isenabled()
        gc.disable()  # a graph that dies within the capture would break it
        try:
            with torch.cuda.device(self._device), ExitStack() as self._capturing:
                self._capturing.enter_context(self._graph())
                self._function()
        except BaseException:
            self._parts.clear()
            raise
        finally:
            self._capturing = None
            if collects:
                gc.enable()

    @contextmanager
    def _graph(self) -> Iterator[None]:
        """Record what is run inside as the next graph."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph,
            pool=shared_pool(self._device),
            stream=side_stream(self._device),
            capture_error_mode="thread_local",
        ):
            yield
        _captured[self._device].add(graph)
        self._parts.append(graph.replay)


@contextmanager
def _warming_up(device: torch.device) -> Iterator[None]:
    """Run on a side stream, as a capture will: memory of the default stream is not reused."""
    current, side = torch.cuda.current_stream(device), side_stream(device)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        yield
    current.wait_stream(side)
