"""Impossible settings: an error before any work that names the field, the value and the remedy."""

import json
from pathlib import Path

import pytest
import torch

from marinenav_env.config import EnvConfig, EpisodeConfig, ScenarioConfig
from marinenav_env.envs import checks
from marinenav_env.envs.checks import check_device
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.placement import place_trial_worlds
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.envs.state import Slots
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops

REFERENCE = Path(__file__).parents[2] / "reference"

ENVIRONMENTS = {
    "too crowded": (
        {"stages": (Stage(3, 0, 0, 30.0), Stage(20, 0, 0, 10.0))},
        r"stages\[1\] = Stage\(robots=20, .*: 20 robots do not fit the map, 1[45]\.\d were placed"
        r" on average, all of them in 0% of 256 trial worlds and none in 0; use fewer robots",
    ),
    "crowded by distances": (
        {"stages": (Stage(20, 8, 8, 40.0),)},
        r"stages\[0\] = .*: 20 robots do not fit .* a larger scenario\.width/height",
    ),
    "goals hardly reachable": (
        {"stages": (Stage(3, 0, 0, 60.0),)},
        r"stages\[0\] = .*: 3 robots do not fit the map, [01]\.\d were placed on average",
    ),
    "worlds without a robot": (
        {"stages": (Stage(1, 0, 0, 60.0),)},  # more than half of them have their robot
        r"stages\[0\] = .*: 1 robots do not fit the map, 0\.[67] were placed",
    ),
    "buoys that cannot fit": (
        {"stages": (Stage(5, 0, 200, 40.0),)},
        r"stages\[0\] = .*: 200 buoys do not fit the map, .* use fewer buoys, a larger",
    ),
    "vortices that cannot fit": (
        {"stages": (Stage(5, 400, 0, 40.0),)},
        r"stages\[0\] = .*: 400 vortices do not fit the map, .* use fewer vortices, a larger",
    ),
    "goals too far away": (
        {"stages": (Stage(3, 0, 0, 72.2),)},
        r"stages\[0\]\.min_distance_m is 72\.2: .* at most 72\.1 m apart .* lower it or enlarge",
    ),
    "a goal that is reached at the start": (
        {"stages": (Stage(2, 0, 0, 2.0),)},
        r"EnvConfig\.reward\.goal_distance is 2\.0: a goal 2\.0 m away \(stages\[0\]",
    ),
    "worlds as a text": ({"worlds": "3"}, "worlds is '3': give a whole number"),
    "half a world": ({"worlds": 3.5}, r"worlds is 3\.5: give a whole number"),
    "worlds beyond their numbers": ({"worlds": 2**40}, r"worlds is 1099511627776: .* give fewer"),
    "half a frame": ({"stack_k": 1.5}, r"stack_k is 1\.5: give a whole number"),
    "frames beyond memory": (
        {"stack_k": 10**12},
        r"worlds is 2: with stack_k 10+ they need .* GiB are free on cpu; give at most 0, or a",
    ),
    "half a seed": ({"seed": 1.5}, r"seed is 1\.5: give a whole number"),
    "a stage that is a number": ({"stages": [1]}, r"stages\[0\] is 1: give a section"),
    "parameters that are a pair": ({"config": (1, 2)}, r"config is \(1, 2\): give \d+ values"),
    "a device that is a number": ({"device": 5}, "device is '5': use 'cpu' or 'cuda'"),
    "a device that is none": ({"device": "cpu:x"}, "device is 'cpu:x' .*: use 'cpu'"),
    "slots that are a number": ({"slots": 5}, "slots is 5: give 3 numbers, robots"),
    "no stage": ({"stages": ()}, r"stages is \(\): give at least one stage"),
    "too many robots": (
        {
            "stages": (Stage(300, 0, 0, 10.0),),
            "config": EnvConfig(scenario=ScenarioConfig(width=900.0, height=900.0)),
        },
        r"stages\[0\] is Stage\(.*: give at most 255 robots and 65535 robots and buoys together",
    ),
    "too many robot slots": (
        {"slots": Slots(robots=300, buoys=4, vortices=0)},
        r"slots is Slots\(robots=300, .*: give at most 255 robots",
    ),
    "too many buoy slots": (
        {"slots": Slots(robots=5, buoys=65531, vortices=0)},
        r"slots is Slots\(robots=5, .*: give at most 255 robots and 65535 robots and buoys",
    ),
    "too few slots": (
        {"stages": (Stage(3, 1, 2, 30.0),), "slots": Slots(robots=5, buoys=1, vortices=1)},
        r"slots\.buoys is 1: .* give at least 2",
    ),
    "long seed": ({"seed": 2**63}, r"seed is 9223372036854775808: give a whole number of 64 bits"),
    "negative world": ({"first_world": -1}, "first_world is -1: .*; give 0 to 4294967294"),
    "too late a world": ({"first_world": 2**32 - 1}, "first_world is 4294967295: .* from 0 to 2"),
    "no world": ({"worlds": 0}, "worlds is 0: give at least 1"),
    "no frame": ({"stack_k": 0}, "stack_k is 0: give at least 1 frame"),
    "integers": ({"dtype": torch.int32}, r"dtype is torch\.int32: use torch\.float32 or"),
    "unknown info": ({"info_mode": "all"}, "info_mode is 'all': use one of full, stats, none"),
    "strange device": ({"device": "meta"}, "device is 'meta': use 'cpu' or 'cuda'"),
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_impossible_environment(case):
    options, message = ENVIRONMENTS[case]
    with pytest.raises(ConfigError, match=message):
        MarineNavEnv(**{"worlds": 2, **options})


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_seed_set_later(seed):
    env = MarineNavEnv(1)
    with pytest.raises(ConfigError, match=f"seed is {seed}: give a whole number of 64 bits"):
        env._set_seed(seed)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_absent_cuda_device():
    with pytest.raises(ConfigError, match="device is 'cuda': this machine shows no CUDA device"):
        MarineNavEnv(1, device="cuda")


def test_operators_without_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(ops, "has_cuda", lambda: False)
    with pytest.raises(ConfigError, match="built without CUDA; use 'cpu', or rebuild"):
        MarineNavEnv(1, device="cuda")


def test_cuda_device_of_another_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(ops, "has_cuda", lambda: True)
    monkeypatch.setattr(checks, "read_record", lambda _: {})  # a second GPU is not asked
    with pytest.raises(ConfigError, match=r"device is 'cuda:7': .* 2 CUDA dev.*; use 'cuda:1'"):
        MarineNavEnv(1, device="cuda:7")
    assert check_device("cuda:1") == torch.device("cuda:1")
    assert check_device("cuda") == torch.device("cuda")


def test_a_gpu_of_another_architecture(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    monkeypatch.setattr(ops, "has_cuda", lambda: True)
    record = {"cuda_arch_list": "8.0;9.0+PTX"}
    monkeypatch.setattr(checks, "read_record", lambda _: record)
    message = r"architectures 8.0;9.0\+PTX, and this GPU is of 7.5; rebuild with TORCH_CUDA_ARCH_LI"
    with pytest.raises(ConfigError, match=message):
        check_device("cuda")
    record["cuda_arch_list"] = "7.5"
    assert check_device("cuda") == torch.device("cuda")


STAGE_NUMBERS = {
    "one for all": torch.tensor(1),
    "too few": torch.tensor([1]),
    "rows": torch.tensor([[0], [1]]),
    "fractions": torch.tensor([0.0, 1.7]),
    "flags": torch.tensor([True, False]),
}


@pytest.mark.parametrize("stage", STAGE_NUMBERS.values(), ids=STAGE_NUMBERS)
def test_stages_of_another_shape_or_type(stage):
    env = MarineNavEnv(2)
    with pytest.raises(ValueError, match=r"stage has shape .* dtype .*: give whole numbers \[2\]"):
        env.set_stage(stage)


def test_default_parameters_are_possible():
    """So that the cases above fail for what they change alone."""
    MarineNavEnv(1, stages=(Stage(10, 8, 8, 25.0),), slots=Slots(20, 8, 9))


def test_published_settings_can_be_placed_and_are_looked_at_once():
    """The recorded settings too, and one in which a quarter of the worlds lack a robot."""
    recorded = json.loads((REFERENCE / "scenario_stats.json").read_text())
    names = ("robots", "cores", "obstacles", "min_start_goal_dis")
    stages = tuple(Stage(*(setting[name] for name in names)) for setting in recorded)
    assert len(stages) == 7
    MarineNavEnv(1, stages=(*PUBLISHED_STAGES, *stages, Stage(10, 0, 0, 40.0)))
    looked = place_trial_worlds.cache_info().misses
    MarineNavEnv(1, stages=stages, config=EnvConfig(episode=EpisodeConfig(max_steps=9)))
    assert place_trial_worlds.cache_info().misses == looked


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("stage", 6, r"'world\.stage' has 0 to 6, which is not within 0 to 5"),
        ("stage", -1, r"'world\.stage' has -1 to"),
        ("robots", 6, r"'world\.robots' has .* to 6, .* 0 to 5"),
        ("buoys", 2**30, r"'world\.buoys' has"),
        ("vortices", -7, r"'world\.vortices' has -7"),
        ("step", -1, r"'world\.step' has -1"),
        ("end", 3, r"'world\.end' has .* to 3"),
    ],
)
def test_counts_out_of_range_reach_no_memory(name, value, message):
    """A state that a checkpoint from elsewhere holds: the core indexes by it."""
    env = MarineNavEnv(4)
    env.reset()
    before, state = env.state_dict(), env.state_dict()
    row = env.kernel_spec.fields("world").index(name)
    state["world"][row, 2] = value
    with pytest.raises(ValueError, match=message):
        env.load_state_dict(state)
    assert all(torch.equal(env.state_dict()[key], kept) for key, kept in before.items())
    env.load_state_dict(before)


def test_a_flag_that_is_none_is_refused():
    env = MarineNavEnv(4)
    env.reset()
    state = env.state_dict()
    state["alive"].view(torch.uint8)[2, 0] = 7
    with pytest.raises(ValueError, match="'alive' has 7, no flag"):
        env.load_state_dict(state)


def test_a_state_written_from_outside_reaches_no_memory():
    """The core bounds what it indexes by; under the sanitizers: tests/csrc/test_core.cpp."""
    env = MarineNavEnv(4, info_mode="stats")
    before, out = env.make_buffers(), env.make_buffers()
    env.reset_into(before)
    env.state.world_field("stage").fill_(-(2**31))
    env.state.world_field("robots").fill_(2**31 - 1)
    env.state.status.zero_()  # nobody is alive, so that every episode ends and is booked
    env.step_into(torch.zeros(4, env.robots, 2), before, out)
    stats = dict(zip(env.kernel_spec.fields("stats"), env.read_stats().T, strict=True))
    assert stats["episodes"].tolist() == [4.0] + [0.0] * (len(PUBLISHED_STAGES) - 1)
    assert stats["robots"][0] == 4 * env.robots
