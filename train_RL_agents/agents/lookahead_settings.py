"""Settings of looking ahead (`training/lookahead.py`): DPI values actions by it."""

from __future__ import annotations

from dataclasses import dataclass

from marinenav_env.fields import Settings, setting

TRIALS = "docs/diary.md"


@dataclass(frozen=True)
class LookaheadConfig(Settings):
    """How far a robot looks ahead, and whose returns count."""

    horizon_s: float = setting(10.0, unit="s", source=TRIALS, above=0.0, high=60.0)
    """Length of a rollout, rounded to decisions."""
    hold_s: float = setting(0.5, unit="s", source=TRIALS, above=0.0)
    """A rollout holds the action that it values so long, then the policy goes on; rounded, too."""
    speed_made_good: float = setting(2.3, unit="m/s", source=TRIALS, above=0.0)
    """Toward the goal, on average: at this speed a robot is taken to go what is left of its way
    after the horizon. Else a metre gained would count as one, not as the time that it saves."""
    goal_share: float = setting(0.0, unit="-", source=TRIALS, low=0.0, high=1.0)
    """Share of the goal's reward that counts where a rollout ends on the way. 1 is what is to come;
    0 presses robots that are near to arrive within the rollout, which saved 0.2 to 0.4 s."""
    others: float = setting(0.5, unit="-", source=TRIALS, low=0.0, high=1.0)
    """Weight of the returns of the other robots, within the range of the sensors, beside the
    robot's own."""

    def check(self) -> None:
        """Refuse actions that are held longer than what is played."""
        self.require_order("hold_s", "horizon_s")
