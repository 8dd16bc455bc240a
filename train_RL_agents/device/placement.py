"""Which device a command runs on."""

from __future__ import annotations

import torch

from marinenav_env.envs.checks import check_device
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device of a setting; ``auto`` takes CUDA if it and its operators are there.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``.
        local_rank: number of the process on this machine, and of its GPU.

    Raises:
        ConfigError: the device is not there, or the machine has no GPU of that number.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() and ops.has_cuda() else "cpu"
    device = check_device(name)
    if device.type == "cpu":
        return device
    if local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"process {local_rank} of this machine has no GPU of its own, there are "
            f"{torch.cuda.device_count()}: start as many with --nproc-per-node"
        )
    return torch.device("cuda", local_rank)
