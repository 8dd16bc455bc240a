"""Environments by name."""

from __future__ import annotations

from typing import Any

from marinenav_env.config import TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.classic import CartPoleEnv
from marinenav_env.envs.icra2024 import Icra2024Env
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.fields import ConfigError, nearest

ENVIRONMENTS: dict[str, type[KernelEnv]] = {
    env.kernel: env for env in (MarineNavEnv, Icra2024Env, CartPoleEnv)
}
TASKS: dict[str, type[MarineNavEnv]] = {
    name: env for name, env in ENVIRONMENTS.items() if issubclass(env, MarineNavEnv)
}
"""Those that `TrainConfig` knows: vessels, stages, and a configuration of their own type."""


def task_of(config: TaskConfig) -> type[MarineNavEnv]:
    """Return the environment that a configuration is of."""
    return next(env for env in TASKS.values() if env.config_type is type(config))


def make(name: str = "marine", **options: Any) -> KernelEnv:
    """Return a new environment.

    Args:
        name: of the environment, a key of `ENVIRONMENTS`.
        options: of its constructor, for example ``worlds=4096``.

    Raises:
        ConfigError: the name is unknown, or an option impossible.
    """
    if name not in ENVIRONMENTS:
        raise ConfigError(
            f"unknown environment {name!r}: the nearest valid one is "
            f"{nearest(name, ENVIRONMENTS)!r}"
        )
    return ENVIRONMENTS[name](**options)
