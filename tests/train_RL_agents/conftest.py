"""Fixtures of the tests that train."""

import signal

import pytest

from tests.train_RL_agents.short_runs import trainer
from train_RL_agents.evaluation import episodes


@pytest.fixture
def short_evaluations(monkeypatch):
    """End the episodes of evaluations early."""
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 50)


@pytest.fixture
def heard_hang_ups():
    """Take hang-ups as a shell's programs do, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a complete run with checkpoints of several steps."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(episodes, "DECISION_LIMIT", 50)
        trainer(folder, "checkpoint.keep=9", "evaluation.interval_steps=600").train()
    return folder
