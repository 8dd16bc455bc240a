"""The list of mutants still applies, and a mutant that no test sees is told."""

import os

import pytest

from scripts.checks import mutants
from scripts.checks.mutant_list import CORE, MUTANTS, Mutant
from tests.conftest import ROOT, run_python

TRY = """
import sys
from pathlib import Path
from scripts.checks import mutants
from scripts.checks.mutant_list import Mutant
folder = Path(sys.argv[1])
for after in ("3", "2 + 0"):
    print(mutants.outcome(folder, Mutant("answer.py", "2", after, ("test_answer.py",)), 0))
"""


def test_every_mutant_applies_and_has_its_tests():
    assert mutants.stale() == []
    assert len(MUTANTS) >= 100
    assert len(set(MUTANTS)) == len(MUTANTS)
    missing = {
        name for mutant in MUTANTS for name in mutant.tests if not (ROOT / "tests" / name).is_file()
    }
    assert missing == set()


def test_a_mutant_that_applies_no_more_is_named(refused, monkeypatch):
    gone = Mutant("README.md", "no such text", "", ())
    assert mutants.stale([gone]) == ["README.md: 'no such text'"]
    monkeypatch.setattr(mutants, "stale", lambda: ["a.py: 'b'"])
    refused(mutants.main, [], "a.py: 'b'")


def test_all_mutants_of_the_core_stand_beside_each_other(tmp_path):
    names = {mutant.file for mutant in MUTANTS if mutant.file.startswith(CORE)} | {
        CORE + "kernel/lane.h"
    }
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    mutants.put_into_core(tmp_path, MUTANTS)
    written = "".join((tmp_path / name).read_text() for name in names)
    for number, mutant in enumerate(MUTANTS):
        assert written.count(f"(chosen_mutant() == {number} ?") == mutant.file.startswith(CORE)


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_a_mutant_is_killed_by_a_test_that_fails_and_survives_others(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "answer.py").write_text("ANSWER = 2\n")
    (tmp_path / "tests" / "test_answer.py").write_text(
        "import answer\n\n\ndef test_answer():\n    assert answer.ANSWER == 2\n"
    )
    assert run_python(ROOT, "-c", TRY, tmp_path, PATH="").split() == ["killed", "survived"]
    assert (tmp_path / "answer.py").read_text() == "ANSWER = 2\n"
