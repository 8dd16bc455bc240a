"""Stages as data: the published six, and what a stage refuses."""

import json
from pathlib import Path

import pytest

from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage, labels_of

REFERENCE = Path(__file__).parents[2] / "reference"


def test_published_stages_are_those_of_the_reference():
    stages = json.loads((REFERENCE / "scenario_stats.json").read_text())
    measured = {
        (entry["robots"], entry["cores"], entry["obstacles"], entry["min_start_goal_dis"])
        for entry in stages
    }
    ours = {
        (stage.robots, stage.vortices, stage.buoys, stage.min_distance_m)
        for stage in PUBLISHED_STAGES
    }
    assert len(PUBLISHED_STAGES) == 6
    assert ours <= measured


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("robots", 0),
        ("robots", 2.5),
        ("robots", True),
        ("vortices", -1),
        ("buoys", -1),
        ("min_distance_m", -0.1),
        ("min_distance_m", float("nan")),
        ("min_distance_m", "far"),
    ],
)
def test_a_stage_refuses_impossible_numbers(field, value):
    good = {"robots": 3, "vortices": 0, "buoys": 0, "min_distance_m": 30.0}
    with pytest.raises(ValueError, match=rf"Stage\.{field} is .*: give"):
        Stage(**(good | {field: value}))


def test_labels_of_several_stages_differ():
    near, far, more = Stage(5, 0, 1, 30.0), Stage(5, 0, 1, 40.5), Stage(5, 0, 2, 40.0)
    labels = ["5 robots, 1 buoy, 30 m", "5 robots, 1 buoy, 40.5 m", "5 robots, 2 buoys"]
    assert labels_of([near, far, more]) == labels
    assert labels_of([far]) == ["5 robots, 1 buoy"]
    twice = labels_of([far, far, near])
    assert twice == [labels[1], f"{labels[1]} (2)", labels[0]]
    assert labels_of(PUBLISHED_STAGES) == [stage.label for stage in PUBLISHED_STAGES]


def test_label_counts_what_is_there():
    assert Stage(5, 0, 1, 40.0).label == "5 robots, 1 buoy"
    assert Stage(1, 2, 0, 40.0).label == "1 robot, 0 buoys, 2 vortices"
