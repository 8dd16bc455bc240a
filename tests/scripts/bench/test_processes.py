"""The benchmark of several processes: its figures are those of the runs' own records."""

import json
import sys

import pytest
import torch

from scripts.bench import processes
from tests.train_RL_agents.short_runs import ONE_STAGE

SMALL = ["worlds=6", "threads=1", "updates.batch_size=16", "updates.warmup_transitions=50"]
SMALL += ["replay.capacity=3000", "env.episode.max_steps=40", ONE_STAGE]


def test_figures_leave_out_the_first_record():
    records = [
        {"robot_steps": 100.0, "robot_steps_per_s": 1.0, "updates": 3},
        {"robot_steps": 200.0, "robot_steps_per_s": 100.0, "updates": 13},
        {"robot_steps": 300.0, "robot_steps_per_s": 100.0, "updates": 23},
    ]
    figures = processes.figures_of(records, 50)
    assert figures == {
        "robot_steps_per_s": 100.0,
        "gradient_samples_per_s": 200.0,
        "samples_per_insert": 2.0,
    }


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed")
def test_the_script_measures_one_and_two(tmp_path, capsys):
    path = tmp_path / "processes.json"
    options = ["--agent", "DQN", "--steps", "480", "--repeats", "1", "--json", str(path)]
    assert processes.main([*options, *SMALL]) == 0
    one, two = json.loads(path.read_text())["rows"]
    assert (one["processes"], two["processes"]) == (1, 2)
    for row in (one, two):
        assert row["robot_steps_per_s"] == row["repeats"][0]["robot_steps_per_s"] > 0
        assert row["samples_per_insert"] == pytest.approx(1.0, rel=0.5)
    assert "gradient samples/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worlds=-1"], "worlds is -1"),
        (["--steps", "3"], "steps is 3"),
        (["--repeats", "0"], "from 1"),
    ],
)
def test_what_is_of_no_use_is_refused_before_any_training(refused, arguments, message):
    refused(processes.main, arguments, message, status=2)


def test_a_training_that_fails_is_told(monkeypatch):
    fails = [sys.executable, "-c", "import sys; sys.exit('error: no room')"]
    monkeypatch.setattr(processes, "command_for", lambda *_: fails)
    options = ["--processes", "1", "--repeats", "1", "--steps", "480"]
    with pytest.raises(RuntimeError, match=r"failed:\nerror: no room"):
        processes.main([*options, "threads=1"])
