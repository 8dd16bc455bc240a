"""Shorter exports."""

import pytest

from train_RL_agents import export
from train_RL_agents.policies import interface


@pytest.fixture(autouse=True, scope="module")
def short_export_checks():
    """Exports check themselves on fewer observations: the tests bring observations of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "RANDOM_OBSERVATIONS", 8)
        patch.setattr(interface, "SIMULATED_DECISIONS", 3)
        yield
