"""Plans of vessels as tensor operations, for exports: TorchScript has no core beside it.

It is the one place outside the core that moves vessels ahead; a test compares the two.
"""

import math

import torch
from torch import Tensor, nn

from marinenav_env.config import EnvConfig
from train_RL_agents.policies.shield.frames import for_plans, remembering
from train_RL_agents.policies.shield.scene import (
    Scene,
    clearances,
    length,
    observe,
    scene_of,
    start,
)
from train_RL_agents.policies.shield.vessel_model import VesselModel


class TorchRollout(nn.Module):
    """Looks ahead as `CoreRollout` does, with its arguments; it can be scripted."""

    rates: Tensor
    times: Tensor

    def __init__(
        self, policy: nn.Module, env: EnvConfig, *, discrete: bool, closer: float, frames: int
    ) -> None:
        super().__init__()
        vessel = env.vessel
        self.policy, self.discrete, self.closer, self.frames = policy, discrete, closer, frames
        self.model = VesselModel(vessel)
        self.own_radius, self.largest_rate = vessel.radius, vessel.max_thrust_rate
        self.buoy_radius = env.scenario.buoy_radius_max
        self.goal_distance = env.reward.goal_distance
        rates = torch.tensor(vessel.discrete_thrust_rates).t()  # [2, C] of all action indices
        self.register_buffer("rates", rates, persistent=False)
        # The first substep moves with the velocity that the vessel has, whatever it decides.
        times = torch.arange(2, vessel.substeps + 1, dtype=torch.float64) * vessel.dt
        self.register_buffer("times", times, persistent=False)

    def seen(
        self, sight: tuple[Tensor, Tensor, Tensor], shown: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the policy sees now `[N, ...]`: the objects shown, nearest first."""
        scene = scene_of(sight, self.buoy_radius, self.own_radius)
        ego, objects, mask = observe(scene, shown, start(sight[0], 1), 0.0, self.closer)
        return ego[0], objects[0], mask[0]

    def roll(
        self,
        sight: tuple[Tensor, Tensor, Tensor],
        shown: Tensor,
        before: tuple[Tensor, Tensor, Tensor],
        held: Tensor,
        hold: int,
        decisions: int,
    ) -> tuple[Tensor, Tensor]:
        """Look ahead along P plans, as `CoreRollout.roll`."""
        scene = scene_of(sight, self.buoy_radius, self.own_radius)
        ego = sight[0]
        motion = start(ego, held.shape[0])
        rates = self.rates_of(held)
        remaining = self.goal_distance_of(scene, motion.x, motion.y)
        arrived = remaining <= self.goal_distance
        shape = [held.shape[0], ego.shape[0], scene.radius.shape[-1]]
        clearance = torch.full(shape, math.inf, dtype=ego.dtype, device=ego.device)
        before = for_plans(before, held.shape[0], self.frames)
        for step in range(decisions):
            seconds = step * self.model.decision_s
            if step >= max(1, hold + 1 - self.frames):  # what the policy will remember, too
                now = observe(scene, shown, motion, seconds, self.closer)
                seen, before = remembering(now, before, self.frames)
                if step >= hold:
                    action = self.policy(seen)
                    rates = self.rates_of(action.reshape(held.shape[0], ego.shape[0], -1))
            motion, path = self.model.decide(motion, rates)
            times = (self.times + seconds).to(ego.dtype)
            least = torch.minimum(clearance, clearances(scene, path[1:], times, self.own_radius))
            clearance = torch.where(arrived.unsqueeze(-1), clearance, least)
            remaining = self.goal_distance_of(scene, motion.x, motion.y)
            arrived = arrived | (remaining <= self.goal_distance)
        return clearance, torch.where(arrived, torch.zeros_like(remaining), remaining)

    def goal_distance_of(self, scene: Scene, x: Tensor, y: Tensor) -> Tensor:
        """Return the distance `[P, N]` from positions to the goals."""
        return length(scene.goal[0] - x, scene.goal[1] - y)

    def rates_of(self, action: Tensor) -> Tensor:
        """Return the thrust rates `[2, P, N]` of actions `[P, N, A]`, N/s."""
        if self.discrete:
            rates = self.rates.index_select(1, action.reshape(-1))
            return rates.reshape(2, action.shape[0], action.shape[1])
        return action.clamp(-1.0, 1.0).permute(2, 0, 1) * self.largest_rate
