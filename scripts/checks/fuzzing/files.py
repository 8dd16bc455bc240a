"""Damaged files of every kind that a command reads.

A sample of each kind is made once. A case copies its folder, damages the file, and lets the command
that reads it run. It may refuse the file by name, or continue; a file with checksums that are not
those of its bytes may not be taken for another one, and a run that continues has to end with the
weights that it would have had.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml

from marinenav_env.fields import ConfigError, plain
from scripts import compare_published, episode, plot_training
from scripts.checks import kill_check
from scripts.checks.fuzzing import damage
from scripts.checks.fuzzing.commands import RefusedError, call
from scripts.checks.fuzzing.outcomes import ACCEPTED, ERROR, SILENT, UNCLEAR, Outcome, Player
from train_RL_agents import evaluate, train
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.export import export
from train_RL_agents.policies.formats import FORMATS
from train_RL_agents.policies.load import read_policy
from train_RL_agents.policies.seal import checksum
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.provenance import EVALUATION

ROOT = Path(__file__).resolve().parents[3]
PRETRAINED, REFERENCE = ROOT / "pretrained", ROOT / "tests" / "reference"
SHORT = (
    *("worlds=6", "total_steps=360", "threads=1", "device=cpu", "updates.batch_size=8"),
    *("updates.samples_per_insert=0.1", "updates.warmup_transitions=20", "replay.capacity=3000"),
    *("log.interval_steps=120", "checkpoint.interval_steps=120", "checkpoint.keep=9"),
    *("evaluation.interval_steps=240", "evaluation.episodes=1", "evaluation.final_episodes=1"),
    *(
        "evaluation.stages=[[1,0,0,30]]",
        "curriculum.stages=[[3,0,1,30]]",
        "env.episode.max_steps=20",
    ),
)
SCENARIO = {
    "name": "meeting",
    "repeats": 1,
    "vessels": [
        {"start": [0.0, 0.0], "goal": [30.0, 0.0], "speed": 1.0},
        {"start": [30.0, 8.0], "goal": [0.0, 8.0], "heading_deg": 180.0, "steer": "straight"},
    ],
    "buoys": [{"position": [15.0, -10.0], "radius": 1.0}],
    "vortices": [{"position": [15.0, 25.0], "circulation": 5.0}],
}
PUBLISHED_TRAINING = {
    "agent_type": "IQN",
    "seed": [1, 2],
    "total_timesteps": 60000,
    "eval_freq": 10000,
    "save_dir": "runs",
    "training_schedule": {
        "timesteps": [0, 30000],
        "num_robots": [3, 4],
        "num_cores": [0, 0],
        "num_obstacles": [0, 2],
        "min_start_goal_dis": [30.0, 35.0],
    },
}

Reader = Callable[[Path], Any]
Structure = Callable[[bytes, Random], bytes]


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        file: its sample, below the folder of samples; the first part is what is copied.
        read: what a command does with it, given its path; what it returns is compared.
        structure: changes what it holds; None where nothing is parsed.
        guarded: whether checksums in the file speak for its bytes.
        of_run: whether what the file holds may not change what a resumed run comes to.
    """

    file: str
    read: Reader
    structure: Structure | None
    guarded: bool = False
    of_run: bool = False


# ---- readers ----------------------------------------------------------------------------------


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """Return a hash of tensors."""
    content = b"".join(t.detach().contiguous().numpy().tobytes() for t in tensors)
    return hashlib.sha256(content).hexdigest()


def actions(path: Path) -> str:
    """Load a policy; return what it does."""
    policy = read_policy(path)
    assert isinstance(policy.agent, Agent)
    torch.manual_seed(0)
    drawn = policy.agent.spec.observation.draw(16, torch.Generator().manual_seed(0))
    return digest([policy.agent.act(drawn)])


def onnx_outputs(path: Path) -> str:
    """Verify an ONNX export as a planner does; return what it gives."""
    content = path.read_bytes()
    try:
        if checksum(content) is None:
            raise RefusedError(f"error: {path.name} carries no checksum")
    except ValueError as error:
        raise RefusedError(f"error: {path.name}: {error}") from error
    try:
        run = FORMATS["onnx"].read(content, 3)
    except Exception as error:  # of onnxruntime, which has no class of its own for them
        raise RefusedError(f"error: {path.name}: {error}") from error
    draw = torch.Generator().manual_seed(0)
    shapes = ((4, 7), (4, 5, 5), (4, 5))
    return digest(run([torch.rand(shape, generator=draw) for shape in shapes]))


