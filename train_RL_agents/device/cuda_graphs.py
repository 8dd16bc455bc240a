"""CUDA graphs, in one place: a function of persistent tensors is captured once, then replayed."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache

import torch

WARM_UP_CALLS = 3
"""Calls run eagerly before the capture, so that lazily created handles and buffers exist."""


@cache
def side_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream on which everything on a device is warmed up and captured.

    It is one, since the memory that a stream has used is only used again on it.
    """
    return torch.cuda.Stream(device)


class CapturedStep:
    """Runs a function eagerly, or, on a GPU, as a CUDA graph after a few calls.

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
        self._graph: torch.cuda.CUDAGraph | None = None
        self._calls = 0
        self.captures = enabled and device.type == "cuda"

    def __call__(self) -> None:
        """Run the function once."""
        if not self.captures:
            self._function()
        elif self._calls < WARM_UP_CALLS:
            self._warm_up()
        else:
            if self._graph is None:
                self._graph = self._capture()
            self._graph.replay()
        self._calls += 1

    def _warm_up(self) -> None:
        """Run on a side stream, as a capture will: memory of the default stream is not reused."""
        current, side = torch.cuda.current_stream(self._device), side_stream(self._device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            self._function()
        current.wait_stream(side)

    def _capture(self) -> torch.cuda.CUDAGraph:
        """Return the function as a graph, without running it."""
        side = side_stream(self._device)
        collects = gc.isenabled()
        gc.disable()  # a graph that dies within the capture would break it
        try:
            with torch.cuda.device(self._device):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                    self._function()
        finally:
            if collects:
                gc.enable()
        return graph
