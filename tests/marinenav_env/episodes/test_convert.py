"""Configurations and Tracks of episode files, and what files cannot hold."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.episodes.config import config_of, sections_of
from marinenav_env.episodes.format import Episode, read_episode
from marinenav_env.episodes.tracks import tracks_of
from tests.marinenav_env.rollouts import EPISODES, FILES

SMALL = EPISODES / "calm_policy_3r.json"
DISCRETE = EPISODES / "vortex_discrete_3r_1c.json"


def test_the_configuration_of_a_published_episode_is_the_default_without_noise():
    config = config_of(read_episode(SMALL))
    default = EnvConfig()
    assert config.vessel.radius == pytest.approx(default.vessel.radius, abs=1e-9)
    vessel = replace(config.vessel, radius=default.vessel.radius)
    assert vessel == default.vessel
    assert config.reward == default.reward
    assert config.current == default.current
    assert config.scenario == default.scenario
    perception = default.perception.noiseless()
    assert replace(config.perception, angle=perception.angle) == perception


def test_a_configuration_survives_the_way_through_a_file():
    default = EnvConfig()
    vessel = replace(default.vessel, mass=500.0, substeps=5, left_thrust_rates=(0, -1, -2, 1, 2))
    perception = replace(default.perception, range=30.0, radius_kappa=2.0)
    reward = replace(default.reward, goal_distance=3.0, collision=-7.0)
    current = replace(default.current, edge_speed_max=4.0)
    scenario = replace(default.scenario, height=60.0, buoy_radius_max=2.0)
    config = EnvConfig(
        vessel=vessel, perception=perception, reward=reward, current=current, scenario=scenario
    )
    episode = read_episode(SMALL)
    env, robots = sections_of(config, seed=7, robots=3)
    data = {"env": episode.env | env, "robots": episode.robots | robots}
    assert replace(config_of(Episode(data)), episode=config.episode) == config


@pytest.mark.parametrize(
    ("section", "key", "values", "message"),
    [
        ((), "m", [400.0, 400.0, 500.0], r"robots.m is \[400.0, 400.0, 500.0\]: give all robots"),
        ((), "detect_r", [2.0] * 3, "robots.detect_r is .*: give the collision radius r"),
        (("perception",), "range", [20, 20, 21], "perception.range is .*: give all robots one"),
        (("perception",), "max_obj_num", [7] * 3, r"max_obj_num is \[7, 7, 7\]: give 5"),
    ],
)
def test_what_the_simulator_does_not_know_is_refused(section, key, values, message):
    episode = read_episode(SMALL)
    place = episode.robots
    for name in section:
        place = place[name]
    place[key] = values
    with pytest.raises(ValueError, match=message) as error:
        config_of(episode)
    assert SMALL.name in str(error.value)


def test_tracks_of_a_discrete_episode_with_a_vortex():
    episode = read_episode(DISCRETE)
    tracks, data = tracks_of(episode), episode.data
    lengths = episode.lengths
    assert tracks.acted.sum(0).tolist() == [lengths]
    assert tracks.length.tolist() == [60]
    assert (tracks.decision_time, tracks.hull_radius) == (0.5, episode.robots["r"][0])
    for robot, length in enumerate(lengths):
        states = data["robots"]["trajectory"][robot]
        assert tracks.robot[: length + 1, 0, robot, :13].tolist() == states
        assert (
            tracks.robot[length:, 0, robot, :13] == torch.tensor(states[-1], dtype=torch.float64)
        ).all()
        assert tracks.action[:length, 0, robot].tolist() == data["robots"]["action_history"][robot]
        goal = [tracks.field(name)[-1, 0, robot].item() for name in ("goal_x", "goal_y")]
        assert goal == data["robots"]["goal"][robot]
    (x, y), (gamma,) = data["env"]["cores"]["positions"][0], data["env"]["cores"]["Gamma"]
    sign = 1.0 if data["env"]["cores"]["clockwise"][0] else -1.0
    assert tracks.vortices.tolist() == [[[x, y, sign * gamma]]]
    recorded = data["recorded"]
    assert tracks.reward[:, 0].tolist() == recorded["rewards"]
    assert tracks.field("step_energy")[1:, 0].tolist() == recorded["energy"]
    phi = [[angle or 0.0 for angle in row] for row in recorded["phi"]]
    assert tracks.field("phi")[1:, 0].tolist() == phi
    ego, objects = recorded["obs"][20][1]
    assert tracks.observation.ego[20, 0, 1].tolist() == ego
    assert tracks.observation.mask[20, 0, 1].tolist() == [1.0] * len(objects) + [0.0] * (
        5 - len(objects)
    )
    assert tracks.observation.objects[20, 0, 1, : len(objects)].tolist() == objects


def test_ends_as_recorded():
    tracks = tracks_of(read_episode(EPISODES / "calm_policy_5r_4o_b.json"))
    assert tracks.collided.tolist() == [[False, False, True, True, False]]
    assert tracks.reached.tolist() == [[True, True, False, False, True]]
    assert (0.5 * tracks.acted.sum(0)).tolist() == [[17.0, 18.0, 8.5, 8.5, 26.0]]
    assert not tracks.truncated.any()
    assert tracks.success.tolist() == [False]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_ends_are_found_without_a_recording_too(path):
    episode = read_episode(path)
    recorded = tracks_of(episode)
    del episode.data["recorded"]
    found = tracks_of(episode)
    for name in ("collided", "reached", "terminated", "truncated"):
        assert torch.equal(getattr(found, name), getattr(recorded, name))
    assert found.observation is None


def test_a_scenario_without_actions_has_tracks_of_its_start():
    episode = read_episode(SMALL)
    del episode.data["recorded"]
    episode.robots["action_history"] = [[], [], []]
    episode.robots["trajectory"] = [states[:1] for states in episode.robots["trajectory"]]
    tracks = tracks_of(episode)
    assert tracks.present.tolist() == [[[True] * 3]]
    np.testing.assert_array_equal(tracks.robot[0, 0, :, :2], episode.robots["start"])
