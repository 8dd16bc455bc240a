"""Worlds of the simulator set to scenarios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.state import ROBOT_FIELDS
from marinenav_env.kernel import ops
from marinenav_env.tracks import place_worlds
from train_RL_agents.evaluation.scenarios.schema import Scenario, Vessel, thrust_for

PLACE = [ROBOT_FIELDS.index(name) for name in ("x", "y")]
OVER_GROUND = [ROBOT_FIELDS.index(name) for name in ("vx", "vy")]


def place_scenarios(env: MarineNavEnv, scenarios: Sequence[Scenario], seed: int) -> None:
    """Set world w to the w-th scenario, with offsets of its own.

    Args:
        env: with as many worlds, and room for what the scenarios hold.
        scenarios: [W].
        seed: of the offsets.
    """
    slots, worlds = env.slots, env.worlds
    robot = torch.zeros(worlds, slots.robots, len(ROBOT_FIELDS), dtype=torch.float64)
    buoys = torch.zeros(worlds, slots.buoys, 3, dtype=torch.float64)
    vortices = torch.zeros(worlds, slots.vortices, 3, dtype=torch.float64)
    for index, scenario in enumerate(scenarios):
        generator = np.random.default_rng((seed, index))
        for i, buoy in enumerate(scenario.buoys):
            buoys[index, i] = torch.tensor((*buoy.position, buoy.radius))
        for i, vortex in enumerate(scenario.vortices):
            vortices[index, i] = torch.tensor((*vortex.position, vortex.circulation))
        reach = (scenario.offset_m, scenario.offset_m, scenario.offset_deg)
        for i, vessel in enumerate(scenario.vessels):
            moved = generator.uniform(-1.0, 1.0, 3) * reach
            for name, value in _state(vessel, moved, env.config).items():
                robot[index, i, ROBOT_FIELDS.index(name)] = value
    counts = torch.tensor([len(scenario.vessels) for scenario in scenarios])
    alive = torch.arange(slots.robots) < counts.unsqueeze(1)
    robot, alive, buoys, vortices = (
        rows.to(env.device) for rows in (robot, alive, buoys, vortices)
    )
    place_worlds(env, robot, alive, buoys, vortices)
    stream = ops.water(env.state, robot[..., PLACE].to(env.real_dtype).contiguous())
    robot[..., OVER_GROUND] += stream
    place_worlds(env, robot, alive, buoys, vortices)


def _state(vessel: Vessel, moved: np.ndarray, config: EnvConfig) -> dict[str, float]:
    """Return the fields of a vessel at its start in still water; [3] offsets in m, m, deg."""
    x, y = np.add(vessel.start, moved[:2])
    heading = np.radians(vessel.heading_deg + moved[2]) % (2.0 * np.pi)
    vx, vy = vessel.speed * np.cos(heading), vessel.speed * np.sin(heading)
    thrust = thrust_for(vessel.speed, config)
    return {
        **{"x": x, "y": y, "heading": heading},
        **{"vx_water": vx, "vy_water": vy, "vx": vx, "vy": vy},
        **{"left_thrust": thrust, "right_thrust": thrust},
        **{"goal_x": vessel.goal[0], "goal_y": vessel.goal[1]},
    }
