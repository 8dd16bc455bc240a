"""Safety numbers of hand-made episodes."""

import math

import pytest
import torch

from tests.train_RL_agents.evaluation.trajectories import HULL_RADIUS, measured, vessel
from train_RL_agents.evaluation.intervals import WorldBootstrap
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.safety import collisions, first_action, safety

COLUMNS = ("world", "gap_vessel", "end_vessel", "gap_buoy", "end_buoy", "near_vessel", "near_buoy")
COLUMNS += ("path", "direct", "time", "reached", "collided", "energy", "sternway")
NOBODY = dict.fromkeys(
    ("world", "beta0", "alpha0", "action", "closest", "start", "action_tcpa", "action_distance"),
    torch.zeros(0),
)


def vessels(*rows, worlds):
    """Measures of vessel-episodes given as rows of COLUMNS, without encounters."""
    table = torch.tensor(rows, dtype=torch.float64).T
    columns = dict(zip(COLUMNS, table, strict=True))
    columns["world"] = columns["world"].long()
    nobody = NOBODY | {"world": torch.zeros(0, dtype=torch.int64)}
    return Measures(worlds, columns, nobody, nobody, HULL_RADIUS, 0.5)


FAR = math.inf
ROWS = (
    # world, least and last gap to vessel, to buoy, near misses, path, direct, time, ends, astern
    (0, 1.5, 9.0, 0.5, 5.0, 2, 1, 44.0, 40.0, 20.0, 1, 0, 3e4, 9.0),
    (0, 1.5, 9.0, FAR, FAR, 1, 0, 40.0, 40.0, 20.0, 1, 0, 2e4, 0.0),
    (1, -0.1, -0.1, 3.0, 3.0, 0, 0, 20.0, 20.0, 10.0, 0, 1, 1e4, 0.0),
    (1, -0.1, -0.1, 0.0, -0.2, 0, 0, 20.0, 20.0, 10.0, 0, 1, 1e4, 0.0),
    (2, 4.0, 8.0, -0.2, -0.2, 0, 0, 30.0, 30.0, 15.0, 0, 1, 1e4, 0.0),
    (2, 4.0, 8.0, 6.0, 6.0, 0, 0, 30.0, 30.0, 15.0, 0, 0, 1e4, 0.0),
)


def test_numbers_by_hand():
    numbers = safety(vessels(*ROWS, worlds=3))
    estimates = {name: part for name, part in numbers.items() if isinstance(part, dict)}
    values = {name: part["value"] for name, part in estimates.items() if "value" in part}
    assert numbers["score"] == "v1"
    assert numbers["vessel_episodes"] == 6
    assert numbers["vessel_hours"] == pytest.approx(90.0 / 3600.0)
    assert values == {
        "robot_success": pytest.approx(2 / 6, abs=1e-4),
        "path_ratio": 1.05,
        "robot_energy": 25000.0,
        "sternway": 0.1,
        "collision_vessel": pytest.approx(1 / 3, abs=1e-4),
        "collision_buoy": pytest.approx(2 / 3, abs=1e-4),
        "near_miss_vessel": pytest.approx(2 / 6, abs=1e-4),
        "near_miss_buoy": pytest.approx(1 / 6, abs=1e-4),
        "near_miss_vessel_per_hour": 120.0,
        "near_miss_buoy_per_hour": 40.0,
    }
    gap = numbers["least_gap_vessel"]
    assert (gap["p05_m"]["value"], gap["median_m"]["value"]) == (-0.1, 1.5)
    assert gap["cdf"]["grid_step_m"] == 0.25
    assert len(gap["cdf"]["share"]) == 69
    assert gap["cdf"]["share"][0] == pytest.approx(2 / 6, abs=1e-4)
    assert gap["cdf"]["share"][5:7] == pytest.approx([2 / 6, 4 / 6], abs=1e-4)  # 1.25 and 1.5 m
    assert gap["cdf"]["share"][-1] == 1.0
    assert numbers["least_gap_buoy"]["cdf"]["share"][-1] == pytest.approx(5 / 6, abs=1e-4)
    assert numbers["first_action"]["median_s"]["value"] is None


