"""The simulator's configuration from an episode file's parameters, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from marinenav_env.config import (
    CurrentConfig,
    EnvConfig,
    EpisodeConfig,
    PerceptionConfig,
    RewardConfig,
    ScenarioConfig,
    VesselConfig,
)
from marinenav_env.episodes.format import Episode
from marinenav_env.episodes.sections import EnvSettings, Perception, Vessels
from marinenav_env.fields import ConfigError

SAME_NAME = (
    *("dt", "length", "width", "izz", "x_dot_u", "y_dot_v", "y_dot_r", "n_dot_r", "n_dot_v"),
    *("x_u", "x_uu", "y_v", "y_vv", "y_r", "y_rv", "y_vr", "y_rr"),
    *("n_r", "n_rr", "n_v", "n_vv", "n_rv", "n_vr"),
    *("min_thrust", "max_thrust", "power_coefficient"),
)
"""Vessel parameters that bear one name in the file's section and in the configuration."""

VESSEL_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in SAME_NAME},
        "n": "substeps",
        "r": "radius",
        "m": "mass",
        "left_thrust_change": "left_thrust_rates",
        "right_thrust_change": "right_thrust_rates",
    }
)
PERCEPTION_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "range": "range",
        "angle": "angle",
        "pos_std": "position_std",
        "vel_std": "velocity_std",
        "r_kappa": "radius_kappa",
        "r_mean_ratio": "radius_mean_ratio",
    }
)
"""Field of the file's section to field of the configuration."""

NOT_IN_A_REPLAY = (
    *("scenario.start_margin", "scenario.buoy_margin", "scenario.placement_tries"),
    *("episode.max_steps", "episode.stop_on_collision"),
)
"""Parameters without effect on a replay: the file says what stands where and who acted how long."""

ANGULAR_SPEED_MAX, ANGULAR_SPEED_PENALTY = 0.5 * np.pi, -1.0
"""A published penalty that the published simulator does not apply; files carry it all the same."""


def config_of(episode: Episode, nearest_objects: int) -> EnvConfig:
    """Return the configuration in which an episode took place, its robots never cut by a limit.

    Args:
        episode: the episode.
        nearest_objects: how many objects the simulator's observations hold.

    Raises:
        ValueError: the robots differ in a parameter, or one has a value that this simulator does
            not know; the message names the file, the field, the value and the remedy.
    """
    config = _config_of_sections(
        episode.env, episode.vessels, episode.perception, nearest_objects, episode.name
    )
    return replace(config, episode=EpisodeConfig(max_steps=episode.decisions + 1))


def check_recordable(config: EnvConfig, nearest_objects: int) -> None:
    """Check that episode files hold every parameter that a replay depends on.

    Args:
        config: the configuration of the environment to be recorded.
        nearest_objects: how many objects the simulator's observations hold.

    Raises:
        ConfigError: a replay of the file would run with another value of a parameter.
    """
    robots = 1
    read = _config_of_sections(
        settings_of(config, seed=0, robots=robots),
        vessels_of(config, robots),
        perception_of(config, robots, nearest_objects),
        nearest_objects,
        "recording",
    )
    pairs = zip(config.named_numbers(), read.named_numbers(), strict=True)
    for (name, value), (_, replayed) in pairs:
        if value != replayed and name not in NOT_IN_A_REPLAY:
            raise ConfigError(
                f"{name} = {value!r}: the episode format has no place for it and a replay would"
                f" take {replayed!r}; set {name} to that for the recording"
            )


