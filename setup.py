"""Builds marinenav's torch operators into one plain shared library, `marinenav_env/_ops.so`.

The CPU half is always built. The CUDA half is built when the toolkit (nvcc) is there and of the
same major version as torch's CUDA; a visible GPU plays no part. The decision is printed in one
line. What the finished library holds is recorded in `marinenav_env/_build_info.json`. Environment
variables:

* ``NO_CUDA=1``: leave the CUDA half out.
* ``FORCE_CUDA=1``: stop with an error where the CUDA half cannot be built.
* ``TORCH_CUDA_ARCH_LIST``: the GPU architectures, in torch's notation.
* ``MARINENAV_ARCH``: the CPU architecture as in g++'s ``-march``. By default ``native`` for a
  library that stays in this folder, and ``x86-64-v3`` for a wheel on x86-64, since wheels travel.

A wheel holds `configs/` and `pretrained/` inside the package `train_RL_agents`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

if TYPE_CHECKING:
    from setuptools import Command, Extension

ROOT = Path(__file__).resolve().parent
SOURCES = Path("marinenav_env/csrc")
LIBRARY = "marinenav_env._ops"
RECORD = runpy.run_path(str(ROOT / "marinenav_env" / "build_record.py"))
BUILD_INFO, digest_of = RECORD["BUILD_RECORD"], RECORD["digest_of"]
extensions_for = RECORD["extensions_for"]
# Folders that a wheel has inside a package, and what it takes of them: by name, since exports of
# the shipped policies may lie beside them.
SHIPPED = {
    "configs": ["*.yaml"],
    "pretrained": [
        "*/config.yaml",
        "*/evaluation.json",
        "*/provenance.json",
        "*/weights.pt",
        "*/networks.pt",
    ],
}
INSTRUCTION = """\
    pip install torch==2.13.0 setuptools wheel
    pip install --no-build-isolation ."""

# Compute capability 8.0 also runs on 8.6 and 8.9; the PTX of 9.0 serves everything newer.
DEFAULT_CUDA_ARCH_LIST = "8.0;9.0+PTX"
# No contraction into fused multiply-adds on either device, so that one source gives one result.
NVCC_FLAGS = ["-O3", "-fmad=false", "--expt-relaxed-constexpr", "-Xcompiler=-ffp-contract=off"]

# A compiler without a shared libstdc++ links its own into the library. Where that one is of another
# version than torch's, and symbols of both mix, streams print no numbers or end the program.
OWN_LIBRARY_ONLY = ["-Wl,--exclude-libs,libstdc++.a"] if sys.platform == "linux" else []

# Run in a process of its own: a process can load the operators only once.
LIST_OPERATORS = """
import sys, torch
torch.ops.load_library(sys.argv[1])
names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("marinenav::")]
for device in ("CPU", "CUDA"):
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    print(sum(has_kernel(name, device) for name in names))
"""


class BuildError(SystemExit):
    """The build cannot continue; the message says why and what helps."""


class Toolkit(NamedTuple):
    """An installed CUDA toolkit: its folder, that of its headers, its version (major, minor)."""

    root: Path
    include: Path
    version: tuple[int, int]

    @property
    def nvcc(self) -> Path:
        """Path of the compiler."""
        return self.root / "bin" / "nvcc"


class CudaDecision(NamedTuple):
    """The toolkit that builds the CUDA half, None where it is left out; and why."""

    toolkit: Toolkit | None
    reason: str


def read_switch(environ: Mapping[str, str], name: str) -> bool:
    """Read an on/off variable; unset, empty and 0 mean off.

    Raises:
        BuildError: The value is none of these and not 1.
    """
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise BuildError(f"{name}={value} is not understood: use {name}=1 or {name}=0")
    return value == "1"


def nvcc_version(nvcc: Path) -> tuple[int, int]:
    """Asks nvcc for its version, (major, minor).

    Raises:
        BuildError: It does not run, or its answer names no release.
    """
    try:
        text = subprocess.check_output([nvcc, "--version"], text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{nvcc} does not run ({error}): repair it, or set NO_CUDA=1") from error
    match = re.search(r"release (\d+)\.(\d+)", text)
    if match is None:
        raise BuildError(f"{nvcc} --version names no release: repair it, or set NO_CUDA=1")
    return int(match[1]), int(match[2])


def find_toolkit(environ: Mapping[str, str]) -> Toolkit | None:
    """Look for a CUDA toolkit: CUDA_HOME, CUDA_PATH, nvcc on the path, /usr/local/cuda.

    A folder counts if it holds both the compiler and the runtime's headers, which tells a toolkit
    from a wrapper script that somebody put on the path. Conda keeps the headers by target.
    """
    roots = [Path(environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    on_path = shutil.which("nvcc", path=environ.get("PATH", ""))
    if on_path:
        roots.append(Path(on_path).resolve().parents[1])
    roots.append(Path("/usr/local/cuda"))
    for root in roots:
        for include in (root / "include", *sorted(root.glob("targets/*-linux/include"))):
            nvcc = root / "bin" / "nvcc"
            if nvcc.exists() and (include / "cuda_runtime.h").exists():
                return Toolkit(root, include, nvcc_version(nvcc))
    return None


def matching_toolkit(
    torch_version: str, torch_cuda: str | None, environ: Mapping[str, str]
) -> CudaDecision:
    """Look for a toolkit of torch's CUDA; arguments as in `decide_cuda`."""
    if torch_cuda is None:
        return CudaDecision(None, f"torch {torch_version} is built without CUDA")
    toolkit = find_toolkit(environ)
    if toolkit is None:
        return CudaDecision(None, f"no toolkit (nvcc) found for torch's CUDA {torch_cuda}")
    version = ".".join(map(str, toolkit.version))
    if toolkit.version[0] != int(torch_cuda.split(".")[0]):
        return CudaDecision(None, f"toolkit {version} does not match torch's CUDA {torch_cuda}")
    return CudaDecision(toolkit, f"toolkit {version} matches torch's CUDA {torch_cuda}")


