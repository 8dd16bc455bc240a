"""How robots of a recorded episode ended, as episode files say it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marinenav_env.episodes.checks import STATES, TOO_LONG


@dataclass(frozen=True)
class Ends:
    """Flags [T, R] of the T decisions in which a robot acted, and words for them.

    Attributes:
        acted: took part in the decision.
        collision: has collided by then.
        reached: has arrived by then.
        done: no part in the next one.
        infos: what files say.
    """

    acted: np.ndarray
    collision: np.ndarray
    reached: np.ndarray
    done: np.ndarray
    infos: np.ndarray

    @staticmethod
    def of(rows: dict[str, np.ndarray], max_steps: int) -> Ends:
        """Work them out.

        Args:
            rows: [N, R] by name: ``acted``, ``collision``, ``reach_goal``, ``truncated``.
            max_steps: limit of the environment; a robot cut before it was not too late.
        """
        decisions = int(rows["acted"].sum(axis=0).max())
        acted = rows["acted"][:decisions]
        collision, reached = (
            np.logical_or.accumulate(rows[name][:decisions]) for name in ("collision", "reach_goal")
        )
        late = rows["truncated"][:decisions].copy()
        late[: max_steps - 1] = False
        infos = np.select(
            [acted & collision, acted & reached, late, collision, reached],
            ["collision", "reach goal", TOO_LONG, *STATES[-2:]],
            "normal",
        )
        return Ends(acted, collision, reached, ~acted | collision | reached | late, infos)
