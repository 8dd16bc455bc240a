"""Goal-straight: turns to the goal and drives, whatever is in the way."""

from __future__ import annotations

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from train_RL_agents.evaluation.baselines.vessel import (
    Gains,
    VesselModel,
    action_for,
    hold_course,
)

SPEED = 2.5  # m/s, of the WAM-V 16
GAINS = Gains(lead=0.0, course=1.2, yaw_s=0.5, surge_s=0.5)


def goal_straight(observation: Observation, model: VesselModel) -> Tensor:
    """Return actions [..., 2]; slower the further the goal lies off the bow."""
    ego = observation.ego
    bearing = torch.atan2(ego[..., 1], ego[..., 0])
    surge = SPEED * model.speed_ratio * bearing.cos().clamp(min=0.0)
    return action_for(model, ego, hold_course(model, ego, bearing, surge, GAINS))
