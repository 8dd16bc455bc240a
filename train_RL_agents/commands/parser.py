"""What commands share: a parser that names the nearest option, and how they tell errors."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec

from marinenav_env.fields import nearest
from train_RL_agents.run.ending import output_may_close

P = ParamSpec("P")
FIGURES = (".png", ".pdf", ".svg")
"""Endings of files that hold a figure."""


class Parser(argparse.ArgumentParser):
    """As argparse has it, but for the message where an option is unknown."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the arguments, also of a command; unknown ones end the program with status 2."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._remedy(unknown)}")
        return namespace, unknown

    def _remedy(self, unknown: Sequence[str]) -> str:
        """Return what to add to the message; nothing without an option among the arguments."""
        options = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        known = [option for action in self._actions for option in action.option_strings]
        return "".join(f"; nearest to {option} is {nearest(option, known)}" for option in options)


def output_file(*endings: str) -> Callable[[str], Path]:
    """Return the type of an option that names a file to write, for `add_argument`.

    What it refuses ends the program before any work: a folder or a device, a file in a folder that
    is missing, and another ending than those given, if any.
    """

    def read(text: str) -> Path:
        path = Path(text)
        ending = path.suffix
        if endings and ending.lower() not in endings:
            known = " ".join(endings)
            raise argparse.ArgumentTypeError(f"{text!r} ends in {ending!r}: use one of {known}")
        try:
            taken, in_folder = path.exists() and not path.is_file(), path.absolute().parent.is_dir()
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error.strerror}; give another") from error
        if taken:
            raise argparse.ArgumentTypeError(f"{text!r} is no file: give the name of one")
        if not in_folder:
            raise argparse.ArgumentTypeError(f"{text!r}: its folder is missing, make it")
        return path

    return read


def tells(
    *errors: type[Exception], status: int = 1
) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Let a command end with a message and a status instead of a traceback of these errors.

    It goes on, and writes its files, where the reader of its output goes away (`| head`).
    """

    def decorate(command: Callable[P, int]) -> Callable[P, int]:
        @functools.wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> int:
            with output_may_close(BrokenPipeError):
                try:
                    return command(*args, **kwargs)
                except errors as error:
                    print(f"error: {error}", file=sys.stderr)
                    return status

        return run

    return decorate
