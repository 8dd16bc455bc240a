"""Episode files: the published format in and out, and what is said of damaged files."""

import copy
import functools
import json
import math
import operator

import pytest

from marinenav_env.episodes.format import (
    TRAJECTORY_COLUMNS,
    Episode,
    checked_episode,
    read_episode,
    write_episode,
)
from marinenav_env.episodes.tracks import tracks_of
from tests.marinenav_env.rollouts import EPISODES, FILES

SMALL = EPISODES / "calm_policy_3r.json"
DISCRETE = EPISODES / "vortex_discrete_3r_1c.json"


@pytest.fixture(scope="module")
def small() -> dict:
    return json.loads(SMALL.read_text())


def test_all_ten_reference_episodes_are_there():
    assert len(FILES) == 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_round_trip_keeps_every_value_key_and_order(path, tmp_path):
    episode = read_episode(path)
    copied = tmp_path / "copy.json"
    write_episode(episode, copied)
    assert read_episode(copied) == episode
    original = json.loads(path.read_text())
    written = json.loads(copied.read_text())
    assert written == original
    assert json.dumps(written) == json.dumps(original)
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy.json"]


def test_fields_of_a_continuous_episode(small):
    episode = read_episode(SMALL)
    assert (episode.name, episode.lengths, episode.decisions) == (SMALL.name, [36, 31, 28], 36)
    assert episode.continuous is True
    assert len(TRAJECTORY_COLUMNS) == 13
    assert episode.noisy is False
    noisy = copy.deepcopy(small)
    noisy["robots"]["perception"]["r_mean_ratio"][1] = 0.8
    assert checked_episode(noisy, "noisy").noisy is True
    assert episode.robots["goal"] == small["robots"]["goal"]


def test_a_scenario_without_actions_or_recording_is_an_episode(small):
    data = {"env": small["env"], "robots": dict(small["robots"])}
    data["robots"]["action_history"] = [[], [], []]
    data["robots"]["trajectory"] = [states[:1] for states in small["robots"]["trajectory"]]
    episode = checked_episode(data, "scenario")
    assert (episode.decisions, episode.continuous, episode.recorded) == (0, None, None)


def test_a_file_may_say_what_steers_whom(small):
    data = copy.deepcopy(small)
    assert tracks_of(checked_episode(data, "episode")).own is None
    data["robots"]["steer"] = ["policy", "straight", "policy"]
    assert tracks_of(checked_episode(data, "episode")).own.tolist() == [[True, False, True]]
    for wrong, message in (
        (["policy", "", "policy"], r"robots.steer\[1\] is '': give the name of what steers"),
        (["policy"], r"robots.steer \(length 1\) .* give 3 entries"),
        (["orca"] * 3, r"robots.steer is \['orca', 'orca', 'orca'\]: give 'policy' at least once"),
    ):
        data["robots"]["steer"] = wrong
        with pytest.raises(ValueError, match=message):
            checked_episode(data, "episode")


def test_observation_history_is_kept(small):
    data = copy.deepcopy(small)
    table = data["recorded"]["obs"]
    data["robots"]["observation_history"] = [[row[robot] for row in table] for robot in range(3)]
    kept = checked_episode(data, "episode").robots["observation_history"]
    assert kept[1][5] == small["recorded"]["obs"][5][1]
    data["robots"]["observation_history"][1][5][0][3] = None
    with pytest.raises(ValueError, match=r"observation_history\[1\]\[5\]\[0\]\[3\] is None"):
        checked_episode(data, "episode")


def test_equality_sees_a_changed_digit_and_ignores_the_name():
    episode = read_episode(SMALL)
    other = Episode(copy.deepcopy(episode.data), "another.json")
    assert episode == other
    other.robots["trajectory"][1][3][0] += 1e-12
    assert episode != other


def _set(*path):
    """Return a function that sets the entry of parsed JSON at ``path[:-1]`` to ``path[-1]``."""

    def damage(data):
        *keys, last, value = path
        functools.reduce(operator.getitem, keys, data)[last] = value

    return damage


def _drop(*path):
    def damage(data):
        *keys, last = path
        del functools.reduce(operator.getitem, keys, data)[last]

    return damage


