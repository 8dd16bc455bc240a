"""marinenav's simulator: many marine worlds at once, on the CPU and on CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marinenav_env.envs.make import make
    from marinenav_env.envs.marine import MarineNavEnv

__all__ = ["MarineNavEnv", "__version__", "make"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the environment when it is asked for: settings and files need neither it nor torch."""
    if name == "MarineNavEnv":
        from marinenav_env.envs.marine import MarineNavEnv

        return MarineNavEnv
    if name == "make":
        from marinenav_env.envs.make import make

        return make
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
