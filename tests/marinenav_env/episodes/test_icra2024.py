"""Episode files of the ICRA 2024 task: replays, and what is refused."""

import copy
import json
import os
from pathlib import Path

import pytest

from marinenav_env.episodes.format import checked_episode
from marinenav_env.fields import ConfigError
from scripts import replay_episode

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "tests" / "reference" / "icra2024" / "episodes"
EPISODES = sorted(REFERENCE.glob("*.json"))
ALL = Path(os.environ.get("MARINENAV_REFERENCE", ROOT.parent / "shared" / "reference"))
"""All ten episodes lie here, in `icra2024`, where the project's reference data is at hand."""
KEYS = ["position_m", "heading_rad", "velocity", "observation", "reward", "wrong_flags", "steps"]


@pytest.mark.parametrize(("dtype", "limit"), [("float64", 1e-5), ("float32", 1e-3)])
def test_recorded_episodes_replay(dtype, limit, capsys):
    files = list(map(str, sorted((ALL / "icra2024" / "episodes").glob("*.json")) or EPISODES))
    assert replay_episode.main([*files, "--dtype", dtype, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    entries = [report["overall"], *report["files"].values()]
    assert all(list(entry) == KEYS for entry in entries)
    assert all(entry[key] <= limit for entry in entries for key in KEYS[:5])
    assert report["overall"]["wrong_flags"] == 0


def test_both_tasks_replay_in_one_call(capsys):
    first = REFERENCE.parents[1] / "episodes" / "calm_policy_3r.json"
    assert replay_episode.main([str(EPISODES[0]), str(first), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "thrust_n" not in report["files"][EPISODES[0].name]
    assert report["overall"]["thrust_n"] == report["files"][first.name]["thrust_n"]


def changed(change) -> dict:
    data = copy.deepcopy(json.loads(EPISODES[0].read_text()))
    change(data)
    return data


WRONG_ACTION = {
    "trajectory": lambda data: data["robots"]["trajectory"][1][10].__setitem__(0, 30.0),
    "reward": lambda data: data["recorded"]["rewards"][5].__setitem__(0, 0.0),
    "observation": lambda data: data["recorded"]["obs"][6][0].__setitem__(20, 0.0),
    "collision": lambda data: data["recorded"]["collision"][7].__setitem__(2, True),
    "done": lambda data: data["recorded"]["dones"][7].__setitem__(2, True),
}


@pytest.mark.parametrize("change", WRONG_ACTION.values(), ids=WRONG_ACTION)
def test_a_planted_deviation_is_seen(change, tmp_path, capsys):
    file = tmp_path / "planted.json"
    file.write_text(json.dumps(changed(change)))
    assert replay_episode.main([str(file)]) == 1


REFUSED = {
    "action": (
        lambda data: data["robots"]["action_history"][0].__setitem__(3, 9),
        r"action_history\[0\]\[3\] is 9: give a whole number from 0 to 8",
    ),
    "key": (lambda data: data["robots"].pop("init_theta"), "'init_theta' is missing"),
    "states": (
        lambda data: data["robots"]["trajectory"][2].pop(),
        r"robots.trajectory\[2\] \(length 46\) is .* give 47 entries",
    ),
    "observation": (
        lambda data: data["recorded"]["obs"][4].__setitem__(1, None),
        r"recorded.obs\[4\]\[1\] is None: give the 39 numbers",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_a_damaged_file_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        checked_episode(changed(change), "episode file 'x'")


def test_robots_that_differ_are_refused(tmp_path, capsys):
    file = tmp_path / "differ.json"
    file.write_text(json.dumps(changed(lambda data: data["robots"]["r"].__setitem__(1, 0.9))))
    assert replay_episode.main([str(file)]) == 2
    assert "robots.r is [0.8, 0.9, 0.8]: give all robots one value" in capsys.readouterr().err
