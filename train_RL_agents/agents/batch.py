"""What the replay hands to an agent's update."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from marinenav_env.envs.spec import ObservationTensors


class Batch(NamedTuple):
    """A batch of B transitions.

    Attributes:
        obs: observations, fields [B, ...].
        action: continuous [B, A], or discrete int64 [B].
        reward: n-step return sum_{k<m} gamma^k r_k, [B].
        next_obs: observation m decisions later, fields [B, ...]; () for an agent that does not
            bootstrap.
        discount: factor of the bootstrapped value, [B]: gamma^m, or 0 after a termination.
        weight: importance weight, [B]; 1 where sampling is uniform.
        index: slots, int64 [B], for `DeviceReplay.update_priorities`.
    """

    obs: ObservationTensors
    action: Tensor
    reward: Tensor
    next_obs: ObservationTensors
    discount: Tensor
    weight: Tensor
    index: Tensor  # type: ignore[assignment]  # it hides a method of tuple
