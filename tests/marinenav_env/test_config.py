"""The simulator's parameters: an impossible one names its field, its value and the remedy."""

import dataclasses
import math
import re

import pytest

from marinenav_env.config import (
    ColregsConfig,
    EnvConfig,
    EpisodeConfig,
    PerceptionConfig,
    RewardConfig,
    ScenarioConfig,
)
from marinenav_env.envs.icra2024 import KinematicVesselConfig
from marinenav_env.envs.make import TASKS
from marinenav_env.faults import ThrusterConfig, VariationConfig
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VesselConfig
from marinenav_env.water import CurrentConfig, StreamConfig, WavesConfig, WindConfig

IMPOSSIBLE = [
    (VesselConfig, {"dt": 0.0}, r"dt is 0\.0: give more than 0\.0 \[s\]"),
    (VesselConfig, {"substeps": 0}, r"substeps is 0: give 1 or more"),
    (VesselConfig, {"substeps": 2**24 + 1}, r"substeps is 16777217: give 16777216 or less"),
    (VesselConfig, {"substeps": 2.5}, r"substeps is 2\.5 \(float\): give a whole number"),
    (VesselConfig, {"radius": -1.0}, r"radius is -1\.0: give more than 0\.0 \[m\]"),
    (VesselConfig, {"mass": 10.0}, r"mass is 10\.0: the mass must exceed"),
    (VesselConfig, {"izz": 100.0, "n_dot_r": 200.0}, r"izz is 100\.0: the inertia must exceed"),
    (VesselConfig, {"izz": -1.0}, r"izz is -1\.0: give more than 0"),
    (VesselConfig, {"max_thrust_rate": -5.0}, r"max_thrust_rate is -5\.0: give more than 0"),
    (WindConfig, {"direction": (0.0, 360.0)}, r"direction is 360\.0: give 6\.28.* or less \[rad\]"),
    (
        VesselConfig,
        {"y_dot_r": -1100.0, "n_dot_v": -520.0},
        r"y_dot_r is -1100\.0: y_dot_r \* n_dot_v .* = 572000\.0, or the mass matrix",
    ),
    (VesselConfig, {"y_dot_r": 900.0, "n_dot_v": 900.0}, r"y_dot_r is 900\.0: .*indefinite"),
    (VesselConfig, {"min_thrust": 200.0}, r"min_thrust is 200\.0: vessels begin without thrust"),
    (VesselConfig, {"max_thrust": 0.0}, r"max_thrust is 0\.0: give more than 0"),
    (VesselConfig, {"left_thrust_rates": (0.0,)}, r"left_thrust_rates is 0\.0: give 5"),
    (VesselConfig, {"right_thrust_rates": (0, 0, 0, 0, math.nan)}, "right_thrust_rates is nan"),
    (PerceptionConfig, {"range": 0.0}, r"range is 0\.0: give more than"),
    (PerceptionConfig, {"angle": 7.0}, r"angle is 7\.0: give 6\.28.* or less \[rad\]"),
    (PerceptionConfig, {"angle": 0.0}, r"angle is 0\.0: give more than"),
    (PerceptionConfig, {"position_std": -0.1}, r"position_std is -0\.1: give 0\.0 or more \[m\]"),
    (PerceptionConfig, {"radius_kappa": -1.0}, r"radius_kappa is -1\.0: give 0\.0 or more$"),
    (PerceptionConfig, {"radius_mean_ratio": 1.5}, r"radius_mean_ratio is 1\.5: give 1\.0 or less"),
    (PerceptionConfig, {"radius_mean_ratio": 0.49}, r"radius_mean_ratio is 0\.49: give 0\.5 or"),
    (ScenarioConfig, {"width": 9.0}, r"width is 9\.0: the map must be wider than"),
    (ScenarioConfig, {"buoy_radius_min": 2.0}, r"buoy_radius_min is 2\.0: must not exceed buoy_r"),
    (ScenarioConfig, {"buoy_radius_min": 0.0}, r"buoy_radius_min is 0\.0: give more than 0"),
    (ScenarioConfig, {"placement_tries": 0}, r"placement_tries is 0: give 1 or more \[tries\]"),
    (ScenarioConfig, {"placement_tries": 2**16}, r"placement_tries is 65536: give 65535 or less"),
    (ScenarioConfig, {"placement_tries": 9.5}, r"placement_tries is 9\.5 .*: give a whole number"),
    (ScenarioConfig, {"clear_radius": -1.0}, r"clear_radius is -1\.0: give 0\.0 or more"),
    (ColregsConfig, {"margin": -1.0}, r"margin is -1\.0: give 0\.0 or more"),
    (ColregsConfig, {"crossing_x_max": 0.0}, r"crossing_x_max is 0\.0: give more than"),
    (RewardConfig, {"goal_distance": 0.0}, r"goal_distance is 0\.0: give more than"),
    (RewardConfig, {"goal": math.nan}, "goal is nan: give a finite number"),
    (RewardConfig, {"goal": math.inf}, "goal is inf: give a finite number"),
    (RewardConfig, {"goal": "far"}, r"goal is 'far' \(str\): give a number"),
    (CurrentConfig, {"core_radius": 0.0}, r"core_radius is 0\.0: give more than"),
    (CurrentConfig, {"edge_speed_min": 4.0}, r"edge_speed_min is 4\.0: must not exceed"),
    (WindConfig, {"speed": (3.0, 1.0)}, r"speed is \(3\.0, 1\.0\): give the lower end first"),
    (WindConfig, {"speed": (-1.0, 1.0)}, r"speed is -1\.0: give 0\.0 or more \[m/s\]"),
    (WindConfig, {"speed": 3.0}, r"speed is 3\.0: give 2 values, such as"),
    (WindConfig, {"gust_time": 0.0}, r"gust_time is 0\.0: give more than 0\.0 \[s\]"),
    (WindConfig, {"model": "storm"}, r"model is 'storm': choose one of vrx, fossen"),
    (StreamConfig, {"speed": (0.3, 0.1)}, r"speed is \(0\.3, 0\.1\): give the lower end first"),
    (WavesConfig, {"height": 0.5}, r"height is 0\.5: give 0\.3 or less \[m\]"),
    (WavesConfig, {"period": 0.5}, r"period is 0\.5: give 1\.0 or more \[s\]"),
    (ThrusterConfig, {"lag": -1.0}, r"lag is -1\.0: give 0\.0 or more \[s\]"),
    (ThrusterConfig, {"loss_probability": 2.0}, r"loss_probability is 2\.0: give 1\.0 or less"),
    (ThrusterConfig, {"loss_time": (9.0, 1.0)}, r"loss_time is \(9\.0, 1\.0\): give the lower end"),
    (VariationConfig, {"mass": (0.0, 1.0)}, r"mass is 0\.0: give more than 0\.0$"),
    (VariationConfig, {"thrust_rate": (2.0, 1.0)}, r"thrust_rate is .*: give the lower end first"),
    (PerceptionConfig, {"miss": 1.5}, r"miss is 1\.5: give 1\.0 or less"),
    (PerceptionConfig, {"noise_factor": (2.0, 1.0)}, r"noise_factor is .*: give the lower end"),
    (PerceptionConfig, {"range_factor": (1.0, 0.5)}, r"range_factor is .*: give the lower end"),
    (PerceptionConfig, {"range_factor": (0.5, 1.5)}, r"range_factor.* is 1\.5: give 1\.0 or less"),
    (EpisodeConfig, {"max_steps": 0}, r"max_steps is 0: give 1 or more \[decisions\]"),
    (EpisodeConfig, {"max_steps": 2**31}, r"max_steps is 2147483648: give 16777216 or less"),
    (EpisodeConfig, {"max_steps": True}, r"max_steps is True \(bool\): give a whole number"),
]


