"""What the worlds of a training begin with: stages of the curriculum, and named scenarios."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from marinenav_env.config import EnvConfig
from marinenav_env.envs.scenes import AnyStage, SceneStage
from marinenav_env.episodes.schema import POLICY
from marinenav_env.fields import ConfigError
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.evaluation.scenarios.scenes import scene_of


def training_stages(config: TrainConfig) -> tuple[AnyStage, ...]:
    """Return the stages of the curriculum, and one of named scenarios behind them if any are asked.

    Raises:
        ConfigError: there are no such scenarios, one cannot be played, one has a vessel that the
            policy does not steer, one has disturbances of its own, or the task has none.
    """
    given = config.scenarios
    if not given.share:
        return config.curriculum.stages
    env = config.collecting_env
    if not isinstance(env, EnvConfig):
        raise ConfigError(
            f"scenarios.share is {given.share}: scenarios are of the task 'marine', not of "
            f"{config.task!r}; give 0"
        )
    scenarios = [
        dataclasses.replace(scenario, offset_m=given.offset_m, offset_deg=given.offset_deg)
        for scenario in find_scenarios(given.set)
    ]
    for scenario in scenarios:
        if scenario.disturbances():
            raise ConfigError(
                f"scenarios.set is {given.set!r}: scenario {scenario.name!r} gives "
                f"{', '.join(scenario.disturbances())}, which a training takes from env.*: leave "
                "it out of the file"
            )
        if scenario.among_others:
            raise ConfigError(
                f"scenarios.set is {given.set!r}: in scenario {scenario.name!r} something else "
                "steers a vessel: give scenarios whose vessels are all the policy's, and "
                "traffic.share for others among them"
            )
        scenario.check_against(env, (POLICY,))
    scenes = tuple(scene_of(scenario) for scenario in scenarios)
    return (*config.curriculum.stages, SceneStage(Path(given.set).stem, scenes))
