"""Keeps freed memory in the process, so that tensors of the next update need no new pages."""

from __future__ import annotations

import ctypes
import sys

# Parameters of glibc's mallopt (malloc.h).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 1 << 30  # bytes; blocks below stay in the heap when freed
NEVER_TRIM = (1 << 31) - 1  # bytes


def keep_freed_memory() -> bool:
    """Tell glibc not to return freed blocks to the kernel.

    An update on the CPU frees and takes again some ten blocks of several megabytes. By default
    each is a new mapping, whose pages fault again: 16 to 18% of the CPU time was spent in system
    calls, with batches of 256 to 1,024 on one thread. What it gains is in docs/scaling.md.

    Returns:
        Whether the C library took the settings; others than glibc have none.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    taken = mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
    return bool(taken and mallopt(M_TRIM_THRESHOLD, NEVER_TRIM))
