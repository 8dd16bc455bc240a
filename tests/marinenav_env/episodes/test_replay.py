"""Parity with the published simulator: its recorded episodes replay here."""

import copy

import numpy as np
import pytest
import torch

from marinenav_env.episodes.format import Episode, read_episode
from marinenav_env.episodes.replay import at_threshold, check, env_at
from tests.marinenav_env.rollouts import EPISODES, FILES

SMALL = EPISODES / "calm_policy_3r.json"


def changed(**parameters: float) -> Episode:
    """The small episode with all robots' parameters changed."""
    episode = read_episode(SMALL)
    for key, value in parameters.items():
        episode.robots[key] = [value] * 3
    return episode


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_float64_runs_through_within_a_millionth(path, device):
    found = check(read_episode(path), torch.float64, device)
    assert found.wrong_flags == 0
    quantities = (found.position_m, found.heading_rad, found.velocity, found.thrust_n)
    assert max(*quantities, found.observation, found.reward, found.phi_rad) <= 1e-6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_float32_makes_every_decision_within_its_rounding(path, device):
    found = check(read_episode(path), torch.float32, device)
    assert found.wrong_flags == 0
    assert 0.0 < found.share <= 1.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "changes", [{"xUU": -151.0}, {"nR": -981.0}, {"width": 2.51}, {"m": 401.0}]
)
def test_a_slightly_different_vessel_is_found_out(changes, dtype):
    assert not check(changed(**changes), dtype, "cpu").within()


def test_a_slightly_different_action_is_found_out():
    episode = read_episode(SMALL)
    episode.robots["action_history"][1][0][0] *= 1.0 - 1e-6
    found = check(episode, torch.float64, "cpu")
    assert not found.within()
    assert found.wrong_flags == 0


def test_flags_of_the_recordings_are_away_from_their_thresholds():
    assert not at_threshold(read_episode(SMALL), "cpu").any()


def test_a_flag_at_its_threshold_is_recognised():
    """The goal is moved so that robot 0 reaches its edge just so in its tenth decision."""
    episode = read_episode(SMALL)
    x, y = episode.robots["trajectory"][0][10][:2]
    episode.robots["goal"][0] = [x + 2.0, y]
    unsure = at_threshold(episode, "cpu")
    assert unsure[10, 0]
    assert unsure.sum() == 1


def test_nothing_to_replay_is_said():
    empty = read_episode(SMALL)
    empty.robots["action_history"] = [[], [], []]
    with pytest.raises(ValueError, match="action_history is empty: there is nothing to replay"):
        check(empty, torch.float64, "cpu")


def test_worlds_stand_where_the_episode_does():
    episode = read_episode(EPISODES / "vortex_policy_4r_2o_4c.json")
    env = env_at(episode, [0, 39], dtype=torch.float64, device="cpu")
    alive = [[True] * 4, [length > 39 for length in episode.lengths]]
    assert env.alive.tolist() == alive
    assert 0 < sum(alive[1]) < 4
    seen = env.make_buffers()
    env.observe_into(seen)
    recorded = [row[0] for row in episode.recorded["obs"][0]]
    np.testing.assert_allclose(seen.obs.ego[0].numpy(), recorded, atol=1e-7)
    gone = alive[1].index(False)
    last = episode.robots["trajectory"][gone][-1][:2]
    assert env.state.robot[:2, gone, 1].tolist() == last


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"detect_r": 2.0}, "robots.detect_r is .*: give the collision rad"),
        ({"Izz": -980.0}, r"json': vessel.izz is -980.0: give more than 0.0"),
    ],
)
def test_what_the_simulator_does_not_know_is_refused(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        check(changed(**changes), torch.float64, "cpu")
    assert SMALL.name in str(error.value)


def test_a_noisy_episode_is_replayed_without_noise():
    episode = read_episode(SMALL)
    noisy = copy.deepcopy(episode)
    noisy.robots["perception"] |= {"pos_std": [0.05] * 3, "r_mean_ratio": [0.8] * 3}
    env = env_at(noisy, [0], dtype=torch.float64, device="cpu")
    assert env.config.perception == env.config.perception.noiseless()
    assert env.config.perception.radius_mean_ratio == 1.0
    np.testing.assert_array_equal(at_threshold(noisy, "cpu"), at_threshold(episode, "cpu"))
