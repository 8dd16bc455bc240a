"""Which device a command runs on."""

from __future__ import annotations

import socket
import sys
import warnings

import torch

from marinenav_env.envs.checks import check_device
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops
from train_RL_agents.device.distributed import Processes


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device of a setting; ``auto`` takes CUDA if it and its operators are there.

    A launcher may show each process its own GPU alone, which then has the number 0.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``.
        local_rank: number of the process on this machine, and of its GPU.

    Raises:
        ConfigError: the device is not there, or the machine has no GPU of that number.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() and ops.has_cuda() else "cpu"
        if name == "cpu" and torch.cuda.is_available():
            print(
                "warning: this runs on the CPU, since marinenav's operators are built without "
                "CUDA: install the CUDA toolkit and run `make setup FORCE_CUDA=1`",
                file=sys.stderr,
            )
    device = check_device(name)
    if device.type == "cpu":
        return device
    # The thread of the first backward pass has no context yet; torch says so, and then sets it.
    warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA")
    gpus = torch.cuda.device_count()
    if 1 < gpus <= local_rank:
        raise ConfigError(
            f"process {local_rank} of this machine has no GPU of its own, there are {gpus}: start "
            "as many with --nproc-per-node"
        )
    return torch.device("cuda", local_rank if gpus > 1 else 0)


def check_own_gpu(device: torch.device, processes: Processes) -> None:
    """Check that no other process of the run computes on the same GPU.

    Raises:
        ConfigError: one does.
    """
    own = ""
    if device.type == "cuda":
        own = f"{socket.gethostname()}, GPU {torch.cuda.get_device_properties(device).uuid}"
    sharing = processes.gather(own).count(own)
    if own and sharing > 1:
        raise ConfigError(
            f"{sharing} processes have no GPU of their own, but share one ({own}): start as many "
            "with --nproc-per-node as there are GPUs"
        )
