"""The kill check: a few kills pass, and damage is told."""

import json

import torch

from scripts.checks import kill_check
from scripts.checks.kill_check import Tally, differences, equal, inspect
from tests.conftest import ROOT, run_python
from train_RL_agents.run import checkpoint

SHORTER = """
import sys
from scripts.checks import kill_check
shorter = ("total_steps=1024", "evaluation.interval_steps=512", "evaluation.stages=[[1,0,0,30]]")
kill_check.SETTINGS += shorter
sys.exit(kill_check.main())
"""


def test_kills_lose_nothing(tmp_path):
    record = tmp_path / "kills.json"
    run_python(ROOT, "-c", SHORTER, "--kills", "2", "--agent", "DQN", "--json", record)
    (tally,) = json.loads(record.read_text())["agents"]
    assert (tally["agent"], tally["kills"], tally["problems"]) == ("DQN", 2, [])
    assert tally["before_first_checkpoint"] + tally["resumed"] == 2  # each was followed by a start
    assert tally["completed"] >= 1


def test_a_damaged_checkpoint_and_lost_steps_are_told(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    checkpoint.save(folder / "step_000000000256.pt", {"step": 256})
    steps = [256, 256 + kill_check.INTERVAL, 900]
    lines = [json.dumps({"mode": "train", "step": step}) for step in steps]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines[:2]) + "\n")
    tally = Tally("DQN")
    assert inspect(tmp_path, tally) == []
    assert tally.most_lost_steps == kill_check.INTERVAL
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert "644 steps lost" in inspect(tmp_path, tally)[0]
    (folder / "step_000000000512.pt").write_bytes(b"half a file")
    assert "is damaged" in inspect(tmp_path, tally)[0]


def test_a_run_that_differs_is_told(tmp_path):
    for name, weight, steps in (("a", 1.0, 1), ("b", 1.0, 1), ("c", 2.0, 2)):
        (tmp_path / name / "checkpoints").mkdir(parents=True)
        state = {"step": 1, "model": {"weights": torch.tensor([weight])}}
        checkpoint.save(tmp_path / name / "checkpoints" / "step_000000000001.pt", state)
        record = {"mode": "train", "step": steps, "elapsed_s": 7.0 * weight}
        (tmp_path / name / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    assert differences(tmp_path / "a", tmp_path / "b") == []
    assert len(differences(tmp_path / "c", tmp_path / "a")) == 2


def test_equality_is_of_bits_and_structure():
    nested = {"a": [torch.ones(2), 1], "b": None}
    assert equal(nested, {"a": [torch.ones(2), 1], "b": None})
    assert not equal(nested, {"a": [torch.ones(2).double(), 1], "b": None})
    assert not equal(nested, {"a": [torch.ones(2)], "b": None})
