"""Files: no kill, full disk or error leaves one half written, and damage to one is named."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from marinenav_env.fields import ConfigError


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
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:  # follows no link that another user has put there
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except RuntimeError as error:
        raise _disk_error(error) or error from error
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _disk_error(error: BaseException | None) -> OSError | None:
    """Return what the disk said, which torch's writer hides behind an error of its own."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, as `write_atomically` does.

    Raises:
        OSError: the disk refuses; the old file, if any, is untouched.
    """
    content = (json.dumps(value, indent=1) + "\n").encode()
    write_atomically(path, lambda file: file.write(content))


def read_parsed(path: Path, parse: Callable[[str], Any], remedy: str, what: str = "file") -> Any:
    """Read a text file that may come from anywhere.

    Args:
        path: the file.
        parse: of its text, for example `parse_json`; whatever it raises is damage of the file.
        remedy: what to do about a file that is of no use.
        what: kind of the file, for the message.

    Raises:
        ConfigError: it cannot be read, or is damaged. The message names file, reason and remedy.
    """
    shown = f"{what} {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{shown} cannot be read ({reason}): {remedy}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is damaged ({error}): {remedy}") from error
    try:
        return parse(text)
    except Exception as error:  # parsers raise many kinds, RecursionError among them
        raise ConfigError(f"{shown} is damaged ({error}): {remedy}") from error


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is none, or holds a whole number that no float holds.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_int=_bounded)


def _bounded(digits: str) -> int:
    if not math.isfinite(float(digits)):
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def set_aside(path: Path) -> Path:
    """Rename a damaged file that its folder can do without, and return its new name.

    Raises:
        OSError: the disk refuses.
    """
    return path.replace(path.with_name(f"{path.name}.damaged"))
