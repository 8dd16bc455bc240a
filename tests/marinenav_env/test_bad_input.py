"""Impossible settings: an error before any work that names the field, the value and the remedy."""

import math
from dataclasses import replace

import pytest
import torch

from marinenav_env import ops
from marinenav_env.config import (
    ColregsConfig,
    ConfigError,
    CurrentConfig,
    EnvConfig,
    EpisodeConfig,
    PerceptionConfig,
    RewardConfig,
    ScenarioConfig,
    VesselConfig,
)
from marinenav_env.env import MarineNavEnv
from marinenav_env.scenarios import Stage
from marinenav_env.state import Slots

ENVIRONMENTS = {
    "robots that cannot fit": (
        {"stages": (Stage(30, 0, 0, 10.0), Stage(60, 0, 0, 10.0))},
        r"stages\[1\]\.robots = 60: .* do not fit the map; use fewer robots",
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
        r"stages\[0\] = .*: at most 255 robots and 65535 objects a world",
    ),
    "too few slots": (
        {"stages": (Stage(3, 1, 2, 30.0),), "slots": Slots(robots=5, buoys=1, cores=1)},
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


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_absent_cuda_device():
    with pytest.raises(ConfigError, match="device = 'cuda': this machine shows no CUDA device"):
        MarineNavEnv(1, device="cuda")


def test_operators_without_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(ops, "has_cuda", lambda: False)
    with pytest.raises(ConfigError, match="built without CUDA; use 'cpu', or rebuild"):
        MarineNavEnv(1, device="cuda")


CONFIGS = [
    (VesselConfig, {"dt": 0.0}, r"vessel\.dt = 0\.0: give a positive time"),
    (VesselConfig, {"substeps": 0}, r"vessel\.substeps = 0: give at least 1"),
    (VesselConfig, {"radius": -1.0}, r"vessel\.radius = -1\.0: give a positive radius"),
    (VesselConfig, {"mass": 10.0}, r"vessel\.mass = 10\.0: the mass must exceed"),
    (VesselConfig, {"izz": -1000.0}, r"vessel\.izz = -1000\.0: the inertia must exceed"),
    (VesselConfig, {"min_thrust": 2000.0}, r"vessel\.min_thrust = 2000\.0: must be below max"),
    (VesselConfig, {"left_thrust_rates": (0.0,)}, r"vessel\.left_thrust_rates = .*: give 5"),
    (PerceptionConfig, {"range": 0.0}, r"perception\.range = 0\.0: give a positive range"),
    (PerceptionConfig, {"angle": 7.0}, r"perception\.angle = 7\.0: give an angle in \(0, 2 pi"),
    (PerceptionConfig, {"position_std": -0.1}, r"perception\.position_std = -0\.1: must not be"),
    (PerceptionConfig, {"radius_kappa": -1.0}, r"perception\.radius_kappa = -1\.0: must not be"),
    (PerceptionConfig, {"radius_mean_ratio": 1.5}, r"radius_mean_ratio = 1\.5: give a ratio in"),
    (ScenarioConfig, {"width": 9.0}, r"scenario\.width = 9\.0: the map must be wider than"),
    (ScenarioConfig, {"buoy_radius_min": 2.0}, r"scenario\.buoy_radius_min = 2\.0: give 0 < "),
    (ScenarioConfig, {"placement_tries": 0}, r"scenario\.placement_tries = 0: give 1 to 65535"),
    (ScenarioConfig, {"clear_radius": -1.0}, r"scenario\.clear_radius = -1\.0: must not be neg"),
    (ColregsConfig, {"margin": -1.0}, r"colregs\.margin = -1\.0: must not be negative"),
    (ColregsConfig, {"crossing_x_max": 0.0}, r"colregs\.crossing_x_max = 0\.0: give a positive"),
    (RewardConfig, {"goal_distance": 0.0}, r"reward\.goal_distance = 0\.0: give a positive"),
    (CurrentConfig, {"core_radius": 0.0}, r"current\.core_radius = 0\.0: must be positive"),
    (CurrentConfig, {"edge_speed_min": 4.0}, r"current\.edge_speed_min = 4\.0: must not exceed"),
    (EpisodeConfig, {"max_steps": 0}, r"episode\.max_steps = 0: give at least 1"),
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
    MarineNavEnv(1, stages=(Stage(20, 8, 8, 40.0),), slots=Slots(20, 8, 9))
