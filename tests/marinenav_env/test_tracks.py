"""Tracks are what a loop by hand sees, bit for bit, and say how robots ended."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import ROBOT_FIELDS, Slots
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import Tracks, place_worlds, record_tracks
from tests.host_reads import no_host_reads
from tests.marinenav_env.rollouts import (
    CROWDED,
    SPARSE,
    actions,
    decide,
    eventful,
    quiet,
    same_bits,
)

BY_DECISION = ("acted", "reward", "terminated", "truncated")


def make_env(**options) -> MarineNavEnv:
    env = MarineNavEnv(13, stages=(CROWDED, SPARSE), config=eventful(), seed=4, **options)
    env.set_stage(torch.arange(13, device=env.device) % 2)
    return env


def scripted(env: MarineNavEnv):
    """A policy without a look: the actions of `rollouts.actions`, decision by decision."""
    decisions = itertools.count()
    return lambda _: actions(env, next(decisions))


@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "discrete"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_are_those_of_a_loop_by_hand(dtype, discrete, device):
    env, by_hand = (
        make_env(dtype=dtype, discrete=discrete, stack_k=2, device=device) for _ in range(2)
    )
    env.state.buoy.fill_(7.0)  # as an episode before may leave slots that now are empty
    tracks = record_tracks(env, scripted(env), 40, observations=True)
    now, following = by_hand.make_buffers(), by_hand.make_buffers()
    by_hand.reset_into(now)
    assert tracks.robot.shape == (41, 13, 5, len(ROBOT_FIELDS))
    for decision in range(41):
        assert same_bits(tracks.robot[decision], by_hand.state.robot[..., :13].permute(2, 1, 0))
        for kept, part in zip(tracks.observation, now.obs, strict=True):
            assert same_bits(kept[decision], part)
        if decision == 40:
            break
        action = actions(by_hand, decision)
        by_hand.step_into(action, now, following)
        assert same_bits(tracks.action[decision], action)
        for name in BY_DECISION:
            assert same_bits(getattr(tracks, name)[decision], getattr(following, name))
        now, following = following, now
    for name in ("buoys", "vortices"):
        rows = getattr(by_hand.state, {"buoys": "buoy", "vortices": "vortex"}[name])
        assert same_bits(getattr(tracks, name)[0::2], rows[..., :13:2].permute(2, 1, 0))
        assert not getattr(tracks, name)[1::2].any()
    assert not by_hand.alive.any()
    outcome = by_hand.outcome
    assert torch.equal(tracks.success, outcome["success"] > 0)
    assert torch.equal(tracks.collided.any(-1), outcome["collision"] > 0)
    assert tracks.collided.any()
    assert discrete or tracks.reached.any()
    assert tracks.truncated.any()


def test_nothing_reads_the_device_on_the_way():
    env = make_env()
    choice = torch.full((13, 5, 2), 0.5)
    with no_host_reads():
        record_tracks(env, lambda _: choice, 3, observations=True)


TWO = Stage(robots=2, vortices=0, buoys=0, min_distance_m=30.0)


def placed(device: str) -> MarineNavEnv:
    """World 0: robots 0 and 1 touch. World 1: both at their goals. World 2: robot 0 at its goal."""
    config = EnvConfig()
    config = replace(config, episode=replace(config.episode, max_steps=3, stop_on_collision=True))
    env = MarineNavEnv(
        3, stages=(TWO,), config=config, slots=Slots(3, 1, 1), dtype=torch.float64, device=device
    )
    env.reset_into(env.make_buffers())
    x, y, goal_x, goal_y = map(env.state.robot_field, ("x", "y", "goal_x", "goal_y"))
    x[:2, 0], y[:2, 0] = torch.tensor([500.0, 503.0], device=device), 500.0
    for robot, world in ((0, 1), (1, 1), (0, 2)):
        x[robot, world], y[robot, world] = goal_x[robot, world] + 1.0, goal_y[robot, world]
    return env


def still(seen: Observation) -> Tensor:
    return torch.zeros(*seen.mask.shape[:2], 2, device=seen.mask.device)


def test_ends_of_worlds_one_can_check_by_hand(device):
    tracks = record_tracks(placed(device), still, 4, reset=False)
    assert tracks.placed.tolist() == [[True, True, False]] * 3
    assert tracks.collided.tolist() == [[True, True, False], [False] * 3, [False] * 3]
    assert tracks.reached.tolist() == [[False] * 3, [True, True, False], [True, False, False]]
    assert tracks.success.tolist() == [False, True, False]
    assert tracks.length.tolist() == [1, 1, 3]
    assert tracks.present[:, 2].tolist() == [
        *([True, True, False], [True, True, False]),
        *([False, True, False], [False, True, False], [False] * 3),
    ]
    assert tracks.truncated[:, 2, 1].tolist() == [False, False, True, False]
    assert tracks.field("x")[:2, 0, 1].tolist() == [503.0, 503.0]
    assert (tracks.decision_time, tracks.hull_radius) == (0.5, EnvConfig().vessel.radius)


def test_a_look_ends_the_recording(device):
    tracks = record_tracks(
        placed(device), still, 50, reset=False, observations=True, look_interval=4
    )
    assert len(tracks.acted) == len(tracks.robot) - 1 == len(tracks.observation.mask) - 1 == 4
    assert tracks.length.tolist() == [1, 1, 3]


def test_a_look_finds_states_that_are_not_finite(device):
    env = placed(device)
    env.state.robot_field("x")[1, 2] = float("nan")
    with pytest.raises(ConfigError, match=r"first in world 2, robot 1\): a setting below env"):
        record_tracks(env, still, 3, reset=False, look_interval=1)


def test_some_worlds(device):
    tracks = record_tracks(placed(device), still, 4, reset=False, observations=True)
    some = tracks.worlds([2, 0])
    assert some.length.tolist() == [3, 1]
    assert some.buoys.shape == some.vortices.shape == (2, 1, 3)
    assert same_bits(some.observation.ego[:, 1], tracks.observation.ego[:, 0])
    assert torch.equal(tracks.worlds(tracks.success).robot, tracks.robot[:, 1:2])


def test_a_world_ends_with_the_last_of_those_that_are_judged(device):
    """World 0: both at once. World 1: robot 1 first. World 2: robot 1 not at all."""
    env = placed(device)
    env.state.robot_field("x")[1, 2] += 500.0
    env.state.robot_field("vx_water")[1, 2] = 1.0
    own = torch.tensor([[True, True, False], [False, True, False], [True, False, False]])
    own = own.to(device)
    tracks = record_tracks(env, still, 3, reset=False, observations=True, own=own)
    assert tracks.own.tolist() == own.tolist()
    assert tracks.length.tolist() == [1, 1, 1]
    assert tracks.present[:, 2, 1].tolist() == [True, True, False, False]
    assert tracks.truncated[:, 2, 1].tolist() == [True, False, False]
    assert tracks.reached[:, :2].tolist() == [[False, False], [True, True], [True, False]]
    x = tracks.field("x")[:, 2, 1].tolist()
    assert x[0] < x[1] == x[2] == x[3]
    assert same_bits(tracks.observation.ego[1, 2], tracks.observation.ego[3, 2])
    assert tracks.worlds([2, 0]).own.tolist() == own[[2, 0]].tolist()
    looked = record_tracks(placed(device), still, 3, reset=False, look_interval=1, own=own)
    assert len(looked.acted) == 1


def test_what_cannot_be_recorded_is_named():
    env = placed("cpu")
    with pytest.raises(ValueError, match="decisions is 0: give 1 or more"):
        record_tracks(env, still, 0)
    with pytest.raises(ValueError, match=r"action has shape \(3, 3, 1\): give \(3, 3, 2\)"):
        record_tracks(env, lambda seen: still(seen)[..., :1], 1)


def test_tracks_without_a_decision_hold_all_their_robots():
    env = placed("cpu")
    tracks = record_tracks(env, still, 1, reset=False)
    parts = {name: getattr(tracks, name)[:0] for name in (*BY_DECISION, "action")}
    scenario = replace(tracks, robot=tracks.robot[:1], **parts)
    assert isinstance(scenario, Tracks)
    assert scenario.present.shape == (1, 3, 3)
    assert scenario.present.all()
    assert scenario.length.tolist() == [0, 0, 0]


def test_worlds_stand_where_they_are_put(device):
    """What follows a row of tracks follows it in another environment too."""
    config = quiet(eventful(max_steps=40))
    env, other = (
        MarineNavEnv(
            4, stages=(CROWDED,), config=config, seed=seed, dtype=torch.float64, device=device
        )
        for seed in (4, 5)
    )
    tracks = record_tracks(env, scripted(env), 20, observations=True)
    gone = tracks.present[0] & ~tracks.acted[12]
    assert gone.any()
    place_worlds(other, tracks.robot[12], tracks.acted[12], tracks.buoys, tracks.vortices)
    actions_from = iter(tracks.action[12:])
    again = record_tracks(other, lambda _: next(actions_from), 8, reset=False, observations=True)
    for name in BY_DECISION:
        assert same_bits(getattr(again, name), getattr(tracks, name)[12:])
    for found, kept in zip(again.observation, tracks.observation, strict=True):
        assert same_bits(found, kept[12:])
    assert same_bits(again.field("x"), tracks.field("x")[12:])


def test_a_world_with_fewer_robots_can_succeed(device):
    env = MarineNavEnv(1, stages=(CROWDED,), config=quiet(eventful()), device=device)
    robot = torch.zeros(1, env.robots, len(ROBOT_FIELDS), device=device)
    alive = torch.zeros(1, env.robots, dtype=torch.bool, device=device)
    alive[0, 0] = True  # at its goal
    buoys = torch.zeros(1, env.slots.buoys, 3, device=device)
    vortices = torch.zeros(1, env.slots.vortices, 3, device=device)
    place_worlds(env, robot, alive, buoys, vortices)
    counts = [env.state.world_field(name)[0].item() for name in ("robots", "buoys", "vortices")]
    assert counts == [1, 0, 0]
    decide(env, torch.zeros(1, env.robots, 2, device=device))
    assert env.outcome["success"].tolist() == [1.0]
