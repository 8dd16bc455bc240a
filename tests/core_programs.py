"""C++ programs that test the core without torch: compiled once, kept until a source changes."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.state import radius_noise_table
from marinenav_env.kernel import ops

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "test_core"
INCLUDES = (ROOT / "marinenav_env" / "csrc", ROOT / "tests" / "csrc")
NOT_INLINED = "-DMN_HD=inline"
"""Functions as calls: without optimisation they run as fast so, and compile in half the time."""
PARAMS = ops.describe("marine").pack(EnvConfig().named_numbers())


def build(name: str, program: Path, *flags: str, includes: Sequence[Path] = INCLUDES) -> Path:
    """Compile a program, or return the one compiled from the same sources and flags."""
    compiler = os.environ.get("CXX", "g++")
    common = ("-std=c++17", "-ffp-contract=off", "-pthread", "-Wno-psabi")
    command = [compiler, *common, *flags, *(f"-I{path}" for path in includes), str(program)]
    digest = hashlib.sha256(repr(command).encode())
    headers = sorted(path for folder in includes for path in folder.rglob("*.*h"))
    for path in (program, *headers):
        digest.update(path.read_bytes())
    built = FOLDER / f"{name}-{digest.hexdigest()[:16]}"
    if not built.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        for stale in FOLDER.glob(f"{name}-*"):
            stale.unlink()
        partial = FOLDER / f"{name}.partial"
        result = subprocess.run([*command, "-o", str(partial)], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        partial.rename(built)
    return built


def run(program: Path, params: torch.Tensor) -> subprocess.CompletedProcess:
    """Run a program on these parameters and the usual radius noise."""
    numbers = [*params.tolist(), *radius_noise_table(1.0).tolist()]
    return subprocess.run(
        [str(program)],
        input=" ".join(repr(x) for x in numbers),
        capture_output=True,
        text=True,
        timeout=120,
    )
