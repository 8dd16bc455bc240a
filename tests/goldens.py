"""Digests of the simulator's states and of short trainings, as recorded before a restructuring.

``python -m tests.goldens --write`` records them anew; `tests/test_goldens.py` compares. Processors
of one `processor()` may still train to other bits (Zen 4 and Zen 5 do): ``--add`` adds what this
machine gives, and is run where an older commit gives the same on this machine.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.stepper import Stepper
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.training.trainer import TorchRLTrainer

FILE = Path(__file__).parent / "reference" / "goldens.json"
WORLDS_AND_STEPS = ((1, 120), (16, 120), (4096, 40))
TRAINING = [
    *("worlds=12", "total_steps=1200", "updates.batch_size=32", "updates.samples_per_insert=2"),
    *("updates.warmup_transitions=200", "replay.capacity=3000", "log.interval_steps=600"),
    *("checkpoint.interval_steps=1200", "evaluation.interval_steps=1200", "evaluation.episodes=1"),
    *("evaluation.final_episodes=1", "env.episode.max_steps=30", "algorithm.encoder=published"),
    *("curriculum.hull_margin=0", "algorithm.autocast=false", "stack_k=1"),
]
TRAINING_OF = {"IQN": ["algorithm.kappa=1"]}
"""What an agent's file said when they were recorded."""


def digest(tensors) -> str:
    """Return one hash of tensors; neither their names nor their order enter."""
    parts = [hashlib.sha256(t.contiguous().cpu().numpy().tobytes()).digest() for t in tensors]
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()[:32]


def libm() -> str:
    """Return a hash of the C library's functions, on which float64 results depend."""
    values = [x * 0.37 - 40.0 for x in range(400)]
    found = [f(x) for f in (math.sin, math.cos, math.exp) for x in values]
    found += [math.log(x + 41.0) for x in values] + [math.atan2(x, 1.7) for x in values]
    return digest([torch.tensor(found, dtype=torch.float64)])


def processor() -> str:
    """Return what the bits of matrix products depend on: the build of torch and its kernels."""
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 96, 96, generator=generator)
    return f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()} {digest([a @ b])[:8]}"


def rollout(
    worlds: int,
    steps: int,
    dtype: torch.dtype,
    *,
    discrete: bool = False,
    config: EnvConfig | None = None,
) -> str:
    """Return the hash of the state and the last observation after some steps, resets included."""
    env = MarineNavEnv(
        worlds,
        stages=(CROWDED, SPARSE),
        config=config or eventful(),
        dtype=dtype,
        discrete=discrete,
        seed=2**40 + 9,
        stack_k=2,
    )
    env.set_stage(torch.arange(worlds) % 2)
    stepper = Stepper(env)
    now = stepper.reset()
    for step in range(steps):
        stepper.step(actions(env, step))
        now = stepper.advance()
    state = env.state
    changing = (state.robot, state.status, state.buoy, state.vortex, state.world, state.outcome)
    return digest([*changing, state.stats, *now.obs, now.reward])


def training(name: str) -> dict[str, Any]:
    """Return the hash of the weights after a short training, and two sums to compare elsewhere."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        config, _, _ = load_config(agent=name, overrides=TRAINING + TRAINING_OF.get(name, []))
        with tempfile.TemporaryDirectory() as folder:
            trainer = TorchRLTrainer(config, Path(folder), torch.device("cpu"))
            trainer.train()
        weights = list(trainer.learner.agent.parameters())
    finally:
        torch.set_num_threads(threads)
    return {
        "digests": [digest([weight.detach() for weight in weights])],
        "mean_magnitude": sum(w.detach().double().abs().sum().item() for w in weights)
        / sum(w.numel() for w in weights),
        "updates": trainer.counters.updates,
    }


def simulator() -> dict[str, str]:
    """Return the hashes of all rollouts by name."""
    rows = {}
    for dtype in (torch.float32, torch.float64):
        for worlds, steps in WORLDS_AND_STEPS:
            rows[f"{str(dtype).removeprefix('torch.')}_{worlds}"] = rollout(worlds, steps, dtype)
    rows["float32_16_discrete"] = rollout(16, 120, torch.float32, discrete=True)
    return rows


def record() -> dict[str, object]:
    """Return everything, as the file has it."""
    trainings = {name: training(name) for name in REPLAY_AGENTS}
    machine = {"libm": libm(), "processor": processor()}
    return {"machine": machine, "simulator": simulator(), "training": trainings}


def added(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return the record with the digests of this machine's trainings among those it holds.

    Raises:
        ValueError: the bits of this machine are not compared, or a training is another one.
    """
    if processor() != recorded["machine"]["processor"]:
        raise ValueError(f"{processor()} is not that of the record: its bits are not compared")
    for name, row in recorded["training"].items():
        found = training(name)
        same = math.isclose(found["mean_magnitude"], row["mean_magnitude"], rel_tol=1e-3)
        if not same or found["updates"] != row["updates"]:
            raise ValueError(f"{name} trains to other weights than rounding explains: {found}")
        row["digests"] = list(dict.fromkeys([*row["digests"], *found["digests"]]))
    return recorded


if __name__ == "__main__":
    if sys.argv[1:] not in (["--write"], ["--add"]):
        sys.exit("usage: python -m tests.goldens --write | --add")
    rows = record() if sys.argv[1] == "--write" else added(json.loads(FILE.read_text()))
    FILE.write_text(json.dumps(rows, indent=1) + "\n")
