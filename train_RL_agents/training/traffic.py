"""Vessels among which a policy learns, and which it does not steer: they mind nobody, or less."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.fields import ConfigError
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.baselines.registry import BASELINES, HULL, unknown_of
from train_RL_agents.evaluation.episodes import Policy
from train_RL_agents.evaluation.scenarios.worlds import steering_policies


class Traffic:
    """Every other vessel of some worlds, steered by a controller.

    Args:
        robots: [W, R] bool, those vessels.
        policy: steers them, from observations [W, R, ...] to actions.
    """

    def __init__(self, robots: Tensor, policy: Policy) -> None:
        self.robots, self.own, self._policy = robots, ~robots, policy

    def steer(self, action: Tensor, observation: Any) -> Tensor:
        """Return actions [W, R, ...] with those of the controller in the place of its vessels."""
        chosen = self.robots.view(*self.robots.shape, *(1,) * (action.dim() - 2))
        return torch.where(chosen, self._policy(observation).to(action.dtype), action)

    def of_copies(self, copies: int) -> Traffic:
        """Return the traffic of so many copies of the worlds, one after another."""
        return Traffic(self.robots.repeat(copies, 1), self._policy)


def traffic_of(config: TrainConfig, env: KernelEnv, processes: Processes) -> Traffic | None:
    """Return the traffic that a run's settings ask for; None for none.

    Which vessels of which worlds it has is the same in every run of as many worlds.

    Raises:
        ConfigError: the task has none, or there is no such controller, or it cannot steer the
            vessel.
    """
    given = config.traffic
    if not given.share:
        return None
    if not isinstance(config.env, EnvConfig):
        raise ConfigError(
            f"traffic.share is {given.share}: its controllers steer vessels of the task 'marine', "
            f"not of {config.task!r}; give 0"
        )
    policies = steering_policies(config.env.vessel, env.discrete, env.device)
    if given.steer not in policies:
        raise ConfigError(f"traffic.steer is {given.steer!r}: choose one of {', '.join(policies)}")
    if given.steer in BASELINES and (unknown := unknown_of(config.env.vessel)):
        raise ConfigError(
            f"traffic.steer is {given.steer!r}: it knows the motion of {HULL.name!r} only, and "
            f"{unknown}; give traffic.share=0"
        )
    robots = steered_robots(given.share, config.worlds * processes.size, env.robots)
    first = processes.rank * config.worlds
    own_worlds = robots[first : first + config.worlds].to(env.device)
    return Traffic(own_worlds, policies[given.steer])


def steered_robots(share: float, worlds: int, robots: int) -> Tensor:
    """Return [worlds, robots] bool: every other robot of a share of the worlds.

    The worlds are a fixed random choice, since stages and named scenarios come in turns of any
    period; whether the first robot is one of them, too.
    """
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(worlds, generator=generator) < round(share * worlds)
    first = torch.randint(2, (worlds, 1), generator=generator)
    return chosen.unsqueeze(1) & ((torch.arange(robots) + first) % 2 == 1)
