"""The robots of a world as agents: PettingZoo, Stable-Baselines3's vector, TorchRL's groups."""

import gc
import weakref

import gymnasium
import numpy as np
import pytest
from torchrl.envs import RewardSum, TransformedEnv
from torchrl.envs.utils import check_env_specs

from marinenav_env import make
from marinenav_env.adapters.gymnasium import GymVectorEnv
from marinenav_env.envs.make import VESSEL_TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from tests.marinenav_env.adapters.tasks import TWO

EXTRA = "an extra: pip install '.[adapters]'"
NEAR = {"reward": {"goal_distance": 12.0}, "episode": {"max_steps": 60}}


@pytest.fixture
def parallel():
    """`MarineParallelEnv`, if PettingZoo is there."""
    pytest.importorskip("pettingzoo", reason=EXTRA)
    from marinenav_env.adapters.pettingzoo import MarineParallelEnv

    return MarineParallelEnv


@pytest.fixture
def vec_env():
    """`SB3VecEnv`, if Stable-Baselines3 is there."""
    pytest.importorskip("stable_baselines3", reason=EXTRA)
    from marinenav_env.adapters.stable_baselines3 import SB3VecEnv

    return SB3VecEnv


@pytest.mark.parametrize("task", VESSEL_TASKS)
@pytest.mark.parametrize("discrete", [False, True])
def test_pettingzoos_own_tests_pass(parallel, task, discrete):
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    options = {"task": task, "discrete": discrete, "config": {"episode": {"max_steps": 40}}}
    parallel_api_test(parallel(**options), num_cycles=100)
    parallel_seed_test(lambda: parallel(**options), num_cycles=20)


def test_a_task_without_company_is_refused(parallel):
    with pytest.raises(ConfigError, match=r"task is 'cartpole': choose one of marine, "):
        parallel("cartpole")


def test_a_robot_that_has_ended_leaves_the_agents(parallel):
    env = parallel(config=NEAR, **TWO)
    left = 0
    for seed in range(12):
        env.reset(seed=seed)
        assert env.agents == ["robot_0", "robot_1"]
        while env.agents:
            before = list(env.agents)
            actions = {name: np.ones(2, dtype=np.float32) for name in before}
            obs, rewards, terminations, truncations, infos = env.step(actions)
            assert list(obs) == list(rewards) == before
            assert {name: bool(infos[name]) for name in before} == {
                name: terminations[name] or truncations[name] for name in before
            }
            ended = {name for name in before if terminations[name] or truncations[name]}
            assert set(env.agents) == set(before) - ended
            left += len(ended) == 1 and len(before) == 2
            assert all(obs[name]["self"].any() for name in before)
    assert left > 0


def test_agents_without_an_action_do_not_push(parallel):
    env = parallel(**TWO)
    env.reset(seed=0)
    obs, *_ = env.step({"robot_1": np.ones(2, dtype=np.float32)})
    assert obs["robot_0"]["self"][5:].tolist() == [0.0, 0.0]
    assert obs["robot_1"]["self"][5:].tolist() == [500.0, 500.0]


def test_numbers_that_are_not_finite_are_told(parallel):
    env = parallel(config={"wind": {"speed": [5.0, 5.0], "surge": 1e5}}, **TWO)
    env.reset(seed=0)
    told = r"^the observation or reward of \d robots is not finite \(first in world 0, robot"
    rewards = (reward for _ in range(40) for reward in env.step({})[1].values())
    with pytest.raises(ConfigError, match=told):
        assert all(map(np.isfinite, rewards))


def test_stable_baselines_gets_the_last_observation(vec_env):
    env = vec_env(GymVectorEnv(6, "cartpole"))
    env.seed(4)
    env.reset()
    ended = 0
    for _ in range(40):
        obs, _, done, infos = env.step(np.ones(6, dtype=np.int64))
        for row in range(6):
            assert ("terminal_observation" in infos[row]) == done[row]
            if done[row]:
                assert abs(infos[row]["terminal_observation"][2]) > 0.2 > abs(obs[row, 2])
                assert not infos[row]["TimeLimit.truncated"]
                ended += 1
    assert ended > 6
    assert env.get_attr("num_envs") == [6] * 6
    short = vec_env(GymVectorEnv(2, "pendulum", config={"episode": {"max_steps": 3}}))
    short.reset()
    told = [short.step(np.zeros((2, 1), dtype=np.float32))[3] for _ in range(3)]
    assert [infos[0].get("TimeLimit.truncated") for infos in told] == [None, None, True]


def test_stable_baselines_learns_how_an_episode_ended(vec_env):
    env = vec_env(GymVectorEnv(16, config=NEAR, **TWO))
    env.seed(1)
    env.reset()
    found = set()
    for _ in range(150):
        _, reward, done, infos = env.step(np.ones((16, 2), dtype=np.float32))
        for row in np.flatnonzero(done):
            end = infos[row]["is_success"], infos[row]["collision"]
            if not infos[row]["TimeLimit.truncated"]:
                assert end == (reward[row] > 0.0, reward[row] < 0.0)
            found.add(end)
    assert found == {(True, False), (False, True), (False, False)}