def policy_beside(path: Path) -> str:
    """Load the policy of the folder that a file lies in."""
    return actions(path.parent)


def resumed(path: Path) -> Any:
    """Resume the run that a file lies in; return the weights that it comes to."""
    folder = path.parent.parent if path.parent.name == checkpoint.CHECKPOINTS else path.parent
    call(train.main, "--resume", str(folder))
    return kill_check.outcome(folder)[0]


def resumed_sweep(path: Path) -> None:
    """Resume the sweep that a file lies in."""
    call(train.main, "--resume", str(path.parent))


def plotted(path: Path) -> None:
    """Plot the run that a file lies in."""
    call(plot_training.main, str(path.parent), "--output", str(path.with_name("curves.png")))


def replayed(path: Path) -> None:
    """Replay a recorded episode."""
    call(episode.main, "replay", str(path))


def played(path: Path) -> None:
    """Play a scenario file."""
    call(evaluate.main, "--checkpoint", "baseline:goal-straight", "--scenario", str(path))


def read_settings(path: Path) -> TrainConfig:
    """Read a file of settings."""
    return load_config(path=path)[0]


def compared(path: Path) -> None:
    """Compare an evaluation with the published figures."""
    call(compare_published.main, str(path), "--against", "AC-IQN")


RUN, SAVED = "run", f"run/{checkpoint.CHECKPOINTS}/step_000000000240.pt"
KINDS = {
    "checkpoint, as a policy": Kind(SAVED, actions, damage.of_torch, guarded=True),
    "checkpoint, resumed": Kind(SAVED, resumed, damage.of_torch, guarded=True),
    "best checkpoint": Kind(
        f"run/{checkpoint.CHECKPOINTS}/{checkpoint.BEST}", resumed, damage.of_torch, of_run=True
    ),
    "run.json": Kind("run/run.json", resumed, damage.of_json, of_run=True),
    "metrics.jsonl, resumed": Kind("run/metrics.jsonl", resumed, damage.of_json_lines, of_run=True),
    "metrics.jsonl, plotted": Kind("run/metrics.jsonl", plotted, damage.of_json_lines),
    "sweep.json": Kind("sweep/sweep.json", resumed_sweep, damage.of_json),
    "TorchScript export": Kind("exports/policy.torchscript.pt", actions, None, guarded=True),
    "ONNX export": Kind("exports/policy.onnx", onnx_outputs, None, guarded=True),
    "shipped weights": Kind("iqn/weights.pt", policy_beside, damage.of_torch, guarded=True),
    "shipped settings": Kind("iqn/config.yaml", policy_beside, damage.of_yaml),
    "shipped provenance": Kind("iqn/provenance.json", policy_beside, damage.of_json),
    "published weights, npz": Kind("weights/a.npz", actions, damage.of_arrays, guarded=True),
    "published weights, pth": Kind("weights/a.pth", actions, damage.of_torch, guarded=True),
    "episode": Kind("texts/episode.json", replayed, damage.of_json),
    "episode, ICRA 2024": Kind("texts/icra2024.json", replayed, damage.of_json),
    "scenario": Kind("texts/scenario.yaml", played, damage.of_yaml),
    "settings": Kind("texts/settings.yaml", read_settings, damage.of_yaml),
    "published training": Kind("texts/training.json", read_settings, damage.of_json),
    "evaluation": Kind("texts/evaluation.json", compared, damage.of_json),
}

# ---- samples ----------------------------------------------------------------------------------


