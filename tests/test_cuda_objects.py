"""The CUDA sources compiled without a GPU: rounding, registers and spills.

All kernels become PTX, which shows how they round. Those in float32 become objects too; their
registers are limited, and the double ones would take more than half of the assembler's time.
"""

import hashlib
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch.utils import cpp_extension

from scripts.checks.gpu_plan import OURS
from tests.conftest import ROOT, load_file

CSRC = ROOT / "marinenav_env" / "csrc"
MOST_REGISTERS = 128
"""Of a float kernel: more, and three blocks of five robots do not fit a multiprocessor. The
assembler keeps to it by itself, and spills."""
FEWER_REGISTERS = {
    "WaterPhase": 64,
    "PlanActionsPhase": 120,
    "Solo": 56,
    "Unrolled": 72,
    "Icra2024": 112,
    "KinematicVessel": 112,
    "BeginPhaseINS_11MarineBeams": 112,
}
"""Of the float kernels that have this in their names, which are below that limit."""
MOST_SPILLED = {"80": 24, "90": 24, "120": 56}
"""Bytes that a float kernel stores and loads because of that limit, by architecture."""
MOST_STACK = {"80": 24, "90": 24, "120": 96}
"""Bytes of a float kernel. A copy of the parameters would be a kilobyte more."""
MOST_STACK_OF_SECTORS = {"80": 1800, "90": 1800, "120": 2400}
"""And of those of sectors: their rays, twice, since code with faults and without is apart."""
FLOAT, DOUBLE = re.compile(r"fE{4,5}v"), re.compile(r"dE{4,5}v")
"""What the mangled name of a kernel has in it: the last argument of its last phase is the type."""

setup = load_file(ROOT / "setup.py")
ASKED = os.environ.get("MARINENAV_CHECKED_ARCHITECTURES", "90")
"""Architectures of GPUs, or `default`, those that a build takes; a minute each, so one if unset."""
ARCHITECTURES = tuple(
    ASKED.replace("default", setup.DEFAULT_CUDA_ARCH_LIST)
    .replace(";", " ")
    .replace(".", "")
    .replace("+PTX", "")
    .split()
)
TOOLKIT = setup.find_toolkit(os.environ)
pytestmark = pytest.mark.skipif(
    TOOLKIT is None or ("120" in ARCHITECTURES and TOOLKIT.version < (12, 8)),
    reason="no CUDA toolkit, or one that does not know sm_120",
)


class Kernel(NamedTuple):
    """What the assembler says of a kernel on an architecture."""

    name: str
    architecture: str
    registers: int
    stack: int
    spills: int

    @property
    def most_registers(self) -> int:
        """Registers that it may have."""
        fewer = [most for part, most in FEWER_REGISTERS.items() if part in self.name]
        return min(fewer, default=MOST_REGISTERS)

    @property
    def most_stack(self) -> int:
        """Bytes of stack that it may have."""
        limits = MOST_STACK_OF_SECTORS if "Sectors" in self.name else MOST_STACK
        return limits[self.architecture]


