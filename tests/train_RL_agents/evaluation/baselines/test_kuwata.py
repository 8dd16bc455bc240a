"""Kuwata's velocity obstacles: obstacles and sides by hand."""

import pytest
import torch

from tests.train_RL_agents.evaluation.baselines.test_baselines import CHOSEN_ON, WAMV16, seen
from train_RL_agents.evaluation.baselines import kuwata
from train_RL_agents.evaluation.baselines.observed import objects_of

OWN = torch.tensor([[2.5, 0.0]])
VESSEL_COST, RULE_COST = 1000.0, 100.0


def costs(entry, *candidates, velocity=(2.5, 0.0), **settings):
    """Cost of candidates (speed [m/s], course [deg]) beside one object, besides being unwanted."""
    observation = seen(entry, velocity=velocity)
    speed, course = torch.tensor(candidates).unbind(-1)
    course = course.deg2rad()
    found = kuwata._forbidden(
        objects_of(observation, CHOSEN_ON.radius),
        observation.ego[..., 2:4],
        torch.stack((speed * course.cos(), speed * course.sin()), -1).unsqueeze(0),
        CHOSEN_ON.radius,
        kuwata.Settings(**settings),
    )
    return found[0].tolist()


def test_a_buoy_blocks_what_leads_into_it():
    """At 20 m a disc of 1 + 2.795 + 1 = 4.795 m spans asin(4.795 / 20) = 13.9 degrees a side."""
    buoy = (20.0, 0.0, 0.0, 0.0, 0.8)
    found = costs(buoy, (2.5, 0.0), (1.0, 13.0), (1.0, -13.0), (2.5, 15.0), (2.5, 180.0))
    assert found == [VESSEL_COST] * 3 + [0.0, 0.0]


def test_a_head_on_vessel_is_left_to_port():
    """The disc of 6.59 m at 30 m spans 12.7 degrees of the relative way.

    2.5 m/s at 30 degrees turns that by atan(1.25 / 4.665) = 15.0 degrees, at 20 by 10.0.
    """
    vessel = (30.0, 0.0, -2.5, 0.0, 2.4)
    found = costs(vessel, (2.5, 0.0), (2.5, 20.0), (2.5, 30.0), (2.5, -30.0), (2.5, -20.0))
    assert found[:3] == [VESSEL_COST, VESSEL_COST, 0.0]
    assert found[3:] == [RULE_COST, VESSEL_COST + RULE_COST]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ((20.0, 20.0, 0.0, -2.5, 2.4), True),  # crosses from starboard
        ((20.0, -20.0, 0.0, 2.5, 2.4), False),  # from port: it gives way
        ((15.0, 0.0, 1.0, 0.0, 2.4), True),  # overtaken by us
        ((-15.0, 0.0, 4.0, 0.0, 2.4), False),  # overtakes us
        ((30.0, 0.0, -2.5, 0.0, 2.4), True),  # head-on
        ((30.0, -3.0, -2.4, -0.5, 2.4), True),  # head-on to port, by 11.8 degrees
        ((30.0, -3.0, -2.2, -1.2, 2.4), False),  # 28.6 degrees: crosses from port
    ],
)
def test_who_gives_way(entry, expected):
    objects = objects_of(seen(entry), CHOSEN_ON.radius)
    found = kuwata.gives_way(objects.position, objects.velocity, OWN, kuwata.TUNED)
    assert found[0, 0].item() is expected


def test_encounters_beyond_the_limits_do_not_count():
    """At 50 m the two meet in 10 s; beside 12 m they pass further apart than 9.6 m."""
    assert costs((50.0, 0.0, -2.5, 0.0, 2.4), (2.5, 0.0)) == [0.0]
    assert costs((25.0, 12.0, -2.5, 0.0, 2.4), (2.5, 20.0)) == [0.0]
    assert costs((25.0, 9.0, -2.5, 0.0, 2.4), (2.5, 20.0)) == [VESSEL_COST + RULE_COST]


def test_actions():
    """Alone it holds on; head-on it turns to starboard."""
    steady = {"velocity": (2.5, 0.0), "thrust": (593.75, 593.75)}
    settings = kuwata.TUNED._replace(speed=2.5)
    assert kuwata.kuwata(seen(**steady), WAMV16, settings)[0].abs().max() < 1e-3
    left, right = kuwata.kuwata(seen((18.0, 0.0, -2.5, 0.0, 2.2), **steady), WAMV16, settings)[0]
    assert left > right
