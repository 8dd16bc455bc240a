"""Classical controllers: their parts by hand, and the success that the specification expects."""

import dataclasses
import math

import pytest
import torch

from marinenav_env import MarineNavEnv
from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.fields import ConfigError
from marinenav_env.kernel.plans import plan_courses
from marinenav_env.stepper import Stepper
from marinenav_env.vessels import VESSELS, VesselConfig
from train_RL_agents import evaluate
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.baselines import orca, sbmpc, vessel
from train_RL_agents.evaluation.baselines.observed import flat, objects_of
from train_RL_agents.evaluation.baselines.registry import (
    BASELINES,
    Baseline,
    let_steer,
    unable_to_steer,
)
from train_RL_agents.evaluation.baselines.vessel import CHOSEN_ON, model_of
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.schema import Scenario, Vessel
from train_RL_agents.evaluation.steering import controller

WAMV16 = model_of(CHOSEN_ON)


def seen(*objects, goal=(30.0, 0.0), velocity=(0.0, 0.0), thrust=(0.0, 0.0)):
    """Observation of one vessel; objects are x, y, v_x, v_y, radius."""
    rows, mask = torch.zeros(1, 5, 5), torch.zeros(1, 5)
    for i, entry in enumerate(objects):
        rows[0, i], mask[0, i] = torch.tensor(entry), 1.0
    return Observation(torch.tensor([[*goal, *velocity, 0.0, *thrust]]), rows, mask)


def success(name, stage, count, monkeypatch):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 400)
    make = Evaluation((stage,), (count,), seed=1, config=EnvConfig(), discrete=False)
    (row,) = make.run(Baseline(name).act)
    return row.success


def test_thrusts_that_hold_a_velocity_leave_it_as_it_is():
    ego = seen(velocity=(2.5, 0.0)).ego
    thrust = vessel.hold_velocity(WAMV16, ego, torch.tensor([[2.5, 0.0]]))
    assert thrust.tolist() == [pytest.approx([593.75, 593.75])]  # (100 u + 150 u^2) / 2
    astern = vessel.hold_velocity(WAMV16, ego, torch.tensor([[-2.5, 0.0]]))
    assert torch.all((astern >= -500.0) & (astern <= 1000.0))
    starboard = vessel.hold_velocity(WAMV16, ego, torch.tensor([[1.5, 2.0]]))
    assert starboard[0, 0] > starboard[0, 1]


def test_what_an_object_is_follows_from_its_radius():
    objects = objects_of(seen((9, 0, 0, 0, 0.7), (9, 9, 0.1, 0, 2.0), (5, 5, 1, 0, 1.0)), 2.8)
    assert objects.radius[0, :3].tolist() == pytest.approx([1.0, 2.8, 1.0])
    assert objects.static[0, :3].tolist() == [True, False, False]
    assert objects.present[0].tolist() == [True, True, True, False, False]


def lines(*rows):
    """Half-planes by a point and the angle [deg] of their direction."""
    points = torch.tensor([row[:2] for row in rows], dtype=torch.float64)
    angle = torch.tensor([math.radians(row[2]) for row in rows], dtype=torch.float64)
    present = torch.ones(len(rows), dtype=torch.bool)
    return orca.Lines(points, torch.stack((angle.cos(), angle.sin()), -1), present)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, -5, 0)], (1.0, 0.0)),  # allowed: left of a line far away
        ([(0, 0.5, 0)], (1.0, 0.5)),  # projected
        ([(0, 0.5, 0), (0.2, 0, 90)], (0.2, 0.5)),  # at the corner of two
        ([(0, 1.2, 0)], (0.9, 1.2)),  # where the line meets the circle of 1.5 m/s
    ],
)
def test_the_nearest_allowed_velocity(rows, expected):
    preferred = torch.tensor([1.0 if expected[1] < 1.2 else 2.0, 0.0], dtype=torch.float64)
    found = orca.nearest_allowed(lines(*rows), preferred, 1.5)
    assert found.tolist() == pytest.approx(expected, abs=1e-4)


