"""When encounters open and close, and that nothing reads the device in between."""

import pytest
import torch

from tests.host_reads import no_host_reads
from tests.train_RL_agents.evaluation.trajectories import measured, motions, vessel
from train_RL_agents.evaluation.encounters import SLOTS
from train_RL_agents.evaluation.monitor import Monitor

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
    assert measures.encounters["slot"].tolist() == [0, 0, 1, 1]
    assert measures.dropped == 0


def test_it_ends_with_the_episode_and_with_a_vessel():
    ships = [vessel((0, 0), 0, 2.5), PARTNER]
    assert measured(ships, steps=20).encounters["end"].tolist() == [20, 20]
    rows = []
    for step, motion in enumerate(motions(ships, 30)):
        here = torch.tensor([[True], [step < 18]])
        rows.append(motion._replace(present=here))
    monitor = Monitor(rows[0], torch.zeros(3, 0, 1), hull_radius=2.8, decision_time=0.5)
    for row in rows[1:]:
        monitor.update(row)
    measures = monitor.finish()
    assert measures.encounters["end"].tolist() == [17, 17]
    assert measures.vessels["time"].tolist() == [15.0, 8.5]


def test_encounters_beyond_the_slots_are_counted():
    turns = {10 * i: (180 * (i % 2), 2.5) for i in range(1, 14)}
    ships = [vessel((0, 0), 0, 2.5, changes=turns), vessel((10, 4), 0, 0.5)]
    measures = measured(ships, steps=140)
    assert len(starts(measures)) == SLOTS
    assert measures.dropped > 0


def test_nothing_reads_the_device_before_the_end():
    rows = list(motions([vessel((0, 0), 0, 2.5), PARTNER], 30))
    monitor = Monitor(rows[0], torch.ones(3, 2, 1), hull_radius=2.8, decision_time=0.5)
    with no_host_reads():
        for row in rows[1:]:
            monitor.update(row)
    assert len(monitor.finish().encounters["world"]) == 2
