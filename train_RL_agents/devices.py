"""Which device a command runs on."""

from __future__ import annotations

import torch

from marinenav_env import ops
from marinenav_env.checks import check_device


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device of a setting; ``auto`` takes CUDA if it and its operators are there.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``.
        local_rank: number of the GPU.

    Raises:
        ConfigError: the device is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() and ops.has_cuda() else "cpu"
    device = check_device(name)
    return torch.device("cuda", local_rank) if device.type == "cuda" else device
