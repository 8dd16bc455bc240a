"""Artificial potential fields: forces by hand, and what they make of the 25 actions."""

import pytest
import torch

from marinenav_env.envs.observation import Observation
from tests.train_RL_agents.evaluation.baselines.test_baselines import CHOSEN_ON, WAMV16, seen
from train_RL_agents.evaluation.baselines import apf

NORTHBOUND = {"velocity": (2.0, 0.0), "thrust": (400.0, 400.0)}


def force(*objects, settings=apf.REPAIRED, **own):
    return apf.force_on(seen(*objects, **{**NORTHBOUND, **own}), WAMV16, settings)[0].tolist()


def test_alone_the_goal_attracts():
    assert force(goal=(30.0, -4.0)) == pytest.approx([1500.0, -200.0])


def test_a_buoy_ahead():
    """It is clear by 8 - 3 - 1 = 4 m, and 1/4 - 1/15 = 0.18333.

    500 * 0.18333 * 900 / 16 = 5156.25 against the way, 500 * 0.18333^2 * 30 = 504.17 along it.
    """
    buoy = (8.0, 0.0, 0.0, 0.0, 0.8)
    assert force(buoy) == pytest.approx([1500.0 - 5156.25 + 504.1667, 0.0], abs=1e-2)
    assert force(buoy, settings=apf.PUBLISHED) == [1500.0, 0.0]  # slow objects do not repel


def test_only_what_comes_nearer_and_is_near_repels():
    astern = (-8.0, 0.0, 0.0, 0.0, 0.8)
    ahead = (19.5, 0.0, 0.0, 0.0, 0.8)  # clear by 15.5 m
    assert force(astern, ahead) == [1500.0, 0.0]
    inside = (3.0, 0.0, 0.0, 0.0, 0.8)  # the clearance of the force is at least 0.1 m
    excess = 10.0 - 1.0 / 15.0
    expected = 1500.0 - 500.0 * excess * 900.0 / 0.01 + 500.0 * excess**2 * 30.0
    assert force(inside)[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("vessel", "step"),
    [
        ((12.0, 0.0, -2.0, 0.0, 2.5), (0.0, -5.0)),  # head-on: to its starboard, our port
        ((12.0, 6.0, 0.0, -2.0, 2.5), (0.0, -5.0)),  # from starboard: ahead of it
        ((12.0, -6.0, 0.0, 2.0, 2.5), None),  # from port: itself alone
        ((12.0, 0.0, 1.0, 0.0, 2.5), None),  # the same way, slower
    ],
)
def test_zones_of_vessels(vessel, step):
    """The points 5 m apart repel as five objects at rest there would, each by its own clearance."""
    goal, total = torch.tensor([30.0, 0.0]), torch.tensor([1500.0, 0.0])
    for k in range(1 if step is None else 5):
        point = torch.tensor(vessel[:2]) + k * torch.tensor(step or (0.0, 0.0))
        clear = max(point.norm().item() - 3.0 - CHOSEN_ON.radius, 0.1)
        if clear < 15.0:
            excess = 1.0 / clear - 1.0 / 15.0
            total -= 500.0 * excess * 900.0 / clear**2 * point / point.norm()
            total += 500.0 * excess**2 * goal
    assert force(vessel) == pytest.approx(total.tolist(), rel=1e-5)
    assert force(vessel, settings=apf.PUBLISHED) != force(vessel)


def test_the_published_sign_beside_the_repaired_one():
    """A vessel ahead at 1 m/s: only the part along the way differs, and by twice its size."""
    vessel = (12.0, 0.0, 1.0, 0.0, 2.5)
    clear = 12.0 - 3.0 - CHOSEN_ON.radius
    along = 500.0 * (1.0 / clear - 1.0 / 15.0) ** 2 * 30.0
    difference = force(vessel)[0] - force(vessel, settings=apf.PUBLISHED)[0]
    assert difference == pytest.approx(2.0 * along, rel=1e-4)


def test_actions():
    """From rest with the goal ahead both thrusts rise; to starboard the left one rises more."""
    assert apf.apf(seen(goal=(30.0, 0.0)), WAMV16)[0].tolist() == [1.0, 1.0]
    left, right = apf.apf(seen(goal=(5.0, 25.0)), WAMV16)[0].tolist()
    assert left > right
    pairs = zip(seen(), seen(goal=(5.0, 25.0)), strict=True)
    both = Observation(*(torch.cat(parts) for parts in pairs))
    assert apf.apf(both, WAMV16)[1].tolist() == [left, right]
