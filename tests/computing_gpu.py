"""A GPU that is not there and computes: tensors of the CPU that say they are on `FAKE_GPU`.

Those of `fake_gpu.py` hold nothing, so that no code can look at them. These hold numbers, so that
whole evaluations and trainings run on them. Operators refuse tensors of two devices, as those of a
GPU do. Nothing is captured, and gradients are zero: autograd's engine asks for a real device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from marinenav_env.kernel import ops
from tests.fake_gpu import FAKE_GPU, HOST, OtherDeviceError, answer_for_a_gpu, read_by_the_host
from tests.host_reads import INDEXING_OPERATORS
from train_RL_agents.run import checkpoint


class TensorThere(Tensor):
    """A tensor on `FAKE_GPU`.

    Attributes:
        here: the tensor on the CPU that holds its numbers.
    """

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> TensorThere:
        there = Tensor._make_wrapper_subclass(
            cls,
            here.size(),
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=FAKE_GPU,
        )
        there.here = here
        return there

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Return the numbers; torch's own method knows no subclasses."""
        return self.here.tolist()

    def __reduce_ex__(self, protocol: int) -> Any:
        """Save it as a tensor on the CPU."""
        return self.here.detach().__reduce_ex__(protocol)


MAY_CROSS = {"aten::copy_", "aten::_to_copy"}
"""What moves numbers between devices."""


def _refused(func: Any, args: tuple, here: list[Tensor]) -> list[Tensor]:
    """Return which of the tensors on the CPU an operator on a GPU refuses.

    It takes the simulator's parameters, indices, and single numbers if it works number by number.
    """
    name = func._schema.name
    if not here or name in MAY_CROSS:
        return []
    taken, written = {id(value) for value in read_by_the_host(func, args)}, set()
    for argument, value in zip(func._schema.arguments, args, strict=False):
        if name in INDEXING_OPERATORS and argument.name == "indices":
            taken |= {id(leaf) for leaf in tree_leaves(value)}
        if argument.alias_info is not None and argument.alias_info.is_write:
            written |= {id(leaf) for leaf in tree_leaves(value)}
    if torch.Tag.pointwise in func.tags or name in INDEXING_OPERATORS:
        taken |= {id(leaf) for leaf in here if leaf.dim() == 0} - written
    return [leaf for leaf in here if id(leaf) not in taken]


def _run(func: Any, args: tuple, kwargs: dict) -> Any:
    """Run an operator on the CPU; what it gives is there if its tensors are, or if it is asked."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, TensorThere)]
    here = [tensor for tensor in tensors if not isinstance(tensor, TensorThere)]
    if there and (refused := _refused(func, args, here)):
        shapes = [list(tensor.shape) for tensor in refused]
        raise OtherDeviceError(f"{func} on {FAKE_GPU} with tensors {shapes} on {HOST}")
    gives_there = bool(there)
    if kwargs.get("device") is not None:
        asked = torch.device(kwargs["device"])
        gives_there = asked.type == "cuda"
        if gives_there:
            if asked != FAKE_GPU:
                raise OtherDeviceError(f"{func} for {asked}, not {FAKE_GPU}")
            kwargs = {**kwargs, "device": HOST}
    elif func._schema.name == "aten::copy_":
        gives_there = isinstance(args[0], TensorThere)
    known = {id(leaf.here): leaf for leaf in there}  # what is changed in place stays the same
    args, kwargs = tree_map_only(TensorThere, lambda leaf: leaf.here, (args, kwargs))
    result = func(*args, **kwargs)
    if not gives_there:
        return result
    return tree_map_only(
        Tensor, lambda leaf: known[id(leaf)] if id(leaf) in known else TensorThere(leaf), result
    )


class _Everywhere(TorchDispatchMode):
    """See the operators that make tensors, too."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


def _load_archive(path: Path, device: torch.device | str = "cpu") -> Any:
    """Stand for `checkpoint.load_archive`: torch knows no way to load onto `FAKE_GPU`."""
    return tree_map_only(Tensor, lambda tensor: tensor.to(device), LOAD_ARCHIVE(path))


LOAD_ARCHIVE = checkpoint.load_archive


@contextmanager
def computing_gpu() -> Iterator[None]:
    """Let code inside the block compute on `FAKE_GPU`."""
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    cuda = torch.cuda
    with pytest.MonkeyPatch.context() as patch:
        answer_for_a_gpu(patch)
        patch.setattr(cuda, "_lazy_init", lambda: None)
        patch.setattr(cuda, "is_available", lambda: True)
        patch.setattr(cuda, "device_count", lambda: 2)
        patch.setattr(cuda, "synchronize", lambda device: None)
        patch.setattr(cuda, "get_rng_state", lambda device: torch.get_rng_state())
        patch.setattr(cuda, "set_rng_state", lambda state, device: torch.set_rng_state(state))
        patch.setattr(ops, "has_cuda", lambda: True)
        patch.setattr(checkpoint, "load_archive", _load_archive)
        torch.__future__.set_swap_module_params_on_conversion(True)
        torch._C._set_only_lift_cpu_tensors(True)  # else a new tensor is there before it is made
        try:
            with _Everywhere():
                yield
        finally:
            torch._C._set_only_lift_cpu_tensors(False)
            torch.__future__.set_swap_module_params_on_conversion(swaps)
