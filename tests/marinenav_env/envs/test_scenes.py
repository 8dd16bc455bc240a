"""Worlds that begin with a given scene instead of a random map."""

import math
from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.icra2024 import Icra2024Env
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.scenes import Scene, SceneStage
from marinenav_env.faults import ThrusterConfig
from marinenav_env.fields import ConfigError
from marinenav_env.water import StreamConfig
from tests.marinenav_env.rollouts import decide, same_bits

TWO = Scene(
    vessels=((1.0, 2.0, 30.0, 2.0, 0.25, 2.5), (40.0, 5.0, 0.0, 5.0, math.pi, 0.0)),
    buoys=((20.0, -9.0, 1.5),),
    vortices=((20.0, 30.0, -4.0), (0.0, 40.0, 6.0)),
)
ONE = Scene(vessels=((0.0, 0.0, 20.0, 0.0, 6.2, 1.0),), move=3.0, turn=0.5)
RANDOM = Stage(robots=3, vortices=1, buoys=2, min_distance_m=25.0)


def worlds(count, *stages, **options):
    env = MarineNavEnv(count, stages=stages, seed=4, **options)
    env.set_stage(torch.arange(count) % len(stages))
    env.reset_into(env.make_buffers())
    return env


def field(env, name):
    return env.state.robot_field(name)[:, : env.worlds].T


def test_a_scene_begins_as_it_says(device):
    env = worlds(2, SceneStage("two", (TWO,)), dtype=torch.float64, device=device)
    known = {"x": (1.0, 40.0), "y": (2.0, 5.0), "goal_x": (30.0, 0.0), "goal_y": (2.0, 5.0)}
    known |= {"heading": (0.25, math.pi)}
    known["vx_water"], known["vy_water"] = ((2.5 * f(0.25), 0.0) for f in (math.cos, math.sin))
    hold = (100.0 * 2.5 + 150.0 * 2.5**2) / 2.0  # N a side against linear and quadratic drag
    known |= {"left_thrust": (hold, 0.0), "right_thrust": (hold, 0.0)}
    for name, row in known.items():
        assert field(env, name).tolist() == [pytest.approx(row)] * 2, name
    assert env.alive.all()
    assert env.state.buoy[:, 0, 1].tolist() == [20.0, -9.0, 1.5]
    assert env.state.vortex[:, :, 1].T.tolist() == [[20.0, 30.0, -4.0], [0.0, 40.0, 6.0]]
    counts = [env.state.world_field(name)[1].item() for name in ("robots", "buoys", "vortices")]
    assert counts == [2, 1, 2]


def test_a_vessel_at_speed_keeps_it_in_still_water(device):
    still = replace(ONE, move=0.0, turn=0.0)
    env = worlds(1, SceneStage("one", (still,)), dtype=torch.float64, device=device)
    for _ in range(20):
        decide(env, torch.zeros(1, 1, 2, dtype=torch.float64, device=device))
    speed = torch.hypot(field(env, "vx_water"), field(env, "vy_water"))
    assert speed.item() == pytest.approx(1.0)


def test_draws_lie_within_their_reach_and_differ(device):
    env = worlds(4096, SceneStage("one", (ONE,)), device=device)
    x, y, heading = (field(env, name).flatten() for name in ("x", "y", "heading"))
    turn = torch.remainder(heading - 6.2 + math.pi, 2.0 * math.pi) - math.pi
    for moved, reach in ((x, 3.0), (y, 3.0), (turn, 0.5)):
        assert moved.abs().max() <= reach * (1.0 + 1e-5)
        share = (moved / reach + 1.0) / 2.0
        assert share.mean().item() == pytest.approx(0.5, abs=0.02)
        assert share.sort().values[::512].cpu().tolist() == pytest.approx(
            torch.linspace(0.0, 0.875, 8).tolist(), abs=0.03
        )
    assert torch.corrcoef(torch.stack((x, y, turn))).triu(1).abs().max() < 0.05
    assert 0.0 <= heading.min() < 0.3  # some have passed north
    assert heading.max() < 2.0 * math.pi


