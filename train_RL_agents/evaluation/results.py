"""The results of an evaluation: one row per stage, as other programs read it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from marinenav_env.envs.scenarios import Stage
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.safety import safety
from train_RL_agents.metrics.reductions import wilson_interval


class Outcomes(NamedTuple):
    """How the episodes of one stage ended; every field [E] for E episodes, on the host.

    Attributes:
        success: every robot reached its goal, none collided.
        collision: a robot collided.
        timeout: the limit came first.
        time_s: travel time, averaged over robots [s].
        energy: energy, averaged over robots [N s].
        episode_return: sum of rewards, averaged over robots.
    """

    success: Tensor
    collision: Tensor
    timeout: Tensor
    time_s: Tensor
    energy: Tensor
    episode_return: Tensor

    def of_worlds(self, worlds: Tensor) -> Outcomes:
        """Return the outcomes in the worlds [E] bool."""
        return Outcomes(*(field[worlds] for field in self))


@dataclass(frozen=True)
class Result:
    """What came of some episodes.

    Attributes:
        outcomes: how they ended.
        measures: what happened in them, in the same order.
    """

    outcomes: Outcomes
    measures: Measures

    @property
    def label(self) -> str:
        """Name of the row."""
        raise NotImplementedError

    @functools.cached_property
    def safety(self) -> dict[str, Any]:
        """Safety numbers with intervals, as JSON values."""
        return safety(self.measures)

    @property
    def success(self) -> float:
        """Share of successful episodes."""
        return self._share(self.outcomes.success)

    def as_json(self) -> dict[str, Any]:
        """Return the numbers with the keys that other programs rely on."""
        episodes = len(self.outcomes.success)
        successes = int(self.outcomes.success.sum())
        return {
            "episodes": episodes,
            "success": self.success,
            "success_ci95": list(wilson_interval(successes, episodes)),
            "collision": self._share(self.outcomes.collision),
            "timeout": self._share(self.outcomes.timeout),
            "mean_time_s": self._mean_of_successful(self.outcomes.time_s),
            "mean_energy": self._mean_of_successful(self.outcomes.energy),
            "safety": self.safety,
        }

    @staticmethod
    def _share(flags: Tensor) -> float:
        return flags.double().mean().item()

    def _mean_of_successful(self, values: Tensor) -> float | None:
        chosen = values[self.outcomes.success]
        return chosen.double().mean().item() if len(chosen) else None


@dataclass(frozen=True)
class StageResult(Result):
    """One row of the table of an evaluation.

    Attributes:
        stage: the stage.
    """

    stage: Stage

    @property
    def label(self) -> str:
        """Name of the row."""
        return self.stage.label

    def as_json(self) -> dict[str, Any]:
        """Return the row with the keys that other programs rely on."""
        return {
            "robots": self.stage.robots,
            "vortices": self.stage.vortices,
            "buoys": self.stage.buoys,
            "min_distance_m": self.stage.min_distance_m,
            **super().as_json(),
        }

    def as_record(self) -> dict[str, Any]:
        """Return what an `AnalysisReceiver` records of the row."""
        row = self.as_json()
        kept = ("episodes", "success", "collision", "timeout")
        record = {name: row[name] for name in kept} | {"returns": self.outcomes.episode_return}
        low, high = row["success_ci95"]
        record |= {"success_low": low, "success_high": high}
        successful = self.outcomes.success
        numbers = {name: self.safety[name]["value"] for name in RECORDED_SAFETY}
        for kind in ("vessel", "buoy"):
            numbers[f"least_gap_{kind}_p05_m"] = self.safety[f"least_gap_{kind}"]["p05_m"]["value"]
        record |= {name: value for name, value in numbers.items() if value is not None}
        return record | {
            "time_s": self.outcomes.time_s[successful],
            "energy": self.outcomes.energy[successful],
        }


RECORDED_SAFETY = (
    "robot_success",
    "collision_vessel",
    "collision_buoy",
    "near_miss_vessel",
    "near_miss_buoy",
    "path_ratio",
)
"""Entries of the safety numbers whose values an `AnalysisReceiver` records."""


def table_as_json(results: Sequence[StageResult]) -> dict[str, Any]:
    """Return the table as other programs read it."""
    return {"stages": [result.as_json() for result in results]}
