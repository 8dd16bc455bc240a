"""Evaluation: fixed episodes of every stage as one batch of worlds, and the table of the stages."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.spec import tuple_like
from marinenav_env.stepper import Stepper
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.metrics.reductions import wilson_interval

DECISION_LIMIT = 1_000
"""Decisions of an episode in evaluation, as published."""
CHUNK_WORLDS = 1_024
"""Worlds in one forward pass of the policy, which bounds the memory it takes."""
FIRST_WORLD = 2**31
"""Global index of the first world of an evaluation. Trainings count theirs from 0, so that even
with the seed of its training a policy meets episodes that it has not learned from."""
LOOK_INTERVAL = 25
"""Decisions between two looks at which worlds still run."""


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


@dataclasses.dataclass(frozen=True)
class StageResult:
    """One row of the table of an evaluation."""

    stage: Stage
    outcomes: Outcomes

    @property
    def success(self) -> float:
        """Share of successful episodes."""
        return self._share(self.outcomes.success)

    def as_json(self) -> dict[str, Any]:
        """Return the row with the keys that other programs rely on."""
        episodes = len(self.outcomes.success)
        successes = int(self.outcomes.success.sum())
        return {
            "robots": self.stage.robots,
            "vortices": self.stage.vortices,
            "buoys": self.stage.buoys,
            "min_distance_m": self.stage.min_distance_m,
            "episodes": episodes,
            "success": self.success,
            "success_ci95": list(wilson_interval(successes, episodes)),
            "collision": self._share(self.outcomes.collision),
            "timeout": self._share(self.outcomes.timeout),
            "mean_time_s": self._mean_of_successful(self.outcomes.time_s),
            "mean_energy": self._mean_of_successful(self.outcomes.energy),
        }

    def as_record(self) -> dict[str, Any]:
        """Return what an `AnalysisReceiver` records of the row."""
        row = self.as_json()
        kept = ("episodes", "success", "collision", "timeout")
        record = {name: row[name] for name in kept} | {"returns": self.outcomes.episode_return}
        low, high = row["success_ci95"]
        record |= {"success_low": low, "success_high": high}
        successful = self.outcomes.success
        return record | {
            "time_s": self.outcomes.time_s[successful],
            "energy": self.outcomes.energy[successful],
        }

    @staticmethod
    def _share(flags: Tensor) -> float:
        return flags.double().mean().item()

    def _mean_of_successful(self, values: Tensor) -> float | None:
        chosen = values[self.outcomes.success]
        return chosen.double().mean().item() if len(chosen) else None


class Evaluation:
    """The same episodes each time: world w draws from (seed, `FIRST_WORLD` + w) alone.

    Args:
        stages: the stages.
        episodes: number of episodes of each.
        seed: of the scenarios, the perception noise and the draws of a stochastic policy.
        config: of the environment; its limit and its stop at a collision are replaced.
        discrete: whether the policy gives action indices.
        device: of the environment and the policy.
        stack_k: decisions in an observation.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        episodes: Sequence[int],
        *,
        seed: int,
        config: EnvConfig,
        discrete: bool,
        device: torch.device | str = "cpu",
        stack_k: int = 1,
    ) -> None:
        self.stages, self.episodes, self.seed = tuple(stages), tuple(episodes), seed
        self.device = torch.device(device)
        self.stage_of_world = torch.repeat_interleave(
            torch.arange(len(self.stages)), torch.tensor(self.episodes)
        )
        self._env = MarineNavEnv(
            len(self.stage_of_world),
            stages=self.stages,
            config=evaluation_config(config),
            discrete=discrete,
            device=self.device,
            seed=seed,
            first_world=FIRST_WORLD,
            stack_k=stack_k,
        )
        self._env.set_stage(self.stage_of_world.to(self.device))
        self._start = self._env.state_dict()

    @classmethod
    def of_agent(
        cls, agent: Agent, config: TrainConfig, episodes: Sequence[int], *, seed: int
    ) -> Evaluation:
        """Return the evaluation of ``agent`` on the stages that its settings name for it."""
        return cls(
            config.evaluation.stages,
            episodes,
            seed=seed,
            config=config.env,
            discrete=agent.discrete,
            device=agent.device,
            stack_k=config.stack_k,
        )

    @torch.no_grad()
    def run(self, act: Callable[[Observation], Tensor]) -> list[StageResult]:
        """Run all episodes to their end.

        Args:
            act: the policy, for observations with leading dimensions [W, R].

        Returns:
            One row per stage that has episodes.
        """
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self.seed)
            self._run_episodes(act)
        outcome = torch.stack([self._env.outcome[name] for name in COPIED_OUTCOME]).cpu()
        fields = [*(outcome[:3] > 0), *outcome[3:]]
        rows = []
        for index, stage in enumerate(self.stages):
            chosen = self.stage_of_world == index
            if self.episodes[index]:
                rows.append(StageResult(stage, Outcomes(*(field[chosen] for field in fields))))
        return rows

    def _run_episodes(self, act: Callable[[Observation], Tensor]) -> None:
        env = self._env
        env.load_state_dict(self._start)
        stepper = Stepper(env, restarts=False)
        stepper.reset()
        action = self._env.action_spec["robots", "action"].zero()
        for decision in range(DECISION_LIMIT):
            if decision % LOOK_INTERVAL == 0:
                running = env.alive.any(1).nonzero().squeeze(1)
                if not len(running):
                    return
            for worlds in running.split(CHUNK_WORLDS):
                now = stepper.now.obs
                seen = tuple_like(now, (field.index_select(0, worlds) for field in now))
                action.index_copy_(0, worlds, act(seen))
            stepper.step(action)
            stepper.advance()


COPIED_OUTCOME = (
    "success",
    "collision",
    "timeout",
    "mean_time_s",
    "mean_energy",
    "mean_return",
)


def evaluation_config(config: EnvConfig) -> EnvConfig:
    """Return ``config`` with the episode's ends as evaluation has them."""
    episode = dataclasses.replace(config.episode, max_steps=DECISION_LIMIT, stop_on_collision=True)
    return dataclasses.replace(config, episode=episode)


def table_as_json(results: Sequence[StageResult]) -> dict[str, Any]:
    """Return the table as other programs read it."""
    return {"stages": [result.as_json() for result in results]}


def print_table(results: Sequence[StageResult], title: str, console: Console) -> None:
    """Print the table of the stages."""
    caption = "time (s) and energy (N s): means of the successful episodes"
    table = Table(title=title, caption=caption, box=box.HORIZONTALS, padding=0, pad_edge=False)
    with_vortices = any(result.stage.vortices for result in results)
    with_distance = len({result.stage.label for result in results}) < len(results)
    counts = ["robots", "buoys", *(["vortices"] if with_vortices else [])]
    counts += ["min_distance_m"] if with_distance else []
    shares = ["episodes", "success", "95% CI", "collided", "timed out"]
    for name in (*counts, *shares, "time", "energy"):
        table.add_column(name, justify="right")
    for result in results:
        row = result.as_json()
        low, high = row["success_ci95"]
        table.add_row(
            *(str(getattr(result.stage, name)) for name in counts),
            str(row["episodes"]),
            f"{row['success']:.3f}",
            f"{low:.3f}-{high:.3f}",
            f"{row['collision']:.3f}",
            f"{row['timeout']:.3f}",
            _number(row["mean_time_s"], 1),
            _number(row["mean_energy"], 0),
        )
    console.print(table)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"
