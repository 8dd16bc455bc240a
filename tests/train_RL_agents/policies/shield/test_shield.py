"""The shield: what it leaves alone, what it changes, and what it takes when nothing is safe."""

import itertools
import math

import pytest
import torch

from marinenav_env.envs.observation import Observation
from tests.host_reads import no_host_reads
from tests.train_RL_agents.policies.shield.situations import (
    ENV,
    HULL,
    Constant,
    random_situations,
    seen,
    shield,
)
from train_RL_agents.policies.shield.scene import start
from train_RL_agents.policies.shield.vessel_model import VesselModel


@pytest.mark.parametrize("gap", [0.2, 0.4])
def test_a_passed_buoy_by_hand(gap):
    """Sailing on at 2 m/s it is abeam after 1 s; 0.3 m of clearance are asked for."""
    guarded = shield()(seen((2.0, HULL + 1.0 + gap, 0.0, 0.0, 0.8)))
    torch.testing.assert_close(guarded.predicted.item(), gap)
    assert torch.equal(guarded.action, guarded.proposed) == (gap > 0.3)
    assert guarded.clearance.item() >= 0.3


@pytest.mark.parametrize("gap", [-1.0, 0.2, 0.4])
def test_a_met_vessel_by_hand(gap):
    """It comes at 1.5 m/s from 7 m ahead, and is abeam after the 2 s of the plan."""
    guarded = shield()(seen((7.0, -2.0 * HULL - gap, -1.5, 0.0, 0.7 * HULL)))
    torch.testing.assert_close(guarded.predicted.item(), gap)
    assert torch.equal(guarded.action, guarded.proposed) == (gap > 0.3)
    assert guarded.clearance.item() > guarded.predicted.item() - 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_clear_path_leaves_the_decisions_alone(dtype):
    observation = seen((0.0, 12.0, 0.0, 0.0, 1.0), (-9.0, 0.0, -1.0, 0.0, 2.5), dtype=dtype)
    guarded = shield((0.25, 0.125))(observation)
    assert torch.equal(guarded.action, guarded.proposed)
    assert guarded.action.tolist() == [[0.25, 0.125]]
    assert guarded.action.dtype == guarded.predicted.dtype == dtype


def test_a_buoy_ahead_stops_it():
    """Contact cannot be avoided from 0.2 m at 2 m/s: of all plans full astern is the clearest."""
    guarded = shield()(seen((HULL + 1.0 + 0.2, 0.0, 0.0, 0.0, 0.8)))
    assert guarded.predicted.item() < guarded.clearance.item() < 0.0
    assert guarded.action.tolist() == [[-1.0, -1.0]]


@pytest.mark.parametrize(
    ("starboard_m", "goal", "to_starboard"),
    [(1.0, (30.0, 0.0), True), (0.0, (30.0, 0.0), False), (0.01, (8.0, 8.0), False)],
)
def test_on_which_side_a_vessel_ahead_is_passed(starboard_m, goal, to_starboard):
    """Both sides are safe: to starboard, unless port ends so much nearer to the goal."""
    guarded = shield(starboard_m=starboard_m)(seen((12.0, 0.0, -1.5, 0.0, 2.0), goal=goal))
    assert guarded.predicted.item() < 0.3 < guarded.clearance.item()
    left, right = guarded.action[0].tolist()
    assert left != right
    assert (left > right) == to_starboard


def test_a_buoy_is_passed_on_either_side():
    observation = seen((7.0, 0.0, 0.0, 0.0, 0.8))
    sides = [shield(starboard_m=m)(observation).action.tolist() for m in (0.0, 100.0)]
    assert sides[0] == sides[1]
    assert sides[0][0][0] < sides[0][0][1]  # the first of two that end equally near


def test_discrete_actions():
    guarded = shield(0)(seen((HULL + 1.0 + 0.2, 0.0, 0.0, 0.0, 0.8)))
    assert guarded.proposed.tolist() == [0]
    assert guarded.action.tolist() == [12]  # (-1000, -1000) N/s: third choice of five on each side


def simulated_choice(observation, action):
    """Return action and clearance by simulating one situation [1, ...] plan by plan."""
    model, found = VesselModel(ENV.vessel), []
    goal = observation.ego[0, :2].tolist()
    for candidate in (action, *itertools.product((-1.0, 0.0, 1.0), repeat=2)):
        motion, gaps, rest = start(observation.ego, 1), [(math.inf, False)], math.hypot(*goal)
        for step in range(4):
            chosen = action if step >= (1 if candidate is action else 2) else candidate
            rates = 1000.0 * torch.tensor(chosen, dtype=torch.float64).view(2, 1, 1)
            motion, path = model.decide(motion, rates)
            if rest <= 2.0:
                rest = 0.0
                break
            for i, (own_x, own_y) in enumerate(path[1:, :, 0, 0].tolist()):
                time = 0.5 * step + 0.05 * (i + 2)
                for x, y, vx, vy, radius in observation.objects[0].tolist():
                    vessel = radius > 1.0
                    x, y = x + vx * time * vessel, y + vy * time * vessel
                    gap = math.hypot(x - own_x, y - own_y) - HULL
                    gaps.append((gap - (HULL if vessel else 1.0), vessel))
            rest = math.hypot(goal[0] - motion.x.item(), goal[1] - motion.y.item())
        least, from_vessel = min(gaps)
        if candidate is action:
            starboard_m = 1.0 if from_vessel else 0.0
        dearer = starboard_m if candidate is not action and candidate[0] < candidate[1] else 0.0
        found.append((candidate, least, dearer + (rest if rest > 2.0 else 0.0)))
    if found[0][1] >= 0.3:
        return found[0][:2]
    safe = [plan for plan in found if plan[1] >= 0.3]
    best = min(safe, key=lambda plan: plan[2]) if safe else max(found, key=lambda plan: plan[1])
    return best[:2]


