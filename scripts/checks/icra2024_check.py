"""Plays a policy in the very worlds of ICRA 2024's published experiment, as often as asked.

``python -m scripts.checks.icra2024_check pretrained/icra2024_dqn`` draws the 100 worlds of each row
with NumPy's generator, seed 3 and the order of draws of the published simulator; a test compares
such worlds with recorded ones. The worlds do not depend on what is played in them. So success here
differs from success there by the policy's own draws alone, if the task is the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marinenav_env.envs.icra2024 import ICRA2024_EXPERIMENTS, Icra2024Config, Icra2024Env
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import Slots
from marinenav_env.files import write_json
from marinenav_env.tracks import place_worlds
from scripts.bench.machine import record_head
from train_RL_agents.commands.parser import Parser, output_file
from train_RL_agents.evaluation.episodes import Batch, evaluation_config
from train_RL_agents.policies.load import load_policy

CPU = torch.device("cpu")


class World(NamedTuple):
    """What one reset draws: rows of start, heading, speed and goal, of vortices and of buoys."""

    robots: list[tuple[float, ...]]  # x, y (m), heading (rad), speed (m/s), goal x, goal y (m)
    vortices: list[tuple[float, float, float]]  # x, y (m), circulation (m^2/s)
    buoys: list[tuple[float, float, float]]  # x, y, radius (m)


def draw_world(random: np.random.RandomState, stage: Stage) -> World:
    """Draw the world of robots, vortices and buoys that the published simulator draws next."""
    config = Icra2024Config()
    scenario, current = config.scenario, config.current
    world, size = World([], [], []), np.array([scenario.width, scenario.height])

    def clear(point: np.ndarray, metres: float) -> bool:
        ends = [end for row in world.robots for end in (row[:2], row[4:])]
        return all(np.linalg.norm(point - end) >= metres for end in ends)

    def fits_vortex(here: np.ndarray, circulation: float) -> bool:
        r = current.core_radius
        inside = ((here >= r) & (here <= size - r)).all()
        if not inside or not clear(here, r + scenario.clear_radius):
            return False
        for *other_place, other in world.vortices:
            d = np.linalg.norm(here - other_place)
            weak, strong = sorted((abs(circulation) / (2 * np.pi), abs(other) / (2 * np.pi)))
            if other * circulation > 0:
                if d < (weak + strong) / current.same_sense_speed:
                    return False
            elif strong / (d - 2 * r) > current.opposite_ratio * weak / r:  # also where d < 2 r
                return False
        return True

    def fits_buoy(here: np.ndarray, radius: float) -> bool:
        apart = [(place, current.core_radius) for *place, _ in world.vortices]
        apart += [(place, other) for *place, other in world.buoys]
        return clear(here, radius + scenario.clear_radius) and all(
            np.linalg.norm(here - place) > radius + other for place, other in apart
        )

    low, high = np.full(2, scenario.start_margin), size - scenario.start_margin
    for _ in range(scenario.placement_tries):
        start, goal = random.uniform(low, high), random.uniform(low, high)
        others = [(start, row[:2]) for row in world.robots]
        others += [(goal, row[4:]) for row in world.robots]
        apart = all(np.linalg.norm(own - other) > scenario.clear_radius for own, other in others)
        if apart and np.linalg.norm(goal - start) >= stage.min_distance_m:
            heading = random.uniform(0.0, 2 * np.pi)
            world.robots.append((*start, heading, random.uniform(0.0, 2.0), *goal))
        if len(world.robots) == stage.robots:
            break
    for _ in range(scenario.placement_tries):
        place, positive = random.uniform(np.zeros(2), size), random.binomial(1, 0.5)
        speed = random.uniform(current.edge_speed_min, current.edge_speed_max)
        circulation = (1 if positive else -1) * 2 * np.pi * current.core_radius * speed
        if fits_vortex(place, circulation):
            world.vortices.append((*place, circulation))
        if len(world.vortices) == stage.vortices:
            break
    low, high = np.full(2, scenario.buoy_margin), size - scenario.buoy_margin
    for _ in range(scenario.placement_tries):
        place = random.uniform(low, high)
        radius = random.uniform(scenario.buoy_radius_min, scenario.buoy_radius_max)
        if fits_buoy(place, radius):
            world.buoys.append((*place, radius))
        if len(world.buoys) == stage.buoys:
            break
    return world


def placed(worlds: Sequence[World], stage: Stage, *, discrete: bool, stack_k: int) -> Icra2024Env:
    """Return an environment with these worlds, each at the start of an evaluation's episode."""
    env = Icra2024Env(
        len(worlds),
        stages=(stage,),
        slots=Slots(stage.robots, stage.buoys, stage.vortices),
        config=evaluation_config(Icra2024Config()),
        discrete=discrete,
        stack_k=stack_k,
    )
    fields = env.kernel_spec.fields("robot")
    drawn = ("x", "y", "heading", "speed", "vx", "vy", "goal_x", "goal_y")
    columns = [fields.index(name) for name in drawn]
    robots = torch.zeros(len(worlds), stage.robots, len(fields), dtype=torch.float64)
    alive = torch.zeros(len(worlds), stage.robots, dtype=torch.bool)
    buoys = torch.zeros(len(worlds), stage.buoys, 3)
    vortices = torch.zeros(len(worlds), stage.vortices, 3)
    for w, world in enumerate(worlds):
        alive[w, : len(world.robots)] = True
        for rows, given in ((buoys, world.buoys), (vortices, world.vortices)):
            rows[w, : len(given)] = torch.tensor(given).reshape(-1, 3)
        for r, (x, y, heading, speed, goal_x, goal_y) in enumerate(world.robots):
            through_water = speed * np.cos(heading), speed * np.sin(heading)  # as published
            numbers = [x, y, heading, speed, *through_water, goal_x, goal_y]
            robots[w, r, columns] = torch.tensor(numbers, dtype=torch.float64)
    place_worlds(env, robots, alive, buoys, vortices)
    return env


