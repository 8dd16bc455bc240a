"""Training, evaluation and export of navigation policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marinenav_env import __version__

if TYPE_CHECKING:
    from train_RL_agents.policies.load import load_policy

__all__ = ["__version__", "load_policy"]


def __getattr__(name: str) -> object:
    """Import `load_policy` when it is asked for: it needs modules that import this package."""
    if name == "load_policy":
        from train_RL_agents.policies.load import load_policy

        return load_policy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
