"""Gradients of several processes that train together."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import Processes


class GradientAverage:
    """Replaces gradients by their mean over the processes: an agent's `gradient_sync`.

    All of them travel in one buffer, which stays where it is: the update is captured in two graphs,
    and the transfer runs between them.

    Args:
        processes: those that train together.
        update: the step within which the gradients are averaged.
    """

    def __init__(self, processes: Processes, update: CapturedStep) -> None:
        self._processes, self._update = processes, update
        self._flat: Tensor | None = None

    def __call__(self, gradients: Sequence[Tensor]) -> None:
        """Average in place; the gradients have the same shapes at every call.

        Raises:
            ProcessLostError: another process has died.
        """
        parts = [gradient.flatten() for gradient in gradients]
        flat = self._flat = torch.cat(parts, out=self._flat)
        self._update.between_graphs(functools.partial(self._processes.sum, flat))
        means = (flat / self._processes.size).split([part.numel() for part in parts])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))
