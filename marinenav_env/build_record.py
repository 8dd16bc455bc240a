"""What the compiled operators were built from and for; `setup.py` runs this file, too.

It imports nothing but the standard library, since it runs before anything is built.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
BUILD_RECORD = "_build_info.json"
SUFFIXES = (".h", ".cuh", ".cpp", ".cu")
REMEDY = (
    "run `make setup` in the project's folder, or `pip install --no-build-isolation --editable .`"
)


def digest_of(sources: Path) -> str:
    """Return a digest of all C++ and CUDA files below a folder, and of their names."""
    digest = hashlib.sha256()
    for path in sorted(path for path in sources.rglob("*") if path.suffix in SUFFIXES):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(sources).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def find_library(torch_version: str, package: Path = PACKAGE) -> Path:
    """Return the path of the operators.

    Args:
        torch_version: that of the torch that is to load them.
        package: the folder in which they lie, beside their record and perhaps their sources.

    Raises:
        ImportError: they are not there, or their record says that they were built from other
            sources than those beside them, or for another torch.
    """
    libraries = sorted(package.glob("_ops*.so"))
    if not libraries:
        raise ImportError(
            f"marinenav's operators are not built (no _ops*.so in {package}): {REMEDY}"
        )
    record_file, sources = package / BUILD_RECORD, package / "csrc"
    record = json.loads(record_file.read_text()) if record_file.is_file() else {}
    built_for = record.get("torch", torch_version)
    if built_for != torch_version:
        raise ImportError(
            f"{libraries[0]} is built for torch {built_for}, and this is torch {torch_version}:"
            f" remove it and {REMEDY}"
        )
    if sources.is_dir() and record.get("sources", "") not in ("", digest_of(sources)):
        raise ImportError(
            f"{libraries[0]} is built from other sources than those in {sources}: remove it and"
            f" {REMEDY}"
        )
    return libraries[0]
