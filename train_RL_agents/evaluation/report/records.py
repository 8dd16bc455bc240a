"""Reads records that other programs have measured, for the page."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from marinenav_env.fields import ConfigError
from marinenav_env.files import parse_json, read_parsed


def read_rows(path: Path, option: str, program: str, needed: Collection[str]) -> dict[str, Any]:
    """Read a record with ``rows``.

    Args:
        path: of the file.
        option: that names it on the command line, without its dashes.
        program: that writes such records.
        needed: keys of every row.

    Raises:
        ConfigError: it cannot be read, or is no such record.
    """
    remedy = f"give a record that {program} --json wrote"
    record = read_parsed(path, parse_json, remedy, "record")
    rows = record.get("rows") if isinstance(record, dict) else None
    if (
        not isinstance(rows, list)
        or not rows
        or not all(isinstance(row, dict) and row.keys() >= set(needed) for row in rows)
    ):
        raise ConfigError(
            f"{option} is {str(path)!r}, which has no rows with {', '.join(needed)}: {remedy}"
        )
    return record
