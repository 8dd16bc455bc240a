"""Where commands print their tables."""

from __future__ import annotations

import sys

from rich.console import Console

FILE_WIDTH = 160
"""Characters of a table that goes to a file or another program, which would be cut at 80."""


def open_console() -> Console:
    """Return the console of a command, as wide as its terminal."""
    return Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
