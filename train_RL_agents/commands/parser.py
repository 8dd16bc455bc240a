"""The parser of command lines, which names the nearest option to an unknown one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from marinenav_env.fields import nearest


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
