"""What MarineNavEnv refuses, each with the field, its value and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from marinenav_env.build_record import BUILD_RECORD, PACKAGE, read_record, runs_on
from marinenav_env.config import EnvConfig
from marinenav_env.envs.placement import check_placement
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.scenes import AnyStage, SceneStage
from marinenav_env.envs.state import Slots
from marinenav_env.fields import ConfigError, convert, require
from marinenav_env.kernel import ops
from marinenav_env.kernel.spec import KernelSpec

InfoMode = Literal["full", "stats", "none"]
MOST_ROBOTS = 255
MOST_OBJECTS = 65535
UNSTABLE = (
    "a setting below env, such as of the wind, a variation or a damping, is more than a time step"
    " can bear: give it less, or take a shorter step"
)
"""What to do about a state that is not finite. Kernels refuse actions that are not, so no policy
brings it about."""


def check_options(worlds: int, dtype: torch.dtype, info_mode: str, stack_k: int) -> None:
    """Check the environment's options.

    Raises:
        ConfigError: one of them is impossible.
    """
    modes = get_args(InfoMode)
    require_whole(worlds=worlds, stack_k=stack_k)
    require(worlds >= 1, "worlds", worlds, "give at least 1")
    floats = dtype in (torch.float32, torch.float64)
    require(floats, "dtype", dtype, "use torch.float32 or torch.float64")
    require(info_mode in modes, "info_mode", info_mode, f"use one of {', '.join(modes)}")
    require(stack_k >= 1, "stack_k", stack_k, "give at least 1 frame")


def require_whole(**values: object) -> None:
    """Check that values are whole numbers.

    Raises:
        ConfigError: one is not.
    """
    for name, value in values.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        require(whole, name, value, "give a whole number")


def check_randomness(worlds: int, seed: int, first_world: int) -> None:
    """Check what the random numbers are counted by.

    Raises:
        ConfigError: the seed or a world's number is out of range.
    """
    require_whole(seed=seed, first_world=first_world)
    require(worlds <= 2**32, "worlds", worlds, "worlds are numbered with 32 bits; give fewer")
    require(-(2**63) <= seed < 2**63, "seed", seed, "give a whole number of 64 bits")
    last = 2**32 - worlds
    remedy = f"worlds are numbered from 0 to 2**32 - 1; give 0 to {last}"
    require(0 <= first_world <= last, "first_world", first_world, remedy)


def check_device(device: torch.device | str) -> torch.device:
    """Return the device, if the operators run there.

    Raises:
        ConfigError: CUDA is asked for and absent from this machine or from the operators, or the
            machine has no device of that number.
    """
    name = str(device)
    require(name.partition(":")[0] in ("cpu", "cuda"), "device", name, "use 'cpu' or 'cuda'")
    try:
        device = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"device is {name!r} ({error}): use 'cpu' or 'cuda:0'") from error
    if device.type == "cpu":
        return device
    present = torch.cuda.is_available()
    require(present, "device", name, "this machine shows no CUDA device; use 'cpu'")
    remedy = (
        "the operators were built without CUDA; use 'cpu', or rebuild with FORCE_CUDA=1 where nvcc"
        " matches torch"
    )
    require(ops.has_cuda(), "device", name, remedy)
    count = torch.cuda.device_count()
    remedy = (
        f"this machine shows {count} CUDA devices, numbered from 0; use 'cuda:{count - 1}' or a"
        " smaller number"
    )
    require((device.index or 0) < count, "device", name, remedy)
    built = read_record(PACKAGE / BUILD_RECORD).get("cuda_arch_list")
    if built:
        major, minor = torch.cuda.get_device_capability(device)
        remedy = (
            f"the operators are built for the architectures {built}, and this GPU is of {major}."
            f"{minor}; rebuild with TORCH_CUDA_ARCH_LIST={major}.{minor} FORCE_CUDA=1, or use 'cpu'"
        )
        require(runs_on(built, (major, minor)), "device", name, remedy)
    return device


def check_stages(stages: Sequence[AnyStage], config: EnvConfig) -> tuple[AnyStage, ...]:
    """Return the stages, if their scenarios can be placed; scenes are taken as they are.

    Raises:
        ConfigError: no stage, or one whose robots, vortices or buoys find no room in the map.
    """
    if not isinstance(stages, list | tuple):
        stages = convert(tuple[Stage, ...], stages, where="stages")
    stages = tuple(
        stage if isinstance(stage, SceneStage) else convert(Stage, stage, where=f"stages[{i}]")
        for i, stage in enumerate(stages)
    )
    require(bool(stages), "stages", stages, "give at least one stage")
    scenario = config.scenario
    side_x = scenario.width - 2.0 * scenario.start_margin
    side_y = scenario.height - 2.0 * scenario.start_margin
    diagonal = (side_x**2 + side_y**2) ** 0.5
    remedy = (
        f"starts and goals lie at most {diagonal:.1f} m apart on this map; lower it or enlarge"
        " scenario.width/height"
    )
    for i, stage in enumerate(stages):
        _check_numbering(f"stages[{i}]", stage)
        if isinstance(stage, SceneStage):
            continue
        distance = stage.min_distance_m
        require(distance < diagonal, f"stages[{i}].min_distance_m", distance, remedy)
        reached = config.reward.goal_distance
        require(
            reached < distance or distance == 0.0,
            "EnvConfig.reward.goal_distance",
            reached,
            f"a goal {distance} m away (stages[{i}].min_distance_m) would be reached at the start; "
            "give less",
        )
        check_placement(f"stages[{i}]", stage, config)
    return tuple(stages)


def check_state(state: Mapping[str, Tensor], spec: KernelSpec, sizes: Mapping[str, int]) -> None:
    """Check what the core counts and indexes by in a state from elsewhere. Reads the device.

    Args:
        state: the tensors by name.
        spec: of the environment.
        sizes: its extents.

    Raises:
        ValueError: a number is out of range.
    """
    flags = int(state["alive"].view(torch.uint8).max())
    if flags > 1:
        raise ValueError(f"simulator state 'alive' has {flags}, no flag: the checkpoint is damaged")
    most = {"stage": sizes["stages"] - 1, "end": 2, **sizes}
    for row, name in zip(state["world"], spec.fields("world"), strict=True):
        low, high = int(row.min()), int(row.max())
        limit = most.get(name, 2**31 - 1)
        if name != "next_stage" and not 0 <= low <= high <= limit:
            raise ValueError(
                f"simulator state 'world.{name}' has {low} to {high}, which is not within 0 to "
                f"{limit}: the checkpoint is damaged or not of these settings"
            )


class UnusableError(ConfigError):
    """A state is not finite, or actions are unusable; the message says whose."""


def check_finite(what: str, finite: Tensor) -> None:
    """Check that every robot's numbers are finite. Reads the device.

    Args:
        what: their name.
        finite: [W, R] bool, whether a robot's are.

    Raises:
        UnusableError: says how many robots' are not, in which world and robot first.
    """
    broken = finite.logical_not().nonzero().cpu()
    if len(broken):
        world, robot = broken[0].tolist()
        raise UnusableError(
            f"the {what} of {len(broken)} robots is not finite (first in world {world}, robot"
            f" {robot}): {UNSTABLE}"
        )


def check_slots(slots: Slots | None, stages: Sequence[AnyStage]) -> Slots:
    """Return the slots, or as many as the stages need.

    Raises:
        ConfigError: a stage needs more than there are, or they are more than can be numbered.
    """
    needed = Slots(*(max(getattr(stage, n) for stage in stages) for n in Slots._fields))
    if slots is None:
        return needed
    counted = isinstance(slots, tuple) and len(slots) == len(needed)
    require(counted, "slots", slots, f"give {len(needed)} numbers, {', '.join(Slots._fields)}")
    require_whole(**{f"slots.{n}": number for n, number in zip(Slots._fields, slots, strict=True)})
    for name, given, least in zip(Slots._fields, slots, needed, strict=True):
        remedy = f"a stage places {least} {name}; give at least {least}"
        require(given >= least, f"slots.{name}", given, remedy)
    _check_numbering("slots", slots)
    return slots


def _check_numbering(name: str, counts: AnyStage | Slots) -> None:
    """Check that the random numbers' counter has bits for every robot and object (philox.h)."""
    fits = counts.robots <= MOST_ROBOTS and counts.robots + counts.buoys <= MOST_OBJECTS
    remedy = f"give at most {MOST_ROBOTS} robots and {MOST_OBJECTS} robots and buoys together"
    require(fits, name, counts, remedy)
