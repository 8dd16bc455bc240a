"""A shielded policy as an evaluation calls it, and how often its shield acted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError, plain
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import Actor
from train_RL_agents.evaluation.ensemble import Ensemble
from train_RL_agents.evaluation.scenarios.schema import Scenario
from train_RL_agents.policies.shield.shield import Shield

COUNTS = ("decisions", "unsafe", "changed", "no_safe_plan")


class Acting(nn.Module):
    """A function from observations to actions, as a module."""

    def __init__(self, act: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.act = act

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the actions."""
        return self.act(Observation(*observation))


class ShieldedPolicy:
    """A policy with its shield, called with an observation, that counts on the device.

    Attributes:
        counts: that it takes the robots whose decisions count, too.

    Args:
        act: the policy.
        env: of the vessel that acts.
        config: of the shield.
        discrete: whether the policy gives action indices.
        frames: decisions that the policy observes.
        device: where it acts.
    """

    counts: ClassVar[bool] = True

    def __init__(
        self,
        act: Callable[[Any], Tensor],
        env: EnvConfig,
        config: ShieldConfig,
        *,
        discrete: bool,
        frames: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        self.config = config
        guard = Shield(Acting(act), env, config, discrete=discrete, frames=frames)
        self.shield = guard.to(device)
        self._counts = torch.zeros(len(COUNTS), dtype=torch.int64, device=device)

    @torch.no_grad()
    def __call__(self, observation: Observation, acting: Tensor | None = None) -> Tensor:
        """Return the actions `[...]` or `[..., 2]` of an observation `[..., ...]`.

        Args:
            observation: of vessels; rows of those that are not there are zero.
            acting: `[...]` bool, whose decisions are taken and count; None for all, of whom those
                count that are not at their goals.
        """
        guarded = self.shield(tuple(observation), acting)
        goal, margin = observation[0][..., :2], self.config.margin_m
        under_way = acting
        if under_way is None:
            under_way = torch.linalg.vector_norm(goal, dim=-1) > self.shield.goal_distance
        changed = guarded.action != guarded.proposed
        changed = changed if self.shield.discrete else changed.any(-1)
        unsafe = guarded.predicted < margin
        flags = (under_way, unsafe, changed, unsafe & (guarded.clearance < margin))
        self._counts += torch.stack([(flag & under_way).sum() for flag in flags])
        return guarded.action

    def report(self) -> dict[str, Any]:
        """Return the settings and what was counted until now, as JSON values; it reads the device.

        ``decisions`` is their number, the others are shares of it: ``unsafe`` where the policy's
        own plan fell below the margin, ``changed`` where another action was taken, and
        ``no_safe_plan`` where the plan taken fell below it.
        """
        decisions, *others = self._counts.tolist()
        shares = (count / max(decisions, 1) for count in others)
        counted = dict(zip(COUNTS, (decisions, *shares), strict=True))
        return {"settings": plain(self.config), **counted}


def has_shield_inside(agent: Actor) -> bool:
    """Whether a policy is an export with a shield, or has one among its members."""
    members = agent.members if isinstance(agent, Ensemble) else (agent,)
    return any(getattr(getattr(member, "actor", None), "shielded", False) for member in members)


def shield_agent(
    agent: Actor,
    config: TrainConfig,
    shield: ShieldConfig,
    act: Callable[[Any], Tensor],
) -> ShieldedPolicy:
    """Return an agent's policy with a shield.

    Args:
        agent: of the marine environment.
        config: its settings.
        shield: settings of the shield.
        act: how the agent acts, such as its own `act`.

    Raises:
        ConfigError: the agent is of another task; its vessels can look as small as a buoy; buoys
            are to be hidden from it and it observes several decisions; or it is an export with a
            shield inside.
    """
    if has_shield_inside(agent):
        raise ConfigError("shield is given: the policy has one inside already, leave it out")
    env = check_guarded(config)
    return ShieldedPolicy(
        act,
        env,
        shield,
        discrete=agent.discrete,
        frames=config.stack_k,
        device=agent.device,
    )


def check_guarded(config: TrainConfig, where: str = "") -> EnvConfig:
    """Return the environment of a policy that a shield can guard.

    Args:
        config: of the policy.
        where: begins an error's text.

    Raises:
        ConfigError: it is of another task, or its vessels can look as small as a buoy.
    """
    if not isinstance(config.env, EnvConfig):
        raise ConfigError(f"task is {config.task!r}: the shield knows the vessels of 'marine' only")
    vessel, buoy = config.env.vessel, config.env.scenario.buoy_radius_max
    ratio = config.env.perception.radius_mean_ratio
    smallest = vessel.radius * (2.0 * ratio - 1.0)
    if smallest <= buoy:
        raise ConfigError(
            f"{where}vessel.radius is {vessel.radius:.2f}: with noise (perception.radius_mean_ratio"
            f" {ratio}) a vessel {vessel.name!r} looks as small as {smallest:.2f} m, and the shield"
            f" tells vessels from buoys of {buoy} m by their size; give smaller buoys or a larger"
            " ratio, or leave the shield out"
        )
    return config.env


def settings_in(config: TrainConfig, scenarios: Sequence[Scenario]) -> TrainConfig:
    """Return settings whose shield knows the largest buoy of some scenarios.

    Nothing else of a scenario enters a shield's plans, which are of calm water and of a vessel as
    it is built.

    Args:
        config: of the policy.
        scenarios: in which it acts; each may have a sensor of its own.

    Raises:
        ConfigError: in one of them the shield cannot guard; names the scenario.
    """
    env = config.env
    if not isinstance(env, EnvConfig):
        return config
    radii = [buoy.radius for scenario in scenarios for buoy in scenario.buoys]
    largest = max([env.scenario.buoy_radius_max, *radii])
    placed = dataclasses.replace(env.scenario, buoy_radius_max=largest)
    env = dataclasses.replace(env, scenario=placed)
    for scenario in scenarios:
        played = dataclasses.replace(config, env=scenario.env_config(env))
        check_guarded(played, f"scenario {scenario.name!r}: ")
    return dataclasses.replace(config, env=env)


def describe_report(report: dict[str, Any]) -> str:
    """Return `ShieldedPolicy.report` in words."""
    return (
        "shield: {decisions} decisions, {unsafe:.2%} unsafe as the policy planned, {changed:.2%} "
        "changed, {no_safe_plan:.2%} without a safe plan"
    ).format(**report)
