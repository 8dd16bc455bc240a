"""The observation of a robot, as the simulator writes it and as a deployed network reads it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

EGO_FEATURES = (
    "goal_x",  # m, body frame
    "goal_y",  # m, body frame
    "u",  # m/s, forward velocity over ground
    "v",  # m/s, starboard velocity over ground
    "r",  # rad/s, yaw rate
    "left_thrust",  # N
    "right_thrust",  # N
)
OBJECT_FEATURES = (
    "p_x",  # m, body frame
    "p_y",  # m, body frame
    "v_x",  # m/s, body frame, over ground
    "v_y",  # m/s, body frame, over ground
    "radius",  # m
)


class Observation(NamedTuple):
    """What one robot sees, for any leading shape (`[W, R]` worlds and robots, or `[B]` samples).

    It is the tuple `(self, objects, mask)` that a deployed network takes as its one argument.
    With a history of `k` frames the newest frame comes first: `ego[..., :7]`, `objects[..., :K, :]`
    and `mask[..., :K]` are the present, the next 7 features and K rows the decision before.

    Attributes:
        ego: `[..., 7*k]`, the features of `EGO_FEATURES`, raw metric units.
        objects: `[..., K*k, 5]`, the features of `OBJECT_FEATURES`, nearest first; padding is 0.
        mask: `[..., K*k]`, 1.0 for an object, 0.0 for padding, in the dtype of the features.
    """

    ego: Tensor
    objects: Tensor
    mask: Tensor


class TwoListObservation(NamedTuple):
    """What one robot of the ICRA 2024 task sees, for any leading shape, in the body frame.

    With a history of `k` frames the newest frame comes first. Raw metric units, velocities over
    ground; each list is nearest first, and padding is 0.

    Attributes:
        ego: `[..., 4*k]`, goal_x, goal_y, u, v.
        static: `[..., 5*k, 3]`, p_x, p_y and radius of the nearest buoys.
        dynamic: `[..., 5*k, 4]`, p_x, p_y, v_x and v_y of the nearest robots.
    """

    ego: Tensor
    static: Tensor
    dynamic: Tensor


class RayObservation(NamedTuple):
    """What one robot with a range finder sees, for any leading shape, in the body frame.

    With a history of `k` frames the newest frame comes first, its rows are `[..., :K, :]`.
    Raw metric units, velocities over ground.

    Attributes:
        ego: `[..., 7*k]`, the features of `EGO_FEATURES`.
        rays: `[..., K*k, F]`: sectors from the stern over port and bow back to the stern with
            closeness, v_x and v_y, or beams from port to starboard with x and y.
        hits: `[..., K*k]`, 1.0 where a row meets something, else 0.0.
    """

    ego: Tensor
    rays: Tensor
    hits: Tensor
