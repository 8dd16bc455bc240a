"""What the benchmarks need of the machine: clocks, memory in use, and its description."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch

from train_RL_agents.device.memory import return_freed_memory
from train_RL_agents.device.precision import multiplies_bfloat16
from train_RL_agents.run.source import ROOT, source_commit, versions

# float32 lanes of a multiprocessor by compute capability (CUDA C++ Programming Guide, throughput of
# native arithmetic instructions); the others have 128.
FEW_LANES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}

MATRIX = {"cuda": 8192, "cpu": 1024}
"""Rows and columns of the matrices whose product is timed, by kind of device."""

GPU_STATE = (
    *("clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem"),
    *("clocks_event_reasons.active", "ecc.mode.current", "mig.mode.current", "power.limit"),
)
"""What nvidia-smi is asked of a GPU: clocks in MHz, power in W, and why clocks are held back."""
NAMES_BEFORE = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
"""Names of fields in older drivers."""


class Laps:
    """Times between marks: CUDA events on a GPU, the monotonic clock on the CPU."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._events: list[torch.cuda.Event] = []
        self._times: list[float] = []

    def mark(self) -> None:
        """End a lap and begin the next; waits for nothing."""
        if self._on_gpu:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._events.append(event)
        else:
            self._times.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Return the laps [s], after waiting for the last mark on a GPU."""
        if self._on_gpu:
            self._events[-1].synchronize()
            return [begin.elapsed_time(end) / 1e3 for begin, end in pairwise(self._events)]
        return [end - begin for begin, end in pairwise(self._times)]


def timed(device: torch.device, work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes on the device."""
    laps = Laps(device)
    laps.mark()
    work()
    laps.mark()
    return laps.seconds()[0]


class Memory(NamedTuple):
    """Bytes in use by this process."""

    used: int  # CUDA: held by tensors; CPU: as `held`
    held: int  # CUDA: taken from the device by torch; CPU: resident set of the whole process

    @classmethod
    def now(cls, device: torch.device) -> Memory:
        """Read it, after the device has finished and unreachable objects are gone."""
        gc.collect()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            return cls(torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device))
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident = pages * os.sysconf("SC_PAGE_SIZE")
        return cls(resident, resident)

    def growth_since(self, before: Memory) -> int:
        """Return by how much one of the two figures has grown, the larger growth."""
        return max(self.used - before.used, self.held - before.held)


def release_memory(device: torch.device) -> None:
    """Give back what the row before has left, so that rows do not see each other's memory."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return_freed_memory()


class Peaks(NamedTuple):
    """What a GPU can do at most.

    Attributes:
        bytes_per_s: device memory, read plus written, measured with a large copy.
        operations_per_s: float32 lanes times the highest clock (a fused multiply-add counts once);
            None if the clock cannot be read.
    """

    bytes_per_s: float
    operations_per_s: float | None


def measure_peaks(device: torch.device) -> Peaks | None:
    """Measure the copy bandwidth of a GPU, and look up its arithmetic rate; None for a CPU."""
    if device.type == "cpu":
        return None
    size = 2**30
    source = torch.empty(size, dtype=torch.uint8, device=device)
    source.random_()  # zeros may travel compressed
    target = torch.empty_like(source)
    for _ in range(3):
        target.copy_(source)
    seconds = min(timed(device, lambda: target.copy_(source)) for _ in range(10))
    properties = torch.cuda.get_device_properties(device)
    lanes = FEW_LANES.get((properties.major, properties.minor), 128)
    clock = _query_gpu("clocks.max.sm", device)  # MHz
    rate = None
    if clock is not None and clock.isdigit():
        rate = properties.multi_processor_count * lanes * float(clock) * 1e6
    return Peaks(2 * size / seconds, rate)


def matmul_flops_per_s(device: torch.device) -> dict[str, float]:
    """Measure the rate of a matrix product [FLOP/s] in the formats that agents learn in.

    With the threads that torch uses; bfloat16 only where the device has units for it.
    """
    formats = [torch.float32, *([torch.bfloat16] if multiplies_bfloat16(device) else [])]
    return {format_name(dtype): _matmul_rate(device, dtype) for dtype in formats}


def format_name(dtype: torch.dtype) -> str:
    """Return the name of a number format, for example ``float32``."""
    return str(dtype).removeprefix("torch.")


def _matmul_rate(device: torch.device, dtype: torch.dtype) -> float:
    size = MATRIX[device.type]
    left, right = torch.rand(2, size, size, device=device).to(dtype)
    out = torch.empty_like(left)

    def work() -> None:
        torch.mm(left, right, out=out)

    for _ in range(3):
        work()
    return 2.0 * size**3 / min(timed(device, work) for _ in range(15))


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Return what a reader needs to compare figures with those of another machine."""
    cpu: dict[str, Any] = {
        "cpu": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "cpu_threads": torch.get_num_threads(),
        "load_average_1min": round(os.getloadavg()[0], 2),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    if device.type != "cuda":
        return cpu
    properties = torch.cuda.get_device_properties(device)
    return {
        **cpu,
        "gpu": properties.name,
        "gpu_memory_bytes": properties.total_memory,
        "gpu_multiprocessors": properties.multi_processor_count,
        "gpus": torch.cuda.device_count(),
        "gpu_driver": _query_gpu("driver_version", device),
        "gpu_state": gpu_state(device),
    }


def gpu_state(device: torch.device) -> dict[str, str | None]:
    """Return `GPU_STATE` as it is now; None where nvidia-smi does not tell."""
    return {field: _query_gpu(field, device) for field in GPU_STATE}


def record_head(device: torch.device) -> dict[str, Any]:
    """Return what a record of measurements begins with: machine, commit and versions.

    `commit` and `uncommitted_changes`, whether files differ from it, are None without git.
    """
    changes = _answer("git", "status", "--porcelain")
    return {
        "machine": describe_machine(device),
        "commit": source_commit(),
        "uncommitted_changes": None if changes is None else bool(changes),
        "versions": versions(),
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _query_gpu(field: str, device: torch.device) -> str | None:
    """Return nvidia-smi's value of a field, without its unit, or None.

    One field at a time: a driver that does not know one refuses the whole query. The GPU is named
    by its UUID: nvidia-smi counts those that CUDA_VISIBLE_DEVICES hides, too.
    """
    uuid = torch.cuda.get_device_properties(device).uuid
    asked = ("nvidia-smi", f"--id=GPU-{uuid}", "--format=csv,noheader,nounits")
    answer = _answer(*asked, f"--query-gpu={field}")
    if answer is None and field in NAMES_BEFORE:
        answer = _answer(*asked, f"--query-gpu={NAMES_BEFORE[field]}")
    return answer


def _answer(*command: str) -> str | None:
    """Return what a command prints, or None where it is absent or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
