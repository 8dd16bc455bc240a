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
from marinenav_env.fields import require
from marinenav_env.vessels import VesselConfig
from train_RL_agents.agents.relative_motion import looks_like_vessel
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.shield.core_rollout import CoreRollout
from train_RL_agents.policies.shield.frames import decisions_of, joined
from train_RL_agents.policies.shield.scene import length, nearness
from train_RL_agents.policies.shield.torch_rollout import TorchRollout


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


class Looked(NamedTuple):
    """What N vessels observe.

    Attributes:
        sight: the present decision of the observation `[N, ...]`.
        shown: `[N, K]` bool, the objects that the policy sees now.
        seen: what it sees `[N, ...]`, of F decisions.
        before: what of it the policy remembers at its next decision: the newest F - 1.
    """

    sight: tuple[Tensor, Tensor, Tensor]
    shown: Tensor
    seen: tuple[Tensor, Tensor, Tensor]
    before: tuple[Tensor, Tensor, Tensor]


class Shield(nn.Module):
    """Guards a policy; nothing here reads the device, and all shapes follow from the input's.

    It can be scripted with a `TorchRollout` if the policy can.

    Args:
        policy: module from an observation of F decisions, `[..., 7*F]`, `[..., K*F, 5]`,
            `[..., K*F]`, to actions `[...]` int64 (discrete) or `[..., 2]`.
        env: gives the vessel, the goal's distance and the largest buoy.
        config: how it looks ahead.
        discrete: whether the policy gives action indices.
        frames: decisions that the policy observes, F.
        rollout: `CoreRollout`, or `TorchRollout` to be scripted.

    Raises:
        ConfigError: buoys are to be hidden from a policy that observes several decisions.
    """

    candidates: Tensor
    to_port: Tensor

    def __init__(
        self,
        policy: nn.Module,
        env: EnvConfig,
        config: ShieldConfig,
        *,
        discrete: bool,
        frames: int = 1,
        rollout: type[CoreRollout | TorchRollout] = CoreRollout,
    ) -> None:
        super().__init__()
        require(
            frames == 1 or config.hidden_buoy_m is None,
            "hidden_buoy_m",
            config.hidden_buoy_m,
            f"leave it out: of the {frames} decisions that the policy observes (stack_k) the "
            "earlier ones do not say which buoy is which",
        )
        self.discrete, self.frames = discrete, frames
        self.decision_s = env.vessel.dt * env.vessel.substeps
        self.goal_distance = env.reward.goal_distance
        self.buoy_radius = env.scenario.buoy_radius_max
        self.margin, self.closer = config.margin_m, config.closer_m
        self.share, self.starboard = config.planned_share, config.starboard_m
        self.hides = config.hidden_buoy_m is not None
        self.hidden_buoy = config.hidden_buoy_m or 0.0
        self.horizon = self._decisions(config.horizon_s)
        self.hold = self._decisions(config.hold_s)
        self.hidden_horizon = self._decisions(config.hidden_horizon_s)
        self.ahead = rollout(policy, env, discrete=discrete, closer=config.closer_m, frames=frames)
        held = candidates(env.vessel, discrete=discrete)
        self.register_buffer("candidates", held, persistent=False)
        # In the order of `candidates`: more thrust on the right turns to port.
        turns = [left < right for left, right in itertools.product(range(3), repeat=2)]
        self.register_buffer("to_port", torch.tensor(turns), persistent=False)

    def _decisions(self, seconds: float) -> int:
        return math.ceil(seconds / self.decision_s - 1e-9)

    def forward(
        self, observation: tuple[Tensor, Tensor, Tensor], acting: Tensor | None = None
    ) -> Guarded:
        """Decide, for any leading dimensions of an observation.

        Args:
            observation: of vessels.
            acting: `[...]` bool, the vessels whose actions are taken; None for all.
        """
        looked = self.look(observation)
        proposed = self.ahead.policy(looked.seen)  # [N] or [N, A]
        guarded = self.guard(looked, proposed, None if acting is None else acting.flatten())
        lead = list(observation[2].shape[:-1])
        shape = lead + list(proposed.shape[1:])
        return Guarded(
            guarded.action.reshape(shape),
            guarded.proposed.reshape(shape),
            guarded.predicted.reshape(lead),
            guarded.clearance.reshape(lead),
        )

    def look(self, observation: tuple[Tensor, Tensor, Tensor]) -> Looked:
        """Return what N vessels observe, and what of it the policy is to see."""
        ego, objects, mask = observation
        seen = (
            ego.reshape(-1, ego.shape[-1]).contiguous(),
            objects.reshape(-1, objects.shape[-2], objects.shape[-1]).contiguous(),
            mask.reshape(-1, mask.shape[-1]).contiguous(),
        )
        ego, objects, mask = decisions_of(seen, 0, 1, self.frames)
        sight = (ego.contiguous(), objects.contiguous(), mask.contiguous())
        shown = self.shown(sight)
        if self.hides or self.closer > 0.0:
            now = self.ahead.seen(sight, shown)
            if self.frames > 1:
                earlier = decisions_of(seen, 1, self.frames, self.frames)
                now = joined(now, self.nearer(earlier))
            seen = now
        before = decisions_of(seen, 0, self.frames - 1, self.frames)
        return Looked(sight, shown, seen, before)

    def nearer(self, earlier: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return earlier decisions as the policy is to see them."""
        ego, objects, mask = earlier
        place = objects[..., :2]
        factor = nearness(length(place[..., 0], place[..., 1]), self.closer)
        return ego, torch.cat((place * factor.unsqueeze(-1), objects[..., 2:]), -1), mask

    def guard(self, looked: Looked, proposed: Tensor, acting: Tensor | None = None) -> Guarded:
        """Decide about proposed actions `[N]` or `[N, A]`, of those `[N]` bool that act."""
        sight, shown, _, before = looked
        own_action = proposed.reshape(sight[0].shape[0], -1)  # [N, A], A = 1 for indices
        clear, remaining = self.ahead.roll(
            sight, shown, before, own_action.unsqueeze(0), 1, self.horizon
        )
        predicted = clear.amin(-1)  # [1, N]
        nearest = clear[0].argmin(-1, keepdim=True)
        seen_radius = sight[1][..., 4].gather(1, nearest)  # [N, 1]
        from_vessel = looks_like_vessel(seen_radius, self.buoy_radius)
        danger = predicted[0]
        if acting is not None:  # nobody plans for those whose actions are not taken
            danger = danger.masked_fill(~acting, math.inf)
        rows = self.planned_rows(danger)
        action, clearance = self.best(
            select_rows(sight, rows),
            shown.index_select(0, rows),
            select_rows(before, rows),
            own_action.index_select(0, rows).unsqueeze(0),
            predicted.index_select(1, rows),
            remaining.index_select(1, rows),
            from_vessel.index_select(0, rows),
        )
        guarded = own_action.index_copy(0, rows, action)
        return Guarded(
            guarded if proposed.dim() > 1 else guarded[:, 0],
            proposed,
            predicted[0],
            predicted[0].index_copy(0, rows, clearance),
        )

    def shown(self, sight: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return which objects `[N, K]` the policy sees."""
        present = sight[2] > 0.5
        if not self.hides:
            return present
        shown = present & looks_like_vessel(sight[1][..., 4], self.buoy_radius)
        action = self.ahead.policy(self.ahead.seen(sight, shown))
        held = action.reshape(1, sight[0].shape[0], -1)
        nothing = decisions_of(sight, 0, 0, 1)
        clear, _ = self.ahead.roll(sight, shown, nothing, held, 1, self.hidden_horizon)
        return shown | (present & (clear[0] < self.hidden_buoy))

    def planned_rows(self, predicted: Tensor) -> Tensor:
        """Return the vessels to try candidates for, `[k]`, by the least clearance `[N]`."""
        count = predicted.shape[0]
        if self.share < 1.0:
            return predicted.topk(math.ceil(count * self.share), largest=False).indices
        return torch.arange(count, device=predicted.device)

    def best(
        self,
        sight: tuple[Tensor, Tensor, Tensor],
        shown: Tensor,
        before: tuple[Tensor, Tensor, Tensor],
        own_action: Tensor,
        predicted: Tensor,
        remaining: Tensor,
        from_vessel: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Choose between the policy's own plan and the candidates.

        The policy's own plan if it is safe, else the safe candidate that comes nearest to the goal,
        else the plan that keeps the largest clearance. Where the danger comes from a vessel, a
        candidate to port has to come nearer by `starboard_m` (rules 14, 15 and 17 of the COLREGs).

        Args:
            sight: what N vessels observe.
            shown: `[N, K]`, what the policy sees.
            before: what it remembers, as in `Looked`.
            own_action: `[1, N, A]`.
            predicted: least clearance `[1, N]` of its plan.
            remaining: distance `[1, N]` to the goal after its plan.
            from_vessel: `[N, 1]` bool, its plan comes closest to a vessel.

        Returns:
            Actions `[N, A]` and the clearance `[N]` of their plans.
        """
        vessels = sight[0].shape[0]
        held = self.candidates.to(own_action.dtype).unsqueeze(1).expand(-1, vessels, -1)
        clear, rest = self.ahead.roll(sight, shown, before, held, self.hold, self.horizon)
        actions = torch.cat((own_action, held))  # [P, N, A]
        clearance = torch.cat((predicted, clear.amin(-1)))  # [P, N]
        to_port = self.to_port.unsqueeze(1) & from_vessel.t()
        progress = -torch.cat((remaining, torch.where(to_port, rest + self.starboard, rest)))
        safe = clearance >= self.margin
        among_safe = torch.where(safe, progress, torch.full_like(progress, -math.inf))
        score = torch.where(safe.any(0), among_safe, clearance)
        index = torch.where(safe[0], 0, score.argmax(0)).unsqueeze(0)  # [1, N]
        action = actions.gather(0, index.unsqueeze(-1).expand(-1, -1, actions.shape[-1]))
        return action[0], clearance.gather(0, index)[0]


def select_rows(
    sight: tuple[Tensor, Tensor, Tensor], rows: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what some vessels `[k]` int64 observe."""
    ego, objects, mask = sight
    return ego.index_select(0, rows), objects.index_select(0, rows), mask.index_select(0, rows)


def candidates(vessel: VesselConfig, *, discrete: bool) -> Tensor:
    """Return the candidates `[9, A]` as actions.

    A candidate changes each thrust at its least, no, or its largest rate.
    """
    if not discrete:
        return torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    left, right = vessel.left_thrust_rates, vessel.right_thrust_rates
    tried = [
        (side.index(min(side)), side.index(min(side, key=abs)), side.index(max(side)))
        for side in (left, right)
    ]
    return torch.tensor([[i * len(right) + j] for i, j in itertools.product(*tried)])
