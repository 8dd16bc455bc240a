"""Evaluation of a policy in scenarios."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.actor import Actor
from train_RL_agents.evaluation.baselines.registry import BASELINES, Baseline
from train_RL_agents.evaluation.episodes import FIRST_WORLD, Batch, Policy, evaluation_config
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.results import Result
from train_RL_agents.evaluation.rules import rule_table
from train_RL_agents.evaluation.scenarios.scenes import place_scenarios, stages_of
from train_RL_agents.evaluation.scenarios.schema import POLICY, Scenario


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


def hold(observation: Observation, *, discrete: bool) -> Tensor:
    """Return actions that change no thrust: indices [...], or rates [..., 2]."""
    lead = observation.ego.shape[:-1]
    if discrete:
        return torch.zeros(lead, dtype=torch.int64, device=observation.ego.device)
    return observation.ego.new_zeros(*lead, 2)


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
        steering: dict[str, Policy] = {"straight": functools.partial(hold, discrete=discrete)}
        for name in BASELINES:
            baseline = Baseline(name, device)
            steering[name] = baseline.act_index if discrete else baseline.act
        for scenario in scenarios:
            scenario.check_against(config, (POLICY, *steering))
        self.scenarios = tuple(scenarios)
        repeated = [repeats or scenario.repeats for scenario in scenarios]
        self.scenario_of_world = torch.repeat_interleave(
            torch.arange(len(repeated)), torch.tensor(repeated)
        )
        played = [self.scenarios[index] for index in self.scenario_of_world.tolist()]
        env = MarineNavEnv(
            len(played),
            stages=stages_of(scenarios),
            config=evaluation_config(config),
            discrete=discrete,
            device=device,
            seed=seed,
            first_world=FIRST_WORLD,
            stack_k=stack_k,
        )
        place_scenarios(env, self.scenario_of_world)
        self._own = steered_by(POLICY, played, env.robots)
        others = [
            (steered_by(name, played, env.robots).to(env.device), policy)
            for name, policy in steering.items()
            if any(vessel.steer == name for scenario in scenarios for vessel in scenario.vessels)
        ]
        self._batch = Batch(env, seed=seed, placed=True, steering=others)

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

    def run(self, act: Policy, recording: Recording | None = None) -> ScenarioResults:
        """Run all episodes to their end.

        Args:
            act: the policy, for observations with leading dimensions [W, R].
            recording: keeps the episodes, if wanted, in the order of the rows.
        """
        outcomes, measures = self._batch.play(act, recording)
        measures = measures.of_robots(self._own.T)
        rows = []
        for index, scenario in enumerate(self.scenarios):
            chosen = self.scenario_of_world == index
            happened = outcomes.of_worlds(chosen), measures.of_worlds(chosen)
            rows.append(ScenarioResult(*happened, scenario))
        return ScenarioResults(rows, measures)


def steered_by(name: str, scenarios: Sequence[Scenario], robots: int) -> Tensor:
    """Return [W, R] bool, the vessels that are steered so."""
    flags = [[vessel.steer == name for vessel in scenario.vessels] for scenario in scenarios]
    return torch.tensor([row + [False] * (robots - len(row)) for row in flags])
