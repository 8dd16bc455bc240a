"""Files from elsewhere that hold something else: one kind of error, which names the file."""

import json
import re

import numpy as np
import pytest
import torch

from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents import train
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.torchscript import METADATA
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import RUN_STATE, CheckpointError


class Passes(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def saved(value):
    return lambda path: torch.save(value, path)


def arrays(*values):
    return lambda path: np.savez(path, **{f"a{i}": value for i, value in enumerate(values)})


def described(text):
    def write(path):
        torch.jit.save(torch.jit.script(Passes()), str(path), _extra_files={METADATA: text})

    return write


def policy(**parts):
    def write(path):
        save_policy(path, "DQN")
        state = checkpoint.load(path)
        model = {**state["model"], **parts.pop("model", {})}
        path.unlink()
        checkpoint.save(path, {**state, "model": model, **parts})

    return write


FILES = {
    "a torch file as arrays": ("a.npz", saved({"a": torch.ones(2)})),
    "texts": ("a.npz", arrays(np.array(["x", "y"]))),
    "objects": ("a.npz", arrays(np.array([{}], dtype=object))),
    "one array": ("a.npz", lambda path: np.save(path.open("wb"), np.ones(3))),
    "numbers as names": ("a.pth", saved({1: torch.ones(2)})),
    "a list": ("a.pth", saved([1, 2])),
    "settings that are a list": ("a.pt", policy(config=[1])),
    "settings with numbers as names": ("a.pt", policy(config={1: 2})),
    "a step that is a text": ("a.pt", policy(step="x")),
    "networks that are a number": ("a.pt", policy(model={"networks": 5})),
    "an optimizer that is a number": ("a.pt", policy(model={"optimizer": 5})),
    "a description that is a list": ("a.pt", described("[1]")),
    "a description of lists": ("a.pt", described(json.dumps({"config": [1], "origin": [1]}))),
    "a deep description": ("a.pt", described("[" * 100_000)),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_holds_something_else_is_named(tmp_path, case):
    name, write = FILES[case]
    write(tmp_path / name)
    with pytest.raises(CheckpointError, match=name):
        load_policy(tmp_path / name)


def unfinished_with(finished, folder, section, key, value):
    """Copy a run without its end; its newest checkpoint, returned, gets another value."""
    newest = checkpoint.newest(finished)
    state = checkpoint.load(newest)
    state[section] = {**state[section], key: value} if key else value
    (folder / "checkpoints").mkdir()
    path = folder / "checkpoints" / newest.name
    checkpoint.save(path, state)
    for file in finished.glob("*.*"):
        if file.is_file() and file.name != "evaluation.json":
            (folder / file.name).write_bytes(file.read_bytes())
    return path


@pytest.mark.usefixtures("short_evaluations")
@pytest.mark.parametrize("part", [*RUN_STATE, "learner.replay", "learner.env", "counters.x"])
def test_a_run_is_not_resumed_from_something_else(tmp_path, finished, refused, part):
    section, _, key = part.partition(".")
    path = unfinished_with(finished, tmp_path, section, key, [1])
    before = (tmp_path / "metrics.jsonl").read_bytes()
    refused(train.main, ["--resume", str(tmp_path)], str(path))
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


@pytest.mark.usefixtures("short_evaluations")
@pytest.mark.parametrize(
    ("part", "key", "value", "message"),
    [
        ("counters", "robot_rate", "x", "counters.robot_rate is 'x'"),
        ("counters", "step", [1], r"counters.step is \[1\]"),
        ("counters", "logged_step", 10**6, "counters.step is .*: logged_step is 1000000"),
        ("counters", "logged_iteration", 0, "counters.iteration is .*: it does not go with step"),
        ("files", "metrics.jsonl", -5, "'files' has 'metrics.jsonl': -5"),
        ("files", "metrics.jsonl", "x", "'files' has 'metrics.jsonl': 'x'"),
        ("config", "worlds", "x", "holds settings of no use: worlds is 'x'"),
    ],
)
def test_what_a_run_counts_by_is_checked(tmp_path, finished, refused, part, key, value, message):
    path = unfinished_with(finished, tmp_path, part, key, value)
    assert re.search(message, refused(train.main, ["--resume", str(tmp_path)], path.name))
