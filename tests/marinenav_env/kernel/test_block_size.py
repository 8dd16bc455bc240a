"""What MARINENAV_BLOCK_SIZE may be; read only on CUDA, so the function is compiled on its own."""

import subprocess
from pathlib import Path

import pytest

from tests.core_programs import ROOT, build


@pytest.fixture(scope="module")
def program() -> Path:
    return build("block_size", ROOT / "tests" / "csrc" / "block_size.cpp")


def answer(program: Path, *value: str) -> tuple[int, str]:
    result = subprocess.run([program, *value], capture_output=True, text=True)
    return result.returncode, result.stdout.strip()


@pytest.mark.parametrize(
    ("value", "size"), [((), 128), (("",), 128), (("32",), 32), (("256",), 256)]
)
def test_sizes_that_every_kernel_can_launch_with(program, value, size):
    assert answer(program, *value) == (0, str(size))


@pytest.mark.parametrize("value", ["16", "0", "-128", "257", "1024", "2048", "abc", "64x", "64.0"])
def test_other_values_are_refused_not_replaced(program, value):
    status, message = answer(program, value)
    assert status == 1
    assert f"MARINENAV_BLOCK_SIZE={value}: give a whole number from 32 to 256" in message


@pytest.mark.parametrize(
    ("worlds", "rows", "count"), [(65_536, 5, 327_680), (41_200_000, 52, 2_142_400_000), (0, 7, 0)]
)
def test_threads_of_a_launch(program, worlds, rows, count):
    assert answer(program, str(worlds), str(rows)) == (0, str(count))


@pytest.mark.parametrize("worlds", [41_300_000, 82_600_000])
def test_more_than_a_launch_can_work_on_is_refused(program, worlds):
    """The product is negative as an int, or positive and too small."""
    status, message = answer(program, str(worlds), "52")
    assert status == 1
    assert f"{worlds} times 52 is too much for one launch" in message