def test_choices_are_those_of_a_plan_by_plan_simulation():
    observation, action = random_situations(40), (0.3, -0.2)
    policy = Constant(torch.tensor(action, dtype=torch.float64))
    guarded = shield(policy)(observation)
    kinds = set()
    for i in range(40):
        chosen, clearance = simulated_choice(
            Observation(*(part[i : i + 1] for part in observation)), action
        )
        assert guarded.action[i].tolist() == list(chosen), i
        torch.testing.assert_close(guarded.clearance[i].item(), clearance)
        kinds.add((chosen == action, clearance >= 0.3))
    assert len(kinds) == 4  # own and other plans, safe and not


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_promises_in_random_situations(share):
    """Safe proposals stay, and no plan taken is predicted to be worse than the proposed one."""
    policy = Constant(torch.tensor((0.3, -0.2)))
    guarded = shield(policy, planned_share=share)(random_situations(10_000, torch.float32))
    changed = (guarded.action != guarded.proposed).any(-1)
    safe = guarded.predicted >= 0.3
    assert not (changed & safe).any()
    assert (changed & ~safe).sum() > 500
    assert ((guarded.clearance >= 0.3) | (guarded.clearance >= guarded.predicted)).all()
    assert changed.sum() <= 10_000 * share


def test_with_a_share_the_least_clear_are_planned_for():
    observation = random_situations(200)
    every, some = shield()(observation), shield(planned_share=0.1)(observation)
    planned = every.predicted <= every.predicted.sort().values[19]
    assert torch.equal(some.action[planned], every.action[planned])
    assert torch.equal(some.action[~planned], every.proposed[~planned])
    assert (every.action[~planned] != every.proposed[~planned]).any()


def test_at_its_goal_it_leaves_the_policy_alone():
    guarded = shield()(seen((HULL + 1.0, 0.0, 0.0, 0.0, 0.8), goal=(1.0, 1.0)))
    assert torch.equal(guarded.action, guarded.proposed)


def test_objects_seem_closer():
    """3 m and 4 m away make 5 m: 0.5 m closer leaves nine tenths of each."""
    policy = Constant((0.0, 0.0))
    shield(policy, closer_m=0.5)(seen((3.0, 4.0, 0.1, 0.2, 2.0)))
    first = policy.seen[0][1][0, 0]
    torch.testing.assert_close(first, first.new_tensor([2.7, 3.6, 0.1, 0.2, 2.0]))


@pytest.mark.parametrize("gap", [0.6, 0.8])
def test_a_buoy_that_the_plan_clears_is_hidden(gap):
    policy = Constant((0.0, 0.0))
    observation = seen((2.0, HULL + 1.0 + gap, 0.0, 0.0, 0.8), (0.0, -8.0, 0.0, 0.0, 2.0))
    shield(policy, hidden_buoy_m=0.7, hidden_horizon_s=1.5)(observation)
    acted_on = policy.seen[3]  # after the three decisions of the plan without buoys
    shown = [0.8, 2.0] if gap < 0.7 else [2.0]
    assert acted_on[1][0, :, 4].tolist() == [*shown, *[0.0] * (5 - len(shown))]
    assert acted_on[2][0].sum() == len(shown)
    assert policy.seen[0][2].sum() == 1  # the plan itself sees the vessel only


def test_predictions_are_observations_to_come():
    """What the policy sees in its plan is what the vessel observes then, nearest first."""
    policy = Constant((0.0, 0.0))
    shield(policy)(seen((1.0, 7.0, 0.0, 0.0, 0.8), (0.0, -8.0, 3.0, 0.0, 2.0)))
    ego, objects, mask = policy.seen[2]  # after 1 s
    torch.testing.assert_close(ego[0, 0, :2], ego.new_tensor([28.0, 0.0]))
    expected = objects.new_tensor([[1.0, -8.0, 3.0, 0.0, 2.0], [-1.0, 7.0, 0.0, 0.0, 0.8]])
    torch.testing.assert_close(objects[0, 0, :2], expected)
    assert mask[0, 0].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("action", [(0.0, 0.0), 7])
def test_nothing_reads_the_device(action):
    guard = shield(action, closer_m=0.5, hidden_buoy_m=0.7, planned_share=0.5)
    observation = random_situations(64)
    with no_host_reads():
        guard(observation)
