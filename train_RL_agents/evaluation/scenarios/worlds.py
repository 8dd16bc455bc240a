"""Worlds of the simulator set to scenarios, and who steers which of their vessels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.episodes.schema import POLICY
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from train_RL_agents.evaluation.scenarios.scenes import place_scenarios, stages_of
from train_RL_agents.evaluation.scenarios.schema import Scenario
from train_RL_agents.evaluation.steering import CONTROLLERS, Policy, controller, unable


class ScenarioWorlds(NamedTuple):
    """Worlds that stand ready.

    Attributes:
        env: W worlds, each at the start of its scenario.
        others: [W, R] bool and the policy that steers those vessels.
    """

    env: MarineNavEnv
    others: list[tuple[Tensor, Policy]]


def make_worlds(
    scenarios: Sequence[Scenario],
    scenario_of_world: Tensor,
    config: EnvConfig,
    *,
    discrete: bool,
    device: torch.device | str = "cpu",
    **options: Any,
) -> ScenarioWorlds:
    """Return worlds of scenarios that are played in one environment.

    Args:
        scenarios: at least one.
        scenario_of_world: [W] int64.
        config: of the environment, with the scenarios' disturbances.
        discrete: whether the policy gives action indices.
        device: of the environment and the policies.
        **options: of the environment.

    Raises:
        ConfigError: a scenario cannot be played.
    """
    for scenario in scenarios:
        scenario.check_against(config, (POLICY, *CONTROLLERS))
        check_steering(scenario, config.vessel, discrete=discrete)
    env = MarineNavEnv(
        len(scenario_of_world),
        stages=stages_of(scenarios),
        config=config,
        discrete=discrete,
        device=device,
        **options,
    )
    place_scenarios(env, scenario_of_world)
    played = [scenarios[index] for index in scenario_of_world.tolist()]
    others = [
        (
            steered_by(name, played, env.robots).to(env.device),
            controller(name, config.vessel, discrete=discrete, device=device),
        )
        for name in CONTROLLERS
        if any(vessel.steer == name for scenario in scenarios for vessel in scenario.vessels)
    ]
    return ScenarioWorlds(env, others)


def grouped(
    scenarios: Sequence[Scenario], env_config: Callable[[Scenario], EnvConfig]
) -> dict[EnvConfig, list[int]]:
    """Return which scenarios share an environment, whose parameters hold for all its worlds.

    Args:
        scenarios: with disturbances of their own, or not.
        env_config: returns what a scenario is played in.
    """
    alike: dict[EnvConfig, list[int]] = {}
    for index, scenario in enumerate(scenarios):
        alike.setdefault(env_config(scenario), []).append(index)
    return alike


def check_steering(scenario: Scenario, hull: VesselConfig, *, discrete: bool) -> None:
    """Check that the vessels can be steered as the scenario says.

    Raises:
        ConfigError: a controller cannot steer one, with the kind of actions that the policy gives.
    """
    for i, vessel in enumerate(scenario.vessels):
        if vessel.steer != POLICY and (why := unable(vessel.steer, hull, discrete=discrete)):
            raise ConfigError(
                f"scenario {scenario.name!r}: {scenario.place_of(i)}.steer is {vessel.steer!r}: "
                f"{why}; give another one, or {POLICY!r}"
            )


def steered_by(name: str, scenarios: Sequence[Scenario], robots: int) -> Tensor:
    """Return [W, R] bool, the vessels that are steered so."""
    flags = [[vessel.steer == name for vessel in scenario.vessels] for scenario in scenarios]
    return torch.tensor([row + [False] * (robots - len(row)) for row in flags])
