"""The ICRA 2024 task: placement against recorded resets, motion and ends by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torchrl.envs.utils import check_env_specs

from marinenav_env import make
from marinenav_env.envs.icra2024 import Icra2024Config, KinematicVesselConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import Slots
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from marinenav_env.tracks import place_worlds
from tests.marinenav_env.rollouts import decide

REFERENCE = Path(__file__).parents[2] / "reference" / "icra2024" / "scenario_stats.json"
RECORDED = json.loads(REFERENCE.read_text())
WORLDS = 4096
LIMIT = 4.4  # standard errors, as in test_placement.py
FIELDS = ("x", "y", "heading", "speed", "vx", "vy", "goal_x", "goal_y")


def still_water(vessels, buoys=(), discrete=True, **options):
    """One world with vessels (x, y, heading, speed, goal_x, goal_y) and buoys (x, y, radius)."""
    env = make(
        "icra2024",
        worlds=1,
        stages=(Stage(1, 0, 0, 0.0),),
        slots=Slots(len(vessels), len(buoys), 0),
        dtype=torch.float64,
        discrete=discrete,
        **options,
    )
    robot = torch.zeros(1, len(vessels), len(env.kernel_spec.fields("robot")), dtype=torch.float64)
    for r, (x, y, heading, speed, goal_x, goal_y) in enumerate(vessels):
        robot[0, r, :8] = torch.tensor([x, y, heading, speed, 0.0, 0.0, goal_x, goal_y])
    alive = torch.ones(1, len(vessels), dtype=torch.bool)
    rows = torch.tensor(buoys, dtype=torch.float64).reshape(1, -1, 3)
    place_worlds(env, robot, alive, rows, torch.zeros(1, 0, 3))
    stepper = Stepper(env, restarts=False)
    stepper.observe()
    return env, stepper


def field(env, name):
    return env.state.robot_field(name)[:, 0].tolist()


def placed(name: str):
    """Worlds of a recorded setting, and what was recorded."""
    robots, vortices, buoys, distance = (int(part[:-1]) for part in name.split("_"))
    env = make("icra2024", worlds=WORLDS, stages=(Stage(robots, vortices, buoys, distance),))
    env.reset_into(env.make_buffers())
    return env, RECORDED[name]


def compare(name: str, found: np.ndarray, recorded: dict) -> None:
    """Means agree within their standard errors; the recorded tenths lie where ours do."""
    error = recorded["std"] * math.sqrt(1 / recorded["n"] + 1 / found.size) + 1e-9
    assert abs(found.mean() - recorded["mean"]) < LIMIT * error, name
    for share, quantile in zip((0.1, 0.5, 0.9), recorded["quantiles_10_50_90"], strict=True):
        below = (found < quantile).mean(), (found <= quantile).mean()
        margin = LIMIT * math.sqrt(share * (1 - share) / recorded["n"])
        assert below[0] - margin < share < below[1] + margin, (name, share)


@pytest.mark.parametrize("name", RECORDED)
def test_scenarios_are_distributed_as_recorded(name):
    env, recorded = placed(name)
    state = env.state
    x, y, heading, speed, vx, vy, goal_x, goal_y = (
        state.robot_field(part)[:, :WORLDS].numpy() for part in FIELDS
    )
    there = state.status[:, :WORLDS].numpy() > 0
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    starts = [np.hypot(x[i] - x[j], y[i] - y[j])[there[i] & there[j]] for i, j in pairs]
    vortices = state.vortex[..., :WORLDS].numpy()
    circulation = vortices[2][vortices[2] != 0.0]
    compare("robots", there.sum(0), recorded["robots_placed"])
    compare("vortices", (vortices[2] != 0.0).sum(0), recorded["vortices_placed"])
    buoys = (state.buoy[2, :, :WORLDS].numpy() > 0.0).sum(0)
    compare("buoys", buoys, recorded["obstacles_placed"])
    compare("start_x", x[there], recorded["start_x"])
    compare("start_y", y[there], recorded["start_y"])
    compare("heading", heading[there], recorded["init_theta"])
    compare("speed", speed[there], recorded["init_speed"])
    compare("way", np.hypot(goal_x - x, goal_y - y)[there], recorded["start_goal_m"])
    compare("between starts", np.concatenate(starts), recorded["start_start_m"])
    edge_speed = np.abs(circulation) / (2 * np.pi * 0.5)
    compare("edge speed", edge_speed, recorded["edge_speed_m_s"])
    share = recorded["clockwise_share"]
    n = recorded["edge_speed_m_s"]["n"]
    assert abs((circulation > 0).mean() - share) < LIMIT * math.sqrt(0.25 * (1 / n + 1 / n))
    # As published the velocity at a reset leaves out the current.
    np.testing.assert_allclose(vx[there], (speed * np.cos(heading))[there], atol=1e-5)
    np.testing.assert_allclose(vy[there], (speed * np.sin(heading))[there], atol=1e-5)


@pytest.mark.parametrize("action", range(9))
def test_a_decision_by_hand(action):
    """Ten substeps: position with the old speed and heading, then speed, then heading."""
    env, stepper = still_water([(10.0, 10.0, 1.0, 1.0, 40.0, 10.0)])
    out = stepper.step(torch.tensor([[action]]))
    push, turn = (-0.4, 0.0, 0.4)[action // 3], (-math.pi / 6, 0.0, math.pi / 6)[action % 3]
    x, y, heading, speed = 10.0, 10.0, 1.0, 1.0
    for _ in range(10):
        vx, vy = speed * math.cos(heading), speed * math.sin(heading)
        x, y = x + 0.05 * vx, y + 0.05 * vy
        speed = min(max(speed + 0.05 * (push - 0.2 * speed), 0.0), 2.0)
        heading += 0.05 * turn
    assert field(env, "x") == pytest.approx([x], abs=1e-12)
    assert field(env, "y") == pytest.approx([y], abs=1e-12)
    assert field(env, "heading") == pytest.approx([heading], abs=1e-12)
    assert field(env, "speed") == pytest.approx([speed], abs=1e-12)
    gained = 30.0 - math.hypot(40.0 - x, 10.0 - y)
    assert out.reward.item() == pytest.approx(-1.0 + gained, abs=1e-12)
    assert field(env, "energy") == [(push != 0.0) + (turn != 0.0)]
    c, s, dx, dy = math.cos(heading), math.sin(heading), 40 - x, 10 - y
    ego = [c * dx + s * dy, c * dy - s * dx, c * vx + s * vy, c * vy - s * vx]
    assert out.obs.ego[0, 0].tolist() == pytest.approx(ego, abs=1e-12)


def test_continuous_actions_are_shares_of_the_largest_rates():
    vessel = (10.0, 10.0, 1.0, 1.0, 40.0, 10.0)
    both = [still_water([vessel], discrete=kind) for kind in (True, False)]
    both[0][1].step(torch.tensor([[6]]))
    both[1][1].step(torch.tensor([[[1.0, -3.0]]], dtype=torch.float64))
    assert both[0][0].state.robot.equal(both[1][0].state.robot)


def test_what_is_near_stands_in_two_lists_nearest_first():
    vessel = (20.0, 20.0, 0.0, 0.0, 45.0, 20.0)
    others = [(20.0 + d, 20.0, 0.0, 1.0, 45.0, 45.0) for d in (10.0, 5.0, 15.5, 15.6)]
    buoys = [(20.0, 20.0 + d, 1.0) for d in (9.0, 16.1, -6.0)]
    _, stepper = still_water([vessel, *others], buoys)
    static, dynamic = (part[0, 0] for part in stepper.now.obs[1:])
    seen = static[:, :2].tolist()
    assert seen == [[0.0, -6.0], [0.0, 9.0], *[[0.0, 0.0]] * 3]  # 16.1 > 15 + 1
    assert static[:, 2].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert dynamic[:, 0].tolist() == [5.0, 10.0, 15.5, 0.0, 0.0]  # 15.6 > 15 + 0.559


def test_a_collision_ends_two_vessels_and_not_the_third():
    meeting = [(10.0, 10.0, 0.0, 2.0, 40.0, 10.0), (13.0, 10.0, math.pi, 2.0, 40.0, 40.0)]
    env, stepper = still_water([*meeting, (40.0, 37.5, math.pi / 2, 2.0, 40.0, 40.0)])
    out = stepper.step(torch.full((1, 3), 4))
    assert out.terminated.tolist() == [[True, True, True]]
    assert out.reward[0, :2].max() < -49.0
    assert out.reward[0, 2].item() == pytest.approx(-1.0 + field(env, "progress")[2] + 100.0)
    env, stepper = still_water([*meeting, (40.0, 20.0, math.pi / 2, 2.0, 40.0, 40.0)])
    assert stepper.step(torch.full((1, 3), 4)).alive.tolist() == [[False, False, True]]
    stepper.advance()
    assert not stepper.step(torch.full((1, 3), 4)).done.item()


def test_specs_and_unusable_actions(device):
    env = make("icra2024", worlds=3, discrete=True, device=device)
    check_env_specs(env)
    assert env.action_spec["robots", "action"].n == 9
    decide(env, torch.full((3, 7), 9, device=device))
    with pytest.raises(ValueError, match=r"were not 0\.\.8"):
        env.check_actions()


def test_impossible_parameters_are_refused():
    with pytest.raises(ConfigError, match=r"max_speed is 0\.0: give more than 0\.0"):
        Icra2024Config(vessel=KinematicVesselConfig(max_speed=0.0))
    with pytest.raises(ConfigError, match="robots would start inside each other"):
        Icra2024Config(vessel=KinematicVesselConfig(radius=2.6))
    with pytest.raises(ConfigError, match="20 robots do not fit"):
        make("icra2024", worlds=2, stages=(Stage(20, 0, 0, 65.0),))
