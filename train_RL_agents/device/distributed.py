"""Several training processes, as ``torchrun`` starts them: averages, sums, and the death of one."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others: longer than an evaluation, which only the first does."""


class ProcessLostError(RuntimeError):
    """Another process of the run has died, so that nothing can be averaged any more."""


@dataclass(frozen=True)
class Processes:
    """The processes of one run; alone, every operation is the identity.

    Attributes:
        rank: number of this process, from 0.
        size: number of processes.
        local_rank: number of this process on its machine, which is its GPU's number.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @classmethod
    def join(cls) -> Processes:
        """Join the processes that ``torchrun`` announces in the environment, or be alone.

        Tensors on a GPU are exchanged by NCCL, those on the CPU by gloo.

        Raises:
            ProcessLostError: the others could not be reached.
        """
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        on_gpu = torch.cuda.is_available() and dist.is_nccl_available()
        if on_gpu:
            torch.cuda.set_device(local_rank % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        processes = cls(rank, size, local_rank)
        processes.exchange(lambda: dist.init_process_group(backend, timeout=TIMEOUT))
        return processes

    @property
    def first(self) -> bool:
        """Whether this process logs, evaluates and writes the checkpoint."""
        return self.rank == 0

    def sharing(self, device: torch.device) -> int:
        """Return how many processes, with this one, live on ``device``; each has its own GPU."""
        if self.size == 1 or device.type == "cuda":
            return 1
        return int(os.environ.get("LOCAL_WORLD_SIZE", self.size))

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by its mean over the processes, with one transfer for all of them.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size == 1:
            return
        tensors = list(tensors)
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        self.exchange(lambda: dist.all_reduce(flat))
        self._scatter(flat.div_(self.size), tensors)

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by that of the first process.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size == 1:
            return
        for tensor in tensors:
            self.exchange(functools.partial(dist.broadcast, tensor, 0))

    def agree(self, text: str) -> str:
        """Return the first process's text in every process.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size == 1:
            return text
        texts = [text]
        self.exchange(lambda: dist.broadcast_object_list(texts, 0))
        return texts[0]

    def sum(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over the processes.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.size > 1:
            self.exchange(lambda: dist.all_reduce(tensor))

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

    def leave(self) -> None:
        """End the communication, without waiting for anyone."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def exchange(self, communicate: Callable[[], object]) -> None:
        """Run a communication; what it raises means that a process is gone.

        Raises:
            ProcessLostError: it failed.
        """
        try:
            communicate()
        except RuntimeError as error:
            raise ProcessLostError(
                f"process {self.rank} of {self.size} lost contact with another one, which has "
                f"probably died ({str(error).splitlines()[0]})"
            ) from error

    @staticmethod
    def _scatter(flat: Tensor, tensors: list[Tensor]) -> None:
        start = 0
        for tensor in tensors:
            tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()
