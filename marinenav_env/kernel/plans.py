"""The operators that look ahead: typed wrappers (`csrc/marine/plans/`).

Vessels of the marine environment are moved ahead from one observation, on their own model in calm
water, what they see at constant velocity. An object that looks larger than the largest buoy is a
vessel; any other one is taken as the largest buoy, and as at rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.kernel.ops import describe

ENV = "marine"
MOTION_ROWS = 8  # x y heading vx vy yaw left right
_ops = torch.ops.marinenav

COURSE_PARAMS: tuple[str, ...] = tuple(_ops.course_params().split())
"""What `plan_courses` needs to know of the controller and the costs."""

Sight = tuple[Tensor, Tensor, Tensor]
"""An observation of one frame: [N, 7], [N, K, 5], [N, K]."""


class Plans(NamedTuple):
    """What P plans of N vessels have come to.

    Attributes:
        motion: [8, P, N], where `plan_actions` continues.
        clearance: [P, N, K], the least distance between hull circles until now [m]; infinite where
            there is no object.
        remaining: [P, N], distance to the goal [m]; 0 from the arrival on, after which nothing
            counts.
    """

    motion: Tensor
    clearance: Tensor
    remaining: Tensor

    @staticmethod
    def like(sight: Sight, plans: int) -> Plans:
        """Return plans of the vessels of an observation, to be written."""
        ego, _, mask = sight
        count, objects = mask.shape
        return Plans(
            ego.new_empty(MOTION_ROWS, plans, count),
            ego.new_empty(plans, count, objects),
            ego.new_empty(plans, count),
        )


def packed_params(config: EnvConfig) -> Tensor:
    """Return the parameters of an environment as the operators take them."""
    return describe(ENV).pack(config.named_numbers())


def plan_actions(
    params: Tensor,
    sight: Sight,
    action: Tensor,
    plans: Plans,
    *,
    first: int,
    decisions: int,
) -> None:
    """Hold an action of each plan for some decisions.

    Args:
        params: from `packed_params`.
        sight: what N vessels observe.
        action: [P, N, 2] in [-1, 1], or [P, N] int64 indices.
        plans: written; read if ``first`` is not 0.
        first: decisions taken before.
        decisions: to take.
    """
    _ops.plan_actions.default(
        ENV, list(sight), action, list(plans), [], None, params, 0.0, first, decisions
    )


def plan_and_observe(
    params: Tensor,
    sight: Sight,
    action: Tensor,
    plans: Plans,
    shown: Tensor,
    *,
    closer: float,
    first: int,
    decisions: int,
) -> Sight:
    """Do as `plan_actions`, and return what the vessels see then: [P, N, ...], nearest first.

    Args:
        params: as there.
        sight: as there.
        action: as there.
        plans: as there.
        shown: [N, K] bool, the objects that they see.
        closer: by how much these seem closer along the line of sight [m].
        first: as there.
        decisions: as there.
    """
    ego, objects, mask = (part.new_empty(plans.remaining.shape[0], *part.shape) for part in sight)
    seen = (ego, objects, mask)
    _ops.plan_actions.default(
        ENV, list(sight), action, list(plans), list(seen), shown, params, closer, first, decisions
    )
    return seen


def pack_costs(named: Mapping[str, float]) -> list[float]:
    """Return controller and costs as `plan_courses` takes them.

    Args:
        named: a value for each of `COURSE_PARAMS`, in any order.

    Raises:
        KeyError: one is missing.
    """
    return [float(named[name]) for name in COURSE_PARAMS]


def plan_courses(
    params: Tensor, costs: list[float], sight: Sight, courses: Tensor
) -> tuple[Tensor, Tensor]:
    """Follow courses to the goal.

    Args:
        params: from `packed_params`.
        costs: from `pack_costs`.
        sight: what N vessels observe.
        courses: [C, 2], an offset from the goal's bearing [rad] and a factor of the speed.

    Returns:
        The cost [C, N] of the worst moment and object, and the distance [C, N] to the goal at the
        end [m], 0 on arrival.
    """
    danger = sight[0].new_empty(courses.shape[0], sight[0].shape[0])
    remaining = torch.empty_like(danger)
    _ops.plan_courses.default(ENV, list(sight), courses, danger, remaining, params, costs)
    return danger, remaining
