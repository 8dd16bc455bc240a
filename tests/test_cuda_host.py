"""The CUDA unit compiled for the host: its launcher and kernels give the bits of the SIMD build.

Headers of `tests/csrc/host_cuda` stand for torch's CUDA headers, and the launch, which is no C++,
becomes a call. The operators are registered as the CPU's, in a copy of the packages in `build/`.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from tests import goldens
from tests.core_programs import INCLUDES, NOT_INLINED, PARAMS, build
from tests.core_programs import run as run_program
from tests.marinenav_env.rollouts import rough

ROOT = Path(__file__).resolve().parents[1]
CSRC = ROOT / "marinenav_env" / "csrc"
STAND_INS = ROOT / "tests" / "csrc" / "host_cuda"
PROGRAM = ROOT / "tests" / "csrc" / "test_tiles.cpp"
BLOCK_SIZES = {32: 16, 100: 4096, 128: 16, 256: 4096}
"""And in how many worlds each is tried at most."""
MOST_STEPS = 40
WORLD_STEPS = 64_000
"""Of a rollout, so that the largest takes seconds: threads of a block are fibers here."""
SANITIZERS = {"thread": ("thread", 9), "address": ("address,undefined,float-cast-overflow", 17)}
"""What the compiler is asked for, and how many comparisons follow: both types, or float32 alone."""
LAUNCH = re.compile(r"(\w+)<<<(.*?)>>>\(\s*", re.DOTALL)
FLAGS = ("-std=c++20", "-O1", "-g0", "-fPIC", "-shared", "-ffp-contract=off", "-Wno-attributes")
FLAGS += (NOT_INLINED,)  # with few optimisations too
FLAGS += ("-U_FORTIFY_SOURCE",)  # takes a jump between fibers for an error; some set it


def as_plain_cpp(name: str, text: str) -> str:
    """Return a source of the CUDA unit with launches as calls, registered for the CPU."""
    if name == "cuda_launcher.cuh":
        kernel = r"launch_on_host([](const auto&... given) { \1(given...); }, \2, "
        text, launches = LAUNCH.subn(kernel, text)
        assert launches == 3
    if name == "ops_cuda.cu":
        assert text.count("marinenav, CUDA, m") == 1
        text = text.replace("marinenav, CUDA, m", "marinenav, CPU, m")
    return text


@pytest.fixture(scope="module")
def tree() -> Path:
    """A copy of the packages whose library is the CUDA unit, kept until a source changes."""
    sources = sorted(path for path in CSRC.rglob("*") if path.is_file())
    digest = hashlib.sha256(repr((FLAGS, torch.__version__)).encode())
    for path in (*sources, *STAND_INS.rglob("*.h"), Path(__file__)):
        digest.update(path.read_bytes() if path.is_file() else b"")
    folder = ROOT / "build" / "host_cuda"
    package, library = folder / "marinenav_env", folder / "marinenav_env" / "_ops.so"
    kept = folder / "digest"
    copy_package(package)
    if kept.is_file() and kept.read_text() == digest.hexdigest():
        return folder
    copies = folder / "csrc"
    for path in sources:
        copy = copies / path.relative_to(CSRC)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(as_plain_cpp(path.name, path.read_text()))
    for original in (ROOT / "tests", ROOT / "train_RL_agents", ROOT / "configs"):
        if not (folder / original.name).exists():
            (folder / original.name).symlink_to(original)
    unit = folder / "unit.cpp"  # one, since the headers of torch take a third of a minute
    unit.write_text('#include "ops.cpp"\n#include "ops_cuda.cu"\n')
    includes = (STAND_INS, copies, *cpp_extension.include_paths())
    libraries = cpp_extension.library_paths()
    command = [
        os.environ.get("CXX", "g++"),
        *FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *(part for path in includes[:2] for part in ("-I", str(path))),
        *(part for path in includes[2:] for part in ("-isystem", str(path))),
        *(str(unit), "-o", str(library)),
        *(part for path in libraries for part in (f"-L{path}", f"-Wl,-rpath,{path}")),
        *("-lc10", "-ltorch_cpu", "-ltorch"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept.write_text(digest.hexdigest())
    return folder


def copy_package(package: Path) -> None:
    """Copy the simulator's Python; through links it would find the library beside the originals."""
    for original in (ROOT / "marinenav_env").rglob("*.py"):
        copy = package / original.relative_to(ROOT / "marinenav_env")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(original.read_bytes())


def run(tree: Path, block_size: int, *arguments: str) -> subprocess.CompletedProcess:
    """Run Python on the copy with a block size."""
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MARINENAV_BLOCK_SIZE": str(block_size),
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=tree, env=environment)


