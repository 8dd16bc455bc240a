"""What the report is made from: a policy and what came of its evaluation."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

from marinenav_env.envs.scenarios import labels_of
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.results import Outcomes, Result, StageResult
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioResults


@dataclass(frozen=True)
class Evaluated:
    """A policy after its evaluation.

    Attributes:
        name: on the page.
        config: of its training.
        results: the evaluation's.
        recording: of the same episodes; empty where none was kept.
        shield: the settings of its shield, and what that did (`ShieldedPolicy.report`); or None.
    """

    name: str
    config: TrainConfig
    results: list[StageResult] | ScenarioResults
    recording: Recording
    shield: dict[str, Any] | None = None

    @property
    def rows(self) -> list[Result]:
        """One for each stage or scenario."""
        results = self.results
        return list(results.rows if isinstance(results, ScenarioResults) else results)

    @functools.cached_property
    def groups(self) -> dict[str, Result]:
        """What tables and charts compare: every stage, or all scenarios together."""
        if isinstance(self.results, ScenarioResults):
            fields = zip(*(row.outcomes for row in self.rows), strict=True)
            outcomes = Outcomes(*(torch.cat(field) for field in fields))
            return {"all scenarios": Result(outcomes, self.results.measures)}
        names = labels_of([row.stage for row in self.results])
        return dict(zip(names, self.rows, strict=True))
