"""A learner whose replay keeps what a teacher would do, wherever the learning actor leads."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from train_RL_agents.agents.dagger import DAgger
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.baselines.registry import Baseline, let_steer
from train_RL_agents.evaluation.scenarios.files import find_scenarios
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import settings_in, shield_agent
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.training.replay_learner import Choice, ReplayLearner

Teacher = Callable[[Any], Tensor]
"""From an observation `[W, R, ...]` to actions `[W, R, A]` in [-1, 1]."""


class ImitationLearner(ReplayLearner):
    """Collects with the learning actor, and keeps what the teacher would do.

    Args:
        config: all settings, of DAgger.
        device: where everything lives.
        processes: the processes that train together.

    Raises:
        CheckpointError: there is no such teacher.
        ConfigError: as for `ReplayLearner`; or the teacher cannot teach here.
    """

    agent: DAgger

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        super().__init__(config, device, processes)
        self.teacher = teacher_of(config, device)

    def _choose(self, observation: Any) -> Choice:
        asked = self.teacher(observation).to(observation[0].dtype)  # [W, R, A]
        return Choice(self.policy.explore(observation, instead=asked), asked)


def teacher_of(config: TrainConfig, device: torch.device) -> Teacher:
    """Load the teacher of a run, behind its shield if it has one.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: none is named; or it is of another task or number of frames, or cannot
            steer the vessel; or its discrete actions are other ones; or the shield cannot guard it.
    """
    settings: Any = config.algorithm
    where = f"algorithm.teacher is {settings.teacher!r}"
    if not settings.teacher:
        raise ConfigError(f"{where}: name the policy to imitate, such as pretrained/sac_rules")
    try:
        agent, own = load_policy(settings.teacher, device)
    except CheckpointError as error:
        raise CheckpointError(f"{where}: {error}") from error
    if (own.task, own.stack_k) != (config.task, config.stack_k):
        raise ConfigError(
            f"{where}, a policy of task {own.task!r} with stack_k {own.stack_k}: give one of task "
            f"{config.task!r} with stack_k {config.stack_k}"
        )
    if agent.discrete and not isinstance(config.env.vessel, VesselConfig):
        raise ConfigError(
            f"{where}, whose actions are choices of no thrust rates: give a teacher with "
            "continuous actions"
        )
    if isinstance(agent, Baseline):
        let_steer(agent, config.env.vessel)
    act: Teacher = functools.partial(agent.act, mean=True)
    if settings.guarded:
        try:
            act = shield_agent(agent, _guarded_in(config), settings.shield, act)
        except ConfigError as error:
            raise ConfigError(
                f"{where}, which cannot be guarded ({error}): give algorithm.guarded=false, "
                "another teacher, or other scenarios.set where that is named"
            ) from error
    if not agent.discrete:
        return act
    actions = continuous_actions(config.env.vessel)
    if not torch.equal(actions, continuous_actions(own.env.vessel)):
        raise ConfigError(
            f"{where}, whose discrete actions are other shares of the largest rate than those of "
            "env.vessel: give its left_thrust_rates, right_thrust_rates and max_thrust_rate, or a "
            "teacher with continuous actions"
        )
    return functools.partial(_of_index, act, actions.to(device))


def _guarded_in(config: TrainConfig) -> TrainConfig:
    """Return settings whose shield knows the buoys of the scenarios among which a run trains."""
    given = config.scenarios
    return settings_in(config, find_scenarios(given.set)) if given.share else config


def _of_index(act: Teacher, actions: Tensor, observation: Observation) -> Tensor:
    return actions[act(observation)]


def continuous_actions(vessel: VesselConfig) -> Tensor:
    """Return the discrete actions of a vessel with thrusters as continuous ones, `[indices, 2]`."""
    return torch.tensor(vessel.discrete_thrust_rates) / vessel.max_thrust_rate
