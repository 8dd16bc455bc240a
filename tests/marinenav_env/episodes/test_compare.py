"""Comparison of a replay with its recording: every planted difference is found."""

import math

import numpy as np
import pytest
import torch

from marinenav_env.episodes.compare import (
    RUN_THROUGH,
    STEP_BY_STEP,
    Deviations,
    Tolerance,
    angle_between,
    compare,
)
from marinenav_env.episodes.format import Episode, read_episode
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.tracks import Tracks
from tests.marinenav_env.rollouts import EPISODES

PLANTED = 3e-3


@pytest.fixture
def episode() -> Episode:
    """An episode with collisions, goals and encounters under COLREGs."""
    return read_episode(EPISODES / "calm_policy_5r_4o_b.json")


@pytest.fixture
def perfect(episode) -> Tracks:
    """The replay that a perfect simulator makes of it."""
    return tracks_of(episode)


def test_a_perfect_replay_is_within(episode, perfect):
    found = compare(episode, perfect, RUN_THROUGH)
    assert found == Deviations(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 52, 0.0)
    assert found.within()


PLANTS = {
    "position_m": ("y", (8, 0, 4)),
    "heading_rad": ("heading", (51, 0, 4)),
    "velocity": ("yaw", (1, 0, 0)),
    "thrust_n": ("right_thrust", (17, 0, 2)),
    "observation": ("ego", (0, 0, 0, 3)),
    "reward": ("reward", (51, 0, 4)),
}


def rows_of(tracks: Tracks, name: str) -> torch.Tensor:
    if name in tracks.fields:
        return tracks.field(name)
    return getattr(tracks if name == "reward" else tracks.observation, name)


@pytest.mark.parametrize(("quantity", "plant"), PLANTS.items(), ids=PLANTS)
@pytest.mark.parametrize("tolerance", [RUN_THROUGH, STEP_BY_STEP], ids=["absolute", "relative"])
def test_a_planted_deviation_shows_in_its_quantity_only(
    quantity, plant, tolerance, episode, perfect
):
    name, place = plant
    rows_of(perfect, name)[place] += PLANTED
    found = compare(episode, perfect, tolerance)
    assert getattr(found, quantity) == pytest.approx(PLANTED)
    others = set(PLANTS) - {quantity}
    assert all(getattr(found, other) == 0.0 for other in others)
    assert not found.within() if tolerance is RUN_THROUGH else found.share > 0.0


def test_a_deviation_of_an_object_shows_in_the_observation(episode, perfect):
    time, _, robot = (perfect.observation.mask.sum(-1) > 1).nonzero()[5]
    perfect.observation.objects[time, 0, robot, 1, 4] -= PLANTED
    assert compare(episode, perfect, RUN_THROUGH).observation == pytest.approx(PLANTED)


def test_a_deviation_of_phi_shows(episode, perfect):
    time, _, robot = perfect.field("phi").nonzero()[0]
    perfect.field("phi")[time, 0, robot] += PLANTED
    found = compare(episode, perfect, RUN_THROUGH)
    assert found.phi_rad == pytest.approx(PLANTED)
    assert found.wrong_flags == 0


def test_the_phi_of_the_reset_is_not_recorded(episode, perfect):
    episode.recorded["apply_colregs"][0][0] = True
    perfect.field("phi")[0, 0, 0] = 0.3
    found = compare(episode, perfect, RUN_THROUGH)
    assert (found.phi_rad, found.wrong_flags) == (0.0, 0)


def _collide(tracks):
    tracks.field("contact")[4, 0, 1] = 1.0
    tracks.terminated[3, 0, 1] = True


def _miss_the_goal(tracks):
    tracks.terminated[33, 0, 0] = False
    tracks.truncated[33, 0, 0] = True


def _stop(tracks):
    tracks.truncated[20, 0, 0] = True


def _unsee_object(tracks):
    time, _, robot = (tracks.observation.mask.sum(-1) > 0).nonzero()[3]
    count = int(tracks.observation.mask[time, 0, robot].sum())
    tracks.observation.mask[time, 0, robot, count - 1] = 0.0


def _forget_colregs(tracks):
    time, _, robot = tracks.field("phi").nonzero()[0]
    tracks.field("phi")[time, 0, robot] = 0.0


WRONG = {
    "collision": (_collide, 3),  # besides, the robot continues, and is not done
    "goal": (_miss_the_goal, 1),
    "continues": (_stop, 2),  # as a robot that continues, and as one that is not done
    "object": (_unsee_object, 1),
    "COLREGs": (_forget_colregs, 1),
}