def _config_of_sections(
    env: EnvSettings, vessels: Vessels, perception: Perception, nearest_objects: int, file: str
) -> EnvConfig:
    """Return the configuration that sections of the file called ``file`` stand for."""
    common = {name: _common(file, name, getattr(vessels, name)) for name in VESSEL_FIELDS}
    goal_distance = _common(file, "goal_dis", vessels.goal_dis)
    seen = {
        name: _common(file, f"perception.{name}", getattr(perception, name))
        for name in PERCEPTION_FIELDS
    }
    if not np.array_equal(vessels.detect_r, vessels.r):
        _refuse(file, "detect_r", vessels.detect_r, "give the collision radius r")
    if (perception.max_obj_num != nearest_objects).any():
        remedy = f"give {nearest_objects}, the number this simulator observes"
        _refuse(file, "perception.max_obj_num", perception.max_obj_num, remedy)
    # All in a file has its place, so it has no margins: the published ones, or what the map allows.
    within = 0.25 * min(env.width, env.height)
    try:
        return EnvConfig(
            vessel=VesselConfig(**{VESSEL_FIELDS[name]: value for name, value in common.items()}),
            perception=PerceptionConfig(
                **{PERCEPTION_FIELDS[name]: value for name, value in seen.items()}
            ),
            reward=RewardConfig(
                timestep=env.timestep_penalty,
                colregs=env.colregs_penalty,
                collision=env.collision_penalty,
                goal=env.goal_reward,
                goal_distance=goal_distance,
            ),
            current=CurrentConfig(
                core_radius=env.core_radius,
                edge_speed_min=float(env.v_range[0]),
                edge_speed_max=float(env.v_range[1]),
                same_sense_speed=env.v_rel_max,
                opposite_ratio=env.p,
            ),
            scenario=ScenarioConfig(
                width=env.width,
                height=env.height,
                start_margin=min(ScenarioConfig.start_margin, within),
                buoy_margin=min(ScenarioConfig.buoy_margin, within),
                clear_radius=env.clear_r,
                buoy_radius_min=float(env.obs_r_range[0]),
                buoy_radius_max=float(env.obs_r_range[1]),
            ),
        )
    except ConfigError as error:
        raise ValueError(f"episode file {file!r}: {error}") from error


def settings_of(config: EnvConfig, seed: int, robots: int) -> EnvSettings:
    """Return the ``env`` section for a configuration."""
    current, scenario, reward = config.current, config.scenario, config.reward
    return EnvSettings(
        seed=seed,
        is_eval_env=True,
        width=scenario.width,
        height=scenario.height,
        core_radius=current.core_radius,
        v_rel_max=current.same_sense_speed,
        p=current.opposite_ratio,
        v_range=np.array([current.edge_speed_min, current.edge_speed_max]),
        obs_r_range=np.array([scenario.buoy_radius_min, scenario.buoy_radius_max]),
        clear_r=scenario.clear_radius,
        angular_speed_max=ANGULAR_SPEED_MAX,
        angular_speed_penalty=ANGULAR_SPEED_PENALTY,
        timestep_penalty=reward.timestep,
        colregs_penalty=reward.colregs,
        collision_penalty=reward.collision,
        goal_reward=reward.goal,
        num_robots=robots,
    )


def vessels_of(config: EnvConfig, robots: int) -> Vessels:
    """Return the parameters of R equal vessels."""
    values = {
        name: _repeated(getattr(config.vessel, own), robots) for name, own in VESSEL_FIELDS.items()
    }
    values["detect_r"] = values["r"]
    values["goal_dis"] = _repeated(config.reward.goal_distance, robots)
    return Vessels(**values)


def perception_of(config: EnvConfig, robots: int, nearest_objects: int) -> Perception:
    """Return the perception of R equal robots."""
    values = {
        name: _repeated(getattr(config.perception, own), robots)
        for name, own in PERCEPTION_FIELDS.items()
    }
    return Perception(**values, max_obj_num=_repeated(nearest_objects, robots))


def _repeated(value: float | tuple[float, ...], robots: int) -> np.ndarray:
    return np.stack([np.asarray(value)] * robots)


def _common(file: str, name: str, values: np.ndarray) -> float | int | tuple[float, ...]:
    """Return the value that all robots share."""
    if (values != values[0]).any():
        _refuse(file, name, values, "give all robots one value, this simulator knows no other")
    value = values[0].tolist()
    return tuple(value) if isinstance(value, list) else value


def _refuse(file: str, name: str, values: np.ndarray, remedy: str) -> None:
    raise ValueError(f"episode file {file!r}: robots.{name} is {values.tolist()}: {remedy}")
