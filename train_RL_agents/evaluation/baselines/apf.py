"""Artificial potential fields (Khatib 1986; with the goal in the repulsion, Ge and Cui 2002).

The rules are those of the planner published with the VRX experiments of Lin et al. 2024
(RobustFieldAutonomyLab/Multi_Robot_Distributional_RL_Navigation, `action_planner_node.cpp`): the
goal attracts, objects that come nearer repel, and so do points ahead of a crossing vessel and to
starboard of a head-on one. Of the 25 changes of thrust the one is taken whose velocity and turn fit
the force best; what they lead to is predicted by the core over a decision, where the published code
takes one step of 0.25 s.

Repaired are: objects at rest repel (published: nothing slower than 0.5 m/s, which hides all
buoys), nothing beyond the range of influence repels (published: it attracts), the clearance in the
force has a floor (published: within 3 m of a hull the sign turns), and the second part of the
repulsion draws to the goal, as derived by Ge and Cui (published: away from it).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.kernel.plans import Plans, packed_params, plan_actions
from marinenav_env.vessels import VesselConfig
from train_RL_agents.evaluation.baselines.observed import Objects, flat, objects_of
from train_RL_agents.evaluation.baselines.vessel import CHOSEN_ON, VesselModel

ATTRACTION = 50.0
POINTS = 5
"""Of the zone of a vessel: itself and what lies `spacing_m` apart from it."""
MOST_SLOWNESS = 1.5
"""Of thrusters: with slower ones a force that looks one decision ahead turns the vessel too far."""
HEAD_ON_DEG, CROSSING_DEG = 135.0, 45.0
"""Courses that differ by more are head-on, by more than the second crossing (docs/physics.md)."""


class Settings(NamedTuple):
    """Gains, distances and repairs; distances and speeds of a vessel are those of the WAM-V 16.

    Attributes:
        repulsion: gain.
        range_m: clearance up to which objects repel.
        margin_m: beyond the object's radius, where the clearance of the force begins.
        spacing_m: between the points of a vessel's zone.
        least_speed: below it a vessel or object is slow [m/s].
        speed_weight: of velocity along the force [1/(m/s)] against turning [1/rad].
        repaired: whether the defects of the published code are repaired.
    """

    repulsion: float = 500.0
    range_m: float = 15.0
    margin_m: float = 3.0
    spacing_m: float = 5.0
    least_speed: float = 0.5
    speed_weight: float = 0.15
    repaired: bool = True

    def scaled(self, model: VesselModel) -> Settings:
        """Return the settings for a vessel of another size and speed."""
        return self._replace(
            margin_m=self.margin_m * model.hull_ratio,
            spacing_m=self.spacing_m * model.hull_ratio,
            least_speed=self.least_speed * model.speed_ratio,
            speed_weight=self.speed_weight / model.speed_ratio,
        )


PUBLISHED = Settings(repaired=False)
REPAIRED = Settings()


def apf(observation: Observation, model: VesselModel, settings: Settings = REPAIRED) -> Tensor:
    """Return actions [..., 2]."""
    ego = observation.ego
    settings = settings.scaled(model)
    force = force_on(observation, model, settings)  # [..., 2]
    angle = torch.atan2(force[..., 1], force[..., 0])
    choices, motion = _predicted(observation, model.vessel)  # [25, 2], [25, ..., 3]
    along = motion[..., 0] * angle.cos() + motion[..., 1] * angle.sin()
    miss = model.decision_s * motion[..., 2] - angle
    miss = torch.remainder(miss + math.pi, 2.0 * math.pi) - math.pi
    score = settings.speed_weight * along - miss.abs()  # [25, ...]
    return choices[score.argmax(0)].to(ego.dtype)


def force_on(observation: Observation, model: VesselModel, settings: Settings) -> Tensor:
    """Return the force [..., 2] in the body frame, in units of its own."""
    goal, own = observation.ego[..., :2], observation.ego[..., 2:4]
    objects = objects_of(observation, model.vessel.radius)
    points, present = _points(objects, own, settings)  # [..., K, 5, 2], [..., K, 5]
    distance = points.norm(dim=-1)
    clear = distance - settings.margin_m - objects.radius.unsqueeze(-1)
    toward_goal = -1.0
    if settings.repaired:
        present = present & (clear < settings.range_m)
        clear, toward_goal = clear.clamp(min=0.1), 1.0
    to_goal = goal.norm(dim=-1).clamp(min=1e-6)
    excess = 1.0 / clear - 1.0 / settings.range_m
    away = settings.repulsion * excess * (to_goal**2)[..., None, None] / clear**2
    along = settings.repulsion * excess**2 * to_goal[..., None, None]
    away, along = (torch.where(present, part, 0.0) for part in (away, along))
    direction = points / distance.clamp(min=1e-6).unsqueeze(-1)
    repulsion = -(away.unsqueeze(-1) * direction).sum((-3, -2))
    drawn = toward_goal * along.sum((-2, -1)) / to_goal
    return ATTRACTION * goal + repulsion + drawn.unsqueeze(-1) * goal


def _points(objects: Objects, own: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Return the points that repel [..., K, 5, 2], and which of them do [..., K, 5]."""
    velocity, own = objects.velocity, own.unsqueeze(-2)
    speed, own_speed = velocity.norm(dim=-1), own.norm(dim=-1)
    slow = (speed < settings.least_speed) | (own_speed < settings.least_speed)
    sight = objects.position / objects.position.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    closing = ((own - velocity) * sight).sum(-1) > 0.0
    heading = velocity / speed.clamp(min=1e-6).unsqueeze(-1)
    starboard = torch.stack((-heading[..., 1], heading[..., 0]), -1)

    between = torch.atan2(
        heading[..., 0] * own[..., 1] - heading[..., 1] * own[..., 0], (heading * own).sum(-1)
    ).rad2deg()
    head_on = between.abs() > HEAD_ON_DEG
    # The own course points to starboard of the other's: it comes from the other's port side, and
    # has the other to its own starboard.
    crossing = (between > CROSSING_DEG) & ~head_on
    step = torch.where(head_on.unsqueeze(-1), starboard, heading)
    many = (head_on | crossing) & ~slow
    rank = torch.arange(POINTS, device=own.device)
    offset = settings.spacing_m * rank.to(own.dtype).unsqueeze(-1) * step.unsqueeze(-2)
    points = objects.position.unsqueeze(-2) + offset
    repels = objects.present & closing
    if not settings.repaired:
        repels = repels & ~slow
    return points, repels.unsqueeze(-1) & (many.unsqueeze(-1) | (rank == 0))


def _predicted(observation: Observation, vessel: VesselConfig) -> tuple[Tensor, Tensor]:
    """Return the 25 actions [25, 2] and surge, sway, yaw rate [25, ..., 3] a decision later.

    The velocity is in the body frame of the decision.
    """
    sight, lead = flat(observation)
    plans = Plans.like(sight, 25)
    choices = _choices(sight[0].dtype, sight[0].device)
    held = choices.unsqueeze(1).expand(-1, sight[0].shape[0], -1).contiguous()
    plan_actions(_params(vessel), sight, held, plans, first=0, decisions=1)
    return choices, plans.motion[3:6].permute(1, 2, 0).reshape(25, *lead, 3)


@functools.cache
def _choices(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the 25 actions; made once, since a copy to a device waits for it."""
    rates = torch.tensor(CHOSEN_ON.discrete_thrust_rates, dtype=dtype, device=device)
    return rates / CHOSEN_ON.max_thrust_rate


@functools.cache
def _params(vessel: VesselConfig) -> Tensor:
    return packed_params(EnvConfig(vessel=vessel))
