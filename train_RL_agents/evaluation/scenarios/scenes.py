"""Scenarios as the simulator places them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenes import Scene, SceneStage
from train_RL_agents.evaluation.scenarios.schema import Scenario


def scene_of(scenario: Scenario) -> Scene:
    """Return how the worlds of a scenario begin."""
    return Scene(
        vessels=tuple(
            (*vessel.start, *vessel.goal, math.radians(vessel.heading_deg % 360.0), vessel.speed)
            for vessel in scenario.vessels
        ),
        buoys=tuple((*buoy.position, buoy.radius) for buoy in scenario.buoys),
        vortices=tuple((*vortex.position, vortex.circulation) for vortex in scenario.vortices),
        move=scenario.offset_m,
        turn=math.radians(scenario.offset_deg),
    )


def stages_of(scenarios: Sequence[Scenario]) -> tuple[SceneStage, ...]:
    """Return a stage for each scenario."""
    return tuple(SceneStage(scenario.name, (scene_of(scenario),)) for scenario in scenarios)


def place_scenarios(env: MarineNavEnv, scenario_of_world: torch.Tensor) -> None:
    """Set every world to its scenario, with offsets and disturbances of its own.

    Args:
        env: with `stages_of` the scenarios.
        scenario_of_world: [W] int64.
    """
    env.set_stage(scenario_of_world.to(env.device))
    env.reset_into(env.make_buffers())
    env.state.world_field("episode").zero_()  # on which perception noise depends
