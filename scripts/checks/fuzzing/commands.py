"""Commands of the project, called as functions, and what they said when they refused."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence


class RefusedError(Exception):
    """A command ended with an error; the message is all that it said."""


def call(main: Callable[[Sequence[str]], int], *arguments: str) -> None:
    """Call a command's `main`.

    Raises:
        RefusedError: it ended with a status other than 0 and said why.
    """
    errors, shown = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(shown):
        try:
            status: str | int | None = main(list(arguments))
        except SystemExit as end:  # argparse
            status = end.code
    if status:
        message = errors.getvalue() or shown.getvalue()  # a replay that deviates shows where
        if not message or "Traceback" in message:
            raise RuntimeError(f"status {status}, and no word of why: {message!r}")
        raise RefusedError(message.strip())
