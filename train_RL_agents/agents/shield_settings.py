"""Settings of the shield (`policies/shield`): DAgger guards its teacher by one."""

from __future__ import annotations

from dataclasses import dataclass

from marinenav_env.fields import Settings, setting

TRIALS = "docs/results.md"
CHOICE = "this project"


@dataclass(frozen=True)
class ShieldConfig(Settings):
    """How far the shield looks ahead, and what it asks of a plan."""

    horizon_s: float = setting(2.0, unit="s", source=TRIALS, above=0.0, high=60.0)
    """Length of a plan, rounded up to decisions."""
    margin_m: float = setting(0.3, unit="m", source=TRIALS, low=0.0)
    """A plan is safe if it keeps this clearance to every object seen."""
    hold_s: float = setting(1.0, unit="s", source=TRIALS, above=0.0)
    """A candidate holds its thrust rates so long, then the policy continues."""
    closer_m: float = setting(0.0, unit="m", source=TRIALS, low=0.0)
    """The policy sees every object closer by this distance, also while it acts freely."""
    hidden_buoy_m: float | None = setting(None, unit="m", source=TRIALS, low=0.0)
    """Hide a buoy from the policy if its plan without buoys keeps this clearance; null hides none.
    The plans are judged by all buoys."""
    hidden_horizon_s: float = setting(4.0, unit="s", source=TRIALS, above=0.0, high=60.0)
    """Length of the plan without buoys, rounded up to decisions."""
    starboard_m: float = setting(1.0, unit="m", source="COLREGs, rules 14, 15 and 17", low=0.0)
    """Where a vessel is the danger, a candidate that turns to port has to end nearer to the goal
    than the others by this distance. 0 prefers neither side."""
    planned_share: float = setting(1.0, unit="-", source=CHOICE, above=0.0, high=1.0)
    """Candidates are tried for this share of the vessels in a call, those with the least clearance.
    Below 1 a call costs less, and an unsafe vessel beyond the share keeps the policy's action."""

    def check(self) -> None:
        """Refuse candidates that outlast their plan."""
        self.require_order("hold_s", "horizon_s")
