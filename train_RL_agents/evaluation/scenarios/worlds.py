"""Worlds of the simulator set to scenarios, and who steers which of their vessels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from train_RL_agents.evaluation.baselines.registry import BASELINES, Baseline
from train_RL_agents.evaluation.baselines.vessel import HULL
from train_RL_agents.evaluation.episodes import Policy
from train_RL_agents.evaluation.scenarios.scenes import place_scenarios, stages_of
from train_RL_agents.evaluation.scenarios.schema import POLICY, Scenario


class ScenarioWorlds(NamedTuple):
    """Worlds that stand ready.

    Attributes:
        env: W worlds, each at the start of its scenario.
        own: [W, R] bool, the vessels that the policy steers.
        others: [W, R] bool and the policy that steers those vessels.
    """

    env: MarineNavEnv
    own: Tensor
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
    steering = steering_policies(discrete, device)
    for scenario in scenarios:
        scenario.check_against(config, (POLICY, *steering))
        check_baselines(scenario, config.vessel)
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
        (steered_by(name, played, env.robots).to(env.device), policy)
        for name, policy in steering.items()
        if any(vessel.steer == name for scenario in scenarios for vessel in scenario.vessels)
    ]
    return ScenarioWorlds(env, steered_by(POLICY, played, env.robots), others)


def grouped(scenarios: Sequence[Scenario], config: EnvConfig) -> dict[EnvConfig, list[int]]:
    """Return which scenarios share an environment, whose parameters hold for all its worlds.

    Args:
        scenarios: with disturbances of their own, or not.
        config: of the policy.
    """
    alike: dict[EnvConfig, list[int]] = {}
    for index, scenario in enumerate(scenarios):
        alike.setdefault(scenario.env_config(config), []).append(index)
    return alike


def steering_policies(discrete: bool, device: torch.device | str) -> dict[str, Policy]:
    """Return what may steer a vessel besides the policy, by name."""
    steering: dict[str, Policy] = {"straight": functools.partial(hold, discrete=discrete)}
    for name in BASELINES:
        baseline = Baseline(name, device)
        steering[name] = baseline.act_index if discrete else baseline.act
    return steering


def check_baselines(scenario: Scenario, hull: VesselConfig) -> None:
    """Check that classical controllers steer the vessel that they are made for.

    Raises:
        ConfigError: one is to steer another vessel.
    """
    for i, vessel in enumerate(scenario.vessels):
        if vessel.steer in BASELINES and hull.name != HULL.name:
            raise ConfigError(
                f"scenario {scenario.name!r}: vessels[{i}].steer is {vessel.steer!r}: it knows the "
                f"motion of {HULL.name!r} only, and the policy sails {hull.name!r}; choose "
                f"'straight' or '{POLICY}'"
            )


def hold(observation: Observation, *, discrete: bool) -> Tensor:
    """Return actions that change no thrust: indices [...], or rates [..., 2]."""
    lead = observation.ego.shape[:-1]
    if discrete:
        return torch.zeros(lead, dtype=torch.int64, device=observation.ego.device)
    return observation.ego.new_zeros(*lead, 2)


def steered_by(name: str, scenarios: Sequence[Scenario], robots: int) -> Tensor:
    """Return [W, R] bool, the vessels that are steered so."""
    flags = [[vessel.steer == name for vessel in scenario.vessels] for scenario in scenarios]
    return torch.tensor([row + [False] * (robots - len(row)) for row in flags])
