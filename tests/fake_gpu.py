"""A GPU that is not there: its tensors know their shape and device, and hold nothing.

What runs on it shows, on a machine without CUDA, what else only a GPU would: an operator given
tensors of two devices, a tensor made on the CPU, a host read, a shape that depends on data. Nothing
is computed, and backward passes are left out, since autograd's engine asks for a real device.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.utils import clip_grad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from marinenav_env.envs import base, checks
from marinenav_env.kernel import memory

FAKE_GPU = torch.device("cuda", 1)  # a tensor on the default GPU is a mistake too
HOST = torch.device("cpu")
GUARD = Path(__file__).parent / "csrc" / "cuda_guard.cpp"
MEMORY_BYTES = 80e9


class OtherDeviceError(AssertionError):
    """Code for a GPU used a tensor on the CPU, or on another GPU."""


def read_by_the_host(func: Any, args: tuple) -> list[Any]:
    """Return the arguments that the host reads at a launch: the simulator's parameters."""
    return [
        value
        for argument, value in zip(func._schema.arguments, args, strict=False)
        if (func.namespace, argument.name) == ("marinenav", "params")
    ]


class AllOnGpu(TorchDispatchMode):
    """Raise where an operator takes or gives a tensor that is not on `FAKE_GPU`.

    The simulator's parameters are the one exception: the host reads them at each launch.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        host = read_by_the_host(func, args)
        for leaf in tree_leaves((args, kwargs, result)):
            expected = HOST if any(leaf is value for value in host) else FAKE_GPU
            if isinstance(leaf, Tensor) and leaf.device != expected:
                raise OtherDeviceError(f"{func} with a tensor {list(leaf.shape)} on {leaf.device}")
        return result


ALLOCATIONS = (torch.ops.aten.empty.memory_format, torch.ops.aten.empty_like.default)


class Operators(TorchDispatchMode):
    """Note which operators run, with all that a captured graph would freeze, and their memory.

    Attributes:
        calls: name, numbers and shapes of each operator, in order.
        launches: number of operators that neither view nor allocate only.
        peak_bytes: most memory that their results took at a time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.launches = self.peak_bytes = 0
        self._live: list[tuple[StorageWeakRef, int]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace in ("profiler", "prim"):
            return result
        # A graph keeps what the host has read: another tensor would go unseen.
        host = [id(value) for value in read_by_the_host(func, args)]
        frozen = [_frozen(leaf) for leaf in tree_leaves((args, kwargs))]
        self.calls.append(f"{func} {frozen} {host}")
        returns = func._schema.returns
        if func.is_view or func is torch.ops.aten.detach.default:
            return result
        self.launches += func not in ALLOCATIONS
        if not any(returned.alias_info for returned in returns):
            storages = [x.untyped_storage() for x in tree_leaves(result) if isinstance(x, Tensor)]
            self._live = [entry for entry in self._live if not entry[0].expired()]
            self._live += [(StorageWeakRef(storage), storage.nbytes()) for storage in storages]
            self.peak_bytes = max(self.peak_bytes, sum(size for _, size in self._live))
        return result


def _frozen(argument: Any) -> Any:
    """Return what a captured graph keeps of an argument: a tensor's shape, else its value."""
    return list(argument.shape) if isinstance(argument, Tensor) else argument


class _Missing(TorchDispatchMode):
    """What fake tensors have no operator for."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func is torch.ops.aten._fused_adam_.tensor_lr:
            return None  # changes its arguments in place
        if func is torch.ops.aten.allclose.default:
            return True  # TorchRL's specs compare their bounds
        return func(*args, **(kwargs or {}))


class _Mode(FakeTensorMode):
    def __deepcopy__(self, memo: dict) -> _Mode:
        return self  # a copied network stays among the same tensors


def _apply(module: nn.Module, function: Any, recurse: bool = True) -> nn.Module:
    """Stand for `nn.Module._apply`, which cannot move fake parameters to a device."""
    for child in module.children():
        child._apply(function)
    for tensor in (*module._parameters.values(), *module._buffers.values()):
        if tensor is not None:
            tensor.fake_device, tensor.constant = function(tensor).fake_device, None
    return module


def _gradients(loss: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(tensor) for tensor in inputs]


def _placeable(*arguments: Any) -> None:
    with unset_fake_temporarily():
        CHECK_PLACEMENT(*arguments)


CHECK_PLACEMENT = checks.check_placement


def load_guard(folder: Path) -> None:
    """Make a torch without CUDA take its devices' names; with CUDA it does so by itself."""
    if torch.version.cuda is not None:
        return
    root = Path(torch.__file__).parent
    library = folder / "cuda_guard.so"
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O0", "-shared", "-fPIC", str(GUARD)]
    command += [f"-I{root / 'include'}", f"-L{root / 'lib'}", "-lc10", "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True)
    ctypes.CDLL(str(library))


def answer_for_a_gpu(patch: pytest.MonkeyPatch) -> None:
    """Let torch and the packages hear what an H100 would say, and leave backward passes out."""
    patch.setattr(memory, "free_bytes", lambda device: MEMORY_BYTES)
    patch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    patch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    patch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    patch.setattr(clip_grad, "_has_foreach_support", lambda *_: True)  # torch asks for the class
    patch.setattr(torch.autograd, "grad", _gradients)


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Let code inside the block run on `FAKE_GPU`."""
    with pytest.MonkeyPatch.context() as patch, _Mode(), _Missing():
        answer_for_a_gpu(patch)
        patch.setattr(base, "check_device", torch.device)
        patch.setattr(checks, "check_placement", _placeable)
        patch.setattr(nn.Module, "_apply", _apply)
        yield
