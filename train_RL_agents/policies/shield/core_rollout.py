"""Plans of vessels by the simulator's core (`marinenav_env/kernel/plans.py`)."""

from __future__ import annotations

from torch import Tensor, nn

from marinenav_env.config import EnvConfig
from marinenav_env.kernel.plans import Plans, Sight, packed_params, plan_actions, plan_and_observe
from train_RL_agents.policies.shield.frames import for_plans, remembering


class CoreRollout(nn.Module):
    """Looks ahead with the core; `TorchRollout` does the same where there is no core.

    Args:
        policy: module from an observation of F decisions, `[..., 7*F]`, `[..., K*F, 5]`,
            `[..., K*F]`, to actions `[...]` int64 (discrete) or `[..., 2]`.
        env: of the vessels.
        discrete: whether the policy gives action indices.
        closer: by how much the policy sees objects closer, m.
        frames: decisions that the policy observes, F.
    """

    def __init__(
        self, policy: nn.Module, env: EnvConfig, *, discrete: bool, closer: float, frames: int
    ) -> None:
        super().__init__()
        self.policy, self.discrete, self.closer, self.frames = policy, discrete, closer, frames
        self.params = packed_params(env)

    def seen(self, sight: Sight, shown: Tensor) -> Sight:
        """Return what the policy sees now `[N, ...]`: the objects shown, nearest first."""
        nothing = sight[0].new_zeros(1, sight[0].shape[0], 2)
        plans = Plans.like(sight, 1)
        ego, objects, mask = plan_and_observe(
            self.params, sight, nothing, plans, shown, closer=self.closer, first=0, decisions=0
        )
        return ego[0], objects[0], mask[0]

    def roll(
        self,
        sight: Sight,
        shown: Tensor,
        before: Sight,
        held: Tensor,
        hold: int,
        decisions: int,
    ) -> tuple[Tensor, Tensor]:
        """Look ahead along P plans: an action held, then the policy.

        A vessel that has arrived at its goal is gone, so nothing is counted after that.

        Args:
            sight: what N vessels observe now.
            shown: `[N, K]` bool, the objects that the policy sees.
            before: what the policy remembers at its next decision: the newest F - 1, this one
                first.
            held: actions `[P, N, A]`, A = 1 for indices.
            hold: decisions for which they are held.
            decisions: length of the plans.

        Returns:
            The least clearance `[P, N, K]` to each object, m, infinite where there is none, and the
            distance `[P, N]` to the goal at the end, 0 on arrival.
        """
        held = held[..., 0] if self.discrete else held
        plans, action, first = Plans.like(sight, held.shape[0]), self._given(held, sight), 0
        before = for_plans(before, held.shape[0], self.frames)
        # While an action is held, what the policy will remember is observed.
        for step in range(max(1, hold + 1 - self.frames), decisions):
            now = plan_and_observe(
                self.params,
                sight,
                action,
                plans,
                shown,
                closer=self.closer,
                first=first,
                decisions=step - first,
            )
            seen, before = remembering(now, before, self.frames)
            first = step
            if step >= hold:
                action = self._given(self.policy(seen), sight)
        plan_actions(self.params, sight, action, plans, first=first, decisions=decisions - first)
        return plans.clearance, plans.remaining

    def _given(self, action: Tensor, sight: Sight) -> Tensor:
        """Return actions as the core takes them: a policy may act in another precision."""
        return (action if self.discrete else action.to(sight[0].dtype)).contiguous()
