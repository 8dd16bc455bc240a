"""What sections of a run's settings say together: hulls while collecting, and how many updates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from marinenav_env.envs.make import VESSEL_TASKS

if TYPE_CHECKING:
    from train_RL_agents.agents.ppo import PPOConfig
    from train_RL_agents.config.schema import TrainConfig

MOST_UPDATES = 100_000
"""Updates after one decision of all worlds."""


def check_larger_hulls(config: TrainConfig) -> None:
    """Refuse hulls that are larger while collecting where there are none, or no room for them.

    Raises:
        ConfigError: names the section `curriculum`, or `env.reward.fringe`.
    """
    margin, fringe = config.curriculum.hull_margin, config.curriculum.fringe
    for name, metres in {"hull_margin": margin, "fringe": fringe}.items():
        config.require(
            not metres or config.task in VESSEL_TASKS,
            f"curriculum.{name}",
            f"{config.task} has no vessels; give 0",
        )
    if not (margin or fringe):
        return
    config.require(
        not (fringe and config.env.reward.fringe),
        "env.reward.fringe",
        f"curriculum.fringe {fringe:g} takes its place while collecting; give one",
    )
    needed = 2.0 * (config.env.vessel.radius + margin) + fringe
    config.require(
        config.env.scenario.clear_radius >= needed,
        "curriculum.fringe" if fringe else "curriculum.hull_margin",
        f"robots would start inside each other while collecting, with hulls {margin:g} m "
        f"and a fringe {fringe:g} m larger; lower them, or give "
        f"env.scenario.clear_radius {needed:.2f} or more",
    )


def check_replay(config: TrainConfig) -> None:
    """Refuse sizes that leave nothing to draw from a replay.

    Raises:
        ConfigError: names the section `updates`.
    """
    capacity = config.replay.capacity
    for name in ("warmup_transitions", "batch_size"):
        config.require(
            getattr(config.updates, name) <= capacity,
            f"updates.{name}",
            f"lower it, or raise replay.capacity {capacity}, which is less",
        )
    _check_updates(config, 1)


def check_rounds(config: TrainConfig, processes: int = 1) -> None:
    """Refuse a run that ends before its actor has learned from a round of decisions.

    Args:
        config: all settings, of PPO.
        processes: how many train together, each in `worlds` worlds of its own.

    Raises:
        ConfigError: names `total_steps`, or `updates.samples_per_insert`.
    """
    settings = cast("PPOConfig", config.algorithm)
    turns, worlds = settings.turns, config.worlds * processes
    _check_updates(config, turns)
    robots = min(stage.robots for stage in config.curriculum.stages)
    warming = math.ceil(config.updates.warmup_transitions / (config.worlds * robots * turns))
    rounds = max(warming, 1) + settings.settling_rounds  # the warm-up may end within a round
    config.require(
        config.total_steps >= worlds * turns * rounds,
        "total_steps",
        f"{rounds} rounds of {turns} decisions of {worlds} worlds take {worlds * turns * rounds}, "
        "and before that the actor learns nothing; raise it, or lower worlds, algorithm.turns, "
        "algorithm.settling_rounds or updates.warmup_transitions",
    )


def _check_updates(config: TrainConfig, decisions: int) -> None:
    """Refuse more updates than a run should do before it can be stopped."""
    robots = config.worlds * max(stage.robots for stage in config.curriculum.stages)
    stored = decisions * robots * config.stored_share
    updates = stored * config.updates.samples_per_insert / config.updates.batch_size
    config.require(
        updates <= MOST_UPDATES,
        "updates.samples_per_insert",
        f"{decisions} decisions of {config.worlds} worlds would take {updates:.0f} updates at "
        f"once, and only then a run can be stopped; lower it to at most {MOST_UPDATES} updates",
    )
