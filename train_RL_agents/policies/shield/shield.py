"""The shield: a guard around any policy, from its observation alone.

It rolls the policy itself out on the vessel's model, the others at constant velocity. Where that
plan comes closer to an object than the margin, it tries candidates: thrust rates held for a while,
and then the policy. What it promises, and what not, is in docs/shield.md.
"""

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from marinenav_env.config import EnvConfig
from marinenav_env.vessels import VesselConfig
from train_RL_agents.policies.shield.config import ShieldConfig
from train_RL_agents.policies.shield.scene import (
    Scene,
    clearances,
    observe,
    scene_of,
    select_rows,
    start,
)
from train_RL_agents.policies.shield.vessel_model import VesselModel


class Guarded(NamedTuple):
    """What the shield decided; leading dimensions as the observation's.

    Attributes:
        action: what to do, `[...]` int64 or `[..., 2]`.
        proposed: what the policy would do, likewise.
        predicted: least clearance [m] that the policy's own plan keeps.
        clearance: least clearance [m] that the plan taken keeps.
    """

    action: Tensor
    proposed: Tensor
    predicted: Tensor
    clearance: Tensor


class Shield(nn.Module):
    """Guards a policy; nothing here reads the device, and all shapes follow from the input's.

    It can be scripted if the policy can.

    Args:
        policy: module from an observation of one frame, `[..., 7]`, `[..., K, 5]`, `[..., K]`, to
            actions `[...]` int64 (discrete) or `[..., 2]`.
        env: gives the vessel, the goal's distance and the largest buoy.
        config: how it looks ahead.
        discrete: whether the policy gives action indices.
    """

    rates: Tensor
    candidates: Tensor
    times: Tensor

    def __init__(
        self, policy: nn.Module, env: EnvConfig, config: ShieldConfig, *, discrete: bool
    ) -> None:
        super().__init__()
        vessel = env.vessel
        self.policy, self.discrete = policy, discrete
        self.model = VesselModel(vessel)
        self.own_radius, self.largest_rate = vessel.radius, vessel.max_thrust_rate
        self.buoy_radius = env.scenario.buoy_radius_max
        self.goal_distance = env.reward.goal_distance
        self.margin, self.closer = config.margin_m, config.closer_m
        self.share = config.planned_share
        self.hides = config.hidden_buoy_m is not None
        self.hidden_buoy = config.hidden_buoy_m or 0.0
        self.horizon = self._decisions(config.horizon_s)
        self.hold = self._decisions(config.hold_s)
        self.hidden_horizon = self._decisions(config.hidden_horizon_s)
        rates, candidates = choices(vessel, discrete=discrete)
        self.register_buffer("rates", rates, persistent=False)
        self.register_buffer("candidates", candidates, persistent=False)
        # The first substep moves with the velocity that the vessel has, whatever it decides.
        times = torch.arange(2, vessel.substeps + 1, dtype=torch.float64) * vessel.dt
        self.register_buffer("times", times, persistent=False)

    def _decisions(self, seconds: float) -> int:
        return math.ceil(seconds / self.model.decision_s - 1e-9)

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Guarded:
        """Decide, for any leading dimensions of an observation of one frame."""
        ego, objects, mask = observation
        lead = list(mask.shape[:-1])
        seen = (
            ego.reshape(-1, ego.shape[-1]),
            objects.reshape(-1, objects.shape[-2], objects.shape[-1]),
            mask.reshape(-1, mask.shape[-1]),
        )
        ego = seen[0]
        scene = scene_of(seen, self.buoy_radius, self.own_radius)
        shown = self.shown(scene, ego)
        if self.hides or self.closer > 0.0:
            own, near, there = observe(scene, shown, start(ego, 1), 0.0, self.closer)
            seen = (own[0], near[0], there[0])
        proposed = self.policy(seen)  # [N] or [N, A]
        shape = lead + list(proposed.shape[1:])
        own_action = proposed.reshape(ego.shape[0], -1)  # [N, A], A = 1 for indices
        clear, remaining = self.roll(scene, shown, ego, own_action.unsqueeze(0), 1, self.horizon)
        predicted = clear.amin(-1)  # [1, N]

        rows = self.planned_rows(predicted[0])
        action, clearance = self.best(
            select_rows(scene, rows),
            shown.index_select(0, rows),
            ego.index_select(0, rows),
            own_action.index_select(0, rows).unsqueeze(0),
            predicted.index_select(1, rows),
            remaining.index_select(1, rows),
        )
        return Guarded(
            own_action.index_copy(0, rows, action).reshape(shape),
            proposed.reshape(shape),
            predicted[0].reshape(lead),
            predicted[0].index_copy(0, rows, clearance).reshape(lead),
        )

    def shown(self, scene: Scene, ego: Tensor) -> Tensor:
        """Return which objects `[N, K]` the policy sees."""
        if not self.hides:
            return scene.present
        shown = scene.present & scene.vessel
        action = self.act(observe(scene, shown, start(ego, 1), 0.0, self.closer))
        clear, _ = self.roll(scene, shown, ego, action, 1, self.hidden_horizon)
        return shown | (scene.present & (clear[0] < self.hidden_buoy))

    def planned_rows(self, predicted: Tensor) -> Tensor:
        """Return the vessels to try candidates for, `[k]`, by the least clearance `[N]`."""
        count = predicted.shape[0]
        if self.share < 1.0:
            return predicted.topk(math.ceil(count * self.share), largest=False).indices
        return torch.arange(count, device=predicted.device)

    def best(
        self,
        scene: Scene,
        shown: Tensor,
        ego: Tensor,
        own_action: Tensor,
        predicted: Tensor,
        remaining: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Choose between the policy's own plan and the candidates.

        The policy's own plan if it is safe, else the safe candidate that comes nearest to the goal,
        else the plan that keeps the largest clearance.

        Args:
            scene: of N vessels.
            shown: `[N, K]`, what the policy sees.
            ego: `[N, 7]`.
            own_action: `[1, N, A]`.
            predicted: least clearance `[1, N]` of its plan.
            remaining: distance `[1, N]` to the goal after its plan.

        Returns:
            Actions `[N, A]` and the clearance `[N]` of their plans.
        """
        held = self.candidates.to(own_action.dtype).unsqueeze(1).expand(-1, ego.shape[0], -1)
        clear, rest = self.roll(scene, shown, ego, held, self.hold, self.horizon)
        actions = torch.cat((own_action, held))  # [P, N, A]
        clearance = torch.cat((predicted, clear.amin(-1)))  # [P, N]
        progress = -torch.cat((remaining, rest))  # [P, N]
        safe = clearance >= self.margin
        among_safe = torch.where(safe, progress, torch.full_like(progress, -math.inf))
        score = torch.where(safe.any(0), among_safe, clearance)
        index = torch.where(safe[0], 0, score.argmax(0)).unsqueeze(0)  # [1, N]
        action = actions.gather(0, index.unsqueeze(-1).expand(-1, -1, actions.shape[-1]))
        return action[0], clearance.gather(0, index)[0]

    def roll(
        self,
        scene: Scene,
        shown: Tensor,
        ego: Tensor,
        held: Tensor,
        hold: int,
        decisions: int,
    ) -> tuple[Tensor, Tensor]:
        """Look ahead along P plans: an action held, then the policy.

        A vessel that has arrived at its goal is gone, so nothing is counted after that.

        Args:
            scene: of N vessels.
            shown: `[N, K]`, what the policy sees.
            ego: `[N, 7]`.
            held: actions `[P, N, A]`.
            hold: decisions for which they are held.
            decisions: length of the plans.

        Returns:
            The least clearance `[P, N, K]` to each object, m, and the distance `[P, N]` to the goal
            at the end, 0 on arrival.
        """
        motion = start(ego, held.shape[0])
        rates = self.rates_of(held)
        remaining = self.goal_distance_of(scene, motion.x, motion.y)
        arrived = remaining <= self.goal_distance
        shape = [held.shape[0], ego.shape[0], scene.radius.shape[-1]]
        clearance = torch.full(shape, math.inf, dtype=ego.dtype, device=ego.device)
        for step in range(decisions):
            seconds = step * self.model.decision_s
            if step >= hold:
                action = self.act(observe(scene, shown, motion, seconds, self.closer))
                rates = self.rates_of(action)
            motion, path = self.model.decide(motion, rates)
            times = (self.times + seconds).to(ego.dtype)
            least = torch.minimum(clearance, clearances(scene, path[1:], times, self.own_radius))
            clearance = torch.where(arrived.unsqueeze(-1), clearance, least)
            remaining = self.goal_distance_of(scene, motion.x, motion.y)
            arrived = arrived | (remaining <= self.goal_distance)
        return clearance, torch.where(arrived, torch.zeros_like(remaining), remaining)

    def goal_distance_of(self, scene: Scene, x: Tensor, y: Tensor) -> Tensor:
        """Return the distance `[P, N]` from positions to the goals."""
        return torch.hypot(scene.goal[0] - x, scene.goal[1] - y)

    def act(self, seen: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the policy's actions `[P, N, A]`, A = 1 for indices."""
        plans, vessels = seen[2].shape[0], seen[2].shape[1]
        return self.policy(seen).reshape(plans, vessels, -1)

    def rates_of(self, action: Tensor) -> Tensor:
        """Return the thrust rates `[2, P, N]` of actions `[P, N, A]`, N/s."""
        if self.discrete:
            rates = self.rates.index_select(1, action.reshape(-1))
            return rates.reshape(2, action.shape[0], action.shape[1])
        return action.clamp(-1.0, 1.0).permute(2, 0, 1) * self.largest_rate


def choices(vessel: VesselConfig, *, discrete: bool) -> tuple[Tensor, Tensor]:
    """Return the rates `[2, C]` of all action indices, and the candidates `[9, A]` as actions.

    A candidate changes each thrust at its least, no, or its largest rate.
    """
    left, right = vessel.left_thrust_rates, vessel.right_thrust_rates
    rates = torch.tensor(list(itertools.product(left, right))).t()
    if not discrete:
        return rates, torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    tried = [
        (side.index(min(side)), side.index(min(side, key=abs)), side.index(max(side)))
        for side in (left, right)
    ]
    return rates, torch.tensor([[i * len(right) + j] for i, j in itertools.product(*tried)])
