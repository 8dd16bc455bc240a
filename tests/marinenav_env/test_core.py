"""The C++ core without torch: compiles `tests/csrc/test_core.cpp` and runs it.

Under the address and undefined-behaviour sanitizers for this machine, and once more for each older
instruction set that it also runs, whose results must have the same bits.
"""

import hashlib
import os
import platform
import subprocess
from pathlib import Path

import pytest

from marinenav_env.config import EnvConfig
from marinenav_env.state import radius_noise_table

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "csrc" / "test_core.cpp"
INCLUDES = (ROOT / "marinenav_env" / "csrc", PROGRAM.parent)
SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"
NATIVE = ("-O1", "-g1", SANITIZERS, "-fno-sanitize-recover=all", "-march=native")


def older_instruction_sets() -> list[str]:
    """Values of -march that this machine runs but would not choose."""
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not cpuinfo.exists():
        return []
    return ["x86-64", "x86-64-v3"] if " avx2 " in cpuinfo.read_text() else ["x86-64"]


def build(name: str, *flags: str) -> Path:
    """Compiles the program, or returns the one compiled from the same sources and flags."""
    compiler = os.environ.get("CXX", "g++")
    common = ("-std=c++17", "-ffp-contract=off", "-pthread", "-Wno-psabi")
    command = [compiler, *common, *flags, *(f"-I{path}" for path in INCLUDES), str(PROGRAM)]
    digest = hashlib.sha256(repr(command).encode())
    for path in sorted(path for folder in INCLUDES for path in folder.rglob("*.*")):
        digest.update(path.read_bytes())
    folder = ROOT / "build" / "test_core"
    program = folder / f"{name}-{digest.hexdigest()[:16]}"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(f"{name}-*"):
            stale.unlink()
        partial = folder / f"{name}.partial"
        result = subprocess.run([*command, "-o", str(partial)], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        partial.rename(program)
    return program


def run(program: Path, params: list[float]) -> subprocess.CompletedProcess:
    """Runs the program on these parameters and the usual radius noise."""
    numbers = [*params, *radius_noise_table(1.0).tolist()]
    return subprocess.run(
        [str(program)],
        input=" ".join(repr(x) for x in numbers),
        capture_output=True,
        text=True,
        timeout=120,
    )


def checked_output(program: Path) -> str:
    """What the program prints when all its checks pass."""
    result = run(program, EnvConfig().flat())
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAILED" not in result.stdout
    return result.stdout


def digests(output: str) -> list[str]:
    """The lines that stand for all bits of the rollouts."""
    return [line for line in output.splitlines() if line.startswith("digest")]


@pytest.fixture(scope="module")
def native() -> Path:
    """The program under the sanitizers."""
    return build("sanitized", *NATIVE)


def test_core_under_sanitizers(native):
    """Functions, Philox, order of execution, lanes against scalars, bad actions."""
    output = checked_output(native)
    print(output)
    assert len(digests(output)) == 3


@pytest.mark.parametrize("arch", older_instruction_sets())
def test_instruction_sets_give_the_same_bits(native, arch):
    older = build(arch, "-O0", "-g0", f"-march={arch}")
    assert digests(checked_output(older)) == digests(checked_output(native))


def test_program_wants_its_parameters(native):
    assert run(native, EnvConfig().flat()[1:]).returncode == 2
