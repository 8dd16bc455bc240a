"""Which number formats a device is good at, and products in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for bfloat16; elsewhere they are slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()


@contextmanager
def bfloat16_products(device: torch.device, networks: Sequence[nn.Module]) -> Iterator[None]:
    """Multiply matrices in bfloat16 inside, as torch's autocast does.

    Autocast casts each weight and each bias by itself, and each gradient back. The linear layers of
    the given networks take copies instead that one operation has made; gradients reach the weights
    themselves, with the bits that they would have.

    Args:
        device: where all of it lives.
        networks: whose layers take such copies; a subclass of `nn.Linear` is left to autocast.
    """
    with ExitStack() as restored, torch.autocast(device.type, dtype=torch.bfloat16):
        for network in networks:  # each apart: a loss of one asks for no gradient of another
            layers = [layer for layer in network.modules() if type(layer) is nn.Linear]
            slots = [(layer, name) for layer in layers for name, _ in layer.named_parameters()]
            own = [getattr(layer, name) for layer, name in slots]
            copies = _Bfloat16Copies.apply(*own) if own else ()
            for (layer, name), weight, copy in zip(slots, own, copies, strict=True):
                restored.callback(layer._parameters.__setitem__, name, weight)
                layer._parameters[name] = copy
        yield


class _Bfloat16Copies(torch.autograd.Function):
    """Casts all tensors to bfloat16 at once, and the gradients back."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        """Return the copies."""
        ctx.set_materialize_grads(False)
        ctx.like = weights
        copies = [torch.empty_like(weight, dtype=torch.bfloat16) for weight in weights]
        torch._foreach_copy_(copies, weights)
        return tuple(copies)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the gradients in the weights' format and layout."""
        given = [(k, gradient) for k, gradient in enumerate(gradients) if gradient is not None]
        cast = {k: torch.empty_like(ctx.like[k]) for k, _ in given}
        if given:
            torch._foreach_copy_(list(cast.values()), [gradient for _, gradient in given])
        return tuple(cast.get(k) for k in range(len(gradients)))
