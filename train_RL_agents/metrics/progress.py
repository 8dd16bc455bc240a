"""The progress bar of a run."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

from train_RL_agents.metrics.writer import Record


def bar(**options: Any) -> tqdm:
    """Return a bar on the standard error; where that is no terminal it seldom writes a line."""
    interactive = sys.stderr.isatty()
    return tqdm(mininterval=0.2 if interactive else 30.0, dynamic_ncols=interactive, **options)


class Progress:
    """A bar over the steps of a run with success rate, return and speed.

    Args:
        total_steps: length of the run.
        label: what stands before the bar.
        done: steps done before, by the run that is resumed; the speed and the rest of the time are
            those of the steps after them.
        shown: False shows nothing.
    """

    def __init__(self, total_steps: int, label: str, *, done: int, shown: bool) -> None:
        self._bar = bar(
            total=total_steps,
            desc=label,
            initial=min(done, total_steps),
            unit="step",
            unit_scale=True,
            disable=not shown,
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def move_to(self, step: int) -> None:
        """Show ``step`` as done."""
        self._bar.update(min(step, self._bar.total) - self._bar.n if not self._bar.disable else 0)

    def tell(self, record: Record) -> None:
        """Show the newest record of training."""
        shown: dict[str, Any] = {}
        if "success" in record:
            shown["success"] = f"{record['success']:.2f}"
        if "episode_return" in record:
            shown["return"] = f"{record['episode_return']:.1f}"
        shown["robot-steps/s"] = f"{record['robot_steps_per_s']:,.0f}"
        if "samples_per_insert" in record:
            shown["samples per insert"] = f"{record['samples_per_insert']:.2f}"
        self._bar.set_postfix(shown, refresh=False)