def test_a_gap_beyond_the_grid_is_censored():
    row = list(ROWS[0])
    row[1] = 17.2
    numbers = safety(vessels(row, worlds=1))["least_gap_vessel"]
    assert numbers["median_m"]["value"] is None
    assert numbers["cdf"]["share"][-1] == 0.0


def test_a_collision_that_rounding_hides_counts_for_the_nearest():
    row = list(ROWS[2])
    row[2], row[4] = 1e-6, 3.0
    measures = vessels(row, worlds=1)
    assert collisions(measures, "vessel").value == 1.0
    assert collisions(measures, "buoy").value == 0.0


def test_first_action_is_censored_at_the_closest_point():
    ships = [
        vessel((-11.25, 0), 0, 2.5, changes={3: (60, 2.5)}),
        vessel((0, 11.25), -90, 2.5),
    ]
    measures = measured(ships)
    numbers = first_action(measures, WorldBootstrap(1))
    # The first turns at decision 3, 3.0 s before the closest point; the other holds on.
    assert numbers["median_s"]["value"] == 1.5
    shares = {name: numbers[name]["value"] for name in ("stage_2", "stage_3", "stage_4", "none")}
    assert sum(shares.values()) == 1.0
    assert shares["none"] == 0.5


@pytest.mark.parametrize(("step", "stage"), [(3, "stage_2"), (9, "stage_3"), (16, "stage_4")])
def test_the_stage_of_the_first_action(step, stage):
    """Head-on at 1 m/s each, 22 m apart: TCPA is 11 s at the start, and falls by 0.5 s."""
    ships = [vessel((0, 0), 0, 1.0, changes={step: (30, 1.0)}), vessel((22, 0.5), 180, 1.0)]
    numbers = first_action(measured(ships), WorldBootstrap(1))
    shares = {name: numbers[name]["value"] for name in ("stage_2", "stage_3", "stage_4", "none")}
    assert shares == dict.fromkeys(shares, 0.0) | {stage: 0.5, "none": 0.5}


def test_motion_gives_separation_path_and_time():
    ships = [vessel((0, 0), 0, 2.0), vessel((30, 6), 180, 2.0), vessel((15, 40), 0, 1.0)]
    columns = measured(ships, steps=20, buoys=[(5.0, -4.0, 1.0), (0.0, 0.0, 0.0)]).vessels
    reach = HULL_RADIUS + 1.0
    assert columns["gap_vessel"][0].item() == pytest.approx(6.0 - 2 * HULL_RADIUS)
    assert columns["gap_buoy"][0].item() == pytest.approx(4.0 - reach)
    assert columns["end_buoy"][0].item() == pytest.approx(math.hypot(15, 4) - reach)
    assert columns["near_vessel"].tolist() == [1, 1, 0]
    assert columns["near_buoy"].tolist() == [1, 0, 0]
    assert columns["path"].tolist() == pytest.approx([20.0, 20.0, 10.0])
    assert columns["direct"].tolist() == pytest.approx([20.0, 20.0, 10.0])
    assert columns["time"].tolist() == [10.0, 10.0, 10.0]


def test_sternway_is_motion_against_the_heading():
    ships = [
        vessel((0, 0), 30, 2.0, changes={4: (30, -1.0), 7: (30, -0.05), 9: (30, 2.0)}),
        vessel((0, 60), 200, 2.0),
    ]
    assert measured(ships, steps=20).vessels["sternway"].tolist() == [1.5, 0.0]


def test_the_least_gap_lies_between_two_decisions():
    ships = [vessel((0, 0), 0, 2.0), vessel((1, 10), -90, 2.0)]
    columns = measured(ships, steps=20).vessels
    assert columns["gap_vessel"][0].item() == pytest.approx(9 / math.sqrt(2) - 2 * HULL_RADIUS)