@pytest.mark.parametrize(("group", "values", "message"), IMPOSSIBLE)
def test_impossible_parameter(group, values, message):
    with pytest.raises(ConfigError, match=rf"^{group.__name__}\.{message}"):
        group(**values)


def numbers_of(value):
    """The numbers that a parameter holds: one, those of a tuple, or none."""
    entries = value if isinstance(value, tuple) else (value,)
    return [entry for entry in entries if type(entry) in (int, float)]


def groups():
    """The groups of parameters of all tasks."""
    configs = [kind.config_type() for kind in TASKS.values()]
    return {type(group): group for config in configs for group in vars(config).values()}.values()


NUMBERS = [
    pytest.param(group, field, id=f"{type(group).__name__}.{field.name}")
    for group in groups()
    for field in dataclasses.fields(group)
    if numbers_of(getattr(group, field.name))
]


def bad_numbers(rules, whole):
    """Numbers that are not finite or just outside the bounds, with what is to be given instead."""
    for number in (math.nan, math.inf, -math.inf):
        yield number, "give a whole number" if whole else "give a finite number"
    if rules["above"] > -math.inf:
        yield rules["above"], f"give more than {rules['above']}"
    if rules["low"] > -math.inf:
        below = rules["low"] - 1 if whole else math.nextafter(rules["low"], -math.inf)
        yield below, f"give {rules['low']} or more"
    if rules["high"] < math.inf:
        beyond = rules["high"] + 1 if whole else math.nextafter(rules["high"], math.inf)
        yield beyond, f"give {rules['high']} or less"


