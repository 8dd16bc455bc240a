"""The results of an evaluation: one row per stage, as other programs read it.

A `Row` is a `StageResult` for tasks of navigation, and a `ReturnResult` for any other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import plain
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.safety import safety
from train_RL_agents.metrics.reductions import Mean, mean_interval, wilson_interval

Parts = tuple[Any, ...]
"""What a row is made of, of all episodes; `of_worlds` of each gives the same of some worlds."""


class Row(Protocol):
    """A row of the table of an evaluation: `Parts` of the stage's episodes, and the stage."""

    @property
    def stage(self) -> Stage:
        """The stage."""

    @property
    def score(self) -> float:
        """The number by which policies are compared; more is better."""

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as other programs read them."""

    def as_record(self) -> dict[str, Any]:
        """Return what an `AnalysisReceiver` records of the row."""

    @staticmethod
    def headline(rows: Sequence[Any]) -> dict[str, Any]:
        """Return what is recorded of all rows together."""

    @staticmethod
    def standing(rows: Sequence[Any]) -> Standing:
        """Return what the best policy of a run is chosen by."""


class Standing(NamedTuple):
    """How good a policy is in all rows together.

    Attributes:
        score: mean of the rows' scores.
        error: its standard error; policies that differ by less are told apart by their time.
        time_s: mean travel time [s], where an episode that fails counts as long as the slowest
            success of its row, so that no policy is quicker for failing in it; infinite if there is
            a row without any; 0 where no time counts.
    """

    score: float
    error: float = 0.0
    time_s: float = 0.0


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

    @property
    def mean_time_s(self) -> float | None:
        """Mean travel time of the successful episodes [s]; None without any."""
        return self._mean_of_successful(self.outcomes.time_s)

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
            "mean_time_s": self.mean_time_s,
            "mean_energy": self._mean_of_successful(self.outcomes.energy),
            "mean_return": self.outcomes.episode_return.double().mean().item(),
            "mean_return_ci95": mean_interval(self.outcomes.episode_return),
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
    """A `Row` of navigation.

    Attributes:
        stage: the stage.
    """

    stage: Stage

    @property
    def label(self) -> str:
        """Name of the row."""
        return self.stage.label

    @property
    def score(self) -> float:
        """Share of successful episodes."""
        return self.success

    @staticmethod
    def headline(rows: Sequence[StageResult]) -> dict[str, Any]:
        """Return the mean success, and means of a few safety numbers."""
        safety = {name: mean_safety(rows, name) for name in HEADLINE_SAFETY}
        return {"success": mean_score(rows), **safety}

    @staticmethod
    def standing(rows: Sequence[StageResult]) -> Standing:
        """Return mean success, its standard error, and mean travel time.

        The error is that of a mean of stages, which may have different numbers of episodes. Each
        stage counts with the share of all together, with one success and one failure more, so that
        it is not 0 where all succeed (Laplace's rule of succession).
        """
        flags = torch.cat([row.outcomes.success for row in rows])
        share = (int(flags.sum()) + 1) / (len(flags) + 2)
        each = sum(1 / len(row.outcomes.success) for row in rows)
        error = math.sqrt(share * (1 - share) * each) / len(rows)
        time_s = sum(row.time_with_failures_s for row in rows) / len(rows)
        return Standing(mean_score(rows), error, time_s)

    @property
    def time_with_failures_s(self) -> float:
        """Mean travel time [s]; a failure counts as the slowest success. Infinite without any."""
        success, times = self.outcomes.success, self.outcomes.time_s.double()
        if not success.any():
            return math.inf
        return times.where(success, times[success].max()).mean().item()

    def as_json(self) -> dict[str, Any]:
        """Return the row with the keys that other programs rely on."""
        return {**plain(self.stage), **super().as_json()}

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


HEADLINE_SAFETY = ("robot_success", "near_miss_vessel")
"""Safety numbers of which the mean over the stages is recorded."""


def mean_safety(rows: Sequence[StageResult], name: str) -> Mean:
    """Return the mean over stages of a safety number, of those that have it."""
    values = [row.safety[name]["value"] for row in rows]
    known = [value for value in values if value is not None]
    return Mean(sum(known), len(known))


class Returns(NamedTuple):
    """How episodes ended where nothing succeeds or collides; every field [E], on the host.

    Attributes:
        timeout: the limit came first.
        episode_return: sum of rewards.
        length: decisions.
    """

    timeout: Tensor
    episode_return: Tensor
    length: Tensor

    def of_worlds(self, worlds: Tensor) -> Returns:
        """Return those of the worlds [E] bool."""
        return Returns(*(field[worlds] for field in self))


@dataclass(frozen=True)
class ReturnResult:
    """A `Row` of returns.

    Attributes:
        returns: how the episodes ended.
        stage: the stage.
    """

    returns: Returns
    stage: Stage

    @property
    def score(self) -> float:
        """Mean return."""
        return self.returns.episode_return.double().mean().item()

    def as_json(self) -> dict[str, Any]:
        """Return mean and spread of the returns, the share of timeouts and the mean length."""
        returns = self.returns.episode_return.double()
        return {
            "episodes": len(returns),
            "mean_return": self.score,
            "mean_return_ci95": mean_interval(returns),
            "std_return": returns.std().item() if len(returns) > 1 else None,
            "timeout": self.returns.timeout.double().mean().item(),
            "mean_length": self.returns.length.double().mean().item(),
        }

    def as_record(self) -> dict[str, Any]:
        """Return what an `AnalysisReceiver` records of the row."""
        return {
            "episodes": len(self.returns.episode_return),
            "timeout": self.returns.timeout.double().mean().item(),
            "returns": self.returns.episode_return,
            "length": self.returns.length,
        }

    @staticmethod
    def headline(rows: Sequence[ReturnResult]) -> dict[str, Any]:
        """Return the mean return."""
        return {"episode_return": mean_score(rows)}

    @staticmethod
    def standing(rows: Sequence[ReturnResult]) -> Standing:
        """Return the mean return and its standard error; a row of one episode adds none."""
        returns = [row.returns.episode_return.double() for row in rows]
        squares = sum(x.var().item() / len(x) for x in returns if len(x) > 1)
        return Standing(mean_score(rows), math.sqrt(squares) / len(rows))


def mean_score(rows: Sequence[Row]) -> float:
    """Return the mean of the rows' scores."""
    return sum(row.score for row in rows) / len(rows)


def table_as_json(results: Sequence[Row]) -> dict[str, Any]:
    """Return the table as other programs read it."""
    return {"stages": [result.as_json() for result in results]}
