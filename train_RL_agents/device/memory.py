"""Keeps freed memory in the process, so that tensors of the next update need no new pages."""

from __future__ import annotations

import ctypes
import gc
import sys

import torch

# Parameters of glibc's mallopt (malloc.h).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 1 << 30  # bytes; blocks below stay in the heap when freed
NEVER_TRIM = (1 << 31) - 1  # bytes


def return_freed_memory() -> None:
    """Give back to the kernel and to the GPU what a run has freed, before the next one begins.

    What the process keeps counts as taken when the next replay's size is checked. A learner and
    its captured steps refer to each other, so only the collector frees them.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if _linux() else None
    if trim is not None:
        trim(0)


def keep_freed_memory() -> bool:
    """Tell glibc not to return freed blocks to the kernel.

    An update on the CPU frees and takes again some ten blocks of several megabytes. By default
    each is a new mapping, whose pages fault again: 16 to 18% of the CPU time was spent in system
    calls, with batches of 256 to 1,024 on one thread. What it gains is in docs/scaling.md.

    Returns:
        Whether the C library took the settings; others than glibc have none.
    """
    if not _linux():
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    taken = mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
    return bool(taken and mallopt(M_TRIM_THRESHOLD, NEVER_TRIM))


def _linux() -> bool:
    return sys.platform.startswith("linux")
