"""Shorter benchmarks."""

import pytest

from scripts.bench import machine


@pytest.fixture(autouse=True)
def small_matrices(monkeypatch):
    """The rate of products, measured before any row, is of small ones: nothing here reads it."""
    monkeypatch.setitem(machine.MATRIX, "cpu", 64)
