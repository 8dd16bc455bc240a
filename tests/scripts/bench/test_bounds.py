"""The bounds that rows are compared with."""

import dataclasses

import pytest
import torch

from marinenav_env.envs.marine import MarineNavEnv
from scripts.bench.bounds import (
    OBSERVATION,
    Work,
    bound_of,
    product_rate_of,
    products_of,
    work_of,
    work_of_robot_step,
)
from scripts.bench.case import Case
from scripts.bench.machine import Peaks
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config

CPU = torch.device("cpu")


def test_work_matches_the_layout():
    """Per robot: 20 + 20 + 37 + 1 numbers, an action, 4 flags; per world 7 + 12 and 3 flags."""
    work = work_of_robot_step(robots=5, buoys=4, vortices=0)
    assert work.bytes == pytest.approx(4 * 78 + 8 + 4 + (4 * 19 + 3) / 5)
    with_vortices = work_of_robot_step(robots=5, buoys=4, vortices=4)
    assert with_vortices.bytes - work.bytes == pytest.approx(4 * 3 * 4 / 5)
    assert with_vortices.operations > work.operations


def test_observation_is_the_simulators():
    obs = MarineNavEnv(1).make_buffers().obs
    assert sum(field[0, 0].numel() for field in obs) == OBSERVATION


def test_bound_is_the_tighter_one():
    work = Work(bytes=100.0, operations=1000.0)
    bound = bound_of(work, Peaks(bytes_per_s=1e6, operations_per_s=1e6))
    assert (bound["bound_by_memory"], bound["bound_by_arithmetic"]) == (1e4, 1e3)
    assert bound["bound"] == 1e3
    assert bound_of(work, Peaks(1e6, None))["bound"] == 1e4
    assert bound_of(Work(100.0, None), Peaks(1e6, 1.0))["bound"] == 1e4
    with_products = bound_of(work, Peaks(1e6, 1e6), products=2000.0, product_rate=1e6)
    assert with_products["bound"] == pytest.approx(1 / (1e-3 + 2e-3))


def test_tensors_of_another_task_are_counted():
    """Robot 6 numbers, status, bad, world 6: both ways; action, observation, 1 + 7 results."""
    case = Case("step", CPU, 4096, 1, 0, min_distance_m=0.0, task="cartpole", turns=16)
    state, others = 2 * 4 * (6 + 1 + 1 + 6), 8 + 4 * 4 + 4 + 7
    assert work_of(case) == Work(state / 16 + others, None)
    assert work_of(dataclasses.replace(case, turns=1)) == Work(state + others, None)


def test_the_frames_that_a_policy_observes_are_counted():
    case = Case("inference", CPU, 64, 7, 10, 8, agent="DQN", task="icra2024")
    one_frame = work_of(dataclasses.replace(case, mode="step", agent=None))
    later_frames = 4 * 7 * (4 + 5 * 3 + 5 * 4)  # bytes
    assert work_of(case).bytes == pytest.approx(one_frame.bytes + later_frames)


def test_a_deployed_policy_multiplies_in_float32():
    case, rates = Case("inference", torch.device("cpu"), 4), {"float32": 1.0, "bfloat16": 9.0}
    assert product_rate_of(case, rates) == 1.0
    assert product_rate_of(dataclasses.replace(case, mode="train"), rates) == 9.0


def test_products_of_a_policy_and_its_updates():
    case = Case("inference", CPU, 64, 1, 0, min_distance_m=0.0, agent="DQN", task="cartpole")
    config = load_config(task="cartpole", agent="DQN")[0]
    network = build_agent(config, CPU).policy_network
    products = 2 * sum(p.numel() for p in network.parameters() if p.dim() == 2)
    assert products_of(case, {}) == products > 0
    assert products_of(dataclasses.replace(case, agent=None), {}) == 0.0
    trained = dataclasses.replace(case, mode="train", batch_size=10)
    row = {"flops_per_update": 500.0, "samples_per_insert": 0.5}
    assert products_of(trained, row) == products + 25.0
