"""Impossible settings: an error before any work that names the field, the value and the remedy."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marinenav_env.config import (
    ColregsConfig,
    CurrentConfig,
    EnvConfig,
    EpisodeConfig,
    PerceptionConfig,
    RewardConfig,
    ScenarioConfig,
    VesselConfig,
)
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
        r" on average and all of them in 0% of 256 trial worlds; use fewer robots, a shorter",
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
        r"stages\[0\]\.min_distance_m = 72\.2: .* at most 72\.1 m apart .* lower it or enlarge",
    ),
    "no stage": ({"stages": ()}, r"stages = \(\): give at least one stage"),
    "too many robots": (
        {
            "stages": (Stage(300, 0, 0, 10.0),),
            "config": EnvConfig(scenario=ScenarioConfig(width=900.0, height=900.0)),
        },
        r"stages\[0\] = .*: give at most 255 robots and 65535 robots and buoys together",
    ),
    "too many robot slots": (
        {"slots": Slots(robots=300, buoys=4, vortices=0)},
        r"slots = Slots\(robots=300, .*: give at most 255 robots",
    ),
    "too many buoy slots": (
        {"slots": Slots(robots=5, buoys=65531, vortices=0)},
        r"slots = Slots\(robots=5, .*: give at most 255 robots and 65535 robots and buoys",
    ),
    "too few slots": (
        {"stages": (Stage(3, 1, 2, 30.0),), "slots": Slots(robots=5, buoys=1, vortices=1)},
        r"slots\.buoys = 1: .* give at least 2",
    ),
    "long seed": ({"seed": 2**63}, r"seed = 9223372036854775808: give a whole number of 64 bits"),
    "negative world": ({"first_world": -1}, "first_world = -1: .*; give 0 to 4294967294"),
    "too late a world": ({"first_world": 2**32 - 1}, "first_world = 4294967295: .* from 0 to 2"),
    "no world": ({"worlds": 0}, "worlds = 0: give at least 1"),
    "no frame": ({"stack_k": 0}, "stack_k = 0: give at least 1 frame"),
    "integers": ({"dtype": torch.int32}, r"dtype = torch\.int32: use torch\.float32 or"),
    "unknown info": ({"info_mode": "all"}, "info_mode = 'all': use one of full, stats, none"),
    "strange device": ({"device": "meta"}, "device = 'meta': use 'cpu' or 'cuda'"),
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_impossible_environment(case):
    options, message = ENVIRONMENTS[case]
    with pytest.raises(ConfigError, match=message):
        MarineNavEnv(**{"worlds": 2, **options})


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_seed_set_later(seed):
    env = MarineNavEnv(1)
    with pytest.raises(ConfigError, match=f"seed = {seed}: give a whole number of 64 bits"):
        env._set_seed(seed)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_absent_cuda_device():
    with pytest.raises(ConfigError, match="device = 'cuda': this machine shows no CUDA device"):
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
    with pytest.raises(ConfigError, match=r"device = 'cuda:7': .* 2 CUDA dev.*; use 'cuda:1'"):
        MarineNavEnv(1, device="cuda:7")
    assert check_device("cuda:1") == torch.device("cuda:1")
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


CONFIGS = [
    (VesselConfig, {"dt": 0.0}, r"vessel\.dt = 0\.0: give a positive time"),
    (VesselConfig, {"substeps": 0}, r"vessel\.substeps = 0: give a whole number of substeps, 1"),
    (VesselConfig, {"substeps": 2.5}, r"vessel\.substeps = 2\.5: give a whole number"),
    (VesselConfig, {"radius": -1.0}, r"vessel\.radius = -1\.0: give a positive radius"),
    (VesselConfig, {"mass": 10.0}, r"vessel\.mass = 10\.0: the mass must exceed"),
    (VesselConfig, {"izz": -1000.0}, r"vessel\.izz = -1000\.0: the inertia must exceed"),
    (
        VesselConfig,
        {"y_dot_r": -1100.0, "n_dot_v": -520.0},
        r"vessel\.y_dot_r = -1100\.0: y_dot_r \* n_dot_v .* = 572000\.0, or the mass matrix",
    ),
    (VesselConfig, {"y_dot_r": 900.0, "n_dot_v": 900.0}, r"vessel\.y_dot_r = 900\.0: .*indefinite"),
    (VesselConfig, {"min_thrust": 2000.0}, r"vessel\.min_thrust = 2000\.0: must be below max"),
    (VesselConfig, {"left_thrust_rates": (0.0,)}, r"vessel\.left_thrust_rates = .*: give 5"),
    (PerceptionConfig, {"range": 0.0}, r"perception\.range = 0\.0: give a positive range"),
    (PerceptionConfig, {"angle": 7.0}, r"perception\.angle = 7\.0: give an angle in \(0, 2 pi"),
    (PerceptionConfig, {"position_std": -0.1}, r"perception\.position_std = -0\.1: must not be"),
    (PerceptionConfig, {"radius_kappa": -1.0}, r"perception\.radius_kappa = -1\.0: must not be"),
    (PerceptionConfig, {"radius_mean_ratio": 1.5}, r"radius_mean_ratio = 1\.5: give a ratio in"),
    (PerceptionConfig, {"radius_mean_ratio": 0.49}, r"radius_mean_ratio = 0\.49: .* negative"),
    (ScenarioConfig, {"width": 9.0}, r"scenario\.width = 9\.0: the map must be wider than"),
    (ScenarioConfig, {"buoy_radius_min": 2.0}, r"scenario\.buoy_radius_min = 2\.0: give 0 < "),
    (ScenarioConfig, {"placement_tries": 0}, r"placement_tries = 0: give .* tries, 1 to 65535"),
    (ScenarioConfig, {"placement_tries": 2**16}, r"placement_tries = 65536: give a whole number"),
    (ScenarioConfig, {"placement_tries": 9.5}, r"placement_tries = 9\.5: give a whole number"),
    (ScenarioConfig, {"clear_radius": -1.0}, r"scenario\.clear_radius = -1\.0: must not be neg"),
    (ColregsConfig, {"margin": -1.0}, r"colregs\.margin = -1\.0: must not be negative"),
    (ColregsConfig, {"crossing_x_max": 0.0}, r"colregs\.crossing_x_max = 0\.0: give a positive"),
    (RewardConfig, {"goal_distance": 0.0}, r"reward\.goal_distance = 0\.0: give a positive"),
    (CurrentConfig, {"core_radius": 0.0}, r"current\.core_radius = 0\.0: must be positive"),
    (CurrentConfig, {"edge_speed_min": 4.0}, r"current\.edge_speed_min = 4\.0: must not exceed"),
    (EpisodeConfig, {"max_steps": 0}, r"episode\.max_steps = 0: give .* decisions, 1 to 16777216"),
    (EpisodeConfig, {"max_steps": 2**31}, r"episode\.max_steps = 2147483648: give a whole number"),
    (EpisodeConfig, {"max_steps": True}, r"episode\.max_steps = True: give a whole number"),
]


@pytest.mark.parametrize(("group", "values", "message"), CONFIGS)
def test_impossible_parameter(group, values, message):
    with pytest.raises(ConfigError, match=message):
        group(**values)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_parameter_that_is_not_finite(value):
    with pytest.raises(ConfigError, match=rf"reward\.goal = {value}: give a finite number"):
        EnvConfig(reward=replace(RewardConfig(), goal=value))


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
