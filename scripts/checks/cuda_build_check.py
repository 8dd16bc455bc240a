"""Build the CUDA half where there is no GPU, against a CUDA build of torch, and load it.

    python -m scripts.checks.cuda_build_check [--torch WHAT]

Needs nvcc of the same major version as that torch's CUDA. The environment is a new one and goes
afterwards; torch and what it needs are several gigabytes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.checks.install_check import ROOT, CheckError, run
from scripts.checks.sources import copy_sources

TESTS = (
    "tests/test_build.py::test_cuda_half_is_there_if_it_should_be",
    "tests/train_RL_agents/training/test_fake_gpu.py",
)
ASK_TORCH = "import torch; print(torch.__version__, torch.version.cuda)"


def install(folder: Path, torch: str) -> Path:
    """Make an environment with a torch and the project's other packages; return its Python.

    Raises:
        CheckError: the torch is one without CUDA.
    """
    run([sys.executable, "-m", "venv", folder], folder.parent)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run([*pip, torch], folder)
    run([*pip, "--requirement", ROOT / "requirements.txt"], folder)  # a torch that fits stays
    version, cuda = run([python, "-c", ASK_TORCH], folder).split()
    if cuda == "None":
        raise CheckError(f"torch {version} is built without CUDA: name another with --torch")
    return python


def build(python: Path, source: Path) -> None:
    """Build the operators in a copy of the sources, and run there what needs no GPU."""
    copy_sources(source)
    os.environ["FORCE_CUDA"] = "1"
    run([python, "setup.py", "--quiet", "build_ext", "--inplace"], source)
    print(run([python, "-m", "pytest", "-q", *TESTS], source))


def main(arguments: Sequence[str] | None = None) -> int:
    """Install, build and test; return 1 where something is not as it should be."""
    pinned = next(
        line for line in (ROOT / "requirements.txt").open() if line.startswith("torch==")
    ).strip()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--torch", default=pinned, help="install this torch: a version or a wheel's path"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        try:
            python = install(Path(name) / "environment", options.torch)
            build(python, Path(name) / "source")
        except CheckError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
