"""The Gymnasium face of one robot: its ids, its episodes, and what it refuses."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from marinenav_env.adapters import IDS
from marinenav_env.adapters.gymnasium import GymEnv
from marinenav_env.envs.make import ENVIRONMENTS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from tests.conftest import ROOT, run_python
from tests.marinenav_env.adapters.tasks import TWO
from tests.preloaded import ALONE


def test_every_environment_has_an_id():
    assert set(IDS.values()) == set(ENVIRONMENTS)
    assert set(IDS) <= set(gymnasium.registry)


@pytest.mark.parametrize("name", IDS)
def test_ids_have_gymnasiums_thresholds_and_end_by_themselves(name):
    spec, theirs = gymnasium.spec(name), gymnasium.registry.get(name.removeprefix("marinenav/"))
    assert spec.reward_threshold == (theirs and theirs.reward_threshold)
    assert spec.max_episode_steps is None


@pytest.mark.filterwarnings("ignore:.*Box observation space m.*imum value is.*infinity")
@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_own_check_passes(name):
    check_env(gymnasium.make(name).unwrapped, skip_render_check=True)


def test_ids_are_registered_without_torch():
    program = (
        "import sys; from marinenav_env.adapters import register; register();"
        "import gymnasium; assert 'marinenav/Marine-v0' in gymnasium.registry;"
        "sys.exit('torch' in sys.modules)"
    )
    run_python(ROOT, "-c", program, **{ALONE: "1"})


def test_an_episode_is_gymnasiums():
    """The observations, rewards and end of the classic task, through `gymnasium.make`."""
    env, other = gymnasium.make("marinenav/CartPole-v1"), gymnasium.make("CartPole-v1").unwrapped
    seen, _ = env.reset(seed=5)
    other.reset()
    other.state = seen.astype(np.float64)
    generator, terminated = np.random.default_rng(0), False
    decisions = 0
    while not terminated:
        action = int(generator.integers(2))
        seen, reward, terminated, truncated, _ = env.step(action)
        theirs, their_reward, their_end, _, _ = other.step(action)
        np.testing.assert_allclose(seen, theirs, rtol=1e-4, atol=1e-5)
        assert (reward, terminated, truncated) == (their_reward, their_end, False)
        decisions += 1
    assert 8 < decisions < 200


def test_infos_tell_how_a_lone_robot_ended():
    env = gymnasium.make("marinenav/Marine-v0", config={"reward": {"goal_distance": 15.0}})
    told, ends = [], set()
    for seed in range(6):
        seen, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            side = np.arctan2(seen["self"][1], seen["self"][0]) - seen["self"][4]
            action = np.clip([0.2 + side, 0.2 - side], -1.0, 1.0).astype(np.float32)
            seen, reward, terminated, truncated, infos = env.step(action)
            ended = terminated or truncated
            told.append(bool(infos) == ended)
        ends.add((infos["is_success"], reward > 0.0))
        assert infos["collision"] == (terminated and not infos["is_success"])
    assert all(told)
    assert ends >= {(True, True)}
    assert ends <= {(True, True), (False, False)}


def test_at_the_limit_terminated_wins():
    """Gymnasium's limit sets both."""
    limits = {"config": {"episode": {"max_steps": 10}}}
    env = gymnasium.make("marinenav/CartPole-v1", **limits)
    other = gymnasium.make("CartPole-v1", max_episode_steps=10)
    seen, _ = env.reset(seed=3)
    other.reset()
    other.unwrapped.state = seen.astype(np.float64)
    for _ in range(10):  # always right: the pole falls in the tenth decision
        ends, theirs = (each.step(1)[2:4] for each in (env, other))
    assert (ends, theirs) == ((True, False), (True, True))


def test_episodes_go_on_from_a_seed_and_differ():
    env = GymEnv("cartpole")
    first, second = (env.reset(seed=1)[0], env.reset()[0])
    assert np.array_equal(env.reset(seed=1)[0], first)
    assert np.array_equal(env.reset()[0], second)
    assert not np.array_equal(first, second)
    assert not np.array_equal(GymEnv("cartpole").reset()[0], GymEnv("cartpole").reset()[0])


def test_one_environment_is_one_robot():
    with pytest.raises(ConfigError, match=r"stages\.robots is 2: one robot is one environment"):
        GymEnv(**TWO)


def test_one_environment_plays_one_stage():
    stages = (Stage(1, 0, 0, 30.0), Stage(1, 0, 4, 30.0))
    with pytest.raises(ConfigError, match=r"stages is \['1 robot, .*one world plays one stage"):
        GymEnv(stages=stages)


@pytest.mark.filterwarnings("ignore:.*not in the possible render_modes")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"render_mode": "rgb_array"}, "render_mode is 'rgb_array': leave it out, .*episode.py"),
        (
            {"foo": 3},
            "unexpected keyword argument 'foo': the task 'marine' takes worlds, stages, config, ",
        ),
        ({"worlds": 3}, "worlds is 3: leave it out, this is one world; gymnasium.make_vec makes"),
    ],
)
def test_what_make_refuses(options, message):
    with pytest.raises(ConfigError, match=message):
        gymnasium.make("marinenav/Marine-v0", **options)


def test_a_lone_robot_is_reset_before_it_acts_on_numbers():
    env = gymnasium.make("marinenav/Marine-v0")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="actions hold nan: give finite numbers"):
        env.step(np.array([0.5, np.nan]))
    with pytest.raises(ValueError, match=r"actions have shape \(3,\): give \(2,\)"):
        env.step(np.zeros(3))
    for action in ("x", None):
        with pytest.raises(ValueError, match=f"actions are {action!r}: give numbers"):
            env.step(action)
