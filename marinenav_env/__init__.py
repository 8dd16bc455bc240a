"""marinenav's simulator: many marine worlds at once, on the CPU and on CUDA."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marinenav_env.config import EnvConfig
    from marinenav_env.envs.make import make
    from marinenav_env.envs.marine import MarineNavEnv
    from marinenav_env.envs.observation import Observation
    from marinenav_env.envs.scenarios import Stage

__all__ = ["EnvConfig", "MarineNavEnv", "Observation", "Stage", "__version__", "make"]

__version__ = "0.1.0"

PLACES = {
    "EnvConfig": "config",
    "MarineNavEnv": "envs.marine",
    "Observation": "envs.observation",
    "Stage": "envs.scenarios",
    "make": "envs.make",
}
"""Where the names of the face live."""


def __getattr__(name: str) -> object:
    """Import a name when it is asked for: settings and files need neither torch nor the rest."""
    if name in PLACES:
        return getattr(importlib.import_module(f"{__name__}.{PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
