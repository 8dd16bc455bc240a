"""Rule scores: every case of the specification's table, and its five encounters, to four digits."""

import pytest
import torch

from tests.train_RL_agents.evaluation.trajectories import HULL_RADIUS, measured, vessel
from train_RL_agents.evaluation import colregs
from train_RL_agents.evaluation.colregs import CLASSES
from train_RL_agents.evaluation.geometry import closest_approach, least_distance


def real(*values):
    return [torch.tensor(float(value), dtype=torch.float64) for value in values]


def flag(value):
    return torch.tensor(bool(value))


def four(value):
    return pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(
    ("position", "velocity", "tcpa", "dcpa"),
    [
        ((20, 0), (-5, 0), 4, 0),
        ((10, 10), (-2, -2), 5, 0),
        ((20, 3), (-5, 0), 4, 3),
        ((7, 0), (0, 0), 0, 7),
        ((10, 0), (1, 0), -10, 10),
        ((0, 0), (-1, 0), 0, 0),
    ],
)
def test_closest_approach(position, velocity, tcpa, dcpa):
    found = closest_approach(*real(*position), *real(*velocity))
    assert (found.tcpa.item(), found.dcpa.item()) == (four(tcpa), four(dcpa))


@pytest.mark.parametrize(
    ("before", "after", "least"),
    [((3, -4), (3, 4), 3), ((3, 1), (3, 4), 3.1623), ((5, 0), (5, 0), 5), ((-1, 1), (1, 1), 1)],
)
def test_least_distance_within_a_decision(before, after, least):
    assert least_distance(*real(*before), *real(*after)).item() == four(least)


@pytest.mark.parametrize(
    ("beta", "alpha", "kind"),
    [
        (0, 0, "HO"),
        (12, -12, "HO"),
        (20, 18, "HO"),
        (20, -18, "GW"),
        (45, -45, "GW"),
        (67.5, -67.5, "GW"),
        (112.5, -60, "GW"),
        (-45, 45, "SO"),
        (0, 180, "OT"),
        (-23.8, 126.2, "OT"),
        (180, 0, "OD"),
        (113, -60, "OD"),
        (30, 30, "AMB"),
        (150, 150, "AMB"),
    ],
)
def test_class(beta, alpha, kind):
    assert CLASSES[colregs.classify(*real(beta, alpha))] == kind


def test_separation_score():
    gaps = torch.tensor([12.0, 10, 7, 4, 3, 2, 1, 0, -1], dtype=torch.float64)
    expected = [1, 1, 0.9, 0.8, 0.65, 0.5, 0.25, 0, 0]
    assert colregs.separation_score(gaps).tolist() == four(expected)


@pytest.mark.parametrize(
    ("turn", "loss", "expected"),
    [(30, 0, 1), (-20, 0, 0.5), (0, 0.5, 1), (9, 0.1, 0), (15, 0.35, 0.5)],
)
def test_action_score(turn, loss, expected):
    assert colregs.action_score(*real(turn, loss)).item() == four(expected)


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"), [(-90, -90, 0), (90, 90, 1), (0, 0, 0.9375), (-30, -30, 0.6836)]
)
def test_passing_penalty(alpha, beta, expected):
    assert colregs.passing_penalty(*real(alpha, beta)).item() == four(expected)


@pytest.mark.parametrize(
    ("a8", "delay", "alpha", "beta", "turn", "expected"),
    [(1, 0.25, -90, -90, 30, 0.75), (1, 0.25, 90, 90, -30, 0), (0.5, 0.2, -30, -30, 20, 0.2359)],
)
def test_rule_14(a8, delay, alpha, beta, turn, expected):
    assert colregs.rule14(*real(a8 * (1 - delay), turn, alpha, beta)).item() == four(expected)


@pytest.mark.parametrize(
    ("rule", "a8", "delay", "alpha", "expected"),
    [
        (colregs.rule15, 1, 0.2, -150, 0.8),
        (colregs.rule15, 1, 0.2, -20, 0.3),
        (colregs.rule15, 1, 0.2, 90, 0.3),
        (colregs.rule15, 0.4, 0.2, 90, 0),
        (colregs.rule13, 1, 0.5, 120, 0.5),
        (colregs.rule13, 1, 0.5, 20, 0.2),
        (colregs.rule13, 0.4, 0.5, -20, 0),
    ],
)
def test_rules_13_and_15(rule, a8, delay, alpha, expected):
    assert rule(*real(a8 * (1 - delay), alpha)).item() == four(expected)


