"""Short trainings for the tests of the trainer and of its command."""

import re
import signal
import sys
from pathlib import Path

import pytest
import torch

from tests.conftest import ROOT
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.metrics.reductions import reduce
from train_RL_agents.metrics.writer import read_metrics
from train_RL_agents.training.counters import InterruptedRunError
from train_RL_agents.training.interruption import Interruption
from train_RL_agents.training.trainer import TorchRLTrainer

SCRIPT = Path(__file__).with_name("train_shortly.py")
SHORT = [
    *("worlds=6", "total_steps=600", "updates.batch_size=16", "updates.samples_per_insert=0.5"),
    *("updates.warmup_transitions=100", "replay.capacity=3000", "log.interval_steps=100"),
    *("checkpoint.interval_steps=200", "evaluation.interval_steps=400", "evaluation.episodes=1"),
    *("evaluation.final_episodes=1", "env.episode.max_steps=40"),
]
ONE_STAGE = "evaluation.stages=[[2,0,0,30]]"
"""Six panels of a figure take longer than all else in a short run."""
TINY = [*SHORT, "total_steps=12", ONE_STAGE]
SMALL = ["worlds=6", "updates.batch_size=32", "replay.capacity=3000", "env.episode.max_steps=15"]
SMALL += ["updates.warmup_transitions=0"]
"""Settings of a learner alone."""
CPU = torch.device("cpu")


def every_decision(agent):
    """Return settings with which an agent learns after each decision of all worlds."""
    rounds = ["algorithm.turns=1", "algorithm.settling_rounds=0"]
    return rounds if AGENTS[agent].learns_from == "rounds" else short_rollouts(agent)


def short_rounds(agent):
    """Return settings with which an agent learns in a short run, its actor from early on."""
    rounds = ["algorithm.turns=9", "algorithm.settling_rounds=1"]
    return rounds if AGENTS[agent].learns_from == "rounds" else short_rollouts(agent)


def short_rollouts(agent):
    """Return settings with which an agent that looks ahead does so for four decisions."""
    if AGENTS[agent].learns_from != "lookahead":
        return []
    return ["algorithm.lookahead.horizon_s=2", "algorithm.look_every=3"]


class Silent(Processes):
    """One of several processes that exchange nothing."""

    def broadcast(self, tensors):
        """Leave the tensors alone."""

    def wait(self):
        pass


class Twins(Silent):
    """Two processes that always have the same tensors."""

    def sum(self, tensor):
        tensor.mul_(2.0)


def trainer(folder, *overrides, agent="AC-IQN", device=CPU):
    settings = [*SHORT, *short_rounds(agent), *overrides]
    config, _, _ = load_config(agent=agent, overrides=settings)
    return TorchRLTrainer(config, folder, device)


def packed_log(learner, updates):
    """Return all numbers of a log, as the trainer packs them, and begin the next one."""
    gathered = learner.statistics.gather(Processes(), updates=updates)
    records = [gathered.train(), *(record for _, record in gathered.by_stage())]
    reduced = [reduce(value) for record in records for value in record.values()]
    packed = torch.cat([entry.values for entry in reduced if entry.values is not None])
    learner.statistics.clear()
    return packed


def flat(state, prefix=""):
    """Yield (name, value) of nested dictionaries and lists."""
    entries = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in entries:
        if isinstance(value, dict | list):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def assert_same(first, second, ignored=("elapsed_s", "collecting_s", "files")):
    first, second = (
        {name: v for name, v in flat(state) if not any(part in name for part in ignored)}
        for state in (first, second)
    )
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value.cpu().nan_to_num(), second[name].cpu().nan_to_num()), name
        else:
            assert value == second[name], name


def timeless(folder):
    """Metrics without what depends on the clock."""
    records = read_metrics(folder / "metrics.jsonl")
    return [
        {k: v for k, v in record.items() if k != "elapsed_s" and not k.endswith("_per_s")}
        for record in records
    ]


class StopAt(Interruption):
    """Pretends that a signal came once a trainer has passed a step."""

    def __init__(self, runner, step):
        super().__init__()
        self._runner, self._step = runner, step

    @property
    def received(self):
        return signal.SIGTERM if self._runner.counters.step >= self._step else None

    @received.setter
    def received(self, value):
        pass


def stop_at(monkeypatch, runner, step):
    """Train until a signal comes once ``step`` is passed; return the step it stopped at."""
    with monkeypatch.context() as patch:
        patch.setattr("train_RL_agents.training.trainer.Interruption", lambda: StopAt(runner, step))
        with pytest.raises(InterruptedRunError) as raised:
            runner.train()
    stopped = re.search(r"stopped by SIGTERM at step (\d+); saved to", str(raised.value))
    return int(stopped[1])


def command(folder, *arguments):
    return [sys.executable, str(SCRIPT), "--output", str(folder), *SHORT, *arguments]


def environment():
    return {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": ""}
