"""Evaluation of a policy in scenarios."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.fields import ConfigError
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import Actor
from train_RL_agents.evaluation.episodes import (
    FIRST_WORLD,
    Batch,
    Policy,
    Progress,
    evaluation_config,
)
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.recorded import join
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.results import Outcomes, Result
from train_RL_agents.evaluation.rules import rule_table
from train_RL_agents.evaluation.scenarios.schema import Scenario
from train_RL_agents.evaluation.scenarios.worlds import grouped, make_worlds


@dataclass(frozen=True)
class ScenarioResult(Result):
    """What came of one scenario; the measures are those of the policy's own vessels.

    Attributes:
        scenario: the scenario.
    """

    scenario: Scenario

    @property
    def label(self) -> str:
        """Name of the row."""
        return self.scenario.name

    def as_json(self) -> dict[str, Any]:
        """Return the row with the keys that other programs rely on."""
        return {"scenario": self.label, **super().as_json()}


@dataclass(frozen=True)
class ScenarioResults:
    """What came of several scenarios.

    Attributes:
        rows: one for each.
        measures: of the policy's own vessels in all of them.
    """

    rows: list[ScenarioResult]
    measures: Measures

    @functools.cached_property
    def rules(self) -> dict[str, Any]:
        """Rule scores over all scenarios."""
        return rule_table(self.measures)

    def as_json(self) -> dict[str, Any]:
        """Return rows and rule scores as other programs read them."""
        return {"scenarios": [row.as_json() for row in self.rows], "rules": self.rules}


class Group(NamedTuple):
    """Scenarios that share their environment.

    Attributes:
        worlds: [W] which worlds of the evaluation they are, ascending.
        batch: plays them.
    """

    worlds: Tensor
    batch: Batch


class ScenarioEvaluation:
    """The same episodes of scenarios each time.

    Args:
        scenarios: at least one.
        repeats: episodes of each; None takes each scenario's own number.
        seed: of offsets, perception noise and the draws of a stochastic policy.
        config: of the environment; its limit and its stop at a collision are replaced.
        discrete: whether the policy gives action indices.
        device: of the environment and the policy.
        stack_k: decisions in an observation.

    Raises:
        ConfigError: a scenario cannot be played.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        repeats: int | None = None,
        *,
        seed: int,
        config: EnvConfig,
        discrete: bool,
        device: torch.device | str = "cpu",
        stack_k: int = 1,
    ) -> None:
        self.scenarios = tuple(scenarios)
        repeated = [repeats or scenario.repeats for scenario in scenarios]
        self.scenario_of_world = torch.repeat_interleave(
            torch.arange(len(repeated)), torch.tensor(repeated)
        )
        self._groups: list[Group] = []

        def evaluated_in(scenario: Scenario) -> EnvConfig:
            return evaluation_config(
                scenario.env_config(config), among_others=scenario.among_others
            )

        for env_config, chosen in grouped(scenarios, evaluated_in).items():
            among = torch.isin(self.scenario_of_world, torch.tensor(chosen))
            begun = make_worlds(
                [scenarios[index] for index in chosen],
                torch.searchsorted(torch.tensor(chosen), self.scenario_of_world[among]),
                env_config,
                discrete=discrete,
                device=device,
                seed=seed,
                first_world=FIRST_WORLD + sum(len(group.worlds) for group in self._groups),
                stack_k=stack_k,
            )
            batch = Batch(begun.env, seed=seed, placed=True, steering=begun.others)
            self._groups.append(Group(among.nonzero().flatten(), batch))

    @property
    def worlds(self) -> int:
        """Number of all episodes."""
        return len(self.scenario_of_world)

    @classmethod
    def of_agent(
        cls,
        agent: Actor,
        config: TrainConfig,
        scenarios: Sequence[Scenario],
        repeats: int | None = None,
        *,
        seed: int,
    ) -> ScenarioEvaluation:
        """Return the evaluation of ``agent`` in the environment of its settings.

        Raises:
            ConfigError: the policy is of another task, whose vessels the scenarios do not fit.
        """
        env = config.env
        if not isinstance(env, EnvConfig):
            raise ConfigError(
                f"task is {config.task!r}: scenarios are of the task 'marine', evaluate in stages"
            )
        return cls(
            scenarios,
            repeats,
            seed=seed,
            config=env,
            discrete=agent.discrete,
            device=agent.device,
            stack_k=config.stack_k,
        )

    def run(
        self, act: Policy, recording: Recording | None = None, progress: Progress | None = None
    ) -> ScenarioResults:
        """Run all episodes to their end.

        Args:
            act: the policy, for observations with leading dimensions [W, R].
            recording: keeps the episodes, if wanted, in the order of the rows.
            progress: learns of progress, if wanted.
        """
        parts = []
        for group in self._groups:
            kept = recording.batch(group.worlds.tolist()) if recording else None
            parts.append(group.batch.play(act, kept, progress))
        order = torch.cat([group.worlds for group in self._groups]).argsort()
        fields = zip(*(outcomes for outcomes, _ in parts), strict=True)
        outcomes = Outcomes(*(torch.cat(field)[order] for field in fields))
        measures = join([measures for _, measures in parts]).reordered(order)
        rows = []
        for index, scenario in enumerate(self.scenarios):
            chosen = self.scenario_of_world == index
            happened = outcomes.of_worlds(chosen), measures.of_worlds(chosen)
            rows.append(ScenarioResult(*happened, scenario))
        return ScenarioResults(rows, measures)