def play(options: argparse.Namespace) -> list[dict[str, object]]:
    """Return a row of the record for every row of the experiment; print it too."""
    agent, config = load_policy(options.policy)
    if options.adaptive_cvar:
        agent.act_under(adaptive_cvar=True)
    random, rows = np.random.RandomState(options.seed), []
    for stage in ICRA2024_EXPERIMENTS:
        worlds = [draw_world(random, stage) for _ in range(options.worlds)]
        env = placed(worlds, stage, discrete=agent.discrete, stack_k=config.stack_k)
        start, shares = env.state_dict(), []
        for repeat in range(options.repeats):
            env.load_state_dict(start)
            Batch(env, seed=repeat, placed=True).play(agent.act)
            success: Tensor = env.outcome["success"]
            shares.append(success.double().mean().item())
        mean = float(np.mean(shares))
        rows.append({"robots": stage.robots, "success": mean, "success_of_repeats": shares})
        print(
            f"{stage.robots} robots: {mean:.3f}, {min(shares):.2f} to {max(shares):.2f}", flush=True
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print and write the record."""
    parser = Parser(description=__doc__.partition("\n")[0])
    parser.add_argument("policy", help="a policy's file or folder")
    parser.add_argument(
        "--adaptive-cvar", action="store_true", help="adapt the risk level to the closest distance"
    )
    parser.add_argument("--seed", type=int, default=3, help="of the worlds (default: published)")
    parser.add_argument("--worlds", type=int, default=100, help="of a row (default: published)")
    parser.add_argument(
        "--repeats", type=int, default=10, help="play all so many times (default %(default)s)"
    )
    parser.add_argument(
        "--json", type=output_file(), metavar="FILE", help="write a record to this file"
    )
    options = parser.parse_args(arguments)
    command = [*("-m", "scripts.checks.icra2024_check"), *(arguments or sys.argv[1:])]
    rows = play(options)
    if options.json is not None:
        write_json(options.json, {**record_head(CPU), "command": command, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
