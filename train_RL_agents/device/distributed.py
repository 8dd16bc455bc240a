"""Several training processes, as ``torchrun`` starts them: sums, means, the death of one."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from marinenav_env.fields import require
from train_RL_agents.device.cuda_graphs import CapturedStep

T = TypeVar("T")
ANNOUNCED = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What several processes find each other by, besides WORLD_SIZE."""
HOST_LIMIT = timedelta(hours=2)
"""How long a process waits for the others: longer than an evaluation, which only the first does.
Whoever dies closes its connections, which gloo notices at once."""
GPU_LIMIT = timedelta(minutes=2)
"""How long a GPU waits for the others. The processes meet before, so that none is in an evaluation;
NCCL then ends a process whose GPU waits for one that died."""


class ProcessLostError(RuntimeError):
    """Another process of the run has died, so that nothing can be averaged any more."""


@dataclass(frozen=True)
class Processes:
    """The processes of one run; alone, every operation is the identity.

    Attributes:
        rank: number of this process, from 0.
        size: number of processes.
        local_rank: number of this process on its machine.
        gpus: the group that exchanges tensors on GPUs; None where gloo exchanges all.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    gpus: dist.ProcessGroup | None = None

    @classmethod
    def join(cls) -> Processes:
        """Join the processes that ``torchrun`` announces in the environment, or be alone.

        Tensors on a GPU are exchanged by NCCL, those on the CPU by gloo.

        Raises:
            ProcessLostError: the others could not be reached.
            ConfigError: the environment announces others, and does not say where they are.
        """
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        missing = ", ".join(name for name in ANNOUNCED if name not in os.environ)
        remedy = f"start with torchrun, which sets {missing} too, or unset WORLD_SIZE"
        require(not missing, "WORLD_SIZE", size, remedy)
        rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        processes = cls(rank, size, local_rank)
        processes.exchange(lambda: dist.init_process_group("gloo", timeout=HOST_LIMIT))
        if not (torch.cuda.is_available() and dist.is_nccl_available()):
            return processes
        torch.cuda.set_device(local_rank % torch.cuda.device_count())
        return replace(processes, gpus=dist.new_group(backend="nccl", timeout=GPU_LIMIT))

    @property
    def first(self) -> bool:
        """Whether this process logs, evaluates and writes the checkpoint."""
        return self.rank == 0

    def sharing(self, device: torch.device) -> int:
        """Return how many processes, with this one, live on ``device``; each has its own GPU."""
        if self.size == 1 or device.type == "cuda":
            return 1
        return int(os.environ.get("LOCAL_WORLD_SIZE", self.size))

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by that of the first process.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size == 1:
            return
        for tensor in tensors:
            self.exchange(functools.partial(dist.broadcast, tensor, 0, self._group(tensor)))

    def gather(self, text: str) -> list[str]:
        """Return the text of every process, by rank.

        Raises:
            ProcessLostError: another process has died.
        """
        texts = [text] * self.size
        if self.size > 1:
            self.exchange(lambda: dist.all_gather_object(texts, text))
        return texts

    def tell(self, question: Callable[[], T]) -> T:
        """Return the first process's answer: what other hosts see of a shared folder may be old.

        Raises:
            ProcessLostError: another process has died.
            OSError, ValueError, RuntimeError: what the question raised.
        """
        told: list[tuple[T | None, OSError | ValueError | RuntimeError | None]] = [(None, None)]
        if self.first:
            try:
                told = [(question(), None)]
            except (OSError, ValueError, RuntimeError) as error:
                told = [(None, error)]
        if self.size > 1:
            self.exchange(lambda: dist.broadcast_object_list(told, 0))
        answer, raised = told[0]
        if raised is not None:
            raise raised
        return cast("T", answer)

    def sum(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over the processes.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size > 1:
            self.exchange(lambda: dist.all_reduce(tensor, group=self._group(tensor)))

    def any(self, flag: bool) -> bool:
        """Return whether a process gave a true ``flag``; the question goes from host to host.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size == 1:
            return flag
        total = torch.tensor([float(flag)])
        self.sum(total)
        return bool(total.item())

    def wait(self) -> None:
        """Return when every process has come here.

        Raises:
            ProcessLostError: another process has died.
        """
        self.sum(torch.zeros(1))

    def leave(self, status: int = 0) -> None:
        """End the communication; of several processes, one that fails ends here, with its status.

        Communication is ended by all together, for which a failure cannot wait: the others may be
        anywhere. They notice when the system closes the connections of this process.
        """
        if self.size == 1:
            return
        if status:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        if dist.is_initialized():
            dist.destroy_process_group()

    def exchange(self, communicate: Callable[[], object]) -> None:
        """Run a communication; what it raises means that a process is gone, but for own failures.

        Raises:
            ProcessLostError: it failed.
            OutOfMemoryError: a GPU's memory is full.
            AcceleratorError: an earlier operation of this GPU failed.
        """
        try:
            communicate()
        except (torch.OutOfMemoryError, torch.AcceleratorError):
            raise
        except RuntimeError as error:
            raise ProcessLostError(
                f"process {self.rank} of {self.size} lost contact with another one, which has "
                f"probably died ({str(error).splitlines()[0]})"
            ) from error

    def _group(self, tensor: Tensor) -> dist.ProcessGroup | None:
        """Return the group that exchanges a tensor; None is the default one."""
        return self.gpus if tensor.is_cuda else None


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
