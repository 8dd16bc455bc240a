"""The replay command: its table, its JSON object and its exit status."""

import json
import math
from pathlib import Path

import pytest

from marinenav_env.episodes.compare import Deviations
from scripts import episode as program
from scripts import replay_episode
from tests.marinenav_env.rollouts import EPISODES

FILES = sorted(str(path) for path in EPISODES.glob("*.json"))
KEYS = [
    *("position_m", "heading_rad", "velocity", "thrust_n", "observation", "reward", "phi_rad"),
    *("wrong_flags", "steps"),
]


@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e-6), ("float32", 1e-4)])
def test_json_of_all_reference_episodes(dtype, limit, capsys):
    assert replay_episode.main([*FILES, "--dtype", dtype, "--json"]) == 0
    printed = capsys.readouterr().out
    report = json.loads(printed)
    assert list(report) == ["overall", "files"]
    assert sorted(report["files"]) == [Path(file).name for file in FILES]
    entries = [report["overall"], *report["files"].values()]
    assert all(list(entry) == KEYS for entry in entries)
    assert report["overall"]["wrong_flags"] == 0
    assert report["overall"]["steps"] == 590
    assert all(entry[key] <= limit for entry in entries for key in KEYS[:7])
    for key in KEYS[:7]:
        assert report["overall"][key] == max(entry[key] for entry in report["files"].values())


@pytest.fixture
def planted(tmp_path) -> Path:
    """A reference episode with one coordinate moved by 2e-6 m, and without a recording."""
    data = json.loads((EPISODES / "calm_policy_3r.json").read_text())
    del data["recorded"]
    data["robots"]["trajectory"][2][10][1] += 2e-6
    path = tmp_path / "planted.json"
    path.write_text(json.dumps(data))
    return path


def test_a_planted_deviation_sets_the_exit_status(planted, capsys):
    assert replay_episode.main([str(planted), FILES[0], "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["files"]["planted.json"]["position_m"] == pytest.approx(2e-6, rel=0.1)
    assert report["files"]["planted.json"]["reward"] is None
    assert report["overall"]["reward"] is not None


def test_json_never_holds_nan(planted, capsys, monkeypatch):
    """No other program could read it, and null would say that nothing was recorded."""
    diverged = Deviations(0.0, 0.0, math.nan, 0.0, None, None, None, 0, 5, math.nan)
    monkeypatch.setattr(program, "check", lambda *_: diverged)
    assert replay_episode.main([str(planted), "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "deviations of ['planted.json'] are not finite" in captured.err
    assert replay_episode.main([str(planted)]) == 1
    assert "nan" in capsys.readouterr().out


def test_table_has_a_line_per_file_and_a_verdict(planted, capsys):
    assert replay_episode.main([str(planted), FILES[0]]) == 1
    header, first, second, overall, _ = capsys.readouterr().out.splitlines()
    assert header.split() == ["file", *KEYS, "verdict"]
    assert (first.split()[0], first.split()[-1]) == ("planted.json", "OFF")
    assert first.split()[5:8] == ["-", "-", "-"]
    assert (second.split()[0], second.split()[-1]) == (Path(FILES[0]).name, "ok")
    assert (overall.split()[0], overall.split()[-1]) == ("overall", "OFF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FILES[0], "nothing.json"], "episode file 'nothing.json' cannot be read"),
        ([FILES[0], FILES[0]], "are named twice: give files of different names"),
    ],
)
def test_unusable_files_are_said_before_any_work(arguments, message, capsys):
    assert replay_episode.main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_missing_gpu_is_said(capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert replay_episode.main([FILES[0], "--device", "cuda"]) == 2
    assert "this machine shows no CUDA device; use 'cpu'" in capsys.readouterr().err
