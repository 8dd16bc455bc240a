"""Copies of a simulator's present state on the host, for replays and recordings."""

from __future__ import annotations

import numpy as np
import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.state import ROBOT_FIELDS, STATUS_COLLIDED, STATUS_REACHED
from marinenav_env.episodes.format import TRAJECTORY_COLUMNS
from marinenav_env.kernel.state import StepBuffers

Snapshot = dict[str, np.ndarray]
"""Arrays [W, R, ...] in float64 or bool by name; see `snapshot`."""


def snapshot(env: MarineNavEnv, buffers: StepBuffers) -> Snapshot:
    """Copy what can be said of every robot after a decision, or after a reset.

    Args:
        env: the environment.
        buffers: what its last step or observation wrote.

    Returns:
        ``states`` (trajectory rows), ``reward``, ``energy`` of the decision, flags ``collision``,
        ``reach_goal`` and ``alive`` (under way), ``phi`` (0 where COLREGs do not apply), and
        the observation ``ego``, ``objects``, ``mask``.
    """
    rows = env.state.robot[:, :, : env.worlds].permute(2, 1, 0)
    status = env.state.status[:, : env.worlds].T
    tensors = {
        "states": rows[..., : len(TRAJECTORY_COLUMNS)],
        "reward": buffers.reward,
        "energy": rows[..., ROBOT_FIELDS.index("step_energy")],
        "collision": status & STATUS_COLLIDED != 0,
        "reach_goal": status & STATUS_REACHED != 0,
        "alive": env.alive,
        "phi": rows[..., ROBOT_FIELDS.index("phi")],
        "ego": buffers.obs.ego,
        "objects": buffers.obs.objects,
        "mask": buffers.obs.mask,
    }
    host = {name: tensor.cpu().clone() for name, tensor in tensors.items()}
    return {
        name: (tensor if tensor.dtype == torch.bool else tensor.double()).numpy()
        for name, tensor in host.items()
    }