@pytest.mark.parametrize(("group", "field"), NUMBERS)
def test_every_number_outside_its_bounds_is_named(group, field):
    value = getattr(group, field.name)
    whole = type(numbers_of(value)[0]) is int
    for bad, remedy in bad_numbers(field.metadata, whole):
        given = (*value[:-1], bad) if isinstance(value, tuple) else bad
        with pytest.raises(ConfigError) as refusal:
            dataclasses.replace(group, **{field.name: given})
        assert re.match(rf"{type(group).__name__}\.{field.name} is {bad!r}\b", str(refusal.value))
        assert remedy in str(refusal.value)


def test_every_parameter_has_unit_and_source():
    for group in groups():
        for field in dataclasses.fields(group):
            assert field.metadata["unit"], field.name
            assert field.metadata["source"], field.name


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"mass": (0.04, 0.06)}, "mass times 0.04.*mass is 16.0: the mass must exceed x_dot_u"),
        ({"mass": (0.05, 2.0), "surge_damping": (1.0, 20.0)}, "mass times 0.05, .*"),
        (
            {"yaw_damping": (1.0, 60.0)},
            r"greatest dampings gives a vessel whose n_r is -58800\.0: o",
        ),
        ({"added_inertia": (0.01, 1.0), "yaw_damping": (1.0, 11.0)}, "added_inertia times 0.01"),
    ],
)
def test_a_variation_beyond_what_can_be_stepped_is_refused(ranges, message):
    with pytest.raises(ConfigError, match=message):
        EnvConfig(variation=VariationConfig(**ranges))
    EnvConfig(variation=VariationConfig(mass=(0.7, 1.3), yaw_damping=(0.7, 1.3)))


def test_a_fringe_keeps_starts_apart():
    with pytest.raises(ConfigError, match=r"clear_radius is 10\.0: .*reward\.fringe 5 or more"):
        EnvConfig(reward=RewardConfig(fringe=5.0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"turn_rates": (-2.0, 0.0, 2.0)}, r"turn_rates is .*within the largest, 0\.52"),
        ({"accelerations": (-0.4, 0.0, 0.5)}, r"accelerations is .*within the largest, 0\.4 to"),
        ({"max_turn_rate": 130.0}, r"max_turn_rate is 130\.0: a substep of 0\.05 s would turn"),
    ],
)
def test_choices_of_a_kinematic_vessel_are_within_its_largest(values, message):
    with pytest.raises(ConfigError, match=message):
        KinematicVesselConfig(**values)


def test_a_range_within_the_hull_is_refused():
    with pytest.raises(
        ConfigError, match=r"range is 0\.1: contacts would be missed; .* 2\.80 m, or"
    ):
        EnvConfig(perception=PerceptionConfig(range=0.1))
