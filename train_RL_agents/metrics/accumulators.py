"""Statistics of collecting and learning, summed on the device until the log reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.scenes import SceneStage
from marinenav_env.kernel.state import StepBuffers
from train_RL_agents.device.distributed import Processes
from train_RL_agents.metrics.reductions import Histogram, Mean

RETURN_BINS = 80
ACTION_BINS = 20
OBSERVED_WORLDS = 1_024
"""Worlds whose actions enter the action histogram at most: enough for a distribution."""


class RunStatistics:
    """Sums on the device since the last `clear`; adding to them reads nothing on the host.

    Args:
        env: the environment, which sums the outcomes of episodes itself.
    """

    def __init__(self, env: KernelEnv) -> None:
        self.env = env
        self.labels = [
            f"scenarios {stage.label}" if isinstance(stage, SceneStage) else f"stage {i + 1}"
            for i, stage in enumerate(env.stages)
        ]
        self.stages = len(env.stages)
        self._axes = 1 if env.discrete else env.kernel_spec.continuous
        self._action_bins = env.kernel_spec.discrete if env.discrete else ACTION_BINS
        like = {"dtype": torch.float64, "device": env.device}
        self._returns = torch.zeros(self.stages * RETURN_BINS, **like)
        self._actions = torch.zeros(self._axes * self._action_bins, **like)
        self._stored = torch.zeros((), **like)
        self._observed = observed_worlds(env.worlds).to(env.device)
        self._axis_start = torch.arange(self._axes, device=env.device) * self._action_bins
        self.metric_names: list[str] = []  # of the updates, in the order of their sums
        self._metrics = torch.zeros(0, **like)

    def add_decision(self, action: Tensor, step: StepBuffers, own: Tensor) -> None:
        """Count one decision of every world, before finished worlds are reset.

        Args:
            action: [W, R, A], or [W, R] int64.
            step: what the decision led to.
            own: bool [W, R], whether the robot acted, and by the policy that learns.
        """
        low, high = self.env.return_range
        value = self.env.outcome["mean_return"]
        bins = bin_of(value, low, high, RETURN_BINS)
        bins = bins + self.env.stage_of_worlds().long() * RETURN_BINS
        self._returns.scatter_add_(0, bins, step.done.double())
        taken = action.index_select(0, self._observed)
        acted = own.index_select(0, self._observed).double()
        if self.env.discrete:
            bins = taken.clamp(0, self._action_bins - 1)
        else:
            bins = bin_of(taken, -1.0, 1.0, self._action_bins) + self._axis_start
            acted = acted.unsqueeze(-1).expand_as(bins)
        self._actions.scatter_add_(0, bins.flatten(), acted.flatten())

    def add_stored(self, stored: Tensor) -> None:
        """Count the decisions bool [W, R] that are kept to learn from."""
        self._stored.add_(stored.sum())

    def add_update(self, metrics: dict[str, Tensor]) -> None:
        """Add the scalar metrics of one update."""
        scalars = {name: value for name, value in metrics.items() if value.dim() == 0}
        if not self.metric_names:
            self._name_metrics(sorted(scalars))
        self._metrics.add_(torch.stack([scalars[name].double() for name in self.metric_names]))

    def _name_metrics(self, names: list[str]) -> None:
        self.metric_names = names
        self._metrics = self._returns.new_zeros(len(names))

    def clear(self) -> None:
        """Set all sums to zero, those of the environment too."""
        self.env.clear_stats()
        for sums in (self._returns, self._actions, self._stored, self._metrics):
            sums.zero_()

    def gather(self, processes: Processes, updates: int) -> GatheredStatistics:
        """Return the sums over all processes, still on the device.

        Args:
            processes: all of them call this at the same step.
            updates: updates of each process in the interval.
        """
        env = self.env
        scalars = [env.robot_steps(), env.bad_actions().sum(), env.non_finite_robots()]
        parts = [
            env.read_stats().flatten().double(),
            self._returns,
            self._actions,
            self._metrics,
            torch.stack(scalars).double(),
            self._stored.view(1),
        ]
        total = torch.cat(parts)
        processes.sum(total)
        parts = total.split([part.numel() for part in parts])
        return GatheredStatistics(self, parts, updates * processes.size)

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the sums that the environment does not hold."""
        return {
            "returns": self._returns.clone(),
            "actions": self._actions.clone(),
            "stored": self._stored.clone(),
            "metrics": self._metrics.clone(),
            "metric_names": list(self.metric_names),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a `state_dict`, from any device; sums that exist stay where they are.

        Raises:
            ValueError: it has metrics of other names.
        """
        names = list(state["metric_names"])
        if names and self.metric_names not in ([], names):
            raise ValueError(
                f"the state sums the metrics {names}, the updates here give {self.metric_names}: "
                "load it into the algorithm that wrote it"
            )
        if names and not self.metric_names:
            self._name_metrics(names)
        self._returns.copy_(state["returns"])
        self._actions.copy_(state["actions"])
        self._stored.copy_(state.get("stored", torch.zeros(())))  # before 2026-11-28: unknown
        self._metrics.copy_(state["metrics"] if names else torch.zeros_like(self._metrics))

    def histograms_of_actions(self, counts: Tensor) -> dict[str, Histogram]:
        """Return the histogram of each coordinate of the action, or of its index."""
        if self.env.discrete:
            return {"action": Histogram(counts, -0.5, self._action_bins - 0.5)}
        rows = counts.view(self._axes, -1)
        return {f"action_{axis}": Histogram(row, -1.0, 1.0) for axis, row in enumerate(rows)}


class GatheredStatistics:
    """The sums of one log interval, over all processes, on the device.

    Args:
        statistics: where they come from.
        parts: as `RunStatistics.gather` packs them.
        updates: number of updates that the metrics sum over.
    """

    def __init__(self, statistics: RunStatistics, parts: tuple[Tensor, ...], updates: int) -> None:
        self._statistics, self._updates = statistics, updates
        stats, returns, self._actions, self._metrics, scalars, stored = parts
        self._stats = stats.view(statistics.stages, -1)
        self._returns = returns.view(statistics.stages, RETURN_BINS)
        self.robot_steps, self.bad_actions, self.non_finite_robots = scalars.unbind()
        self.stored = stored.squeeze()

    def train(self) -> dict[str, Any]:
        """Return what the label ``train`` records: all stages together, actions, updates."""
        count = self._metrics.new_full((), float(self._updates))
        metrics = {
            name: Mean(total, count)
            for name, total in zip(self._statistics.metric_names, self._metrics, strict=True)
        }
        return {
            **self._episodes(self._stats.sum(0), self._returns.sum(0)),
            **self._statistics.histograms_of_actions(self._actions),
            **metrics,
            "robot_steps": self.robot_steps,
            "stored_transitions": self.stored,
            "bad_actions": self.bad_actions,
            "non_finite_robots": self.non_finite_robots,
        }

    def by_stage(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return label and record of every stage."""
        for index, (stats, returns) in enumerate(zip(self._stats, self._returns, strict=True)):
            yield self._statistics.labels[index], self._episodes(stats, returns)

    def _episodes(self, stats: Tensor, returns: Tensor) -> dict[str, Any]:
        sums = dict(zip(self._statistics.env.kernel_spec.fields("stats"), stats, strict=True))
        means = {
            name: Mean(sums[total], sums[count])
            for name, (total, count) in EPISODE_MEANS.items()
            if total in sums and count in sums
        }
        distribution = Histogram(returns, *self._statistics.env.return_range)
        return {"episodes": sums["episodes"], **means, "return_distribution": distribution}


EPISODE_MEANS = {
    "success": ("successes", "episodes"),
    "collision": ("collisions", "episodes"),
    "timeout": ("timeouts", "episodes"),
    "episode_return": ("return_sum", "episodes"),
    "length": ("length_sum", "episodes"),
    "time_s": ("success_time_sum", "successes"),
    "energy": ("success_energy_sum", "successes"),
    "robots_reached": ("robots_reached", "robots"),
    "robots_collided": ("robots_collided", "robots"),
}
"""Numbers of a record as ratios of two sums; a task has those whose sums it has."""


def observed_worlds(worlds: int) -> Tensor:
    """Return the worlds int64 [n] whose actions are counted, the same ones in every run.

    They are a fixed random choice: exploration may grow less from the first world to the last, and
    stages and named scenarios come in turns of any period.
    """
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(worlds, generator=generator)[:OBSERVED_WORLDS].sort().values


def bin_of(value: Tensor, low: float, high: float, bins: int) -> Tensor:
    """Return the index of the equal bin that each value lies in, int64; the ends take the rest."""
    position = ((value - low) * (bins / (high - low))).nan_to_num(0.0)
    return position.clamp(0, bins - 1).long()


def non_finite(record: dict[str, Any]) -> list[str]:
    """Return the names of a record's entries that are, or hold, a non-finite number."""
    names = []
    for name, value in record.items():
        numbers = value.values() if isinstance(value, dict) else [value]
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            names.append(name)
    return names