DAMAGES = {
    "no env": (_drop("env"), "key 'env' is missing"),
    "robots null": (_set("robots", None), "robots is None: give a JSON object"),
    "no seed": (_drop("env", "seed"), "key 'seed' is missing in 'env'"),
    "no xUU": (_drop("robots", "xUU"), "key 'xUU' is missing in 'robots'"),
    "no perception range": (_drop("robots", "perception", "range"), "key 'range' is missing"),
    "no core sense": (_drop("env", "cores", "clockwise"), "key 'clockwise' is missing"),
    "no rewards": (_drop("recorded", "rewards"), "key 'rewards' is missing in 'recorded'"),
    "misspelt": (_set("robots", "goals", []), "key 'goals' in 'robots' is unknown"),
    "env no object": (_set("env", 3), "env is 3: give a JSON object"),
    "seed no number": (_set("env", "seed", "x"), "env.seed is 'x': give a whole number"),
    "flag no boolean": (_set("env", "is_eval_env", 1), "env.is_eval_env is 1: give true or"),
    "width nan": (_set("env", "width", math.nan), "env.width is nan: give a finite number above 0"),
    "width huge": (_set("env", "width", 10**400), "a number of 401 digits"),
    "robots": (
        _set("env", "num_robots", 2),
        r"robots.dt \(length 3\) is .*: give 2 entries",
    ),
    "no robots": (_set("env", "num_robots", 0), "env.num_robots is 0: give a whole number, 1"),
    "dt": (_set("robots", "dt", 1, -0.05), r"robots.dt\[1\] is -0.05: give a finite number above"),
    "N": (_set("robots", "N", 0, 2.5), r"robots.N\[0\] is 2.5: give a whole number, 1 or more"),
    "mass short": (_set("robots", "m", [400, 400]), r"robots.m \(length 2\) .*give 3 entries"),
    "mass small": (_set("robots", "m", 2, 10), r"robots.xDotU\[2\] is 20.*: give less than m\[2\]"),
    "sway mass": (_set("robots", "yDotV", 1, 400.0), r"yDotV\[1\] is 400.0: give less than m\[1\]"),
    "inertia": (_set("robots", "nDotR", 0, 450.0), r"nDotR\[0\] is 450.0: give less than Izz\[0\]"),
    "mass matrix": (
        lambda data: data["robots"].update(yDotR=[0.0, 800.0, 0.0], nDotV=[0.0, 900.0, 0.0]),
        r"robots.yDotR\[1\] is 800.0: .* the mass matrix is singular or indefinite",
    ),
    "thrusts": (_set("robots", "min_thrust", 0, 2000.0), r"robots.min_thrust\[0\] is 2000.0"),
    "start": (_set("robots", "start", 1, [1.0]), r"robots.start\[1\] \(length 1\) .*give 2 entr"),
    "start elsewhere": (
        _set("robots", "start", 1, [1.0, 2.0]),
        r"robots.start\[1\] is \[1.0, 2.0\]: give \[.*\] as at the start of trajectory\[1\]",
    ),
    "heading elsewhere": (_set("robots", "init_theta", 2, 9.0), r"init_theta\[2\] is 9.0: give "),
    "moving": (
        _set("robots", "init_velocity_r", 0, [0.0, 0.0, 0.1]),
        r"init_velocity_r\[0\] is \[0.0, 0.0, 0.1\]: give \[0.0",
    ),
    "under thrust": (_set("robots", "init_right_thrust", 0, 7), r"init_right_thrust\[0\] is 7"),
    "flag as number": (
        _set("robots", "trajectory", 0, 5, 2, True),
        r"trajectory\[0\]\[5\]\[2\] is True: give a finite number",
    ),
    "goal": (_set("robots", "goal", 2, 1, None), r"robots.goal\[2\]\[1\] is None: give a finite"),
    "ratio": (_set("robots", "perception", "r_mean_ratio", 0, 1.5), r"r_mean_ratio\[0\] is 1.5"),
    "action far": (
        _set("robots", "action_history", 0, 3, [0.0, 1.5]),
        r"action_history\[0\]\[3\]\[1\] is 1.5",
    ),
    "action kind": (
        _set("robots", "action_history", 1, 0, 4),
        r"action_history\[1\]\[0\] is 4: give a list",
    ),
    "state short": (
        _set("robots", "trajectory", 0, 5, [1.0]),
        r"trajectory\[0\]\[5\] \(length 1\)",
    ),
    "state inf": (
        _set("robots", "trajectory", 2, 4, 7, math.inf),
        r"trajectory\[2\]\[4\]\[7\] is inf",
    ),
    "states lost": (
        _drop("robots", "trajectory", 1, 9),
        r"trajectory\[1\] \(length 31\) .*give 32",
    ),
    "history": (_set("robots", "observation_history", [[]]), r"observation_history \(length 1\)"),
    "core sense": (
        _set("env", "cores", {"positions": [[1, 2]], "clockwise": [2], "Gamma": [1]}),
        r"env.cores.clockwise\[0\] is 2: give 0 or 1",
    ),
    "buoy radius": (
        _set("env", "obstacles", {"positions": [[1, 2]], "r": []}),
        r"env.obstacles.r \(length 0\)",
    ),
    "reward nan": (
        _set("recorded", "rewards", 4, 1, math.nan),
        r"recorded.rewards\[4\]\[1\] is nan",
    ),
    "dones": (
        _set("recorded", "dones", 0, 0, "no"),
        r"recorded.dones\[0\]\[0\] is 'no': give true",
    ),
    "infos": (
        _set("recorded", "infos", 0, 0, "lost"),
        r"recorded.infos\[0\]\[0\] is 'lost': use",
    ),
    "phi": (
        _set("recorded", "phi", 3, [None]),
        r"recorded.phi\[3\] \(length 1\) is .*: give 3",
    ),
    "no phi": (
        _set("recorded", "apply_colregs", 4, 1, True),
        r"recorded.phi\[3\]\[1\] is None: give the turn in rad",
    ),
    "not seen": (
        _set("recorded", "obs", 28, 2, None),
        r"recorded.obs\[28\]\[2\] is None: give the observation .* robot 2 took 28 decisions",
    ),
    "not seen at first": (_set("recorded", "obs", 0, 1, None), r"recorded.obs\[0\]\[1\] is None"),
    "obs": (
        _set("recorded", "obs", 2, 1, [[1.0], []]),
        r"recorded.obs\[2\]\[1\]\[0\] \(length 1\)",
    ),
    "objects": (_set("recorded", "obs", 2, 0, 1, [[0.0] * 5] * 6), r"give at most the 5 objects"),
    "obs lost": (_drop("recorded", "obs", 3), r"recorded.obs \(length 36\) is .*: give 37 entries"),
    "kind": (_set("recorded", "continuous_action", False), "recorded.continuous_action is False"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named_with_field_value_and_remedy(damage, message, small, tmp_path):
    data = copy.deepcopy(small)
    damage(data)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=message) as error:
        read_episode(path)
    assert str(path) in str(error.value)
    assert ": " in str(error.value)


def test_a_discrete_action_outside_the_choices_is_refused(tmp_path):
    data = json.loads(DISCRETE.read_text())
    data["robots"]["action_history"][2][7] = 25
    with pytest.raises(ValueError, match=r"action_history\[2\]\[7\] is 25: .* from 0 to 24"):
        checked_episode(data, "episode")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged"),
        (b'{"env": {', "is damaged"),
        (b"\xff\xfe\x00", "is damaged"),
        (b"[1, 2]", r"the whole file is \[1, 2\]: give a JSON object"),
        (b"[" * 100_000, "is damaged"),
    ],
    ids=["empty", "cut off", "no text", "no object", "too deep"],
)
def test_an_unreadable_file_is_named(content, message, tmp_path):
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_episode(path)
    assert str(path) in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nothing\.json' cannot be read .*: give the path"):
        read_episode(tmp_path / "nothing.json")


def test_a_refused_episode_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "episode.json"
    path.write_text("old")
    episode = read_episode(SMALL)
    del episode.robots["trajectory"][0][-1]
    with pytest.raises(ValueError, match=r"trajectory\[0\] \(length 36\)"):
        write_episode(episode, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["episode.json"]


def test_writing_where_nothing_can_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be written .*: give a file in a writable"):
        write_episode(read_episode(SMALL), tmp_path / "no" / "folder.json")