def test_scenes_of_a_stage_are_drawn_alike_often(device):
    stage = SceneStage("three", (TWO, ONE, replace(ONE, buoys=((9.0, 9.0, 1.0),))))
    env = worlds(3000, stage, device=device)
    robots, buoys = (env.state.world_field(name)[:3000] for name in ("robots", "buoys"))
    kinds = robots * 2 + buoys
    counts = [int((kinds == kind).sum()) for kind in (5, 2, 3)]
    assert sum(counts) == 3000
    assert counts == pytest.approx([1000] * 3, abs=80)
    before = kinds.clone()
    env.reset_into(env.make_buffers())
    assert (robots * 2 + buoys != before).float().mean() > 0.5  # drawn anew in every episode


def test_a_scene_leaves_random_maps_alone(device):
    """The maps of worlds without scenes have the bits that they have in an environment without."""
    mixed = worlds(64, RANDOM, SceneStage("two", (TWO, ONE)), device=device)
    plain = worlds(64, RANDOM, RANDOM, device=device, slots=mixed.slots)
    for name in ("robot", "buoy", "vortex"):
        own, other = (getattr(env.state, name)[..., :64:2] for env in (mixed, plain))
        assert same_bits(own, other)
        assert not torch.equal(getattr(mixed.state, name), getattr(plain.state, name))


def test_a_world_begins_the_same_in_any_batch(device):
    stage = SceneStage("one", (ONE, TWO))
    many = worlds(40, stage, device=device)
    few = worlds(3, stage, device=device, first_world=37)
    for name in ("robot", "buoy", "vortex"):
        assert same_bits(getattr(many.state, name)[..., 37:40], getattr(few.state, name)[..., :3])


def test_disturbances_are_drawn_and_thrusters_start_as_told(device):
    config = EnvConfig(stream=StreamConfig(speed=(0.2, 0.6)), thrusters=ThrusterConfig(lag=0.5))
    stage = SceneStage("two", (replace(TWO, vortices=()),))
    env = worlds(16, stage, config=config, device=device, dtype=torch.float64)
    flow = env.state.stream[:, :16]
    assert len(set(flow[0].tolist())) == 16
    torch.testing.assert_close(
        field(env, "vx") - field(env, "vx_water"), flow[0, :, None].expand(16, 2)
    )
    given = env.state.thruster[:2, :, :16].permute(0, 2, 1)
    told = torch.stack((field(env, "left_thrust"), field(env, "right_thrust")))
    torch.testing.assert_close(given, told)
    assert given.max() > 500.0


def test_the_other_task_has_scenes_too(device):
    env = Icra2024Env(2, stages=(SceneStage("one", (ONE,)),), device=device)
    env.reset_into(env.make_buffers())
    assert field(env, "speed").tolist() == [[1.0]] * 2


def test_what_is_refused():
    crowd = SceneStage("crowd", (Scene(vessels=TWO.vessels[:1] * 300),))
    with pytest.raises(ConfigError, match=r"stages\[0\] is .*: give at most 255 robots"):
        MarineNavEnv(1, stages=(crowd,))
    with pytest.raises(ConfigError, match=r"stages\[1\] is 3"):
        MarineNavEnv(1, stages=(SceneStage("one", (ONE,)), 3))


def test_numbers_beyond_the_tables_take_the_last_scene_and_all_slots(device):
    env = worlds(4, SceneStage("one", (ONE, TWO)), device=device)
    env.state.stage[0, 4:] = torch.tensor([9.0, 1.0])
    env.state.scene[1, :3] = 99.0
    env.reset_into(env.make_buffers())
    counts = [env.state.world_field(name)[:4].tolist() for name in ("robots", "buoys", "vortices")]
    assert counts == [[2] * 4, [1] * 4, [2] * 4]