def decide_cuda(
    torch_version: str, torch_cuda: str | None, environ: Mapping[str, str]
) -> CudaDecision:
    """Decides whether the CUDA half is built, and with what.

    Args:
        torch_version: As in ``torch.__version__``.
        torch_cuda: As in ``torch.version.cuda``, None for a build of torch without CUDA.
        environ: Environment variables.

    Raises:
        BuildError: FORCE_CUDA=1 where it cannot be built, or together with NO_CUDA=1.
    """
    force, forbid = read_switch(environ, "FORCE_CUDA"), read_switch(environ, "NO_CUDA")
    if force and forbid:
        raise BuildError("FORCE_CUDA=1 and NO_CUDA=1 contradict each other: set one of them")
    if forbid:  # a broken toolkit stops no build that needs none
        return CudaDecision(None, "NO_CUDA=1")
    decision = matching_toolkit(torch_version, torch_cuda, environ)
    if force and decision.toolkit is None:
        raise BuildError(
            f"FORCE_CUDA=1, but {decision.reason}: install a CUDA build of torch and the toolkit of"
            " the same major version (CUDA_HOME names its folder)"
        )
    return decision


def cxx_flags(environ: Mapping[str, str], *, portable: bool = False) -> list[str]:
    """Return flags of the C++ compiler. `-std` is left to torch, whose headers set the minimum.

    Args:
        environ: Environment variables.
        portable: Whether the library is to run on other machines too.
    """
    arch = cpu_arch(environ, portable=portable)
    # g++ 12 takes the undefined vectors in its own AVX-512 headers for mistakes.
    warnings = ["-Wno-maybe-uninitialized"]
    # Even with contraction off, g++ 12 fuses a*b + c*d beside a*d - b*c when it packs the two.
    same_bits = ["-ffp-contract=off", "-fno-tree-slp-vectorize"]
    march = [f"-march={arch}"] if arch else []
    return ["-O3", "-g0", *march, *same_bits, "-fopenmp", *warnings]


def cpu_arch(environ: Mapping[str, str], *, portable: bool) -> str:
    """Return the CPU architecture to compile for; arguments as in `cxx_flags`."""
    return environ.get("MARINENAV_ARCH") or (portable_arch() if portable else "native")


def portable_arch() -> str:
    """Return a CPU architecture that machines of this kind share; empty: the compiler's own."""
    return "x86-64-v3" if platform.machine() in ("x86_64", "AMD64") else ""


def make_extension(toolkit: Toolkit | None) -> Extension:
    """Describe the shared library for torch's `BuildExtension`; no toolkit, no CUDA half."""
    from torch.utils.cpp_extension import CppExtension, CUDAExtension

    suffixes = (".cpp", ".cu") if toolkit else (".cpp",)
    files = sorted(path.relative_to(ROOT) for path in (ROOT / SOURCES).rglob("*") if path.is_file())
    return (CUDAExtension if toolkit else CppExtension)(
        LIBRARY,
        [str(path) for path in files if path.suffix in suffixes],
        include_dirs=[str(ROOT / SOURCES), *([str(toolkit.include)] if toolkit else [])],
        extra_compile_args={"nvcc": NVCC_FLAGS},  # the command knows those of the C++ compiler
        extra_link_args=["-fopenmp", *OWN_LIBRARY_ONLY],
        py_limited_api=True,
    )


