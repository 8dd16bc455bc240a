"""The list of slow tests."""

from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("entry", SLOW)
def test_what_is_slow_is_there(entry):
    path, _, name = entry.partition("::")
    assert f"def {name.rpartition('::')[2]}" in (ROOT / path).read_text()
