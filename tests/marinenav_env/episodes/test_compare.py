"""Comparison of a replay with its recording: every planted difference is found."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from marinenav_env.episodes.compare import (
    RUN_THROUGH,
    STEP_BY_STEP,
    Deviations,
    Replayed,
    Tolerance,
    angle_between,
    compare,
)
from marinenav_env.episodes.format import Episode, read_episode

EPISODES = Path(__file__).parents[2] / "reference" / "episodes"
PLANTED = 3e-3


@pytest.fixture(scope="module")
def episode() -> Episode:
    """An episode with collisions, goals and encounters under COLREGs."""
    return read_episode(EPISODES / "calm_policy_5r_4o_b.json")


@pytest.fixture
def perfect(episode) -> Replayed:
    """The replay that a perfect simulator makes of it."""
    recorded = episode.recorded
    lengths = np.array([len(actions) for actions in episode.action_history])
    states = np.zeros((episode.decisions, episode.robots, 13))
    for robot, rows in enumerate(episode.trajectory):
        states[: len(rows) - 1, robot] = rows[1:]
    phi = np.nan_to_num(np.concatenate((recorded.phi[:1] * np.nan, recorded.phi)))
    return Replayed(
        states=states,
        reward=recorded.rewards.copy(),
        collision=recorded.collision.copy(),
        reach_goal=recorded.reach_goal.copy(),
        alive=np.arange(1, episode.decisions + 1)[:, None] < lengths,
        phi=phi,
        ego=np.nan_to_num(recorded.obs.ego),
        objects=recorded.obs.objects.copy(),
        mask=recorded.obs.mask.copy(),
    )


def test_a_perfect_replay_is_within(episode, perfect):
    found = compare(episode, perfect, RUN_THROUGH)
    assert found == Deviations(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 52, 0.0)
    assert found.within()


PLANTS = {
    "position_m": ("states", (7, 4, 1)),
    "heading_rad": ("states", (50, 4, 2)),
    "velocity": ("states", (0, 0, 8)),
    "thrust_n": ("states", (16, 2, 12)),
    "observation": ("ego", (0, 0, 3)),
    "reward": ("reward", (51, 4)),
}


@pytest.mark.parametrize(("quantity", "plant"), PLANTS.items(), ids=PLANTS)
@pytest.mark.parametrize("tolerance", [RUN_THROUGH, STEP_BY_STEP], ids=["absolute", "relative"])
def test_a_planted_deviation_shows_in_its_quantity_only(
    quantity, plant, tolerance, episode, perfect
):
    name, place = plant
    getattr(perfect, name)[place] += PLANTED
    found = compare(episode, perfect, tolerance)
    assert getattr(found, quantity) == pytest.approx(PLANTED)
    others = set(PLANTS) - {quantity}
    assert all(getattr(found, other) == 0.0 for other in others)
    assert not found.within() if tolerance is RUN_THROUGH else found.share > 0.0


def test_a_deviation_of_an_object_shows_in_the_observation(episode, perfect):
    time, robot = np.argwhere(episode.recorded.obs.count > 1)[5]
    perfect.objects[time, robot, 1, 4] -= PLANTED
    assert compare(episode, perfect, RUN_THROUGH).observation == pytest.approx(PLANTED)


def test_a_deviation_of_phi_shows(episode, perfect):
    time, robot = np.argwhere(np.isfinite(episode.recorded.phi))[0]
    perfect.phi[time + 1, robot] += PLANTED
    found = compare(episode, perfect, RUN_THROUGH)
    assert found.phi_rad == pytest.approx(PLANTED)
    assert found.wrong_flags == 0


def _flip(name, place):
    def plant(replayed):
        getattr(replayed, name)[place] ^= True

    return plant


def _unsee_object(replayed):
    time, robot = np.argwhere(replayed.mask.sum(axis=-1) > 0)[3]
    replayed.mask[time, robot, int(replayed.mask[time, robot].sum()) - 1] = 0.0


def _forget_colregs(replayed):
    time, robot = np.argwhere(replayed.phi > 0.0)[0]
    replayed.phi[time, robot] = 0.0


WRONG = {
    "collision": (_flip("collision", (3, 1)), 1),
    "goal": (_flip("reach_goal", (33, 0)), 1),
    "goes on": (_flip("alive", (20, 0)), 2),  # as a robot that goes on, and as one that is not done
    "object": (_unsee_object, 1),
    "COLREGs": (_forget_colregs, 1),
}


@pytest.mark.parametrize(("plant", "count"), WRONG.values(), ids=WRONG)
def test_wrong_flags_are_counted(plant, count, episode, perfect):
    plant(perfect)
    found = compare(episode, perfect, RUN_THROUGH)
    assert found.wrong_flags == count
    assert not found.within()


def test_a_flag_at_its_threshold_is_left_out(episode, perfect):
    perfect.reach_goal[33, 0] ^= True
    unsure = np.zeros((episode.decisions + 1, episode.robots), dtype=bool)
    unsure[34, 0] = True
    assert compare(episode, perfect, STEP_BY_STEP, unsure).within()
    unsure[34, 0], unsure[33, 0] = False, True
    assert not compare(episode, perfect, STEP_BY_STEP, unsure).within()


def test_what_happens_after_a_robot_ended_does_not_count(episode, perfect):
    perfect.states[17:, 2] += 1.0
    perfect.reward[17:, 2] += 1.0
    perfect.ego[18:, 2] += 1.0
    assert compare(episode, perfect, RUN_THROUGH).within()


def test_without_a_recording_only_trajectories_count(episode, perfect):
    perfect.reward[3, 1] += 1.0
    perfect.states[7, 4, 1] += PLANTED
    found = compare(replace(episode, recorded=None), perfect, RUN_THROUGH)
    assert (found.observation, found.reward, found.phi_rad) == (None, None, None)
    assert found.position_m == pytest.approx(PLANTED)
    perfect.alive[20, 0] ^= True
    assert compare(replace(episode, recorded=None), perfect, RUN_THROUGH).wrong_flags == 1


def test_with_noise_only_trajectories_and_ends_count(episode, perfect):
    noisy = replace(episode.perception, pos_std=np.full(5, 0.05))
    perfect.reward[3, 1] += 1.0
    perfect.phi[:] = 0.0
    perfect.collision[16, 2] ^= True
    found = compare(replace(episode, perception=noisy), perfect, RUN_THROUGH)
    assert (found.observation, found.reward, found.phi_rad) == (None, None, None)
    assert found.wrong_flags == 1


@pytest.mark.parametrize(("quantity", "plant"), PLANTS.items(), ids=PLANTS)
@pytest.mark.parametrize("tolerance", [RUN_THROUGH, STEP_BY_STEP], ids=["absolute", "relative"])
def test_a_replay_that_is_not_finite_is_not_within(quantity, plant, tolerance, episode, perfect):
    fine = compare(episode, perfect, tolerance)
    name, place = plant
    getattr(perfect, name)[place] = math.nan
    found = compare(episode, perfect, tolerance)
    assert math.isnan(getattr(found, quantity))
    assert not found.within()
    assert not Deviations.worst([fine, found]).within()
    assert not Deviations.worst([found, fine]).within()


def test_a_recorded_phi_that_is_not_finite_is_not_within(episode, perfect):
    time, robot = np.argwhere(np.isfinite(episode.recorded.phi))[0]
    phi = episode.recorded.phi.copy()
    phi[time, robot] = math.nan
    damaged = replace(episode, recorded=replace(episode.recorded, phi=phi))
    found = compare(damaged, perfect, RUN_THROUGH)
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
