"""The Gymnasium face of all robots of many worlds."""

import itertools

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import marinenav_env.adapters.gymnasium
from marinenav_env.adapters import IDS, convert
from marinenav_env.adapters.gymnasium import GymVectorEnv
from marinenav_env.envs.make import ENVIRONMENTS, make
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from tests.marinenav_env.adapters.tasks import TWO

SHORT = {"config": {"reward": {"goal_distance": 12.0}, "episode": {"max_steps": 40}}}
LONE = {"stages": convert.ALONE, **SHORT}


def draw(env, generator):
    """Random actions of all rows, drawn apart from the environment's own."""
    space = env.single_action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return generator.integers(space.n, size=env.num_envs)
    return generator.uniform(-1, 1, (env.num_envs, *space.shape)).astype(np.float32)


def sail(env, steps):
    """Play at random, except that every second row sails ahead; yield actions and what came."""
    generator = np.random.default_rng(1)
    for _ in range(steps):
        action = draw(env, generator)
        action[1::2] = 1
        yield action, env.step(action)


@pytest.mark.parametrize("task", ENVIRONMENTS)
def test_spaces_hold_what_a_vector_gives(task):
    robots = ENVIRONMENTS[task].default_stages[-1].robots
    env = gymnasium.make_vec(
        next(name for name in IDS if IDS[name] == task), num_envs=2 * robots
    ).unwrapped
    assert isinstance(env, GymVectorEnv)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    env.action_space.seed(0)
    obs, reward, terminated, truncated, infos = env.step(env.action_space.sample())
    assert env.observation_space.contains(obs)
    for each in (reward, terminated, truncated, infos["acted"]):
        assert each.shape == (2 * robots,)
    assert (reward.dtype, terminated.dtype, truncated.dtype) == (np.float32, bool, bool)
    assert infos["acted"].all()


def test_infos_tell_how_robots_ended():
    """By the sign of the last reward, which is large at a goal and at a collision."""
    near = {"reward": {"goal_distance": 12.0, "collision": -50.0, "goal": 50.0}}
    found = np.zeros(2, dtype=int)
    for ended in ("anew", "waits"):
        stages = [Stage(4, 0, 4, 30.0)]
        env = GymVectorEnv(64, ended=ended, stages=stages, discrete=False, config=near)
        env.reset(seed=2)
        for _, (_, reward, terminated, _, infos) in sail(env, 120):
            ends = infos["is_success"], infos["collision"]
            assert np.array_equal(ends[0], reward > 25.0)
            assert np.array_equal(ends[1], reward < -25.0)
            assert np.array_equal(ends[0] | ends[1], terminated & infos["acted"])
            found += [end.sum() for end in ends]
    assert (found > 2).all()


def test_a_vector_is_the_stepper():
    """Rows are the worlds' robots in order; the true last observation is apart from the next."""
    env = GymVectorEnv(8, "cartpole", seed=0)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    obs, _ = env.reset(seed=3)
    twin = make("cartpole", worlds=8, seed=env.env.state.context.seed)
    stepper, generator = Stepper(twin), np.random.default_rng(0)
    assert np.array_equal(stepper.reset().obs.state[:, 0].numpy(), obs)
    finished = 0
    for _ in range(60):
        action = draw(env, generator)
        obs, reward, terminated, truncated, infos = env.step(action)
        following = stepper.step(torch.as_tensor(action).unsqueeze(1))
        done = following.done.numpy().copy()
        last = following.obs.state[:, 0].numpy().copy()
        assert np.array_equal(reward, following.reward[:, 0].numpy())
        assert np.array_equal(terminated | truncated, done)
        assert np.array_equal(obs, stepper.advance().obs.state[:, 0].numpy())
        assert ("final_obs" in infos) == done.any()
        if done.any():
            assert np.array_equal(infos["_final_obs"], done)
            assert np.array_equal(infos["final_obs"][done], last[done])
            assert not np.array_equal(infos["final_obs"][done], obs[done])
        finished += done.sum()
    assert finished > 10


def test_worlds_take_stages_in_turn():
    stages = (*TWO["stages"], Stage(robots=1, vortices=0, buoys=0, min_distance_m=30.0))
    env = GymVectorEnv(8, stages=stages)
    _, infos = env.reset(seed=0)
    assert infos["acted"].tolist() == [True, True, True, False] * 2


def test_what_was_returned_stays_as_it_is():
    env = GymVectorEnv(4, "cartpole")
    first, _ = env.reset(seed=0)
    kept = first.copy()
    for _ in range(3):
        env.step(np.zeros(4, dtype=np.int64))
    assert np.array_equal(first, kept)


def ends_of(ended):
    """Play two vessels to a world until some have ended; return what happened row by row."""
    options = {"config": {"reward": {"goal_distance": 12.0}, "episode": {"max_steps": 120}}}
    env = GymVectorEnv(40, ended=ended, **TWO, **options)
    env.reset(seed=0)
    return env, [rows for _, rows in sail(env, 150)]


def test_a_robot_that_waits_has_zeros_until_its_world_begins_anew():
    _, rows = ends_of("waits")
    waited = 0
    for (_, _, terminated, truncated, infos), (obs, reward, *_, after) in itertools.pairwise(rows):
        ended = terminated & ~infos.get("_final_obs", np.zeros(40, bool))
        assert not after["acted"][ended].any()
        assert not reward[~after["acted"]].any()
        still = ~after["acted"] & ~after.get("_final_obs", np.zeros(40, bool))
        assert not obs["self"][still].any()
        assert not (terminated & truncated).any()
        waited += still.sum()
    assert waited > 20


