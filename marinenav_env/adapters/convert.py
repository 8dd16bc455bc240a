"""Tensors as arrays, and descriptions as spaces."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.checks import check_finite
from marinenav_env.envs.make import ENVIRONMENTS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.spec import EnvSpec
from marinenav_env.fields import require

ALONE = (Stage(robots=1, vortices=0, buoys=4, min_distance_m=40.0),)
"""Of a vessel that has a world of its own: no other vessels, four buoys."""

MOST_SEED = 2**31
"""Seeds drawn for those who give none lie below it."""


def check_face(options: Mapping[str, Any], render_mode: Any, remedy: str) -> None:
    """Check the options that every face refuses.

    Args:
        options: those for the environment's constructor.
        render_mode: what is asked for.
        remedy: what to do instead of giving ``worlds``.

    Raises:
        ConfigError: the face is to draw, or ``worlds`` is given.
    """
    draws = "leave it out, faces do not draw; scripts/episode.py plot draws vessels"
    require(render_mode is None, "render_mode", render_mode, draws)
    require("worlds" not in options, "worlds", options.get("worlds"), remedy)


def with_stage(task: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the last stage of a task's curriculum, where they name no stages.

    Its worlds have a robot in every slot.
    """
    kind = ENVIRONMENTS.get(task)
    return {"stages": kind.default_stages[-1:], **options} if kind else dict(options)


def check_one_stage(env: KernelEnv) -> None:
    """Check that a face of one world has one stage, since it would play no other."""
    names = [stage.label for stage in env.stages] if len(env.stages) > 1 else []
    require(not names, "stages", names, "one world plays one stage: give that alone")


def observation_space(spec: EnvSpec) -> spaces.Space:
    """Return the space of a robot's observation: a vector, or a dictionary of arrays."""
    parts: dict[str, spaces.Space] = {
        key: spaces.Box(-np.inf, np.inf, tuple(shape), dtype=np.float32)
        for key, shape in zip(spec.observation.keys, spec.observation.shapes, strict=True)
    }
    return spaces.Dict(parts) if spec.group else parts[spec.observation.keys[0]]


def action_space(spec: EnvSpec) -> spaces.Space:
    """Return the space of a robot's action: an index, or numbers in [-1, 1]."""
    if spec.action.discrete:
        return spaces.Discrete(spec.action.size)
    return spaces.Box(-1.0, 1.0, (spec.action.size,), dtype=np.float32)


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Return a copy of a tensor [W, R, ...] as an array [W * R, ...]."""
    return tensor.flatten(0, 1).to("cpu", copy=True).numpy()


def observed(spec: EnvSpec, obs: Any) -> Any:
    """Return a copy of an observation [W, R, ...] as its space has it, [W * R, ...]."""
    parts = {key: to_numpy(part) for key, part in zip(spec.observation.keys, obs, strict=True)}
    return parts if spec.group else parts[spec.observation.keys[0]]


def check_handed_out(env: KernelEnv, *given: Any) -> None:
    """Check that observations and rewards of all robots are finite.

    Args:
        env: the environment that they are of.
        given: arrays [W * R, ...], or dictionaries of such.

    Raises:
        ConfigError: says how many robots' are not, in which world and robot first.
    """
    arrays = [
        array for part in given for array in (part.values() if isinstance(part, dict) else [part])
    ]
    if all(math.isfinite(np.vdot(array, array)) for array in arrays):  # sums of squares: one read
        return
    finite = [np.isfinite(array).reshape(env.worlds, env.robots, -1).all(-1) for array in arrays]
    check_finite("observation or reward", torch.from_numpy(np.logical_and.reduce(finite)))


ENDS = ("is_success", "collision")
"""How a robot can end, besides by its limit, as infos name it."""


def ends_of(env: KernelEnv, ended: np.ndarray) -> dict[str, np.ndarray]:
    """Return how robots [N] ended in a decision, before finished worlds begin anew.

    Args:
        env: the environment; one whose robots have no goal says nothing.
        ended: which have terminated in it, bool [N].

    Returns:
        ``is_success``, a robot has reached its goal, and ``collision``, it has touched something.
    """
    if "contact" not in env.kernel_spec.fields("robot"):
        return {}
    if not ended.any():  # then the device need not be read
        return {name: np.zeros_like(ended) for name in ENDS}
    contact = to_numpy(env.state.robot_field("contact")[:, : env.worlds].T) > 0
    return dict(zip(ENDS, (ended & ~contact, ended & contact), strict=True))


def to_action(env: KernelEnv, action: Any, shape: tuple[int, ...] | None = None) -> Tensor:
    """Return actions as the environment takes them.

    Args:
        env: the environment.
        action: of all robots.
        shape: that of the actions; None for [W * R] or [W * R, n].

    Raises:
        ValueError: see `checked_action`.
    """
    like = env.make_action()
    shape = tuple(like.flatten(0, 1).shape) if shape is None else shape
    given = checked_action(env, action, shape)
    return like.copy_(torch.from_numpy(given.reshape(like.shape)))


def without_ones(shape: tuple[int, ...]) -> list[int]:
    """Return the extents of a shape that are not 1."""
    return [extent for extent in shape if extent != 1]


def checked_action(
    env: KernelEnv, action: Any, shape: tuple[int, ...], name: str = "actions"
) -> np.ndarray:
    """Return actions as an array of the shape, but for axes of one entry.

    Raises:
        ValueError: they are no numbers, have another shape, are no whole numbers in range, or not
            finite.
    """
    try:
        given = np.asarray(action)
    except ValueError as error:  # rows of unlike lengths
        raise ValueError(f"{name} have several shapes: give {shape}") from error
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{name} are {reprlib.repr(action)}: give numbers")
    if without_ones(given.shape) != without_ones(shape):
        raise ValueError(f"{name} have shape {given.shape}: give {shape}")
    if env.discrete:
        last = env.kernel_spec.discrete - 1
        fits = (given == np.floor(given)) & (given >= 0) & (given <= last)
        remedy = f"give whole numbers from 0 to {last}"
    else:
        fits, remedy = np.isfinite(given), "give finite numbers in [-1, 1]"
    if not np.all(fits):
        raise ValueError(f"{name} hold {given[~fits][0]}: {remedy}")
    return given
