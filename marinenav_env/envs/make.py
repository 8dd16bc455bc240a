"""Environments by name."""

from __future__ import annotations

import inspect
from typing import Any

from marinenav_env.config import TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.classic import CLASSIC
from marinenav_env.envs.icra2024 import Icra2024Env
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.ranging import BeamsEnv, SectorsEnv
from marinenav_env.fields import ConfigError, nearest

KINDS: tuple[type[KernelEnv], ...] = (
    *(MarineNavEnv, Icra2024Env, SectorsEnv, BeamsEnv),
    *CLASSIC,
)
ENVIRONMENTS = {kind.kernel: kind for kind in KINDS}
TASKS: dict[str, Any] = {**ENVIRONMENTS}
"""Environment by name, as `TrainConfig` knows it; each takes worlds, stages, config and more."""
VESSEL_TASKS: tuple[str, ...] = tuple(
    name for name, env in ENVIRONMENTS.items() if issubclass(env, MarineNavEnv)
)
"""Those of vessels in a map."""


class UnknownOptionError(ConfigError, TypeError):
    """An option is unknown; a `TypeError` as Python's own, by which TorchRL's `GymEnv` goes."""


def task_of(config: TaskConfig) -> Any:
    """Return the environment that a configuration is of."""
    return next(env for env in ENVIRONMENTS.values() if env.config_type is type(config))


def make(name: str = "marine", **options: Any) -> KernelEnv:
    """Return a new environment.

    Args:
        name: of the environment, a key of `ENVIRONMENTS`.
        options: of its constructor, for example ``worlds=4096``.

    Raises:
        ConfigError: the name or an option is unknown (`UnknownOptionError`), or an option
            impossible.
    """
    if name not in ENVIRONMENTS:
        raise ConfigError(
            f"unknown environment {name!r}: the nearest valid one is "
            f"{nearest(name, ENVIRONMENTS)!r}"
        )
    kind = ENVIRONMENTS[name]
    known = [*inspect.signature(kind.__init__).parameters][1:]  # without `self`
    for option in options:
        if option not in known:
            raise UnknownOptionError(
                f"unexpected keyword argument {option!r}: the task {name!r} takes "
                f"{', '.join(known)}"
            )
    return kind(**options)
