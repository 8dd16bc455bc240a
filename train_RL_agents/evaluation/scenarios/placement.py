"""Worlds of the simulator set to scenarios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.state import ROBOT_FIELDS, STATUS_ACTIVE
from marinenav_env.kernel.state import WORLD_RUNNING
from train_RL_agents.evaluation.scenarios.schema import Scenario, Vessel, thrust_for


def place_scenarios(env: MarineNavEnv, scenarios: Sequence[Scenario], seed: int) -> None:
    """Set world w to the w-th scenario, with offsets of its own.

    Args:
        env: with as many worlds, and room for what the scenarios hold.
        scenarios: [W].
        seed: of the offsets.
    """
    slots, worlds = env.slots, env.worlds
    robot = np.zeros((len(ROBOT_FIELDS), slots.robots, worlds))
    buoy, vortex = np.zeros((3, slots.buoys, worlds)), np.zeros((3, slots.vortices, worlds))
    active = np.zeros((slots.robots, worlds), dtype=np.int32)
    for index, scenario in enumerate(scenarios):
        generator = np.random.default_rng((seed, index))
        for i, item in enumerate(scenario.buoys):
            buoy[:, i, index] = (*item.position, item.radius)
        for i, item in enumerate(scenario.vortices):
            vortex[:, i, index] = (*item.position, item.circulation)
        for i, vessel in enumerate(scenario.vessels):
            reach = (scenario.offset_m, scenario.offset_m, scenario.offset_deg)
            moved = generator.uniform(-1.0, 1.0, 3) * reach
            state = _state(vessel, moved, vortex[:, :, index], env.config)
            for name, value in state.items():
                robot[ROBOT_FIELDS.index(name), i, index] = value
            active[i, index] = STATUS_ACTIVE
    state = env.state
    for target, source in (
        (state.robot, robot),
        (state.buoy, buoy),
        (state.vortex, vortex),
        (state.status, active),
    ):
        target[..., :worlds].copy_(torch.from_numpy(source))
    counts = {
        "robots": active.astype(bool).sum(0),
        "buoys": [len(scenario.buoys) for scenario in scenarios],
        "vortices": [len(scenario.vortices) for scenario in scenarios],
        "end": [WORLD_RUNNING] * worlds,
    }
    for name, values in counts.items():
        state.world_field(name)[:worlds].copy_(torch.as_tensor(values))
    env.alive.copy_(torch.from_numpy(active.T.astype(bool)))


def _state(
    vessel: Vessel, moved: np.ndarray, vortices: np.ndarray, config: EnvConfig
) -> dict[str, float]:
    """Return the fields of a vessel at its start; [3] offsets in m, m, deg."""
    x, y = np.add(vessel.start, moved[:2])
    heading = np.radians(vessel.heading_deg + moved[2]) % (2.0 * np.pi)
    vx, vy = vessel.speed * np.cos(heading), vessel.speed * np.sin(heading)
    stream = current_at(x, y, vortices, config.current.core_radius)
    thrust = thrust_for(vessel.speed, config)
    return {
        **{"x": x, "y": y, "heading": heading, "vx_water": vx, "vy_water": vy},
        **{"vx": vx + stream[0], "vy": vy + stream[1]},
        **{"left_thrust": thrust, "right_thrust": thrust},
        **{"goal_x": vessel.goal[0], "goal_y": vessel.goal[1]},
    }


def current_at(x: float, y: float, vortices: np.ndarray, core_radius: float) -> np.ndarray:
    """Return the current [2] (m/s) of vortices [3, V] (docs/physics.md)."""
    north, east = vortices[0] - x, vortices[1] - y
    distance = np.hypot(north, east)
    reach = np.maximum(distance, core_radius)
    # Inside the core the speed falls to zero with the distance.
    rate = vortices[2] / (2.0 * np.pi * reach**2)
    return np.array((np.sum(-rate * east), np.sum(rate * north)))
