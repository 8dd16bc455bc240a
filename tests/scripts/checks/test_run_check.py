"""scripts/checks/run_check.py, on a CPU with budgets of seconds."""

import sys

import pytest

from scripts.checks import run_check
from tests.preloaded import ALONE

SHORT = ("worlds=8", "total_steps=8_000", "updates.batch_size=16", "threads=1")
SHORT += ("updates.samples_per_insert=0.02", "log.interval_steps=1_000")
SHORT += ("checkpoint.interval_steps=1_000", "evaluation.interval_steps=8_000")
SHORT += ("evaluation.episodes=1", "evaluation.final_episodes=1", "env.episode.max_steps=40")
SHORT += ("evaluation.stages=[[3,0,0,30]]",)


def test_a_training_is_killed_resumed_evaluated_and_exported(capfd):
    assert run_check.main(["life", "--device", "cpu", "--settings", *SHORT]) == 0
    said = capfd.readouterr().out
    assert "resumed to 8000, evaluated and exported" in said
    killed_at = int(said.partition("killed at step ")[2].partition(",")[0])
    assert 1_000 <= killed_at < 8_000


def test_a_training_that_learns_nothing_is_told(capfd):
    few = ("total_steps=16", "evaluation.interval_steps=16", "evaluation.final_episodes=1")
    few += ("curriculum.stages=[[3,0,0,30]]", "scenarios.share=0")
    assert run_check.main(["learns", "--device", "cpu", "--settings", *SHORT, *few]) == 1
    assert "success 0.00 in the first stage, less than 0.7" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit(3)", "the training ended with status 3"),
        ("import time; time.sleep(30)", "no checkpoint within 0.5 s"),
    ],
)
def test_a_training_without_a_checkpoint_is_told(program, message, tmp_path, monkeypatch):
    monkeypatch.setenv(ALONE, "1")  # a new Python begins sooner than a fork of a large one
    monkeypatch.setattr(run_check, "PATIENCE_S", 0.5)
    with pytest.raises(run_check.FailedError, match=message):
        run_check.kill_early([sys.executable, "-c", program], tmp_path)


def test_a_program_that_fails_is_told():
    with pytest.raises(run_check.FailedError, match=r"evaluate\.py ended with status 2"):
        run_check.run("evaluate.py", "--episodes", "none")
