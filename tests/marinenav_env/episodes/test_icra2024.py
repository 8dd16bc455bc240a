"""Episode files of the ICRA 2024 task: replays, and what is refused."""

import copy
import json
import os
from pathlib import Path

import pytest
import torch

from marinenav_env.config import EpisodeConfig
from marinenav_env.envs.icra2024 import Icra2024Config, Icra2024Env, ReachGoalConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.episodes.format import checked_episode, read_episode, write_episode
from marinenav_env.episodes.record import record_episodes
from marinenav_env.episodes.replay import check
from marinenav_env.episodes.tracks import tracks_of
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


def rough_worlds(**options) -> Icra2024Env:
    """Two worlds in which robots collide, arrive and run out of time."""
    config = Icra2024Config(
        reward=ReachGoalConfig(goal_distance=9.0),
        episode=EpisodeConfig(max_steps=60, stop_on_collision=False),
    )
    stage = Stage(robots=7, vortices=6, buoys=8, min_distance_m=20.0)
    options = {"discrete": True, "dtype": torch.float64, "seed": 5, **options}
    return Icra2024Env(2, stages=(stage,), config=config, **options)


def test_what_is_recorded_here_replays_and_says_how_robots_ended(tmp_path):
    """All three kinds of ends, with one frame and with several; drawn from the file as it was."""
    generator = torch.Generator().manual_seed(0)

    def half_to_their_goals(seen):
        action = torch.randint(9, seen.ego.shape[:2], generator=generator)
        action[:, ::2] = 7 + seen.ego[:, ::2, 1].sign().long()  # faster, and to the goal's side
        return action

    ends = set()
    for frames in (1, 4):
        for episode in record_episodes(rough_worlds(stack_k=frames), half_to_their_goals, seed=5):
            write_episode(episode, tmp_path / "x.json")
            read = read_episode(tmp_path / "x.json")
            assert read == episode
            deviations = check(read, torch.float64, "cpu")
            assert deviations.within()
            assert deviations.position_m == deviations.observation == deviations.reward == 0.0
            said = episode.recorded["infos"]
            last = [said[length - 1][robot] for robot, length in enumerate(episode.lengths)]
            ends |= set(last)
            tracks = tracks_of(read)
            for robot, word in enumerate(last):
                assert bool(tracks.collided[0, robot]) == (word == "collision")
                assert bool(tracks.reached[0, robot]) == (word == "reach goal")
    assert ends == {"collision", "reach goal", "too long episode"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discrete": False}, "hold indices of actions"),
        ({"config": {"vessel": {"drag": 0.5}}}, r"vessel\.drag is 0\.5: the episode format has no"),
    ],
)
def test_what_files_cannot_hold_is_refused(options, message):
    env = Icra2024Env(1, dtype=torch.float64, **{"discrete": True, **options})
    with pytest.raises(ConfigError, match=message):
        record_episodes(env, lambda seen: seen, seed=0)


def test_no_other_vessel_is_advised():
    env = Icra2024Env(1, dtype=torch.float64, discrete=True, config={"vessel": {"drag": 0.5}})
    with pytest.raises(ConfigError) as refused:
        record_episodes(env, lambda seen: seen, seed=0)
    assert "record into NAME.npz, which holds any episode" in str(refused.value)
    assert "set env.vessel" not in str(refused.value)


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
