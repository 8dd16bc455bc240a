"""Vessels among which a policy learns, and which it does not steer: they mind nobody, or less."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.scenes import AnyStage, SceneStage
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.steering import (
    Policy,
    traffic_policy,
    traffic_robots,
    with_actions_of,
)

ALL = slice(None)
"""Of the worlds."""


class Traffic:
    """Every other vessel of some worlds, steered by a controller.

    Args:
        robots: [W, R] bool, those vessels.
        policy: steers them, from observations [W, R, ...] to actions.
    """

    def __init__(self, robots: Tensor, policy: Policy) -> None:
        self.robots, self.own, self._policy = robots, ~robots, policy

    def steer(self, action: Tensor, observation: Any, worlds: slice = ALL) -> Tensor:
        """Return actions [W, R, ...] with those of the controller in the place of its vessels.

        Args:
            action: the policy's.
            observation: of all robots.
            worlds: those that both are of.
        """
        return with_actions_of(self._policy, self.robots[worlds], action, observation)

    def of_copies(self, copies: int) -> Traffic:
        """Return the traffic of so many copies of the worlds, one after another."""
        return Traffic(self.robots.repeat(copies, 1), self._policy)


def traffic_of(config: TrainConfig, env: KernelEnv, processes: Processes) -> Traffic | None:
    """Return the traffic that a run's settings ask for; None for none.

    Which vessels of which worlds it has is the same in every run of as many worlds.

    Raises:
        ConfigError: as `traffic_policy`; or a stage has one robot, or there are too few worlds.
    """
    given, worlds = config.traffic, config.worlds * processes.size
    if not given.share:
        return None
    for stage in env.stages:
        several = least_robots(stage) > 1
        remedy = f"in {stage.label!r} one robot is alone; give 0, or leave that out"
        config.require(several, "traffic.share", remedy)
    least = round(given.share * worlds) > 0
    config.require(least, "traffic.share", f"it is less than one of {worlds} worlds; give more")
    policy = traffic_policy(given.steer, config.env, discrete=env.discrete, device=env.device)
    robots = traffic_robots(given.share, worlds, env.robots)
    first = processes.rank * config.worlds
    return Traffic(robots[first : first + config.worlds].to(env.device), policy)


def least_robots(stage: AnyStage) -> int:
    """Return the fewest robots that an episode of a stage asks for."""
    if isinstance(stage, SceneStage):
        return min(len(scene.vessels) for scene in stage.scenes)
    return stage.robots
