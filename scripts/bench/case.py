"""What a row of the benchmark measures, and for how long."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from marinenav_env.config import TaskConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import plain
from scripts.bench.disturbances import env_of
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.commands.options import env_with
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.config.worlds import CurriculumConfig

RESETS = ("none", "natural", "every")


class Effort(NamedTuple):
    """How long to measure: repeats of a row, and the length of one [s]."""

    repeats: int
    seconds: float


@dataclass(frozen=True)
class Case:
    """What a row measures.

    Attributes:
        mode: step, inference or train.
        device: where.
        worlds: W.
        robots: of every world.
        buoys: of every world.
        vortices: of every world.
        min_distance_m: from start to goal [m].
        settings: ``env.KEY=VALUE`` of the worlds.
        disturbances: on top of them, one of `scripts.bench.disturbances.DISTURBANCES`.
        resets: none, natural (worlds whose episode has ended) or every (all worlds, every step).
        agent: of inference and training; of inference also what `load_policy` takes.
        shield: settings of the shield around a loaded policy, None for no shield.
        task: the environment.
        samples_per_insert: gradient samples per stored robot transition.
        batch_size: of an update, 0 without updates.
        skip_reset_if_empty: as in `MarineNavEnv`.
        turns: decisions in one launch.
    """

    mode: str
    device: torch.device
    worlds: int
    robots: int = 5
    buoys: int = 4
    vortices: int = 0
    min_distance_m: float = 40.0
    settings: tuple[str, ...] = ()
    disturbances: str = "off"
    resets: str = "natural"
    agent: str | None = None
    shield: ShieldConfig | None = None
    task: str = "marine"
    samples_per_insert: float | None = None
    batch_size: int = 0
    skip_reset_if_empty: bool = True
    turns: int = 1

    @property
    def stage(self) -> Stage:
        """The scenario of every world."""
        return Stage(self.robots, self.vortices, self.buoys, self.min_distance_m)

    @property
    def env(self) -> TaskConfig:
        """The environment of the simulator alone and of policies."""
        return env_of(self.task, self.settings, self.disturbances)

    def agent_config(self, overrides: Sequence[str] = ()) -> TrainConfig:
        """Return the agent's own settings, with overrides, in the worlds of the case."""
        config, _, _ = load_config(task=self.task, agent=self.agent, overrides=overrides)
        return dataclasses.replace(
            config,
            env=env_with(self.settings, self.task, config.env),
            curriculum=CurriculumConfig(stages=(self.stage,)),
        )


def describe(case: Case) -> dict[str, Any]:
    """Return what a row says of its case."""
    return {
        "mode": case.mode,
        "task": case.task,
        "agent": case.agent,
        "shield": None if case.shield is None else plain(case.shield),
        "device": case.device.type,
        "worlds": case.worlds,
        "robots": case.robots,
        "buoys": case.buoys,
        "vortices": case.vortices,
        "settings": list(case.settings),
        "disturbances": case.disturbances,
        "resets": case.resets,
        "turns": case.turns,
    }