def test_the_nearest_allowed_velocity_is_that_of_a_fine_grid():
    generator = torch.Generator().manual_seed(0)
    axis = torch.linspace(-1.5, 1.5, 601, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    grid = grid[grid.norm(dim=-1) <= 1.5]
    allowed = 0
    for _ in range(40):
        angle = torch.rand(3, generator=generator, dtype=torch.float64) * 2 * torch.pi
        direction = torch.stack((angle.cos(), angle.sin()), -1)
        point = torch.randn(3, 2, generator=generator, dtype=torch.float64) * 0.4
        planes = orca.Lines(point, direction, torch.ones(3, dtype=torch.bool))
        inside = grid[orca._violation(planes, grid) <= 0.0]
        if not len(inside):
            continue
        allowed += 1
        preferred = torch.tensor([1.2, 0.3], dtype=torch.float64)
        found = orca.nearest_allowed(planes, preferred, 1.5)
        assert orca._violation(planes, found.unsqueeze(0)) <= orca.TOLERANCE
        best = (inside - preferred).norm(dim=-1).min().item()
        assert best - 0.03 < (found - preferred).norm().item() < best + 1e-5
    assert allowed > 15


def test_orca_shares_a_head_on_encounter():
    observation = seen((20.0, 0.1, -1.0, 0.0, 2.2), velocity=(1.0, 0.0))
    (left, right) = orca.orca(observation, WAMV16)[0]
    assert left != right
    alone = seen(velocity=(1.0, 0.0), thrust=(125.0, 125.0))
    assert orca.orca(alone, WAMV16, orca.TUNED._replace(speed=1.0))[0].abs().max() < 1e-3


def test_sb_mpc_goes_straight_alone_and_to_starboard_of_a_head_on_vessel():
    steady = (593.75, 593.75)  # holds the preferred 2.5 m/s
    alone = seen(velocity=(2.5, 0.0), thrust=steady)
    assert sbmpc.sb_mpc(alone, WAMV16, settings=sbmpc.PUBLISHED).abs().max() < 1e-3
    meeting = seen((18.0, 0.0, -2.5, 0.0, 2.2), velocity=(2.5, 0.0), thrust=steady)
    left, right = sbmpc.sb_mpc(meeting, WAMV16, settings=sbmpc.PUBLISHED)[0]
    assert left > right


@pytest.mark.parametrize("name", BASELINES)
def test_no_vessel_depends_on_its_neighbours(name):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(6, 5, 5, generator=generator) * 8.0
    rows[..., 4] = torch.rand(6, 5, generator=generator) * 2.5 + 0.5
    ego = torch.randn(6, 7, generator=generator)
    observation = Observation(ego, rows, (torch.rand(6, 5, generator=generator) < 0.7).float())
    whole = BASELINES[name](observation, WAMV16)
    assert whole.abs().max() <= 1.0
    split = Observation(*(part.view(2, 3, *part.shape[1:]) for part in observation))
    torch.testing.assert_close(BASELINES[name](split, WAMV16).view(6, 2), whole)
    third = Observation(*(part[2] for part in observation))
    torch.testing.assert_close(BASELINES[name](third, WAMV16), whole[2])


@pytest.mark.parametrize(
    ("name", "stage", "count", "low", "high"),
    [
        ("goal-straight", 0, 100, 0.30, 0.52),  # .41 expected
        ("goal-straight", 5, 50, 0.0, 0.07),  # .00
        ("orca", 0, 60, 0.85, 1.0),  # .98
        ("orca", 5, 60, 0.25, 0.60),  # .41
        ("sb-mpc", 0, 20, 0.60, 1.0),  # .78
    ],
)
def test_success_is_as_expected(name, stage, count, low, high, monkeypatch):
    assert low <= success(name, PUBLISHED_STAGES[stage], count, monkeypatch) <= high


def test_a_baseline_is_a_policy_on_the_command_line(monkeypatch, capsys, refused):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 3)
    arguments = ["--checkpoint", "baseline:orca", "--against", "baseline:sb-mpc", "--episodes", "2"]
    assert evaluate.main(arguments) == 0
    assert "against baseline:sb-mpc" in capsys.readouterr().out
    for policy, message in (
        (["baseline:orka"], "baseline is 'orka': choose one of goal-straight, apf"),
        (["baseline:orca", "--cvar", "0.5"], "a baseline has no such setting"),
        (["baseline:orca", "env.vessel.n_r=0", "env.vessel.n_rr=0"], "has no top yaw rate"),
    ):
        refused(evaluate.main, ["--checkpoint", *policy], message)


