"""The environment of a row: settings of the command line, and what disturbs its vessels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from marinenav_env.config import TaskConfig, ThrustTaskConfig
from marinenav_env.envs.ranging import RangeFinderConfig
from train_RL_agents.commands.options import env_with
from train_RL_agents.config.schema import training_env

PARTS: dict[str, dict[str, Any]] = {
    "wind": {"speed": (0.0, 6.0), "gust_std": 2.0},
    "stream": {"speed": (0.0, 0.3)},
    "waves": {"height": 0.2},
    "thrusters": {"lag": 0.3, "loss_probability": 0.1, "loss_time": (0.0, 30.0)},
    "variation": {"mass": (0.8, 1.2), "surge_damping": (0.7, 1.3)},
}
SENSOR = {
    "miss": 0.1,
    "dropout": 0.05,
    "delay": 0.25,
    "noise_factor": (0.5, 2.0),
    "range_factor": (0.5, 1.0),
}
RANGE_FINDER = {"range_std": 0.1}
DISTURBANCES = ("off", *PARTS, "sensor", "all")


def fitting_disturbances(kind: type[TaskConfig]) -> list[str]:
    """Return those of `DISTURBANCES` that a task with such a configuration has."""
    return list(DISTURBANCES) if issubclass(kind, ThrustTaskConfig) else ["off"]


def disturbed(config: TaskConfig, name: str) -> TaskConfig:
    """Return a configuration with the disturbances of that name, one of the fitting ones."""
    parts = {
        part: replace(getattr(config, part), **values)
        for part, values in PARTS.items()
        if name in (part, "all")
    }
    if name in ("sensor", "all"):
        noise = RANGE_FINDER if isinstance(config.perception, RangeFinderConfig) else {}
        parts["perception"] = replace(config.perception, **SENSOR, **noise)
    return replace(config, **parts)


def env_of(task: str, settings: Sequence[str], disturbances: str) -> TaskConfig:
    """Return the environment of a task as trained in, with settings, and disturbed on top of them.

    Raises:
        ConfigError: a setting is unknown or wrong, or does not go with the disturbances.
    """
    return disturbed(env_with(settings, task, training_env(task)), disturbances)
