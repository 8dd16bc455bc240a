"""When encounters open and close."""

import pytest
import torch

from tests.train_RL_agents.evaluation.trajectories import measured, motion_of, vessel
from train_RL_agents.evaluation.geometry import closest_approach, least_distance
from train_RL_agents.evaluation.measures import measure
from train_RL_agents.evaluation.motion import Motion

PARTNER = vessel((59.5, 0), 180, 2.5)


def starts(measures, own=0):
    rows = measures.encounters
    return rows["start"][rows["own"] == own].tolist()


def test_it_opens_within_range_and_closes_after_the_second_receding_decision():
    rows = measured([vessel((0, 0), 0, 2.5), PARTNER]).encounters
    assert rows["start"].tolist() == [15, 15]  # the distance is 59.5 - 2.5 k, within 22.795
    assert rows["closest"].tolist() == [24, 24]
    assert rows["end"].tolist() == [25, 25]  # TCPA is negative at 24 and 25


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (vessel((0, 15.7), 0, 2.5), "the predicted gap is above 10 m"),
        (vessel((0, 0), 0, 0.4), "the own speed is below 0.5 m/s"),
        (vessel((0, 0), 180, 2.5), "the other never comes nearer"),
        (vessel((40, 0), 180, 2.0), "TCPA is above 20 s"),
    ],
)
def test_no_encounter(own, why):
    assert not starts(measured([own, PARTNER], steps=30)), why


def test_a_pair_meets_twice():
    own = vessel((0, 0), 0, 2.5, changes={30: (180, 2.5)})
    partner = vessel((59.5, 0), 180, 2.5, changes={40: (0, 2.5)})
    measures = measured([own, partner], steps=70)
    assert starts(measures) == [15, 40]


def test_it_ends_with_the_episode_and_with_a_vessel():
    ships = [vessel((0, 0), 0, 2.5), PARTNER]
    assert measured(ships, steps=20).encounters["end"].tolist() == [20, 20]
    present = torch.ones(31, 2, 1, dtype=torch.bool)
    present[18:, 1] = False
    measures = measured(ships, steps=30, present=present)
    assert measures.encounters["end"].tolist() == [17, 17]
    assert measures.vessels["time"].tolist() == [15.0, 8.5]
    assert measures.vessels["path"].tolist() == [37.5, 21.25]


def assert_same(alone, part):
    """The rows of encounters and vessels are the same, and there are some."""
    for columns, others in zip(alone[1:3], part[1:3], strict=True):
        assert len(columns["world"])
        for name, column in columns.items():
            assert torch.equal(column.nan_to_num(-9.0), others[name].nan_to_num(-9.0)), name


def test_worlds_are_measured_alone():
    """Worlds of other lengths and in other chunks change nothing."""
    motions = [
        motion_of([vessel((0, 0), 0, 2.5), PARTNER, vessel((20, 20), -90, 2.0)], steps)
        for steps in (40, 30, 40)
    ]
    motions[0] = motions[0]._replace(x=-motions[0].x)
    scales = {"hull_radius": 2.8, "decision_time": 0.5}
    buoys = torch.ones(3, 2, 3, dtype=torch.float64)
    both = Motion(*(torch.cat(pair, -1) for pair in zip(motions[0], motions[2], strict=True)))
    groups = [(torch.tensor([1]), motions[1]), (torch.tensor([0, 2]), both)]
    whole = measure(groups, buoys, **scales)
    for world, motion in enumerate(motions):
        alone = measure([(torch.tensor([0]), motion)], buoys[..., :1], **scales)
        assert_same(alone, whole.of_worlds(torch.arange(3) == world))


def test_fuller_worlds_change_nothing_in_others():
    """A chunk holds the rows, vessels and buoys of its fullest world."""
    ships = [vessel((0, 0), 0, 2.5), PARTNER, vessel((20, 20), -90, 2.0)]
    whole = motion_of(ships, 40)
    present = whole.present.repeat(1, 1, 3)
    present[:, 2, 0] = False
    present[30:, :, 2] = False
    motion = Motion(*(field.repeat(1, 1, 3) for field in whole[:-1]), present)
    buoys = torch.ones(3, 2, 3, dtype=torch.float64)
    buoys[2, 1, 0] = 0.0
    scales = {"hull_radius": 2.8, "decision_time": 0.5}
    together = measure([(torch.arange(3), motion)], buoys, **scales)
    for world, (rows, robots, slots) in enumerate([(41, 2, 1), (41, 3, 2), (30, 3, 2)]):
        part = Motion(*(field[:rows, :robots, world : world + 1] for field in motion))
        there = buoys[:, :slots, world : world + 1]
        alone = measure([(torch.tensor([0]), part)], there, **scales)
        assert_same(alone, together.of_worlds(torch.arange(3) == world))


def numbers(*values):
    return [torch.tensor([value], dtype=torch.float64) for value in values]


def test_the_closest_approach_of_who_moves_apart_is_now():
    assert closest_approach(*numbers(10.0, 0.0, 1.0, 0.0)).dcpa.item() == 10.0
    assert closest_approach(*numbers(10.0, 3.0, -1.0, 0.0)).dcpa.item() == 3.0


@pytest.mark.parametrize(("ends", "least"), [((10, 5), 5.0), ((5, 10), 5.0), ((5, -5), 0.0)])
def test_the_least_distance_is_on_the_way(ends, least):
    first, last = ends
    assert least_distance(*numbers(first, 0.0, last, 0.0)).item() == least


@pytest.mark.parametrize(("turns", "largest"), [((-30, 10), -30.0), ((-10, 30), 30.0)])
def test_the_largest_turn_keeps_its_side(turns, largest):
    own = vessel((0, 0), 0, 2.5, changes={17: (turns[0], 2.5), 19: (turns[1], 2.5), 21: (0, 2.5)})
    rows = measured([own, PARTNER]).encounters
    assert rows["turn"][rows["own"] == 0].tolist() == pytest.approx([largest])
