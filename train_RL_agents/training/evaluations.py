"""The evaluations of a run: the same few episodes again and again, and many at the end."""

from __future__ import annotations

import torch

from marinenav_env.envs.checks import check_slots
from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops
from marinenav_env.kernel.memory import check_memory
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.results import Row
from train_RL_agents.metrics.writer import AnalysisReceiver
from train_RL_agents.training.counters import Counters


class RunEvaluation:
    """Evaluates an agent while it trains, as it would be deployed.

    Args:
        config: all settings.
        agent: what is evaluated, with the weights it has at the time.

    Raises:
        ConfigError: the scenarios cannot be placed, or the episodes do not fit the memory.
    """

    def __init__(self, config: TrainConfig, agent: Agent) -> None:
        self._config, self._agent = config, agent
        self._check_final()
        self._periodic = self._episodes(config.evaluation.episodes_per_stage)

    def periodic(self, receiver: AnalysisReceiver, counters: Counters) -> list[Row]:
        """Run the periodic evaluation's episodes and record them."""
        return self._run(self._periodic, "evaluation", receiver, counters)

    def final(self, receiver: AnalysisReceiver, counters: Counters) -> list[Row]:
        """Run the final evaluation's episodes and record them."""
        settings = self._config.evaluation
        episodes = self._episodes((settings.final_episodes,) * len(settings.stages))
        return self._run(episodes, "final evaluation", receiver, counters)

    def as_periodic(self, results: list[Row]) -> list[Row]:
        """Return the rows of a final evaluation whose stages the periodic one has, too."""
        of_stages = zip(results, self._config.evaluation.episodes_per_stage, strict=True)
        return [row for row, episodes in of_stages if episodes]

    def _check_final(self) -> None:
        """Refuse more final episodes than the memory holds before the training, not after it."""
        config, settings = self._config, self._config.evaluation
        sizes = {**check_slots(None, settings.stages)._asdict(), "stages": len(settings.stages)}
        worlds = settings.final_episodes * len(settings.stages)
        place = config.stack_k, self._agent.device, torch.float32
        try:
            check_memory(ops.describe(TASKS[config.task].kernel), sizes, worlds, *place)
        except ConfigError as error:
            raise ConfigError(
                f"evaluation.final_episodes is {settings.final_episodes}, worlds of all stages "
                f"together: {error}"
            ) from error

    def _run(
        self, episodes: Evaluation, label: str, receiver: AnalysisReceiver, counters: Counters
    ) -> list[Row]:
        results = episodes.run(self._agent.act)
        labels = TASKS[self._config.task].labels_of(episodes.stages)
        names = zip(labels, episodes.episodes, strict=True)
        evaluated = [name for name, count in names if count]
        step = counters.step
        with receiver.interval():
            summary = results[0].headline(results)
            receiver.receive(label, step=step, elapsed_s=counters.elapsed_s, **summary)
            for name, result in zip(evaluated, results, strict=True):
                receiver.receive(f"{label}, {name}", step=step, **result.as_record())
        return results

    def _episodes(self, per_stage: tuple[int, ...]) -> Evaluation:
        seed = self._config.evaluation.seed
        return Evaluation.of_agent(self._agent, self._config, per_stage, seed=seed)
