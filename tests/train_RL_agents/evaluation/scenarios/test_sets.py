"""The named sets: numbers and coordinates of the specification."""

import math

import pytest

from marinenav_env.config import EnvConfig
from train_RL_agents.evaluation.baselines.registry import Baseline
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.schema import POLICY
from train_RL_agents.evaluation.scenarios.sets import FAST, named_sets

SETS = named_sets()
CASES = {scenario.name: scenario for group in SETS.values() for scenario in group}
STARTS = {
    "180": (45, 0),
    "-90": (0, 45),
    "0s": (-31.5, 0),
    "45": (-31.82, -31.82),
    "45s": (-22.27, -22.27),
    "10": (-44.32, -7.81),
    "15": (-43.47, -11.65),
    "-30": (-38.97, 22.50),
    "-135": (31.82, 31.82),
}
"""Starts of Imazu's targets by their heading."""


def placed(scenario):
    return [vessel.start for vessel in scenario.vessels]


def test_how_many_there_are():
    sizes = {name: len(group) for name, group in SETS.items()}
    assert sizes["imazu"] == 22
    assert sizes["clock"] == sizes["clock-scripted"] == 24
    assert sizes["swap"] == 11
    assert sizes["singles"] == 9
    assert sizes["singles-scripted"] == 16
    assert len(CASES) == sum(sizes.values())


@pytest.mark.parametrize(
    ("case", "headings"),
    [
        (1, ["180"]),
        (4, ["45"]),
        (9, ["-30", "-90"]),
        (13, ["180", "10", "45"]),
        (16, ["45s", "90", "-90"]),
        (17, ["0s", "10", "-45"]),
        (19, ["15", "-15", "-135"]),
    ],
)
def test_starts_of_imazu(case, headings):
    scenario = CASES[f"imazu-{case:02}"]
    own, *others = scenario.vessels
    assert (own.start, own.goal) == ((-45, 0), (45, 0))
    assert [vessel.heading_deg for vessel in others] == [
        float(heading.rstrip("s")) % 360 for heading in headings
    ]
    for vessel, heading in zip(others, headings, strict=True):
        if heading in STARTS:
            assert vessel.start == pytest.approx(STARTS[heading], abs=0.01)
        assert vessel.goal == pytest.approx(tuple(-c for c in vessel.start))
    assert all(vessel.speed == 0.0 and vessel.steer == POLICY for vessel in scenario.vessels)


@pytest.mark.parametrize(
    ("case", "own", "other"),
    [
        ("HO", (-20, 0), (20, 0)),
        ("HO+o", (-20, 0), (20, 3)),
        ("GW135", (-20, 0), (14.14, 14.14)),
        ("GW90", (-20, 0), (0, 20)),
        ("GW45", (-32.66, 0), (-23.10, 23.10)),
        ("SO45", (-32.66, 0), (-23.10, -23.10)),
        ("OT-scripted", (-50, 0), (-25, 0)),
        ("OT+30-scripted", (-40.34, 0), (-17.47, -10.09)),
        ("OT67-scripted", (-75, 0), (-50, 0)),
        ("OD+30-scripted", (0, 0), (-13.86, -8)),
    ],
)
def test_starts_of_single_encounters(case, own, other):
    starts = placed(CASES[case])
    assert starts[0] == pytest.approx(own, abs=0.01)
    assert starts[1] == pytest.approx(other, abs=0.01)


@pytest.mark.parametrize(("case", "kind"), [("OT67", "OT"), ("OD", "OD"), ("OD+30", "OD")])
def test_who_overtakes_whom_is_as_the_case_is_called(case, kind):
    settings = {"seed": 1, "config": EnvConfig(), "discrete": False}
    evaluation = ScenarioEvaluation([CASES[case + "-scripted"]], 4, **settings)
    classes = evaluation.run(Baseline("goal-straight").act).rules["classes"]
    assert classes[kind]["encounters"] >= 4
    assert classes["OD" if kind == "OT" else "OT"]["encounters"] == 0


def test_scripted_vessels_hold_on_and_meet():
    for group in (SETS["imazu-scripted"], SETS["clock-scripted"]):
        for scenario in group:
            own, other = scenario.vessels
            assert (own.steer, other.steer) == (POLICY, "straight")
            assert math.hypot(*own.start) / own.speed == pytest.approx(18.0)
            assert math.hypot(*other.start) / other.speed == pytest.approx(18.0)


def test_traffic():
    arms = {(round(x), round(y)) for x, y in placed(CASES["X8"])}
    assert arms == {(s * w, 0) for s in (-1, 1) for w in (20, 32)} | {
        (0, s * w) for s in (-1, 1) for w in (20, 32)
    }
    assert len(CASES["CHAN1"].buoys) == len(CASES["CHAN2S"].buoys) == 14
    assert len(CASES["GATE3"].buoys) == 10
    assert len(CASES["MERGE4"].vessels) == 4
    circle = [math.dist(*placed(CASES[f"swap-{n:02}"])[:2]) for n in (2, 8, 12, 16)]
    assert circle == pytest.approx([40.0, 15.31, 10.5, 10.5], abs=0.01)
    assert math.hypot(*placed(CASES["swap-16"])[0]) == pytest.approx(26.91, abs=0.01)


@pytest.mark.parametrize("name", CASES)
def test_every_case_can_be_played(name):
    CASES[name].check_against(EnvConfig(), (POLICY, "straight"))
    assert all(vessel.speed <= FAST for vessel in CASES[name].vessels)