def test_a_world_begins_anew_with_its_first_end():
    env, rows = ends_of("anew")
    ends = 0
    for obs, _, terminated, truncated, infos in rows:
        assert infos["acted"].all()
        over = (terminated | truncated).reshape(-1, 2)
        assert np.array_equal(over.all(1), over.any(1))
        final = infos.get("_final_obs", np.zeros(40, bool)).reshape(-1, 2)
        assert np.array_equal(final.any(1), over.any(1))
        assert not (terminated & truncated).any()
        assert obs["self"].any(1).all()
        ends += terminated.sum()
    assert ends > 5
    assert env.env.state.world_field("episode")[:20].sum() > 20


def test_gymnasiums_statistics_are_of_episodes():
    """By default: as a loop over the core counts them, where worlds end with their first robot."""
    env = RecordEpisodeStatistics(
        gymnasium.make_vec("marinenav/Marine-v0", num_envs=40, **TWO, **SHORT)
    )
    env.reset(seed=0)
    config = {**SHORT["config"], "episode": {"max_steps": 40, "stop_on_end": True}}
    twin = make(
        "marine", worlds=20, seed=env.unwrapped.env.state.context.seed, config=config, **TWO
    )
    stepper, counts = Stepper(twin), np.zeros((40, 2))
    stepper.reset()
    told, counted, terminations = [], [], 0
    for action, (_, _, terminated, _, infos) in sail(env, 100):
        following = stepper.step(torch.as_tensor(action).view(20, 2, 2))
        counts += np.stack([np.ones(40), following.reward.flatten().numpy()], 1)
        ended = (following.terminated | following.truncated).flatten().numpy().copy()
        stepper.advance()
        counted += counts[ended].tolist()
        counts[ended] = 0.0
        if "episode" in infos:
            lengths, returns = (infos["episode"][key][infos["_episode"]] for key in ("l", "r"))
            told += np.stack([lengths, returns], 1).tolist()
        terminations += terminated.sum()
    assert told == counted
    assert max(length for length, _ in told) == 40
    assert terminations > 10


@pytest.mark.parametrize(("task", "options"), [("marine", LONE), ("cartpole", {})])
def test_to_wait_and_to_begin_anew_are_the_same_for_one_robot_a_world(task, options):
    envs = [GymVectorEnv(20, task, ended, **options) for ended in ("waits", "anew")]
    np.testing.assert_equal(*(env.reset(seed=0) for env in envs))
    ends = 0
    for (_, one), (_, other) in zip(*(sail(env, 60) for env in envs), strict=True):
        np.testing.assert_equal(one, other)
        ends += (one[2] | one[3]).sum()
    assert ends > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 3, **TWO}, "num_envs is 3: 2 robots share a world; give a multiple of 2"),
        ({"num_envs": 2, "ended": "stays", **TWO}, "ended is 'stays': choose one of anew, waits"),
        ({"num_envs": 2, "task": "lake"}, "unknown environment 'lake'"),
        ({"num_envs": "4"}, "num_envs is '4': give a whole number"),
        ({"num_envs": True, "task": "cartpole"}, "num_envs is True: give a whole number"),
        ({"worlds": 3}, "worlds is 3: give num_envs, the worlds times their robots"),
        (
            {"num_envs": 5, "foo": 3},
            "unexpected keyword argument 'foo': the task 'marine' takes worlds, stages",
        ),
        ({"num_envs": 5, "render_mode": "human"}, "render_mode is 'human': leave it out, "),
    ],
)
def test_what_a_vector_refuses(arguments, message):
    with pytest.raises(ConfigError, match=message):
        GymVectorEnv(**arguments)


def test_wrong_calls_are_told():
    env = GymVectorEnv(4, "cartpole")
    with pytest.raises(ConfigError, match=r"seed is \[1, 2\]: give one number"):
        env.reset(seed=[1, 2])
    with pytest.raises(ConfigError, match=r"options is \{'reset_mask': 0\}: leave them out"):
        env.reset(options={"reset_mask": 0})
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\)"):
        env.step(np.zeros(4, int))
    env.reset(seed=0)
    for action, said in (
        (2, "hold 2: give whole numbers from 0 to 1"),
        (0.5, "hold 0.5"),
        (-1, "hold -1"),
    ):
        with pytest.raises(ValueError, match=said):
            env.step(np.array([0, 1, 0, action]))
    with pytest.raises(ValueError, match=r"actions have shape \(3,\): give \(4,\)"):
        env.step(np.zeros(3))
    with pytest.raises(ValueError, match=r"actions have several shapes: give \(4,\)"):
        env.step([[0], [0, 1], [0], [0]])
    assert marinenav_env.adapters.gymnasium.ENDED == ("anew", "waits")


def test_actions_of_robots_are_not_taken_across():
    """As many numbers in another order would steer other robots."""
    env = GymVectorEnv(np.int64(4), stages=(Stage(2, 0, 0, 30.0),))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions have shape \(2, 4\): give \(4, 2\)"):
        env.step(np.zeros((2, 4)))
    env.step(np.zeros((4, 2)))
