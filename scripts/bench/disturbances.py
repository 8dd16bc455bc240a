"""What disturbs the vessels of a row: nothing, one thing, or everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marinenav_env.config import TaskConfig, ThrustTaskConfig
from marinenav_env.envs.ranging import RangeFinderConfig
from marinenav_env.faults import ThrusterConfig, VariationConfig
from marinenav_env.water import StreamConfig, WavesConfig, WindConfig

PARTS = {
    "wind": WindConfig(speed=(0.0, 6.0), gust_std=2.0),
    "stream": StreamConfig(speed=(0.0, 0.3)),
    "waves": WavesConfig(height=0.2),
    "thrusters": ThrusterConfig(lag=0.3, loss_probability=0.1, loss_time=(0.0, 30.0)),
    "variation": VariationConfig(mass=(0.8, 1.2), surge_damping=(0.7, 1.3)),
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
    parts: dict[str, Any] = {part: value for part, value in PARTS.items() if name in (part, "all")}
    if name in ("sensor", "all"):
        noise = RANGE_FINDER if isinstance(config.perception, RangeFinderConfig) else {}
        parts["perception"] = replace(config.perception, **SENSOR, **noise)
    return replace(config, **parts)
