"""Writing files that no kill, full disk or error can leave half written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file so that at every moment either the old one or the whole new one is there.

    Args:
        path: the file.
        write: puts the content into an open binary file; what it raises is passed on, and the old
            file, if any, is then untouched.

    Raises:
        OSError: the disk refuses; the old file, if any, is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, as `write_atomically` does.

    Raises:
        OSError: the disk refuses; the old file, if any, is untouched.
    """
    content = (json.dumps(value, indent=1) + "\n").encode()
    write_atomically(path, lambda file: file.write(content))