def test_stable_baselines_learns_from_no_robot_that_waits(vec_env):
    with pytest.raises(ConfigError, match=r"give GymVectorEnv\(ended='anew'\)"):
        vec_env(GymVectorEnv(2, ended="waits", **TWO))
    env = vec_env(GymVectorEnv(2, **TWO))
    assert env.reset()["objects"].shape == (2, 5, 5)
    stops = {"config": {"episode": {"stop_on_end": True}}}
    vec_env(GymVectorEnv(2, ended="waits", **TWO, **stops))  # nobody does


def test_stable_baselines_takes_no_empty_slots(vec_env):
    stages = (Stage(2, 0, 1, 30.0), Stage(1, 0, 1, 30.0))
    with pytest.raises(ConfigError, match=r"stages.robots is \[2, 1\]: a slot without a robot"):
        vec_env(GymVectorEnv(4, stages=stages))


def test_stable_baselines_takes_no_robots_that_find_no_room(vec_env):
    with pytest.raises(ConfigError, match=r"stages.robots is 10: only \d\d% of trial worlds"):
        vec_env(GymVectorEnv(20, stages=(Stage(10, 0, 0, 40.0),)))


def test_one_world_plays_one_stage(parallel):
    with pytest.raises(ConfigError, match=r"stages is \['2 robots, .*one world plays one stage"):
        parallel(stages=(*TWO["stages"], Stage(3, 0, 0, 30.0)))


def test_a_world_goes_with_its_last_name(parallel):
    env = parallel(**TWO)
    env.action_space("robot_0")
    gone = weakref.ref(env)
    del env
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"foo": np.zeros(2)}, "actions name 'foo': give names of `agents`, robot_0 to robot_1"),
        (None, "actions is None: give a dictionary, an action by agent"),
        ([np.zeros(2)] * 2, "actions is .*: give a dictionary, an action by agent"),
        ({"robot_1": np.zeros(3)}, r"actions of robot_1 have shape \(3,\): give \(2,\)"),
        ({"robot_1": 0.5}, r"actions of robot_1 have shape \(\): give \(2,\)"),
        ({"robot_1": "x"}, "actions of robot_1 are 'x': give numbers"),
        ({"robot_1": [0.0, np.nan]}, "actions of robot_1 hold nan: give finite numbers"),
    ],
)
def test_wrong_actions_of_agents_are_told(parallel, actions, message):
    env = parallel(**TWO)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(actions)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (25, "actions of robot_0 hold 25: give whole numbers from 0 to 24"),
        (0.5, "actions of robot_0 hold 0.5"),
        ([1, 2], r"actions of robot_0 have shape \(2,\): give \(\)"),
    ],
)
def test_wrong_indices_of_agents_are_told(parallel, action, message):
    env = parallel(discrete=True, **TWO)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step({"robot_0": action})


def test_agents_act_after_a_reset_until_all_have_ended(parallel):
    env = parallel(config=NEAR, **TWO)
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) before step\(\)"):
        env.step({})
    env.reset(seed=0)
    while env.agents:
        env.step({})
    assert env.step({}) == ({}, {}, {}, {}, {})


@pytest.mark.parametrize("space", ["observation_space", "action_space"])
def test_spaces_are_of_agents(parallel, space):
    env = parallel(**TWO)
    assert getattr(env, space)("robot_1") is getattr(env, space)("robot_1")
    with pytest.raises(ConfigError, match="agent is 'robot_99': give one of robot_0 to robot_1"):
        getattr(env, space)("robot_99")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"render_mode": "human"}, "render_mode is 'human': leave it out, "),
        ({"foo": 3}, "unexpected keyword argument 'foo': the task 'marine' takes worlds, stages"),
        ({"worlds": 3}, "worlds is 3: leave it out, one world is one environment"),
    ],
)
def test_what_a_parallel_environment_refuses(parallel, options, message):
    with pytest.raises(ConfigError, match=message):
        parallel(**options)


@pytest.mark.parametrize("task", VESSEL_TASKS)
def test_groups_of_torchrl(task):
    env = make(task, worlds=3)
    assert env.group_map == {"robots": [f"robot_{i}" for i in range(env.robots)]}
    check_env_specs(env)
    summed = TransformedEnv(
        env, RewardSum(in_keys=[("robots", "reward")], out_keys=[("robots", "episode_reward")])
    )
    check_env_specs(summed)
    rollout = summed.rollout(5, break_when_any_done=False)
    total = rollout["next", "robots", "episode_reward"][:, -1]
    assert total.allclose(rollout["next", "robots", "reward"].sum(1))
    assert make("cartpole", worlds=2).group_map == {}