RATES = (-1000.0, -500.0, 0.0, 500.0, 1000.0)
"""In another order than the published ones."""


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("rates", [CHOSEN_ON.left_thrust_rates, RATES])
@pytest.mark.parametrize("discrete", [False, True])
def test_baselines_steer_in_a_scenario(discrete, rates, frames):
    """Whatever the order of a vessel's discrete actions, and however many decisions are seen."""
    own = Vessel((0.0, 0.0), (40.0, 0.0))
    lanes = {"goal-straight": 20.0, "orca": 40.0, "kuwata": 60.0, "apf": 80.0, "sb-mpc": 100.0}
    others = [Vessel((0.0, y), (30.0, y), heading_deg=90.0, steer=n) for n, y in lanes.items()]
    scenario = Scenario("lanes", (own, *others), repeats=1)
    config = with_rates(rates)
    placed = {"config": config, "discrete": discrete, "stack_k": frames}
    make = ScenarioEvaluation([scenario], seed=1, **placed)
    act = controller("goal-straight", config.vessel, discrete=discrete, device="cpu")
    (row,) = make.run(act).rows
    assert row.success == 1.0


@pytest.mark.parametrize("rates", [CHOSEN_ON.left_thrust_rates, RATES])
def test_straight_changes_no_thrust(rates):
    config = with_rates(rates)
    index = controller("straight", config.vessel, discrete=True, device="cpu")(seen_by(2))
    left, right = index // len(rates), index % len(rates)
    assert {rates[choice] for choice in left} == {rates[::-1][choice] for choice in right} == {0.0}


def test_without_a_rate_of_0_nothing_is_held():
    own, other = Vessel((0.0, 0.0), (40.0, 0.0)), Vessel((0, 20.0), (30.0, 20.0), steer="straight")
    made = {"seed": 1, "config": with_rates((-1000.0, -500.0, 250.0, 500.0, 1000.0))}
    scenario = Scenario("two", (own, other), repeats=1)
    ScenarioEvaluation([scenario], discrete=False, **made)
    with pytest.raises(ConfigError, match=r"vessels\[1\].steer is 'straight': a thrust rate of 0"):
        ScenarioEvaluation([scenario], discrete=True, **made)


def with_rates(rates):
    vessel = dataclasses.replace(CHOSEN_ON, left_thrust_rates=rates, right_thrust_rates=rates[::-1])
    return dataclasses.replace(EnvConfig(), vessel=vessel)


def seen_by(robots):
    """What some robots see of nothing."""
    return Observation(torch.zeros(robots, 7), torch.zeros(robots, 5, 5), torch.zeros(robots, 5))


def boat(rate):
    """A vessel of 3.5 m, given by values, whose thrusters take 360 N / rate from end to end."""
    rates = tuple(share * rate for share in (0.0, -0.5, -1.0, 0.5, 1.0))
    return VesselConfig(
        length=3.5,
        width=1.8,
        radius=0.5 * math.hypot(3.5, 1.8),
        mass=180.0,
        izz=160.0,
        x_dot_u=-9.0,
        y_dot_v=-60.0,
        n_dot_r=-220.0,
        x_u=-30.0,
        x_uu=-30.0,
        y_v=-60.0,
        y_vv=-80.0,
        n_r=-220.0,
        n_rr=-150.0,
        transport_term=True,
        min_thrust=-120.0,
        max_thrust=240.0,
        max_thrust_rate=rate,
        left_thrust_rates=rates,
        right_thrust_rates=rates,
    )


OTHERS = {"otter": VESSELS["otter"], "heron": VESSELS["heron"], "own": boat(240.0)}


def row_of(name, vessel, count=20):
    """Evaluate a baseline in the first stage, three vessels."""
    config = EnvConfig(vessel=vessel)
    evaluation = Evaluation(PUBLISHED_STAGES[:1], (count,), seed=1, config=config, discrete=False)
    baseline = Baseline(name)
    baseline.steer(vessel)
    (row,) = evaluation.run(baseline.act)
    return row.as_json()


def test_the_forces_fed_forward_are_those_of_the_wamv16():
    """By its numbers as the gains were found with: docs/diary.md."""
    generator = torch.Generator().manual_seed(0)
    ego = torch.randn(50, 7, generator=generator) * torch.tensor([1, 1, 1.5, 0.3, 0.3, 1, 1])
    course, surge = torch.randn(2, 50, generator=generator) * 0.5
    found = vessel.hold_course(WAMV16, ego, course, surge, vessel.TRACKING)
    _, _, u, v, r, _, _ = ego.unbind(-1)
    rate = (0.83 * course).clamp(-0.95, 0.95)
    yaw = 980.0 * rate + 950.0 * rate.abs() * rate + 1430.0 * (rate - r) / 0.6 + 20.0 * u * v
    forward = 100.0 * u + 150.0 * u.abs() * u + 380.0 * (surge - u) / 0.57 - 400.0 * r * v
    apart = (yaw / 1.25).clamp(-1500.0, 1500.0)
    forward = torch.minimum(torch.maximum(forward, apart.abs() - 1000.0), 2000.0 - apart.abs())
    torch.testing.assert_close(found, torch.stack((forward + apart, forward - apart), -1) / 2.0)


