"""What MarineNavEnv refuses, each with the field, its value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.placement import check_placement
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import Slots
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops

InfoMode = Literal["full", "stats", "none"]
MOST_ROBOTS = 255
MOST_OBJECTS = 65535


def check_options(worlds: int, dtype: torch.dtype, info_mode: str, stack_k: int) -> None:
    """Check the environment's options.

    Raises:
        ConfigError: one of them is impossible.
    """
    if worlds < 1:
        raise ConfigError(f"worlds = {worlds}: give at least 1")
    if dtype not in (torch.float32, torch.float64):
        raise ConfigError(f"dtype = {dtype}: use torch.float32 or torch.float64")
    if info_mode not in get_args(InfoMode):
        raise ConfigError(f"info_mode = {info_mode!r}: use one of {', '.join(get_args(InfoMode))}")
    if stack_k < 1:
        raise ConfigError(f"stack_k = {stack_k}: give at least 1 frame")


def check_randomness(worlds: int, seed: int, first_world: int) -> None:
    """Check what the random numbers are counted by.

    Raises:
        ConfigError: the seed or a world's number is out of range.
    """
    if not -(2**63) <= seed < 2**63:
        raise ConfigError(f"seed = {seed}: give a whole number of 64 bits")
    if not 0 <= first_world <= 2**32 - worlds:
        raise ConfigError(
            f"first_world = {first_world}: worlds are numbered from 0 to 2**32 - 1; give 0 to"
            f" {2**32 - worlds}"
        )


def check_device(device: torch.device | str) -> torch.device:
    """The device, if the operators run there.

    Raises:
        ConfigError: CUDA is asked for and absent from this machine or from the operators, or the
            machine has no device of that number.
    """
    device = torch.device(device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device = '{device}': this machine shows no CUDA device; use 'cpu'")
    if device.type == "cuda" and not ops.has_cuda():
        raise ConfigError(
            f"device = '{device}': the operators were built without CUDA; use 'cpu', or rebuild"
            " with FORCE_CUDA=1 where nvcc matches torch"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device = '{device}': this machine shows {torch.cuda.device_count()} CUDA devices,"
            f" numbered from 0; use 'cuda:{torch.cuda.device_count() - 1}' or a smaller number"
        )
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device = '{device}': use 'cpu' or 'cuda'")
    return device


def check_stages(stages: Sequence[Stage], config: EnvConfig) -> tuple[Stage, ...]:
    """The stages, if their scenarios can be placed.

    Raises:
        ConfigError: no stage, or one whose robots, vortices or buoys find no room in the map.
    """
    if not stages:
        raise ConfigError("stages = (): give at least one stage")
    scenario = config.scenario
    side_x = scenario.width - 2.0 * scenario.start_margin
    side_y = scenario.height - 2.0 * scenario.start_margin
    diagonal = (side_x**2 + side_y**2) ** 0.5
    for i, stage in enumerate(stages):
        if stage.min_distance_m >= diagonal:
            raise ConfigError(
                f"stages[{i}].min_distance_m = {stage.min_distance_m}: starts and goals lie at most"
                f" {diagonal:.1f} m apart on this map; lower it or enlarge scenario.width/height"
            )
        _check_numbering(f"stages[{i}]", stage)
        check_placement(f"stages[{i}]", stage, config)
    return tuple(stages)


def check_slots(slots: Slots | None, stages: Sequence[Stage]) -> Slots:
    """The slots, or as many as the stages need.

    Raises:
        ConfigError: a stage needs more than there are, or they are more than can be numbered.
    """
    needed = Slots(*(max(getattr(stage, n) for stage in stages) for n in Slots._fields))
    if slots is None:
        return needed
    for name, given, least in zip(Slots._fields, slots, needed, strict=True):
        if given < least:
            raise ConfigError(
                f"slots.{name} = {given}: a stage places {least} {name}; give at least {least}"
            )
    _check_numbering("slots", slots)
    return slots


def _check_numbering(name: str, counts: Stage | Slots) -> None:
    """Check that the random numbers' counter has bits for every robot and object (philox.h)."""
    if counts.robots > MOST_ROBOTS or counts.robots + counts.buoys > MOST_OBJECTS:
        raise ConfigError(
            f"{name} = {counts}: give at most {MOST_ROBOTS} robots and {MOST_OBJECTS} robots and"
            " buoys together"
        )