def holds_cuda(library: Path) -> bool:
    """Asks a finished library whether it holds the CUDA half.

    Raises:
        BuildError: It does not load, or holds only a part of that half.
    """
    command = [sys.executable, "-c", LIST_OPERATORS, str(library.resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{library} does not load, remove it and build again:\n{done.stderr}")
    on_cpu, on_cuda = map(int, done.stdout.split())
    if on_cuda not in (0, on_cpu):
        raise BuildError(f"{library} holds {on_cpu} operators for the CPU and {on_cuda} for CUDA")
    return on_cuda > 0


def make_build_command(decision: CudaDecision, record: Mapping[str, object]) -> type[Command]:
    """Return a `build_ext` that announces the decision, builds, and records what it built."""
    from torch.utils.cpp_extension import BuildExtension

    class BuildOps(BuildExtension):
        """Build the operators."""

        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs, no_python_abi_suffix=True)

        def run(self) -> None:
            """Build the library and write the record beside it."""
            print(f"marinenav: CUDA {'on' if decision.toolkit else 'off'}: {decision.reason}")
            flags = cxx_flags(os.environ, portable=not self.inplace)
            for extension in self.extensions:
                extension.extra_compile_args["cxx"] = flags
            self.force = True  # the dates of files, which decide without ninja, tell of no flags
            library = Path(self.get_ext_fullpath(LIBRARY))
            for old in (library, library.with_name(BUILD_INFO)):  # so a failed build leaves neither
                old.unlink(missing_ok=True)
            sources = digest_of(ROOT / SOURCES)  # what changes while it is compiled is not in it
            super().run()
            cuda = holds_cuda(library)
            if cuda != (decision.toolkit is not None):
                raise BuildError(f"{library} has CUDA: {cuda}, against the decision: clean up")
            arch = cpu_arch(os.environ, portable=not self.inplace)
            built = {"cuda": cuda, **record, "cxx_flags": flags, "sources": sources}
            built |= {"extensions": extensions_for(arch), "commit": commit()}
            library.with_name(BUILD_INFO).write_text(json.dumps(built, indent=2) + "\n")

    return BuildOps


class BuildPackages(build_py):
    """Collect the packages, without what an earlier wheel of this folder took along."""

    def run(self) -> None:
        """Remove what is collected from before, then collect."""
        collected = Path(self.build_lib)
        own = collected.resolve().is_relative_to(ROOT / "build")  # not what the user names
        if own and collected.exists() and not self.editable_mode:
            shutil.rmtree(collected)
        super().run()


def commit() -> str | None:
    """Return the commit of this folder, with `-dirty` behind it where files differ.

    Outside a repository that of the variable `MARINENAV_COMMIT`, or None.
    """
    asked = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "describe", "--always"]
    asked += ["--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError, subprocess.CalledProcessError):
        if (ROOT / ".git").exists():  # a copy may lie in another project's repository
            return subprocess.check_output(asked, text=True, stderr=subprocess.DEVNULL).strip()
    return os.environ.get("MARINENAV_COMMIT")


def main() -> None:
    """Decides about CUDA and hands over to setuptools."""
    try:
        import torch
    except ImportError as error:
        raise BuildError(
            "building marinenav needs torch in the environment (an isolated build would fetch"
            f" gigabytes). Two lines install it:\n{INSTRUCTION}\n(or the project's address in place"
            " of the dot; `make` in the project's folder does all this too)"
        ) from error
    missing = [f for f, names in SHIPPED.items() for n in names if not any((ROOT / f).glob(n))]
    if missing:
        raise BuildError(f"files are missing in {ROOT / missing[0]}: fetch the whole project")
    decision = decide_cuda(torch.__version__, torch.version.cuda, os.environ)
    if decision.toolkit:
        os.environ["CUDA_HOME"] = str(decision.toolkit.root)
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", DEFAULT_CUDA_ARCH_LIST)
    record = {
        "reason": decision.reason,
        "torch": torch.__version__,
        "cuda_arch_list": os.environ["TORCH_CUDA_ARCH_LIST"] if decision.toolkit else None,
    }
    places = {f"train_RL_agents.{folder}": folder for folder in SHIPPED}
    setup(
        license="Apache-2.0",
        license_files=["LICENSE", "NOTICE"],
        packages=[*find_packages(include=["marinenav_env*", "train_RL_agents*"]), *places],
        package_dir=places,
        package_data={
            "marinenav_env": [BUILD_INFO],
            "train_RL_agents.evaluation.report": ["*.css", "*.js"],
            **{package: SHIPPED[folder] for package, folder in places.items()},
        },
        ext_modules=[make_extension(decision.toolkit)],
        cmdclass={"build_ext": make_build_command(decision, record), "build_py": BuildPackages},
    )


if __name__ == "__main__":
    main()
