"""The list of slow tests."""

import re
from collections import defaultdict
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


def test_every_room_keeps_tests_that_are_not_slow():
    kept = defaultdict(int)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        tests = re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE)
        kept[path.parent] += sum(not f"{name}::{test}".startswith(SLOW) for test in tests)
    assert [room for room, count in kept.items() if count == 0] == []
