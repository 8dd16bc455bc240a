"""The constants of the frozen score "v1" of encounters between vessels.

Structure after Woerner et al. 2019 and Hagen et al. 2023; the numbers are this vessel's own, from
its stopping and turning distances (docs/evaluation.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Score:
    """Constants of one version; a changed number is another version.

    Gaps are between hull circles, in hull lengths; angles in degrees.
    """

    version: str = "v1"
    length_m: float = 5.0  # hull length
    near_miss: float = 0.4  # of a vessel; 2 m
    near_miss_buoy: float = 0.2  # of a buoy; 1 m
    separation_gaps: tuple[float, ...] = (0.0, 0.4, 0.8, 2.0)  # contact, near miss, least, enough
    separation_scores: tuple[float, ...] = (0.0, 0.5, 0.8, 1.0)
    # encounter
    detection_range_m: float = 20.0  # plus the other's hull radius
    release_ratio: float = 1.5  # of that distance
    min_speed: float = 0.5  # m/s
    least_relative_speed: float = 0.05  # m/s, below which nobody approaches
    sternway: float = 0.1  # m/s, from which a vessel moves astern
    horizon_s: float = 20.0
    # classes
    abaft_beam: float = 112.5
    head_on: float = 13.0
    head_on_same_side: float = 22.5
    # action
    stage_3_s: float = 8.0  # TCPA, above which the encounter is in stage 2
    stage_4_s: float = 4.0  # TCPA, the last escape of 3.3 s and a decision
    turn_noticed: float = 10.0
    turn_apparent: float = 30.0
    loss_noticed: float = 0.2  # share of the speed at the encounter's start
    loss_apparent: float = 0.5
    # rules
    starboard_penalty: float = 0.4  # rule 14: no turn to starboard
    passing_penalty: float = 0.6  # rule 14: not port to port
    ahead_penalty: float = 0.5  # rule 15: crossed ahead
    ahead_from: float = -25.0
    ahead_to: float = 165.0
    overtaking_penalty: float = 0.3  # rule 13: passed close ahead
    overtaking_ahead: float = 45.0
    port_penalty: float = 0.5  # rule 17c: turned to port for a vessel on the port side
    idle_penalty: float = 0.5  # rule 17b: did nothing until contact
    pose_weights: tuple[float, float] = (0.25, 0.75)
    # distribution of the least separation
    grid_step: float = 0.05
    grid_end: float = 3.4

    @property
    def near_miss_m(self) -> dict[str, float]:
        """The gaps up to which a ``vessel`` and a ``buoy`` are a near miss, m."""
        lengths = {"vessel": self.near_miss, "buoy": self.near_miss_buoy}
        return {kind: length * self.length_m for kind, length in lengths.items()}

    def near_misses(self, gap: Tensor, kind: str) -> Tensor:
        """Return which gaps [m] to a ``vessel`` or ``buoy`` are near misses; contacts are not."""
        return (gap > 0.0) & (gap <= self.near_miss_m[kind])


V1 = Score()
