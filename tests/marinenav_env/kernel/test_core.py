"""The C++ core without torch: compiles `test_core.cpp` and `test_rays.cpp` and runs them.

Under the address and undefined-behaviour sanitizers for this machine, with the flags of the
operators, and for each older instruction set that it also runs: all must give the same bits.
"""

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marinenav_env.config import EnvConfig
from marinenav_env.kernel import ops
from tests.conftest import load_file
from tests.core_programs import NOT_INLINED, PARAMS, ROOT, build, run
from tests.marinenav_env.rollouts import rough

PROGRAM = ROOT / "tests" / "csrc" / "test_core.cpp"
SANITIZERS = "-fsanitize=address,undefined,float-cast-overflow"
PLAIN = ("-O0", NOT_INLINED)
SANITIZED = (*PLAIN, "-g1", SANITIZERS, "-fno-sanitize-recover=all", "-march=native")


def other_builds() -> dict[str, tuple[str, ...]]:
    """Flags of builds for this machine that must give the same bits as the sanitized one."""
    builds = {"operators": tuple(load_file(ROOT / "setup.py").cxx_flags(os.environ))}
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() == "x86_64" and cpuinfo.exists():
        builds["x86-64"] = (*PLAIN, "-g0", "-march=x86-64")
        if " avx2 " in cpuinfo.read_text():
            builds["x86-64-v3"] = (*PLAIN, "-g0", "-march=x86-64-v3")
    return builds


OTHER_BUILDS = other_builds()


def checked_output(program: Path) -> str:
    """What the program prints when all its checks pass."""
    result = run(program, PARAMS)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAILED" not in result.stdout
    return result.stdout


def digests(output: str) -> list[str]:
    """The lines that stand for all bits of the rollouts."""
    return [line for line in output.splitlines() if line.startswith("digest")]


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    """The program under the sanitizers and the other builds of it, compiled at the same time."""
    builds = {"sanitized": SANITIZED, **OTHER_BUILDS}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        paths = pool.map(lambda name: build(name, PROGRAM, *builds[name]), builds)
    return dict(zip(builds, paths, strict=True))


@pytest.fixture(scope="module")
def sanitized_output(programs) -> str:
    """What the checks say under the sanitizers."""
    return checked_output(programs["sanitized"])


def test_core_under_sanitizers(sanitized_output):
    """Functions, Philox, order of execution, lanes against scalars, bad actions."""
    print(sanitized_output)
    assert len(digests(sanitized_output)) == 3


def test_core_with_every_disturbance(programs):
    """The same checks while everything that may disturb a vessel does."""
    params = ops.describe("marine").pack(rough(EnvConfig()).named_numbers())
    result = run(programs["sanitized"], params)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", OTHER_BUILDS)
def test_other_builds_give_the_same_bits(programs, sanitized_output, name):
    assert digests(checked_output(programs[name])) == digests(sanitized_output)


def test_faults_of_range_finders_by_hand():
    """Each fault, in scalars of both types and in lanes, beside doubles from the same words."""
    output = checked_output(build("rays", PROGRAM.with_name("test_rays.cpp"), *SANITIZED))
    assert output.endswith("0 failures\n")
    assert output.count("ok ") == 39


def test_program_wants_its_parameters(programs):
    assert run(programs["sanitized"], PARAMS[1:]).returncode == 2