@pytest.mark.parametrize("name", ["otter", "cybership2", "heron"])
def test_what_is_fed_forward_holds_the_speed_of_any_vessel(name):
    model = model_of(VESSELS[name])
    speed = 2.5 * model.speed_ratio
    thrust = vessel.hold_velocity(model, seen(velocity=(speed, 0.0)).ego, torch.tensor([speed, 0]))
    ahead = vessel.model_of(dataclasses.replace(VESSELS[name], max_thrust=thrust[0, 0].item()))
    assert thrust[0, 0] == thrust[0, 1]
    assert ahead.vessel.top_speed == pytest.approx(speed, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("own", OTHERS)
def test_baselines_steer_any_vessel(own):
    """In a time that its speed asks for: the WAM-V 16 takes 18, 33 and 29 s."""
    ratio = model_of(OTHERS[own]).speed_ratio
    for name, least, time in (("goal-straight", 0.4, 18), ("orca", 0.9, 33), ("sb-mpc", 0.9, 29)):
        row = row_of(name, OTHERS[own])
        assert row["success"] >= least, name
        assert 0.8 * time < row["mean_time_s"] * ratio < 1.2 * time, name


def test_gains_follow_thrusters_that_are_slow():
    """Four times as slow as those of the WAM-V 16; without it .13 arrive, the others circle."""
    assert row_of("orca", boat(60.0))["success"] >= 0.85


def test_potential_fields_refuse_slow_thrusters():
    assert unable_to_steer("apf", boat(160.0)) is None
    message = "baseline is 'apf': env.vessel's thrusters take 6 s .* up to 2.25 s; give one of goal"
    with pytest.raises(ConfigError, match=message):
        let_steer(Baseline("apf"), boat(60.0))


@pytest.mark.parametrize("own", [*OTHERS, "cybership2"])
def test_sb_mpc_predicts_the_way_that_its_controller_makes(own):
    """Alone, from rest, toward the goal for 10 s: the distance left."""
    hull = OTHERS.get(own) or VESSELS[own]
    model, config = model_of(hull), EnvConfig(vessel=hull)
    env = MarineNavEnv(8, stages=(Stage(1, 0, 0, 30.0),), config=config, discrete=False, seed=1)
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    speed = sbmpc.TUNED.speed * model.speed_ratio
    sight, _ = flat(stepper.now.obs)
    params, costs = sbmpc._params(hull, speed), sbmpc._costs(model, sbmpc.TUNED)
    predicted = plan_courses(params, costs, sight, torch.tensor([[0.0, 1.0]]))[1][0]
    before = sight[0][:, :2].norm(dim=-1)
    for _ in range(20):
        ego = stepper.now.obs.ego
        desired = ego[..., :2] / ego[..., :2].norm(dim=-1, keepdim=True) * speed
        stepper.step(vessel.action_for(model, ego, vessel.hold_velocity(model, ego, desired)))
        stepper.advance()
    left = stepper.now.obs.ego[:, 0, :2].norm(dim=-1)
    assert ((before - left) / (10.0 * speed)).max() > 0.2
    torch.testing.assert_close(predicted, left, rtol=0.0, atol=0.04 * 10.0 * speed)


def test_small_vessels_are_told_from_buoys_by_their_velocity():
    """An Otter looks as large as .68 to 1.14 m, a buoy as .6 to 1 m."""
    objects = objects_of(seen((9, 0, 0, 0, 0.7), (9, 9, 1.0, 0, 0.7), (5, 5, 1, 0, 1.1)), 1.137)
    assert objects.static[0, :3].tolist() == [True, False, False]
    assert objects.radius[0, :3].tolist() == pytest.approx([1.137] * 3)
    own = objects_of(seen((9, 0, 0, 0, 1.0), (9, 9, 0.1, 0, 1.2)), 1.97)  # seen as 1.18 m or more
    assert own.radius[0, :2].tolist() == pytest.approx([1.0, 1.97])


def test_hyphens_may_be_left_out():
    assert Baseline("sbmpc").name == "sb-mpc"
    assert Baseline("sbmpc-published").name == "sb-mpc-published"


def test_unknown_baselines_and_settings():
    with pytest.raises(ConfigError, match="baseline is 'rvo'"):
        Baseline("rvo")
