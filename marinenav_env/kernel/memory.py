"""How much memory an environment takes, and how much there is."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

import torch

from marinenav_env.fields import ConfigError
from marinenav_env.kernel.spec import KernelSpec

CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
"""Which control groups this process is in; a container sees its own as the outermost."""
VERSIONS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files of a group's limit and of what it takes, and what of it a need makes free; by version."""


def world_bytes(spec: KernelSpec, sizes: Mapping[str, int], frames: int, dtype: torch.dtype) -> int:
    """Return the bytes of a world's state and its two step buffers.

    Args:
        spec: of the environment.
        sizes: extents that its specification leaves open, besides worlds and frames.
        frames: observation frames.
        dtype: of real tensors.
    """
    known = {**sizes, "stride": 1, "worlds": 1, "frames": frames}
    size = {"real": dtype.itemsize, "int": 4, "bool": 1}
    state = sum(math.prod(t.sized(known)) * size[t.number] for t in spec.state)
    buffers = sum(
        math.prod(t.sized(known)) * size[t.number] for t in (*spec.observation, *spec.results)
    )
    return state + 2 * buffers


def check_memory(
    spec: KernelSpec,
    sizes: Mapping[str, int],
    worlds: int,
    frames: int,
    device: torch.device,
    dtype: torch.dtype,
) -> None:
    """Check that an environment fits into the free memory; allocates nothing.

    Args:
        spec: as `world_bytes` takes it.
        sizes: as `world_bytes` takes them.
        worlds: number of worlds.
        frames: observation frames.
        device: where they are to live.
        dtype: of real tensors.

    Raises:
        ConfigError: it does not fit.
    """
    each = world_bytes(spec, sizes, frames, dtype)
    free = free_bytes(device)
    if worlds * each > free:
        raise ConfigError(
            f"worlds is {worlds}: with stack_k {frames} they need {worlds * each / 2**30:.2f} GiB "
            f"and {free / 2**30:.2f} GiB are free on {device}; give at most {int(free / each)}, or "
            "a smaller stack_k"
        )


def free_bytes(device: torch.device) -> float:
    """Return the memory that can still be allocated on ``device``, in bytes."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                machine = int(line.split()[1]) * 1024
    return min([machine, *(left_bytes(*group) for group in memory_groups())])


def memory_groups() -> list[tuple[Path, int]]:
    """Return the control groups that limit this process, as of a scheduler's job or a container.

    Returns:
        Folders, each with the place of its version in `VERSIONS`.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return []
    groups = []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        old = "memory" in controllers.split(",")
        if not old and controllers:
            continue
        root = CONTROL_GROUPS / "memory" if old else CONTROL_GROUPS
        own = root / path.lstrip("/")
        groups += [(place, int(old)) for place in (own, *own.parents) if place.is_relative_to(root)]
    return groups


def left_bytes(group: Path, version: int) -> float:
    """Return the bytes that a control group's memory limit leaves; infinity without one.

    Args:
        group: its folder.
        version: its place in `VERSIONS`.
    """
    limit_file, used_file, cached = VERSIONS[version]
    try:
        limit = float((group / limit_file).read_text().replace("max", "inf"))
        used = int((group / used_file).read_text())
        statistics = (group / "memory.stat").read_text().split()
        cache = int(statistics[statistics.index(cached) + 1])  # given back when needed
    except (OSError, ValueError):
        return math.inf
    return max(0.0, limit - used + cache)
