"""Classical controllers: their parts by hand, and the success that the specification expects."""

import dataclasses
import math

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from marinenav_env.fields import ConfigError
from train_RL_agents import evaluate
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.baselines import orca, sbmpc, vessel
from train_RL_agents.evaluation.baselines.observed import objects_of
from train_RL_agents.evaluation.baselines.registry import BASELINES, Baseline, check_hull
from train_RL_agents.evaluation.baselines.vessel import HULL
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.schema import Scenario, Vessel
from train_RL_agents.evaluation.steering import controller


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
    thrust = vessel.hold_velocity(ego, torch.tensor([[2.5, 0.0]]))
    assert thrust.tolist() == [pytest.approx([593.75, 593.75])]  # (100 u + 150 u^2) / 2
    astern = vessel.hold_velocity(ego, torch.tensor([[-2.5, 0.0]]))
    assert torch.all((astern >= -500.0) & (astern <= 1000.0))
    starboard = vessel.hold_velocity(ego, torch.tensor([[1.5, 2.0]]))
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
    (left, right) = orca.orca(observation)[0]
    assert left != right
    alone = seen(velocity=(1.0, 0.0), thrust=(125.0, 125.0))
    assert orca.orca(alone, orca.TUNED._replace(speed=1.0))[0].abs().max() < 1e-3


def test_sb_mpc_goes_straight_alone_and_to_starboard_of_a_head_on_vessel():
    steady = (593.75, 593.75)  # holds the preferred 2.5 m/s
    alone = seen(velocity=(2.5, 0.0), thrust=steady)
    assert sbmpc.sb_mpc(alone, settings=sbmpc.PUBLISHED).abs().max() < 1e-3
    meeting = seen((18.0, 0.0, -2.5, 0.0, 2.2), velocity=(2.5, 0.0), thrust=steady)
    left, right = sbmpc.sb_mpc(meeting, settings=sbmpc.PUBLISHED)[0]
    assert left > right


@pytest.mark.parametrize("name", BASELINES)
def test_no_vessel_depends_on_its_neighbours(name):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(6, 5, 5, generator=generator) * 8.0
    rows[..., 4] = torch.rand(6, 5, generator=generator) * 2.5 + 0.5
    ego = torch.randn(6, 7, generator=generator)
    observation = Observation(ego, rows, (torch.rand(6, 5, generator=generator) < 0.7).float())
    whole = BASELINES[name](observation)
    assert whole.abs().max() <= 1.0
    split = Observation(*(part.view(2, 3, *part.shape[1:]) for part in observation))
    torch.testing.assert_close(BASELINES[name](split).view(6, 2), whole)
    torch.testing.assert_close(BASELINES[name](Observation(*(p[2] for p in observation))), whole[2])


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
        (["baseline:orca", "env.vessel=otter"], "vessel is 'otter': baseline 'orca' knows"),
    ):
        refused(evaluate.main, ["--checkpoint", *policy], message)


RATES = (-1000.0, -500.0, 0.0, 500.0, 1000.0)
"""In another order than the published ones."""


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("rates", [HULL.left_thrust_rates, RATES])
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


@pytest.mark.parametrize("rates", [HULL.left_thrust_rates, RATES])
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
    vessel = dataclasses.replace(HULL, left_thrust_rates=rates, right_thrust_rates=rates[::-1])
    return dataclasses.replace(EnvConfig(), vessel=vessel)


def seen_by(robots):
    """What some robots see of nothing."""
    return Observation(torch.zeros(robots, 7), torch.zeros(robots, 5, 5), torch.zeros(robots, 5))


def test_a_baseline_refuses_other_thrust_rates():
    vessel = dataclasses.replace(HULL, max_thrust_rate=400.0)
    with pytest.raises(ConfigError, match=r"max_thrust_rate is 400.0, not \d+.0: baseline 'orca'"):
        check_hull(Baseline("orca"), vessel)


def test_hyphens_may_be_left_out():
    assert Baseline("sbmpc").name == "sb-mpc"
    assert Baseline("sbmpc-published").name == "sb-mpc-published"


def test_unknown_baselines_and_settings():
    with pytest.raises(ConfigError, match="baseline is 'rvo'"):
        Baseline("rvo")