def make_samples(folder: Path) -> None:
    """Make a whole file of every kind."""
    run = folder / RUN
    call(train.main, "--agent", "DQN", "--output", str(run), *SHORT)
    (run / EVALUATION).unlink()
    max(
        (run / checkpoint.CHECKPOINTS).glob("step_*.pt")
    ).unlink()  # so that something is to be done
    sweep = ["--seed", "0", "1", "--agent", "DQN", "--output", str(folder / "sweep")]
    call(train.main, *sweep, *SHORT, "total_steps=12")
    shutil.copytree(PRETRAINED / "iqn", folder / "iqn")
    for name in ("exports", "weights", "texts"):
        (folder / name).mkdir()
    for form in FORMATS.values():
        export(PRETRAINED / "ac_iqn", form, folder / "exports" / f"policy{form.suffix}")
    config, _, _ = load_config(agent="DQN", overrides=["algorithm.encoder=published"])
    weights = {
        name: value
        for name, value in build_agent(config, "cpu").actor.state_dict().items()
        if not name.endswith("_input_scale")
    }
    torch.save(weights, folder / "weights" / "a.pth")
    np.savez(folder / "weights" / "a.npz", **{n: value.numpy() for n, value in weights.items()})
    texts = folder / "texts"
    shutil.copy(REFERENCE / "episodes" / "crossing_policy_2r.json", texts / "episode.json")
    shutil.copy(min((REFERENCE / "icra2024" / "episodes").glob("*.json")), texts / "icra2024.json")
    shutil.copy(PRETRAINED / "ac_iqn" / "evaluation.json", texts / "evaluation.json")
    (texts / "scenario.yaml").write_text(yaml.safe_dump(SCENARIO))
    (texts / "settings.yaml").write_text(yaml.safe_dump(plain(TrainConfig(agent="IQN"))))
    (texts / "training.json").write_text(json.dumps(PUBLISHED_TRAINING))


def read_copy(kind: Kind, samples: Path, folder: Path, change: Callable[[Path], object]) -> Any:
    """Copy the folder of a sample, change the file in it, and read it."""
    top = kind.file.partition("/")[0]
    shutil.rmtree(folder / top, ignore_errors=True)
    shutil.copytree(samples / top, folder / top)
    change(folder / kind.file)
    return kind.read(folder / kind.file)


def read_whole(samples: Path, folder: Path) -> dict[str, Any]:
    """Return what reading the whole file of each kind gives, by its name."""
    return {name: read_copy(kind, samples, folder, lambda _: None) for name, kind in KINDS.items()}


# ---- cases ------------------------------------------------------------------------------------


def damaged(kind: Kind, samples: Path, draw: Random) -> tuple[str, bytes]:
    """Return what was done to a file in words, and its content."""
    content = (samples / kind.file).read_bytes()
    ways = [*damage.BYTES, "other content", *(["wrong content"] * 3 if kind.structure else ())]
    way = draw.choice(ways)
    if way == "other content":
        other = draw.choice([other for other in KINDS.values() if other.file != kind.file])
        return f"content of {other.file}", (samples / other.file).read_bytes()
    if way == "wrong content":
        assert kind.structure is not None
        return way, kind.structure(content, draw)
    return way, damage.BYTES[way](content, draw)


def judge(name: str, way: str, content: bytes, whole: Any, samples: Path, folder: Path) -> Outcome:
    """Read a damaged file."""
    kind = KINDS[name]
    try:
        result = read_copy(kind, samples, folder, lambda file: file.write_bytes(content))
    except (ConfigError, CheckpointError, RefusedError) as error:
        message = str(error)
        file = Path(kind.file)
        clear = file.name in message or (name == "checkpoint, resumed" and "not finite" in message)
        return Outcome(ERROR if clear else UNCLEAR, message)
    bound = kind.of_run or (kind.guarded and way in damage.BYTES)
    if bound and not kill_check.equal(result, whole):
        return Outcome(SILENT, "another result than that of the whole file")
    return Outcome(ACCEPTED)


def play(player: Player, seed: int, count: int, samples: Path, whole: dict, folder: Path) -> None:
    """Play damaged files.

    Args:
        player: plays them.
        seed: of the damage.
        count: number of files.
        samples: from `make_samples`.
        whole: from `read_whole`.
        folder: for copies.
    """
    names = list(KINDS)
    for number in range(count):
        draw = Random(f"{seed} {number}")
        name = names[number % len(names)]
        way, content = damaged(KINDS[name], samples, draw)
        player.play(
            f"{number}: {name}, {way}",
            partial(judge, name, way, content, whole[name], samples, folder),
        )
