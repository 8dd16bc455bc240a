"""Shorter exports."""

import pytest

from train_RL_agents import export
from train_RL_agents.policies import interface


@pytest.fixture(autouse=True)
def short_export_checks(monkeypatch):
    """Exports check themselves on fewer observations: the tests bring observations of their own."""
    monkeypatch.setattr(export, "RANDOM_OBSERVATIONS", 8)
    monkeypatch.setattr(interface, "SIMULATED_DECISIONS", 3)
