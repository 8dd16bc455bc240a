"""What MARINENAV_BLOCK_SIZE may be; read only on CUDA, so the function is compiled on its own."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("build") / "block_size")
    source = ROOT / "tests" / "csrc" / "block_size.cpp"
    include = f"-I{ROOT / 'marinenav_env' / 'csrc'}"
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, "-std=c++17", include, str(source), "-o", path], check=True)
    return path


def answer(program: str, *value: str) -> tuple[int, str]:
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
