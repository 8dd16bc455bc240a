"""Plans of vessels by the simulator's core (`marinenav_env/kernel/plans.py`)."""

from __future__ import annotations

from torch import Tensor, nn

from marinenav_env.config import EnvConfig
from marinenav_env.kernel.plans import Plans, Sight, packed_params, plan_actions, plan_and_observe


class CoreRollout(nn.Module):
    """Looks ahead with the core; `TorchRollout` does the same where there is no core.

    Args:
        policy: module from an observation of one frame `[..., 7]`, `[..., K, 5]`, `[..., K]` to
            actions `[...]` int64 (discrete) or `[..., 2]`.
        env: of the vessels.
        discrete: whether the policy gives action indices.
        closer: by how much the policy sees objects closer, m.
    """

    def __init__(self, policy: nn.Module, env: EnvConfig, *, discrete: bool, closer: float) -> None:
        super().__init__()
        self.policy, self.discrete, self.closer = policy, discrete, closer
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
        self, sight: Sight, shown: Tensor, held: Tensor, hold: int, decisions: int
    ) -> tuple[Tensor, Tensor]:
        """Look ahead along P plans: an action held, then the policy.

        A vessel that has arrived at its goal is gone, so nothing is counted after that.

        Args:
            sight: what N vessels observe.
            shown: `[N, K]` bool, the objects that the policy sees.
            held: actions `[P, N, A]`, A = 1 for indices.
            hold: decisions for which they are held.
            decisions: length of the plans.

        Returns:
            The least clearance `[P, N, K]` to each object, m, infinite where there is none, and the
            distance `[P, N]` to the goal at the end, 0 on arrival.
        """
        held = held[..., 0] if self.discrete else held
        plans, action, first = Plans.like(sight, held.shape[0]), self._given(held, sight), 0
        for step in range(hold, decisions):
            seen = plan_and_observe(
                self.params,
                sight,
                action,
                plans,
                shown,
                closer=self.closer,
                first=first,
                decisions=step - first,
            )
            action, first = self._given(self.policy(seen), sight), step
        plan_actions(self.params, sight, action, plans, first=first, decisions=decisions - first)
        return plans.clearance, plans.remaining

    def _given(self, action: Tensor, sight: Sight) -> Tensor:
        """Return actions as the core takes them: a policy may act in another precision."""
        return (action if self.discrete else action.to(sight[0].dtype)).contiguous()
