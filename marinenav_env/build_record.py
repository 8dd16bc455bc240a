"""What the compiled operators were built from and for; `setup.py` runs this file, too.

It imports nothing but the standard library, since it runs before anything is built.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
BUILD_RECORD = "_build_info.json"
SUFFIXES = (".h", ".cuh", ".cpp", ".cu")
REMEDY = (
    "run `make setup` in the project's folder, or `pip install --no-build-isolation --editable .`"
)
CPUINFO = Path("/proc/cpuinfo")
VECTORS = re.compile(r"avx2?|avx512(f|cd|bw|dq|vl|vbmi|_vbmi2)|fma|f16c|bmi[12]|movbe|abm")
"""Extensions of x86 that a compiler takes by itself, as Linux names them."""
LEVELS = {"x86-64-v3": ["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"]}
"""Those of a level of x86-64 (System V ABI)."""


def digest_of(sources: Path) -> str:
    """Return a digest of all C++ and CUDA files below a folder, and of their names."""
    digest = hashlib.sha256()
    for path in sorted(sources.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file():  # an editor's lock is a dangling link
            continue
        content = path.read_bytes()
        digest.update(f"{path.relative_to(sources).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def read_record(path: Path) -> dict[str, Any]:
    """Return a record, empty where there is none, or a killed build left a part of it."""
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def processor_extensions() -> list[str]:
    """Return the extensions of this processor, sorted; empty where the system names none."""
    try:
        with CPUINFO.open(encoding="utf-8") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return []
    return sorted(flag for flag in flags.partition(":")[2].split() if VECTORS.fullmatch(flag))


def extensions_for(march: str) -> list[str]:
    """Return the extensions that code for an architecture, as in ``-march``, may make use of.

    What is not ``native`` is asked of one who named it: only `LEVELS` are known here.
    """
    return processor_extensions() if march == "native" else LEVELS.get(march, [])


def runs_on(architectures: str, capability: tuple[int, int]) -> bool:
    """Whether operators for some architectures run on a GPU.

    Compiled code runs on GPUs of its major version and its minor one or a later one, also that of a
    family (10.0f), and what is left to the driver (+PTX) on all later ones. Code for one GPU alone
    (9.0a) runs on that.

    Args:
        architectures: in torch's notation, as `8.0;9.0+PTX`; what else stands there counts as all.
        capability: of the GPU, major and minor.
    """
    for entry in re.split(r"[;\s]+", architectures.strip()):
        known = re.fullmatch(r"(\d+)\.(\d+)([af]?)(\+PTX)?", entry)
        if not known:
            return True
        built = int(known[1]), int(known[2])
        later = built <= capability and (built[0] == capability[0] or bool(known[4]))
        if built == capability or (later and known[3] != "a"):
            return True
    return False


def find_library(torch_version: str, package: Path = PACKAGE) -> Path:
    """Return the path of the operators.

    Args:
        torch_version: that of the torch that is to load them.
        package: the folder in which they lie, beside their record and perhaps their sources.

    Raises:
        ImportError: they are not there; their record says that they were built for another torch
            or processor, or from other sources than those beside them; or there are sources and no
            whole record.
    """
    libraries = sorted(package.glob("_ops*.so"))
    if not libraries:
        raise ImportError(
            f"marinenav's operators are not built (no _ops*.so in {package}): {REMEDY}"
        )
    sources, record = package / "csrc", read_record(package / BUILD_RECORD)
    built_for = record.get("torch", torch_version)
    if built_for != torch_version:
        wheel = f"install torch {built_for}, or a wheel for torch {torch_version}"
        other = f"remove it and {REMEDY}" if sources.is_dir() else wheel
        raise ImportError(
            f"{libraries[0]} is built for torch {built_for}, and this is torch {torch_version}:"
            f" {other}"
        )
    own = processor_extensions()
    lacking = [name for name in record.get("extensions", []) if name not in own] if own else []
    if lacking:
        here = f"remove it and {REMEDY}, with MARINENAV_ARCH=x86-64-v3 where others share it"
        wheel = "install a wheel that is built with MARINENAV_ARCH=x86-64"
        raise ImportError(
            f"{libraries[0]} is built for processors with {', '.join(lacking)}, which this one "
            f"lacks: {here if sources.is_dir() else wheel}"
        )
    if sources.is_dir() and record.get("sources") != digest_of(sources):
        raise ImportError(
            f"no record says that {libraries[0]} is built from the sources in {sources} as they"
            f" are: remove it and {REMEDY}"
        )
    return libraries[0]
