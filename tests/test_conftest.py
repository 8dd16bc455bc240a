"""The list of slow tests."""

from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("entry", SLOW)
def test_what_is_slow_is_there(entry):
    path, _, name = entry.partition("::")
    text = (ROOT / path).read_text()
    *kinds, test = name.split("::")
    assert f"def {test}" in text
    assert all(f"class {kind}:" in text for kind in kinds)
