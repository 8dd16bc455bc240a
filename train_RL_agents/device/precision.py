"""Which number formats a device is good at."""

from __future__ import annotations

import torch


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for bfloat16; elsewhere they are slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