def said_by(*command: object) -> str:
    """Run a program, and return what it says."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=sorted(CSRC.glob("*.cu")), ids=lambda path: path.name)
def compiled(request) -> dict[str, str]:
    """What the assembler says, and the PTX; both are kept until a source changes."""
    source = request.param
    command = [
        str(TOOLKIT.nvcc),
        "--ptx",  # the device's half alone; test_cuda_host.py compiles the host's
        str(source),
        "-std=c++20",  # what torch's headers need
        "-Xcompiler=-fPIC",
        "-DC10_USING_CUSTOM_GENERATED_MACROS",  # a CPU build of torch lacks the generated header
        *cpp_extension.COMMON_NVCC_FLAGS,
        *setup.NVCC_FLAGS,
        *(f"-I{path}" for path in (CSRC, *cpp_extension.include_paths())),
    ]
    assembler = [str(TOOLKIT.nvcc.with_name("ptxas")), "-v", *assembler_flags(source)]
    versions = ARCHITECTURES, TOOLKIT.version, torch.__version__, assembler
    digest = hashlib.sha256(repr((command, versions)).encode())
    for path in (Path(__file__), *sorted(path for path in CSRC.rglob("*") if path.is_file())):
        digest.update(path.read_bytes())
    folder = ROOT / "build" / "cuda_check"
    kept = folder / f"{source.stem}-{digest.hexdigest()[:16]}.json"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)

        def compile_for(architecture: str) -> tuple[str, str]:
            ptx = folder / f"{source.stem}_{architecture}.ptx"
            said_by(*command, f"-arch=compute_{architecture}", "-o", ptx)
            whole = ptx.read_text()
            ptx.write_text(without_doubles(whole))
            target = f"-arch=sm_{architecture}"
            return said_by(*assembler, target, ptx, "-o", os.devnull), whole

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            logs, wholes = zip(*pool.map(compile_for, ARCHITECTURES), strict=True)
        for stale in folder.glob(f"{source.stem}-*"):
            stale.unlink()
        kept.write_text(json.dumps({"log": "".join(logs), "ptx": "".join(wholes)}))
    return json.loads(kept.read_text())


def assembler_flags(source: Path) -> list[str]:
    """Return what nvcc hands to the assembler in a build, but for the architecture."""
    flags = *cpp_extension.COMMON_NVCC_FLAGS, *setup.NVCC_FLAGS, "-arch=sm_90"
    said = said_by(TOOLKIT.nvcc, "--dryrun", "--fatbin", *flags, source, "-o", os.devnull)
    ((_, handed),) = re.findall(r'^#\$ (.*\b)?ptxas"? (.*?) "[^"]*\.ptx"', said, re.MULTILINE)
    return [flag for flag in handed.split() if not flag.startswith("-arch")]


def without_doubles(ptx: str) -> str:
    """Leave kernels in float64 out of PTX."""
    kernel = re.compile(r"^\.visible \.entry (\w+)\(.*?^\}\n", re.DOTALL | re.MULTILINE)
    kernels_of = {bool(DOUBLE.search(name)) for name in kernel.findall(ptx)}
    assert kernels_of == {False, True}
    return kernel.sub(lambda found: "" if DOUBLE.search(found[1]) else found[0], ptx)


def kernels(log: str) -> list[Kernel]:
    """Read what the assembler says of every kernel."""
    entry = re.compile(
        r"Compiling entry function '(\w+)' for 'sm_(\d+)'.*?(\d+) bytes stack frame, "
        r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
        re.DOTALL,
    )
    return [
        Kernel(name, architecture, int(registers), int(stack), int(stores) + int(loads))
        for name, architecture, stack, stores, loads, registers in entry.findall(log)
    ]


def bodies(ptx: str) -> list[tuple[str, str]]:
    """Split PTX into name and text of its kernels."""
    found = re.split(r"\.entry (\w+)", ptx)
    return list(zip(found[1::2], found[2::2], strict=True))


def test_float_kernels_keep_to_their_registers_and_stack(compiled):
    checked = [kernel for kernel in kernels(compiled["log"]) if FLOAT.search(kernel.name)]
    for launched in ("run_phase", "run_tiles", "unroll_tiles"):
        assert any(launched in kernel.name for kernel in checked)
    assert {kernel.architecture for kernel in checked} == set(ARCHITECTURES)
    assert not [kernel for kernel in checked if kernel.spills > MOST_SPILLED[kernel.architecture]]
    assert not [kernel for kernel in checked if kernel.stack > kernel.most_stack]
    assert not [kernel for kernel in checked if kernel.registers > kernel.most_registers]
    unused = [part for part in FEWER_REGISTERS if not any(part in k.name for k in checked)]
    assert not unused


def test_the_sanitizers_know_our_kernels_by_name(compiled):
    names = [name for name, _ in bodies(compiled["ptx"])]
    assert names
    assert not [name for name in names if OURS not in name]


def test_float_kernels_compute_nothing_in_float64(compiled):
    texts = bodies(compiled["ptx"])
    assert [name for name, text in texts if DOUBLE.search(name) and ".f64" in text]
    assert not [name for name, text in texts if FLOAT.search(name) and ".f64" in text]


def test_the_assembler_may_fuse_no_sum_with_a_product(compiled):
    """It does so unless the rounding is given, and the result would differ from the CPU's."""
    operations = re.findall(r"\b(?:add|sub|mul)(\.\w+)*\.f(?:32|64)\b", compiled["ptx"])
    assert len(operations) > 100
    assert set(operations) == {".rn"}