@pytest.mark.parametrize(
    ("turn", "loss", "port", "idle", "expected"),
    [
        (0, 0, 0, 0, 1),
        (20, 0, 0, 0, 0.5),
        (0, 0.35, 0, 0, 0.5),
        (5, 0.1, 1, 0, 0.5),
        (0, 0, 0, 1, 0.5),
    ],
)
def test_rule_17(turn, loss, port, idle, expected):
    assert colregs.rule17(*real(turn, loss), flag(port), flag(idle)).item() == four(expected)


NORTH, EAST = (-11.25, 0.0), (0.0, 11.25)
CROSSING = vessel(EAST, -90, 2.5)
X1 = [
    vessel((0, 0), 0, 2.5, changes={1: (30, 2.5)}),
    vessel((22.5, 0), 180, 2.5, changes={1: (210, 2.5)}),
]
X2 = [vessel(NORTH, 0, 2.5, changes={1: (60, 2.5)}), CROSSING]
X3 = [vessel(NORTH, 0, 2.5), CROSSING]
X4 = [vessel(NORTH, 0, 2.5, changes={4: (0, 1.0)}), CROSSING]
X5 = [vessel((0, 0), 0, 2.5, changes={2: (25, 2.5)}), vessel((20, 0), 0, 1.25)]


COLUMNS = ("distance", "S_r", "A8", "P_d", "rule", "total")


@pytest.mark.parametrize(
    ("vessels", "own", "kind", "expected"),
    [
        (X1, 0, "HO", (10, 0.8137, 1, 0.1478, 0.8520, 0.6932)),
        (X1, 1, "HO", (10, 0.8137, 1, 0.1478, 0.8520, 0.6932)),
        (X2, 0, "GW", (7.0711, 0.3702, 1, 0.1713, 0.8287, 0.3068)),
        (X2, 1, "SO", (7.0711, 0.3702, 0, 1, 1, 0.3702)),
        (X3, 0, "GW", (0, 0, 0, 1, 0, 0)),
        (X3, 1, "SO", (0, 0, 0, 1, 0.5, 0)),
        (X4, 0, "GW", (3.4818, 0, 1, 0.6852, 0.3148, 0)),
        (X5, 0, "OT", (13.5165, 0.9309, 0.75, 0.0867, 0.6849, 0.6376)),
        (X5, 1, "OD", (13.5165, 0.9309, 0, 1, 1, 0.9309)),
    ],
)
def test_encounters(vessels, own, kind, expected):
    rows = measured(vessels).encounters
    scores = colregs.score_encounters(rows, HULL_RADIUS)
    scores["distance"] = rows["least_distance"]
    (index,) = ((rows["own"] == own) & (rows["start"] == 0)).nonzero().flatten().tolist()
    assert CLASSES[scores["class"][index]] == kind
    assert [scores[name][index].item() for name in COLUMNS] == four(expected)


@pytest.mark.parametrize(
    ("vessels", "tcpa", "closest", "alpha"),
    [(X1, 4.5, 8, -91.03), (X2, 4.5, None, -103.60), (X5, 16, None, 135.30)],
)
def test_where_encounters_start_and_are_closest(vessels, tcpa, closest, alpha):
    rows = measured(vessels).encounters
    assert rows["tcpa0"][0].item() == four(tcpa)
    assert closest is None or rows["closest"][0] == closest
    assert rows["alpha_closest"][0].item() == pytest.approx(alpha, abs=5e-3)


def test_an_action_after_the_closest_point_is_none():
    own = vessel((-20.25, 0.0), 0, 2.5, changes={14: (60, 2.5)})
    rows = measured([own, CROSSING]).encounters
    scores = colregs.score_encounters(rows, HULL_RADIUS)
    assert rows["closest"][0] < rows["action"][0] == 14
    assert (scores["A8"][0], scores["P_d"][0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("step", "course", "expected"),
    [
        (12, -110, 0.5),  # to port in stage 4
        (12, -70, 1.0),  # to starboard in stage 4
        (2, -70, 0.5),  # an alteration of 20 degrees before
    ],
)
def test_the_vessel_that_stands_on_turns(step, course, expected):
    """At 1.25 m/s TCPA is 9 s at the start, 8 s at decision 2 and 3 s at decision 12."""
    other = vessel(EAST, -90, 1.25, changes={step: (course, 1.25)})
    own = vessel(NORTH, 0, 1.25, changes={3: (60, 1.25)})
    rows = measured([own, other]).encounters
    scores = colregs.score_encounters(rows, HULL_RADIUS)
    assert CLASSES[scores["class"][1]] == "SO"
    assert scores["rule"][1].item() == four(expected)
