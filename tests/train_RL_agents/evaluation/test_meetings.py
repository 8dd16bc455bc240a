"""On which side vessels pass: by hand, whatever encounters come of a meeting."""

import pytest
import torch

from tests.train_RL_agents.evaluation.trajectories import measured, vessel
from train_RL_agents.evaluation.colregs import GW, HO
from train_RL_agents.evaluation.meetings import AHEAD, ASTERN, NOT_PASSED, PORT, STARBOARD


def head_on(*changes, y=0.0):
    """Two vessels 40 m apart, bow to bow, the second y to the first's starboard."""
    courses = (((0, 0), 0), ((40, y), 180))
    pairs = zip(courses, changes, strict=True)
    return [vessel(start, course, 2.5, changes=turns) for (start, course), turns in pairs]


def crossing(own, other=None):
    """The own vessel has the other on its starboard bow, at right angles, both 25 m off."""
    return [
        vessel((-25, 0), 0, 2.5, changes=own),
        vessel((0, 25), -90, 2.5, changes=other or {}),
    ]


def sides(vessels, kind, **options):
    met = measured(vessels, **options).meetings
    return met["side"][met["class"] == kind].tolist()


RIGHT, LEFT = {4: (30, 2.5), 10: (0, 2.5)}, {4: (-30, 2.5), 10: (0, 2.5)}
RIGHT_BACK, LEFT_BACK = ({k: (c + 180, v) for k, (c, v) in x.items()} for x in (RIGHT, LEFT))


@pytest.mark.parametrize(
    ("changes", "side"), [((RIGHT, RIGHT_BACK), PORT), ((LEFT, LEFT_BACK), STARBOARD)]
)
def test_head_on(changes, side):
    assert sides(head_on(*changes), HO) == [side, side]


def test_what_counts_is_the_passing_not_the_stand_off_before_it():
    """Both stop and back with the other to starboard; then they pass port to port."""
    waits = {8: (0, -0.8), 12: (40, 2.5), 20: (0, 2.5)}
    backs = {8: (180, -0.8), 12: (220, 2.5), 20: (180, 2.5)}
    vessels = head_on(waits, backs, y=3.0)
    met = measured(vessels)
    first = met.encounters["end"].min()
    assert len(met.encounters["own"]) > 2, "the stand-off is an encounter of its own"
    assert first < 12, "which ends before they pass"
    assert met.meetings["side"].tolist() == [PORT, PORT]


def test_crossing():
    assert sides(crossing({2: (60, 2.5), 14: (0, 2.5)}), GW) == [ASTERN]
    assert sides(crossing({2: (0, 1.0)}), GW) == [ASTERN]
    assert sides(crossing({2: (0, 4.0)}), GW) == [AHEAD]
    # It crosses ahead, comes back and passes astern of the other, which waits for it.
    turned = {1: (0, 5.0), 14: (180, 5.0), 30: (60, 2.5), 44: (0, 2.5)}
    assert sides(crossing(turned, {1: (-90, 0.5)}), GW, steps=90) == [ASTERN]
    assert sides(crossing(turned, {1: (-90, 0.5)}), GW, steps=14) == [AHEAD]
    assert sides(crossing(turned, {1: (-90, 0.5)}), GW, steps=20) == [NOT_PASSED]


def test_an_own_vessel_that_the_other_has_passed_is_astern_though_it_never_crosses():
    present = torch.ones(61, 2, 1, dtype=torch.bool)
    present[25:, 1] = False  # the other arrives
    slow = crossing({1: (0, 0.5)})
    assert sides(slow, GW, present=present) == [ASTERN]
    present[6:, 1] = False
    assert sides(slow, GW, present=present) == [NOT_PASSED]
    assert sides(head_on({}, {}, y=8.0), HO, present=present) == [NOT_PASSED] * 2


def test_what_comes_after_a_vessel_is_gone_does_not_count():
    present = torch.ones(61, 2, 1, dtype=torch.bool)
    present[20:, 1] = False
    again = {**RIGHT, 22: (-90, 5.0), 30: (180, 10.0), 40: (0, 10.0)}  # past it on the other side
    assert sides(head_on(again, RIGHT_BACK), HO) == [STARBOARD, STARBOARD]
    assert sides(head_on(again, RIGHT_BACK), HO, present=present) == [PORT, PORT]


def test_contact_is_known_by_the_gap():
    met = measured(head_on({}, {})).meetings
    assert (met["gap"] < 0.0).all()
    met = measured(head_on({}, {}, y=9.0)).meetings
    assert met["gap"].tolist() == pytest.approx([9.0 - 2 * 2.795085] * 2, abs=1e-6)


def test_only_closing_courses_meet_and_each_class_counts_once():
    apart = [vessel((0, 0), 0, 2.5), vessel((0, 20), 10, 2.5)]
    assert len(measured(apart).meetings["own"]) == 0
    met = measured(crossing({})).meetings
    assert met["own"].tolist() == [0], "who stands on has no meeting of its own"
