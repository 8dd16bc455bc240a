"""Recorded episodes are files of the published format, and replay."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from marinenav_env.config import (
    EnvConfig,
    EpisodeConfig,
    PerceptionConfig,
    RewardConfig,
    ScenarioConfig,
    VesselConfig,
)
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.envs.state import STAGE_FIELDS
from marinenav_env.episodes.config import config_of
from marinenav_env.episodes.format import read_episode, write_episode
from marinenav_env.episodes.record import episodes_of, record_episodes
from marinenav_env.episodes.replay import check
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.fields import ConfigError, build
from marinenav_env.tracks import record_tracks

STAGES = (PUBLISHED_STAGES[0], Stage(robots=5, vortices=4, buoys=4, min_distance_m=40.0))


def make_env(*, noise: bool, discrete: bool, steps: int = 60) -> MarineNavEnv:
    config = EnvConfig(episode=EpisodeConfig(max_steps=steps))
    if not noise:
        config = replace(config, perception=config.perception.noiseless())
    env = MarineNavEnv(
        4, stages=STAGES, config=config, discrete=discrete, dtype=torch.float64, seed=3
    )
    env.set_stage(torch.tensor([0, 1, 0, 1]))
    return env


def steer(observation: Observation) -> torch.Tensor:
    """Turn to the goal and go, blind to everything else."""
    ego = observation.ego
    turn = 0.5 * torch.atan2(ego[..., 1], ego[..., 0]) - ego[..., 4]
    return torch.stack((0.4 + turn - ego[..., 5] / 800.0, 0.4 - turn - ego[..., 6] / 800.0), dim=-1)


def steer_discretely(observation: Observation) -> torch.Tensor:
    choice = 3 * 5 + 3 - 4 * (observation.ego[..., 5] > 300.0) * (observation.ego[..., 1] > 0.0)
    return choice.long()


@pytest.mark.parametrize("noise", [False, True], ids=["exact", "noisy"])
@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "discrete"])
def test_recordings_replay_from_their_files(noise, discrete, tmp_path):
    env = make_env(noise=noise, discrete=discrete)
    episodes = record_episodes(env, steer_discretely if discrete else steer, seed=3)
    assert [len(episode.lengths) for episode in episodes] == [3, 5, 3, 5]
    vortices = [len(episode.env["cores"]["Gamma"]) > 0 for episode in episodes]
    assert vortices == [False, True, False, True]
    for episode in episodes:
        path = tmp_path / episode.name
        write_episode(episode, path)
        read = read_episode(path)
        assert read == episode
        found = check(read, torch.float64, "cpu")
        assert found.within()
        assert found.share < 1e-6
        assert (found.observation is None) == noise
        assert check(read, torch.float32, "cpu").within()


@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "discrete"])
def test_tracks_come_back_from_a_file(discrete):
    policy = steer_discretely if discrete else steer
    env = make_env(noise=True, discrete=discrete)
    recorded = record_tracks(env, policy, 60, observations=True)
    for world, episode in enumerate(episodes_of(recorded, env.config, seed=3)):
        known, found = recorded.worlds([world]), tracks_of(episode)
        steps, robots = episode.decisions, len(episode.lengths)
        for name in ("acted", "action", "reward", "terminated", "truncated"):
            kept = getattr(known, name)[:steps, :, :robots]
            acting = kept[known.acted[:steps, :, :robots]]
            assert torch.equal(getattr(found, name)[found.acted], acting)
        for name in found.fields:
            present = found.present.clone()
            present[0] &= name not in ("step_energy", "phi", "contact")  # not said of the reset
            kept = known.field(name)[: steps + 1, :, :robots]
            assert torch.equal(found.field(name)[present], kept[present])
        for part, kept in zip(found.observation, known.observation, strict=True):
            assert torch.equal(part[found.present], kept[: steps + 1, :, :robots][found.present])
        for name in ("buoys", "vortices"):
            count = getattr(found, name).shape[1]
            assert torch.equal(getattr(found, name), getattr(known, name)[:, :count])
            assert not getattr(known, name)[:, count:].any()


def test_a_recording_says_how_robots_ended():
    episodes = record_episodes(make_env(noise=False, discrete=False), steer, seed=3)
    states = set()
    for episode in episodes:
        names = ("deactivated", "rewards", "dones", "infos")
        deactivated, rewards, dones, infos = (np.array(episode.recorded[name]) for name in names)
        lengths = np.array(episode.lengths)
        acted = np.arange(episode.decisions)[:, None] < lengths
        np.testing.assert_array_equal(deactivated, ~acted)
        present = [[seen is not None for seen in row] for row in episode.recorded["obs"][1:]]
        np.testing.assert_array_equal(present, acted)
        assert (rewards[~acted] == 0.0).all()
        assert dones[~acted].all()
        assert (infos[~acted] != "normal").all()
        last = lengths - 1, np.arange(len(lengths))
        states |= set(infos[last].tolist())
        assert (lengths[infos[last] == "too long episode"] == 60).all()
        assert (rewards[last][infos[last] == "reach goal"] > 9).all()
    assert states == {"collision", "reach goal", "too long episode"}


def test_a_robot_stopped_by_another_s_collision_is_not_late():
    config = EnvConfig(episode=EpisodeConfig(max_steps=60, stop_on_collision=True))
    env = MarineNavEnv(4, stages=STAGES[1:], config=config, dtype=torch.float64, seed=3)
    stopped = 0
    for episode in record_episodes(env, steer, seed=3):
        last = zip(episode.recorded["infos"][-1], episode.recorded["dones"][-1], strict=True)
        if "collision" in episode.recorded["infos"][-1]:
            stopped += sum(info == "normal" and not done for info, done in last)
            assert "too long episode" not in episode.recorded["infos"][-1]
    assert stopped > 0


def test_unusable_actions_are_recorded_as_they_act():
    env = make_env(noise=False, discrete=False, steps=3)
    episodes = record_episodes(
        env, lambda seen: torch.full((*seen.ego.shape[:2], 2), torch.nan), seed=3
    )
    assert not np.any(episodes[0].robots["action_history"])
    episodes = record_episodes(env, lambda seen: torch.full((*seen.ego.shape[:2], 2), 7.0), seed=3)
    assert (np.array(episodes[0].robots["action_history"]) == 1.0).all()
    assert check(episodes[0], torch.float64, "cpu").within()


def test_what_would_not_replay_is_refused():
    with pytest.raises(ConfigError, match=r"dtype = torch.float32: make the environment with"):
        record_episodes(MarineNavEnv(1), steer, seed=0)


def test_of_stacked_frames_the_newest_is_recorded():
    def held(seen):
        return torch.full((*seen.ego.shape[:2], 2), 0.1)

    single, stacked = (
        record_episodes(MarineNavEnv(1, dtype=torch.float64, stack_k=frames, seed=3), held, seed=3)[
            0
        ]
        for frames in (1, 3)
    )
    assert single == stacked
    assert check(stacked, torch.float64, "cpu").within()


LACKING = {
    "margin": ("colregs", "margin", 1.5, 1.0),
    "zone": ("colregs", "head_on_x_max", 15.0, 17.0),
}


@pytest.mark.parametrize(("group", "field", "value", "replayed"), LACKING.values(), ids=LACKING)
def test_a_parameter_that_files_cannot_hold_is_refused(group, field, value, replayed):
    config = EnvConfig()
    config = replace(config, **{group: replace(getattr(config, group), **{field: value})})
    env = MarineNavEnv(1, config=config, dtype=torch.float64)
    message = rf"{group}\.{field} is {value}: the episode format .* take {replayed}; .* or set env"
    with pytest.raises(ConfigError, match=message):
        record_episodes(env, steer, seed=0)


def test_all_that_files_cannot_hold_is_named_with_what_to_set():
    env = {"colregs": {"head_on_x_max": 22.0, "margin": 2.0}, "wind": {"speed": (3.0, 4.0)}}
    with pytest.raises(ConfigError) as refused:
        record_episodes(MarineNavEnv(1, config=build(EnvConfig, env)), steer, seed=0)
    message = str(refused.value)
    assert message.startswith("env.wind.speed is (3.0, 4.0), env.colregs.margin is 2.0, env.col")
    assert message.partition(", or set ")[2].removesuffix(" for the recording").split() == [
        "env.wind.speed=[0.0,0.0]",
        "env.colregs.margin=1.0",
        "env.colregs.head_on_x_max=17.0",
    ]


def test_parameters_that_files_hold_or_a_replay_does_not_need_may_differ(tmp_path):
    """Also a map narrower than twice the published margins replays."""
    scenario = ScenarioConfig(
        width=9.0, height=50.0, start_margin=0.5, buoy_margin=1.0, placement_tries=400
    )
    vessel = VesselConfig(mass=450.0, substeps=8, y_dot_r=3.0, left_thrust_rates=(0, -1, -2, 1, 2))
    config = EnvConfig(
        vessel=vessel,
        perception=PerceptionConfig(range=15.0).noiseless(),
        reward=RewardConfig(goal=7.0, goal_distance=3.0),
        scenario=scenario,
        episode=EpisodeConfig(max_steps=9, stop_on_collision=True),
    )
    env = MarineNavEnv(2, stages=(Stage(2, 0, 0, 12.0),), config=config, dtype=torch.float64)
    for episode in record_episodes(env, steer, seed=0):
        path = tmp_path / episode.name
        write_episode(episode, path)
        assert check(read_episode(path), torch.float64, "cpu").within()


OWN_BOATS = {
    "thrust rate": {"max_thrust_rate": 240.0},
    "transport term": {"mass": 180.0, "transport_term": True},
    "centre of gravity": {"x_g": 0.2, "x_uuu": -3.0},
    "cross-flow": {"cross_flow": 20.0, "thruster_spread": 0.7},
    "part of another": {"name": "otter", "mass": 90.0},
}


@pytest.mark.parametrize("values", OWN_BOATS.values(), ids=OWN_BOATS)
def test_a_vessel_given_by_values_is_in_the_file(values, tmp_path):
    config = build(EnvConfig, {"vessel": values, "episode": {"max_steps": 20}})
    config = replace(config, perception=config.perception.noiseless())
    env = MarineNavEnv(1, config=config, dtype=torch.float64)
    (episode,) = record_episodes(env, steer, seed=0)
    write_episode(episode, tmp_path / "own.json")
    read = read_episode(tmp_path / "own.json")
    assert config_of(read).vessel == config.vessel
    found = check(read, torch.float64, "cpu")
    assert found.within()
    assert found.steps == 20


def test_a_world_without_a_robot_is_named():
    env = make_env(noise=False, discrete=False)
    env.state.stage[1, STAGE_FIELDS.index("min_distance_m")] = 100.0
    message = r"world 1 \(stage Stage\(robots=5, .*\) has no robot, .* use another seed"
    with pytest.raises(ConfigError, match=message):
        record_episodes(env, steer, seed=0)