@pytest.mark.parametrize(("plant", "count"), WRONG.values(), ids=WRONG)
def test_wrong_flags_are_counted(plant, count, episode, perfect):
    plant(perfect)
    found = compare(episode, perfect, RUN_THROUGH)
    assert found.wrong_flags == count
    assert not found.within()


@pytest.mark.parametrize("key", ["collision", "reach_goal", "dones"])
def test_a_wrong_flag_of_the_recording_is_counted(key, episode, perfect):
    episode.recorded[key][16][2] ^= True  # the robot's last decision, a collision
    assert compare(episode, perfect, RUN_THROUGH).wrong_flags == 1


def test_a_flag_at_its_threshold_is_left_out(episode, perfect):
    _miss_the_goal(perfect)
    unsure = np.zeros((episode.decisions + 1, len(episode.lengths)), dtype=bool)
    unsure[34, 0] = True
    assert compare(episode, perfect, STEP_BY_STEP, unsure).within()
    unsure[34, 0], unsure[33, 0] = False, True
    assert not compare(episode, perfect, STEP_BY_STEP, unsure).within()


def test_what_happens_after_a_robot_ended_does_not_count(episode, perfect):
    perfect.robot[18:, 0, 2] += 1.0
    perfect.reward[17:, 0, 2] += 1.0
    perfect.observation.ego[18:, 0, 2] += 1.0
    assert compare(episode, perfect, RUN_THROUGH).within()


def test_without_a_recording_only_trajectories_count(episode, perfect):
    del episode.data["recorded"]
    perfect.reward[3, 0, 1] += 1.0
    perfect.field("y")[8, 0, 4] += PLANTED
    found = compare(episode, perfect, RUN_THROUGH)
    assert (found.observation, found.reward, found.phi_rad) == (None, None, None)
    assert found.position_m == pytest.approx(PLANTED)
    _stop(perfect)
    assert compare(episode, perfect, RUN_THROUGH).wrong_flags == 1


def test_with_noise_only_trajectories_and_ends_count(episode, perfect):
    episode.robots["perception"]["pos_std"] = [0.05] * 5
    perfect.reward[3, 0, 1] += 1.0
    perfect.field("phi")[:] = 0.0
    perfect.field("contact")[17, 0, 2] = 0.0  # reached its goal instead: two flags
    found = compare(episode, perfect, RUN_THROUGH)
    assert (found.observation, found.reward, found.phi_rad) == (None, None, None)
    assert found.wrong_flags == 2


@pytest.mark.parametrize(("quantity", "plant"), PLANTS.items(), ids=PLANTS)
@pytest.mark.parametrize("tolerance", [RUN_THROUGH, STEP_BY_STEP], ids=["absolute", "relative"])
def test_a_replay_that_is_not_finite_is_not_within(quantity, plant, tolerance, episode, perfect):
    fine = compare(episode, perfect, tolerance)
    name, place = plant
    rows_of(perfect, name)[place] = math.nan
    found = compare(episode, perfect, tolerance)
    assert math.isnan(getattr(found, quantity))
    assert not found.within()
    assert not Deviations.worst([fine, found]).within()
    assert not Deviations.worst([found, fine]).within()


def test_a_recorded_phi_that_is_not_finite_is_not_within(episode, perfect):
    time, _, robot = perfect.field("phi").nonzero()[0]
    episode.recorded["phi"][time - 1][robot] = math.nan
    found = compare(episode, perfect, RUN_THROUGH)
    assert math.isnan(found.phi_rad)
    assert not found.within()


def test_angles_are_compared_modulo_a_turn():
    first = np.array([0.1, 6.2, -3.1, 0.0])
    second = np.array([0.3, 0.0, 3.1, 4.0 * np.pi])
    expected = [0.2, 2.0 * np.pi - 6.2, 2.0 * np.pi - 6.2, 0.0]
    np.testing.assert_allclose(angle_between(first, second), expected, atol=1e-12)


def test_a_relative_tolerance_grows_with_the_value():
    difference, known = np.array([1e-3, 2e-3]), np.array([0.5, -40.0])
    assert Tolerance(1e-3, relative=False).share(difference, known) == pytest.approx(2.0)
    assert Tolerance(1e-3, relative=True).share(difference, known) == pytest.approx(1.0)
    assert Tolerance(1e-3, relative=True).share(np.array([]), np.array([])) == 0.0


def test_the_worst_of_several():
    first = Deviations(1.0, 0.0, 3.0, 0.0, None, 0.5, None, 2, 10, 0.1)
    second = Deviations(0.5, 1.0, 2.0, 4.0, 7.0, 0.25, None, 1, 20, 0.9)
    worst = Deviations.worst([first, second])
    assert worst == Deviations(1.0, 1.0, 3.0, 4.0, 7.0, 0.5, None, 3, 30, 0.9)
