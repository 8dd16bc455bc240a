"""The Gymnasium face: one robot, and all robots of many worlds."""

import itertools

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import marinenav_env.adapters.gymnasium
from marinenav_env.adapters import IDS, convert
from marinenav_env.adapters.gymnasium import GymEnv, GymVectorEnv
from marinenav_env.envs.make import ENVIRONMENTS, make
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from tests.conftest import ROOT, run_python
from tests.preloaded import ALONE

SHORT = {"config": {"reward": {"goal_distance": 12.0}, "episode": {"max_steps": 40}}}
LONE = {"stages": convert.ALONE, **SHORT}
STORM = {"config": {"wind": {"speed": [5.0, 5.0], "surge": 1e5}}}
UNSTABLE = r"of \d+ robots is not finite \(first in world 0, robot 0\): a setting below env"
TWO = {"stages": (Stage(robots=2, vortices=0, buoys=1, min_distance_m=30.0),)}


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
        ({"num_envs": 5, "foo": 3}, "unknown option 'foo': the task 'marine' takes worlds, stages"),
        ({"num_envs": 5, "render_mode": "human"}, "render_mode is 'human': leave it out, "),
    ],
)
def test_what_a_vector_refuses(arguments, message):
    with pytest.raises(ConfigError, match=message):
        GymVectorEnv(**arguments)


@pytest.mark.filterwarnings("ignore:.*not in the possible render_modes")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"render_mode": "rgb_array"}, "render_mode is 'rgb_array': leave it out, .*episode.py"),
        ({"foo": 3}, "unknown option 'foo': the task 'marine' takes worlds, stages, config, "),
        ({"worlds": 3}, "worlds is 3: leave it out, this is one world; gymnasium.make_vec makes"),
    ],
)
def test_what_make_refuses(options, message):
    with pytest.raises(ConfigError, match=message):
        gymnasium.make("marinenav/Marine-v0", **options)


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


def is_finite(step):
    """Refuse numbers that are not, of one robot or of several."""
    obs, reward, *_ = step
    for part in (*obs.values(), reward):
        np.testing.assert_array_equal(np.isfinite(part), True)
    return True


@pytest.mark.parametrize("vector", [False, True])
def test_numbers_that_are_not_finite_are_told(vector):
    env = GymVectorEnv(2, **TWO, **STORM) if vector else GymEnv(**STORM)
    env.reset(seed=0)
    action = np.ones(env.action_space.shape, np.float32)
    steps = (env.step(action) for _ in range(40))
    with pytest.raises(ConfigError, match="^the observation or reward " + UNSTABLE):
        all(map(is_finite, steps))


@pytest.mark.parametrize(
    ("physics", "decisions"),
    [
        ({"turn_cost": 1e39}, 200),  # the reward alone
        ({"dt": 1e39}, 1),  # the last observation alone, of which the next tells nothing
        ({"start_angle": 1e39}, 0),  # the first observation
    ],
)
@pytest.mark.parametrize("face", [GymEnv, lambda task, **options: GymVectorEnv(1, task, **options)])
def test_whatever_a_face_hands_out_is_finite(face, physics, decisions):
    env = face("pendulum", config={"physics": physics, "episode": {"max_steps": decisions or 1}})
    if decisions:
        env.reset(seed=0)
    with pytest.raises(ConfigError, match=UNSTABLE):
        env.step(np.zeros(env.action_space.shape)) if decisions else env.reset(seed=0)


def test_large_numbers_are_finite():
    env = GymEnv("pendulum").env
    convert.check_handed_out(env, {"state": np.full((1, 3), 1e30, np.float32)}, np.ones(1))
