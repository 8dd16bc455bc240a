"""Worlds that the command line asks for, with the policy that steers their vessels."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.episodes.schema import POLICY
from marinenav_env.fields import ConfigError
from train_RL_agents.commands.options import (
    read_shield,
    scenarios_given,
    stages_given,
    with_true_hulls,
    with_world_options,
)
from train_RL_agents.commands.traffic import traffic_for, traffic_name
from train_RL_agents.commands.vessel_notes import tell_of_vessel
from train_RL_agents.evaluation.baselines.registry import let_steer
from train_RL_agents.evaluation.episodes import FIRST_WORLD, steered
from train_RL_agents.evaluation.scenarios.worlds import grouped, make_worlds
from train_RL_agents.evaluation.steering import Policy, traffic_in
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import ShieldedPolicy, settings_in, shield_agent


class SteeredWorlds(NamedTuple):
    """Worlds with their policy.

    Attributes:
        env: W worlds; those of stages still await their reset.
        act: steers all vessels.
        labels: [W] of each world's stage or scenario.
        steer: [W][R] names of what steers each vessel, `POLICY` for those that are judged.
        placed: whether they stand ready.
        guarded: the policy with its shield, if it has one.
    """

    env: MarineNavEnv
    act: Policy
    labels: list[str]
    steer: list[list[str]]
    placed: bool
    guarded: ShieldedPolicy | None


def worlds_of(
    arguments: argparse.Namespace,
    changes: Mapping[str, float] | None = None,
    *,
    tasks: Sequence[str],
    adapt: Callable[[Any], Any],
    dtype: torch.dtype,
) -> SteeredWorlds:
    """Return the worlds of a command line, as many of each stage or scenario as it says.

    Args:
        arguments: ``checkpoint``, ``shield``, ``traffic``, ``episodes``, ``seed``, and the world
            options;
            without a stage or scenario the last of the policy's own evaluation counts.
        changes: numbers of the stages to replace.
        tasks: those that the command is for.
        adapt: changes the environment.
        dtype: of the environment.

    Raises:
        CheckpointError: the policy is missing, damaged or of an unknown kind.
        ConfigError: a setting of the shield is unknown or wrong, or it cannot guard the policy.
        ConfigError: the policy is of another task, or a scenario or stage cannot be played.
        ConfigError: scenarios need different environments.
    """
    shield = read_shield(arguments.shield)
    agent, config = load_policy(arguments.checkpoint)
    config = with_world_options(with_true_hulls(config), arguments)
    if config.task not in tasks:
        raise ConfigError(
            f"{arguments.checkpoint} is a policy of the task {config.task!r}: give one of the tasks"
            f" {', '.join(tasks)}"
        )
    if arguments.scenario and not isinstance(config.env, EnvConfig):
        raise ConfigError(
            f"scenario is {arguments.scenario!r}: scenarios are of the task 'marine', not"
            f" {config.task!r}; leave it out"
        )
    kind = TASKS[config.task]
    tell_of_vessel(config.env)
    if isinstance(config.env, EnvConfig):
        let_steer(agent, config.env.vessel)
    met: Any = config.env
    env_config = adapt(met)
    options = {
        "discrete": agent.discrete,
        "dtype": dtype,
        "seed": arguments.seed,
        "first_world": FIRST_WORLD,
        "stack_k": config.stack_k,
    }
    if arguments.scenario:
        env, others, steer = _of_scenarios(arguments, met, adapt, options)
        names = [stage.label for stage in env.stages]
    else:
        given = stages_given(arguments, config) or config.evaluation.stages[-1:]
        changed: Any = changes or {}
        stages = [dataclasses.replace(stage, **changed) for stage in given]
        index = torch.arange(len(stages)).repeat_interleave(arguments.episodes)
        env, others = kind(len(index), stages=stages, config=env_config, **options), []
        env.set_stage(index)
        steer = [[POLICY] * env.robots for _ in index]
        if arguments.traffic:
            others = traffic_in(env, traffic_for(arguments, agent, config))
            name = traffic_name(arguments)
            steer = [[name if other else POLICY for other in row] for row in others[0][0].tolist()]
        names = kind.labels_of(stages)
    labels = [name for name in names for _ in range(arguments.episodes)]
    guarded = None
    if shield is not None:
        config = dataclasses.replace(config, env=env_config)
        if arguments.scenario:
            config = settings_in(config, scenarios_given(arguments))
        guarded = shield_agent(agent, config, shield, agent.act)

    def act(seen: Any) -> torch.Tensor:
        return steered(guarded or agent.act, others, seen, env.alive)

    return SteeredWorlds(env, act, labels, steer, bool(arguments.scenario), guarded)


def _of_scenarios(
    arguments: argparse.Namespace, config: EnvConfig, adapt: Callable[[Any], Any], options: dict
) -> tuple[MarineNavEnv, list[tuple[torch.Tensor, Policy]], list[list[str]]]:
    """Return the worlds of scenarios, robots and what steers them, and the names of it [W][R]."""
    scenarios = scenarios_given(arguments)
    groups = grouped(scenarios, lambda scenario: adapt(scenario.env_config(config)))
    if len(groups) > 1:
        remedy = "name one of its scenarios"
        if Path(arguments.scenario).is_file():
            remedy = "put one of its scenarios into a file of its own"
        raise ConfigError(
            f"scenario is {arguments.scenario!r}, in which disturbances differ: {remedy}"
        )
    index = torch.arange(len(scenarios)).repeat_interleave(arguments.episodes)
    env, others = make_worlds(scenarios, index, next(iter(groups)), **options)
    named = [[vessel.steer for vessel in scenario.vessels] for scenario in scenarios]
    full = [row + [POLICY] * (env.robots - len(row)) for row in named]
    return env, others, [full[scenario] for scenario in index.tolist()]


def long_episodes(config: Any, limit: int) -> Any:
    """Return an environment whose episodes continue after a collision, for so many decisions."""
    whole = {"stop_on_collision": False, "stop_on_end": False}
    episode = dataclasses.replace(config.episode, max_steps=limit, **whole)
    return dataclasses.replace(config, episode=episode)
