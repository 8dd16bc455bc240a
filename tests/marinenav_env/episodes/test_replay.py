"""Parity with the published simulator: its recorded episodes replay here."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.episodes.convert import config_of, perception_of, settings_of, vessels_of
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.replay import at_threshold, check
from marinenav_env.episodes.worlds import env_for, place_worlds

EPISODES = Path(__file__).parents[2] / "reference" / "episodes"
FILES = sorted(EPISODES.glob("*.json"))
SMALL = EPISODES / "calm_policy_3r.json"


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
    "changes", [{"x_uu": -151.0}, {"n_r": -981.0}, {"width": 2.51}, {"m": 401.0}]
)
def test_a_slightly_different_vessel_is_found_out(changes, dtype):
    episode = read_episode(SMALL)
    vessels = replace(
        episode.vessels, **{name: np.full(3, value) for name, value in changes.items()}
    )
    assert not check(replace(episode, vessels=vessels), dtype, "cpu").within()


def test_a_slightly_different_action_is_found_out():
    episode = read_episode(SMALL)
    actions = [history.copy() for history in episode.action_history]
    actions[1][0, 0] *= 1.0 - 1e-6
    found = check(replace(episode, action_history=tuple(actions)), torch.float64, "cpu")
    assert not found.within()
    assert found.wrong_flags == 0


def test_flags_of_the_recordings_are_away_from_their_thresholds():
    assert not at_threshold(read_episode(SMALL), "cpu").any()


def test_a_flag_at_its_threshold_is_recognised():
    """The goal is moved so that robot 0 reaches its edge just so in its tenth decision."""
    episode = read_episode(SMALL)
    goal = episode.missions.goal.copy()
    goal[0] = episode.trajectory[0][10, :2] + np.array([2.0, 0.0])
    episode = replace(episode, missions=replace(episode.missions, goal=goal))
    unsure = at_threshold(episode, "cpu")
    assert unsure[10, 0]
    assert unsure.sum() == 1


def test_nothing_to_replay_is_said():
    episode = read_episode(SMALL)
    empty = replace(
        episode,
        action_history=tuple(actions[:0] for actions in episode.action_history),
        trajectory=tuple(states[:1] for states in episode.trajectory),
        recorded=None,
    )
    with pytest.raises(ValueError, match="action_history is empty: there is nothing to replay"):
        check(empty, torch.float64, "cpu")


def test_worlds_of_several_episodes_stand_side_by_side():
    paths = [EPISODES / f"{name}.json" for name in ("calm_policy_5r_4o", "vortex_policy_4r_2o_4c")]
    first, second = (read_episode(path) for path in paths)
    env = env_for([first, second], 3, dtype=torch.float64, device="cpu")
    place_worlds(env, [(first, 60), (second, 0), (second, 41)])
    assert env.alive.tolist() == [
        [True, True, False, False, False],
        [True, True, True, True, False],
        [False] * 5,
    ]
    seen = env.make_buffers()
    env.observe_into(seen)
    recorded = second.recorded.obs.ego[0]
    np.testing.assert_allclose(seen.obs.ego[1, :4].numpy(), recorded, atol=1e-7)
    robot = env.state.robot[:2, 2, 0].numpy()
    np.testing.assert_array_equal(robot, first.trajectory[2][-1, :2])


def test_the_configuration_of_a_published_episode_is_the_default_without_noise():
    config = config_of(read_episode(SMALL), 5)
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
    config = EnvConfig(vessel, perception, default.colregs, reward, current, scenario)
    episode = replace(
        read_episode(SMALL),
        env=settings_of(config, 7, 3),
        vessels=vessels_of(config, 3),
        perception=perception_of(config, 3, 5),
    )
    back = config_of(episode, 5)
    assert replace(back, episode=config.episode) == config


@pytest.mark.parametrize(
    ("section", "changes", "message"),
    [
        ("vessels", {"m": np.array([400.0, 400.0, 500.0])}, r"robots.m is \[400.0, 400.0, 500.0\]"),
        ("vessels", {"detect_r": np.full(3, 2.0)}, "robots.detect_r is .*: give the collision rad"),
        (
            "vessels",
            {"izz": np.full(3, -980.0)},
            r"json': VesselConfig.izz is -980.0: the inertia must",
        ),
        ("perception", {"max_obj_num": np.full(3, 7)}, r"max_obj_num is \[7, 7, 7\]: give 5"),
    ],
)
def test_what_the_simulator_does_not_know_is_refused(section, changes, message):
    episode = read_episode(SMALL)
    strange = replace(episode, **{section: replace(getattr(episode, section), **changes)})
    with pytest.raises(ValueError, match=message) as error:
        check(strange, torch.float64, "cpu")
    assert SMALL.name in str(error.value)


def test_a_noisy_episode_is_replayed_without_noise():
    episode = read_episode(SMALL)
    noisy = replace(episode, perception=perception_of(EnvConfig(), 3, 5))
    env = env_for([noisy], 1, dtype=torch.float64, device="cpu")
    assert env.config.perception == EnvConfig().perception.noiseless()
    assert not at_threshold(noisy, "cpu").any()


def test_episodes_of_different_parameters_do_not_share_an_environment():
    episode = read_episode(SMALL)
    heavy = replace(
        episode, vessels=replace(episode.vessels, m=np.full(3, 500.0)), name="heavy.json"
    )
    with pytest.raises(ValueError, match=r"calm_policy_3r.json' and 'heavy.json' differ"):
        env_for([episode, heavy], 2, dtype=torch.float64, device="cpu")
