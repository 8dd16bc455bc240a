"""Training files of the published code (JSON), in this project's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marinenav_env.fields import ConfigError, nearest

PUBLISHED_KEYS = (
    "agent_type",
    "seed",
    "total_timesteps",
    "eval_freq",
    "save_dir",
    "training_schedule",
    "eval_schedule",
    "imitation_learning",
)
SCHEDULE_KEYS = ("num_robots", "num_cores", "num_obstacles", "min_start_goal_dis")


class PublishedSettings(dict[str, Any]):
    """Settings on top of the defaults alone: the project's own files for tasks and agents differ.

    The defaults have the published encoder, one frame, true hulls, and risk-neutral agents. Their
    updates, price of a collision and length of an episode are those of this project.
    """


def from_published(values: Mapping[str, Any]) -> PublishedSettings:
    """Translate a published training file into this project's keys.

    Raises:
        ConfigError: a key is unknown, or its value has no place here.
    """
    for key in values:
        if key not in PUBLISHED_KEYS:
            raise ConfigError(
                f"unknown setting {key!r} in a published training file: the nearest valid one is "
                f"{nearest(key, PUBLISHED_KEYS)!r}"
            )
    if values.get("imitation_learning"):
        raise ConfigError("imitation_learning is true: it is not offered here, set it to false")
    names = {
        "agent_type": "agent",
        "seed": "seed",
        "total_timesteps": "total_steps",
        "save_dir": "output",
    }
    result = PublishedSettings({new: values[old] for old, new in names.items() if old in values})
    evaluation: dict[str, Any] = {}
    if "eval_freq" in values:
        evaluation["interval_steps"] = values["eval_freq"]
    if "eval_schedule" in values:
        stages, episodes = _schedule(values["eval_schedule"], "eval_schedule", "num_episodes")
        evaluation |= {"stages": stages, "episodes": episodes}
    if evaluation:
        result["evaluation"] = evaluation
    if "training_schedule" in values:
        stages, starts = _schedule(values["training_schedule"], "training_schedule", "timesteps")
        result["curriculum"] = {"mode": "sequential", "stages": stages, "starts": starts}
    return result


def _schedule(values: Any, where: str, first_key: str) -> tuple[list[list], list]:
    """Return the stages of a published schedule and its column ``first_key``."""
    keys = (first_key, *SCHEDULE_KEYS)
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} is {values!r}: give an object with the lists {keys}")
    for key in values:
        if key not in keys:
            raise ConfigError(
                f"unknown setting '{where}.{key}': the nearest valid one is "
                f"'{where}.{nearest(key, keys)}'"
            )
    for key in keys:
        if not isinstance(values.get(key), list) or len(values[key]) != len(values[first_key]):
            raise ConfigError(
                f"{where}.{key} is {values.get(key)!r}: give a list as long as {where}.{first_key}"
            )
    stages = [list(stage) for stage in zip(*(values[key] for key in SCHEDULE_KEYS), strict=True)]
    return stages, values[first_key]