def rollouts(most_worlds: int) -> list[tuple[int, int]]:
    """Numbers of worlds, and decisions of each."""
    sizes = [size for size in goldens.WORLDS_AND_STEPS if size[0] <= most_worlds]
    return [(worlds, min(steps, MOST_STEPS, WORLD_STEPS // worlds)) for worlds, steps in sizes]


DISTURBED = rough(goldens.eventful())
"""Everything that may disturb a vessel does."""


def states(sizes: list[tuple[int, int]]) -> list[str]:
    """Digests of rollouts in these numbers of worlds and decisions, in both types."""
    types = torch.float32, torch.float64
    found = [goldens.rollout(*size, dtype) for size in sizes for dtype in types]
    found += [goldens.rollout(16, MOST_STEPS, dtype, discrete=True) for dtype in types]
    return found + [goldens.rollout(16, MOST_STEPS, dtype, config=DISTURBED) for dtype in types]


# A process asks for the block size once, and takes seconds to import torch: so it is forked.
STATES = """
import ast, multiprocessing, os, sys
import torch
from tests.test_cuda_host import states

def show(block_size, sizes):
    os.environ["MARINENAV_BLOCK_SIZE"] = str(block_size)
    print(block_size, *states(sizes), flush=True)

print(*torch.ops.loaded_libraries, flush=True)
for arguments in ast.literal_eval(sys.argv[1]):
    child = multiprocessing.get_context("fork").Process(target=show, args=arguments)
    child.start()
    child.join()
    assert child.exitcode == 0
"""


@pytest.fixture(scope="module")
def states_of_kernels(tree) -> dict[int, list[str]]:
    """What `states` gives with the kernels, by block size."""
    cases = [(block_size, rollouts(most)) for block_size, most in BLOCK_SIZES.items()]
    done = run(tree, 64, "-c", STATES, repr(cases))
    assert done.returncode == 0, done.stderr
    library, *lines = done.stdout.splitlines()
    assert Path(library) == tree / "marinenav_env" / "_ops.so"
    return {int(block_size): found for block_size, *found in map(str.split, lines)}


@pytest.mark.parametrize(("block_size", "most_worlds"), BLOCK_SIZES.items())
def test_states_have_the_bits_of_the_simd_build(states_of_kernels, block_size, most_worlds):
    assert states_of_kernels[block_size] == states(rollouts(most_worlds))


ROOMS = {
    "envs": "actions classic determinism ends icra2024 noise options placement ranging "
    "ray_faults scenes sensor_faults",
    "kernel": "noise_ops ops philox plans replay_ops write_row",
}
"""Tests of what the launcher has a part in: steps, ends, resets, observations. Others are of
Python, of a program in C++, or of one vessel's motion, which is the same source in both builds."""
LEFT_OUT = {
    "calm": "the rough worlds do the same and more; ten seconds",
    "dtype1-rough": "states in float64 are compared with those of the SIMD build; eight seconds",
    "opcheck": "of schemas, which both builds share",
    "very_many": "many worlds in blocks of two sizes have the bits of the SIMD build; ten seconds",
    "row_that_is_not_there": "where a GPU writes, no host looks: nothing would refuse it",
}
"""Parts of names of tests, and why they do not count here."""
PYTEST = """
import sys
import pytest, torch

status = pytest.main(sys.argv[1:])
print(*torch.ops.loaded_libraries)
sys.exit(status)
"""


def test_the_simulators_tests_pass(tree):
    folder = "tests/marinenav_env"
    files = [f"{folder}/{room}/test_{x}.py" for room in ROOMS for x in ROOMS[room].split()]
    options = [*("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow")]
    options += ["-k", " and ".join(f"not {name}" for name in LEFT_OUT)]
    options += ["-o", f"pythonpath={tree}"]  # pyproject.toml's comes before PYTHONPATH
    done = run(tree, 64, "-c", PYTEST, *options, *files)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.splitlines()[-1] == str(tree / "marinenav_env" / "_ops.so")


def plain_launcher(folder: Path) -> Path:
    """Write the launcher as plain C++ into a folder, and return that to include from."""
    source = CSRC / "kernel" / "cuda_launcher.cuh"
    copy = folder / "kernel" / source.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    text = as_plain_cpp(source.name, source.read_text())
    if not copy.is_file() or copy.read_text() != text:
        copy.write_text(text)
    return folder


@pytest.mark.parametrize("name", SANITIZERS)
def test_tiles_under_sanitizers(name):
    """No race between a block's warps, nothing out of bounds, and the CPU launcher's bits."""
    includes = (plain_launcher(ROOT / "build" / "tiles"), STAND_INS, *INCLUDES)
    flags = ("-O0", "-g1", NOT_INLINED, "-fno-sanitize-recover=all")
    asked, comparisons = SANITIZERS[name]
    flags += (f"-fsanitize={asked}",)
    done = run_program(build(f"tiles_{name}", PROGRAM, *flags, includes=includes), PARAMS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("all bits agree") == comparisons
