"""The fuzzer: a short form of it finds nothing, and it sees what it is made to see."""

import ctypes
import faulthandler
import json
import sys
import time

import pytest

from marinenav_env.fields import ConfigError
from scripts.checks import fuzz
from scripts.checks.fuzzing import configurations, files
from scripts.checks.fuzzing.commands import RefusedError, call
from scripts.checks.fuzzing.configurations import Case, changed_silently, configuration
from scripts.checks.fuzzing.outcomes import (
    ACCEPTED,
    CRASH,
    ERROR,
    HANG,
    SILENT,
    TRACEBACK,
    UNCLEAR,
    Outcome,
    play_all,
)
from tests.conftest import ROOT, run_python
from train_RL_agents.config.files import load_config


def test_a_short_form_finds_nothing(tmp_path):
    record = tmp_path / "fuzz.json"
    options = "--configurations 12 --train-every 6 --files 10 --interruptions 1 --seed 3 --json"
    run_python(ROOT, "scripts/checks/fuzz.py", *options.split(), record, PATH="")
    families = json.loads(record.read_text())["families"]
    assert {name: part["cases"] for name, part in families.items()} == {
        "configurations": 12,
        "files": 10,
        "interruptions": 1,
    }
    assert all(part["outcomes"][ACCEPTED] for part in families.values())
    assert families["files"]["outcomes"][ERROR]


def fail(error):
    raise error


def crash():
    faulthandler.disable()  # pytest's would print a page of traces
    ctypes.string_at(0)


def test_a_worker_that_crashes_or_hangs_is_an_outcome_and_the_next_goes_on():
    acts = {
        "fine": lambda: Outcome(ACCEPTED),
        "segmentation fault": crash,
        "refused": lambda: Outcome(ERROR, "x is 1: give 2"),
        "endless": lambda: time.sleep(100.0),
        "wrong": lambda: fail(KeyError("x")),
        "at last": lambda: Outcome(ACCEPTED),
    }

    def work(player):
        for case, act in acts.items():
            player.play(case, act)

    results = list(play_all(work, patience_s=1.0))
    assert [result.case for result in results] == list(acts)
    kinds = [result.outcome.kind for result in results]
    assert kinds == [ACCEPTED, CRASH, ERROR, HANG, TRACEBACK, ACCEPTED]
    assert results[1].outcome.message == "ended with SIGSEGV"
    assert results[4].outcome.message.startswith("KeyError: 'x' (test_fuzz.py:")


def test_what_is_taken_for_something_else_is_a_silent_change(tmp_path):
    case = Case("file", "DQN", "marine", {"worlds": 6, "env.vessel.mass": 500})
    config = configuration(case, tmp_path)
    assert changed_silently(case, config) is None
    other = load_config(agent="DQN", overrides=["worlds=7", "env.vessel.mass=500"])[0]
    assert changed_silently(case, other) == "worlds is 7"


def test_a_message_that_names_no_setting_is_unclear(tmp_path, monkeypatch):
    case = Case("file", "DQN", "marine", {"worlds": 0})
    assert configurations.judge(case, tmp_path, trains=False).kind == ERROR
    monkeypatch.setattr(
        configurations, "configuration", lambda *_: fail(ConfigError("Overflow when unpacking"))
    )
    assert configurations.judge(case, tmp_path, trains=False).kind == UNCLEAR


def test_every_way_in_is_played_and_the_same_seed_gives_the_same_cases(tmp_path):
    class Listener:
        def __init__(self):
            self.cases = []

        def play(self, case, act):
            self.cases.append(case)

    first, second = Listener(), Listener()
    for listener in (first, second):
        configurations.play(listener, 1, 0, 300, 10, tmp_path)  # fewer may leave a route out
    assert first.cases == second.cases
    assert len(set(first.cases)) > 150
    routes = {case.partition(",")[0] for case in first.cases}
    assert routes == {"file", "command line", "Python", "published JSON"}


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "samples" / "texts").mkdir(parents=True)
    (tmp_path / "samples" / "texts" / "settings.yaml").write_text("worlds: 8\n")
    return tmp_path / "samples"


@pytest.mark.parametrize(
    ("content", "guarded", "kind"),
    [
        (b"worlds: 8\n", True, ACCEPTED),
        (b"worlds: 9\n", False, ACCEPTED),
        (b"worlds: 9\n", True, SILENT),
        (b"worlds: 0\n", False, ERROR),
    ],
)
def test_a_damaged_file_is_judged_by_what_was_read(
    texts, tmp_path, monkeypatch, content, guarded, kind
):
    settings = files.KINDS["settings"]._replace(guarded=guarded)
    monkeypatch.setitem(files.KINDS, "settings", settings)
    whole = files.read_copy(settings, texts, tmp_path / "copies", lambda _: None).worlds
    monkeypatch.setitem(
        files.KINDS, "settings", settings._replace(read=lambda path: settings.read(path).worlds)
    )
    outcome = files.judge("settings", "bits flipped", content, whole, texts, tmp_path / "copies")
    assert outcome.kind == kind


def test_a_command_that_fails_without_a_word_is_a_traceback():
    with pytest.raises(RuntimeError, match="no word of why"):
        call(lambda _: 1)
    with pytest.raises(RefusedError, match="error: x"):
        call(lambda _: print("error: x", file=sys.stderr) or 1)


def test_wrong_options_are_refused(refused):
    refused(fuzz.main, ["--files", "-1"], "--files is -1: give 0 or more", status=2)
