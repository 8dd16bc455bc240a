"""Whether a stage's scenarios can be placed: some are, on the CPU, when an environment is made."""

from __future__ import annotations

import functools

import numpy as np
import torch

from marinenav_env.config import (
    CurrentConfig,
    EnvConfig,
    PerceptionConfig,
    ScenarioConfig,
)
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.scenes import stage_tables
from marinenav_env.envs.state import SPEC, Slots, noise_table
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops
from marinenav_env.kernel.state import Context, State, StepBuffers
from marinenav_env.vessels import VesselConfig

TRIAL_WORLDS = 256
LEAST_SHARE = 0.5
"""Share of the trial worlds that have to hold all robots; a fuller map still trains and counts."""


def check_placement(name: str, stage: Stage, config: EnvConfig) -> None:
    """Check that a stage's robots, vortices and buoys find room in the map.

    As published, what finds no room within `placement_tries` is left out of a world. That is right
    for now and then; here a stage is refused if most worlds lack a robot, if a world lacks all of
    them (its episode would end without success, collision or time-out), or if no world holds all
    of its vortices or buoys.

    Args:
        name: of the stage, for the message.
        stage: the setting.
        config: its map, clearances and currents.

    Raises:
        ConfigError: names the stage, what was placed on average, and the remedy.
    """
    rows = place_trial_worlds(stage, config.scenario, config.current)
    for kind, placed in zip(("robots", "vortices", "buoys"), rows, strict=True):
        number = getattr(stage, kind)
        share = (placed == number).mean()
        if share >= LEAST_SHARE and placed.min() > 0:
            continue
        if kind != "robots" and share > 0:
            continue
        shorter = "a shorter min_distance_m, " if kind == "robots" else ""
        raise ConfigError(
            f"{name} = {stage}: {number} {kind} do not fit the map, {placed.mean():.1f} were placed"
            f" on average, all of them in {share:.0%} of {TRIAL_WORLDS} trial worlds and none in"
            f" {(placed == 0).sum()}; use fewer"
            f" {kind}, {shorter}a larger scenario.width/height or a smaller scenario.clear_radius"
        )


@functools.lru_cache(maxsize=256)
def place_trial_worlds(
    stage: Stage, scenario: ScenarioConfig, current: CurrentConfig
) -> np.ndarray:
    """Place worlds of one stage.

    Returns:
        [3, TRIAL_WORLDS] int32: how many robots, vortices and buoys each world holds.
    """
    config = EnvConfig(
        vessel=VesselConfig(radius=0.5 * scenario.clear_radius),  # any that the map allows
        perception=PerceptionConfig(range=scenario.clear_radius).noiseless(),
        scenario=scenario,
        current=current,
    )
    slots = Slots(stage.robots, stage.buoys, stage.vortices)
    state = State(
        SPEC.name,
        {**slots._asdict(), "stages": 1},
        {**stage_tables((stage,), *slots), **noise_table(config)},
        Context(SPEC.pack(config.named_numbers()), 0, 0),
        worlds=TRIAL_WORLDS,
        statistics=False,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    alive = torch.zeros(TRIAL_WORLDS, stage.robots, dtype=torch.bool)
    out = StepBuffers.allocate(SPEC.name, Observation, alive, 1, dtype=torch.float32)
    ops.reset(state, None, out, skip_if_empty=False)
    rows = [state.world_field(name)[:TRIAL_WORLDS] for name in ("robots", "vortices", "buoys")]
    return torch.stack(rows).numpy()
