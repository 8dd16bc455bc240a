"""Recorded episodes of a policy replay, with and without noise, for both kinds of actions."""

import argparse
import json

import numpy as np
import pytest

from marinenav_env.envs.icra2024 import Icra2024Config
from marinenav_env.envs.ranging import BeamConfig, BeamsConfig
from marinenav_env.episodes.format import read_episode
from scripts import episode as program
from scripts.episodes import plot
from scripts.episodes.record import adapted
from tests.train_RL_agents.policy_samples import save_policy


def recording(checkpoint, output, *options):
    arguments = ["--checkpoint", str(checkpoint), "--output", str(output), "--limit", "40"]
    return ["record", *arguments, "--seed", "4", *options]


def record(*arguments):
    return program.main(recording(*arguments))


@pytest.mark.parametrize("noise", ["--noise", "--no-noise"])
@pytest.mark.parametrize("name", ["AC-IQN", "SAC", "Rainbow"])
def test_what_is_recorded_replays(tmp_path, capsys, name, noise):
    checkpoint, folder = save_policy(tmp_path / "policy.pt", name), tmp_path / "episodes"
    assert record(checkpoint, folder, "--vortices", "4", "--episodes", "3", noise) == 0
    files = [str(folder / f"episode_4_{index}.json") for index in range(3)]
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in printed] == files
    for file, line in zip(files, printed, strict=True):
        episode = read_episode(file)
        parts = (episode.lengths, episode.env["cores"]["Gamma"], episode.env["obstacles"]["r"])
        counts = tuple(map(len, parts))
        assert counts == (5, 4, 4)
        assert episode.recorded["continuous_action"] == (name != "Rainbow")
        assert line.partition(": ")[2].startswith(f"{episode.decisions} decisions; ")
        assert sum(int(part.split()[0]) for part in line.split("; ")[1].split(", ")) == 5
    assert program.main(["replay", *files]) == 0
    verdicts = capsys.readouterr().out.splitlines()[1:5]
    compares_observations = [line.split()[5] != "-" for line in verdicts]
    assert compares_observations == [noise == "--no-noise"] * 4
    assert program.main(["replay", *files, "--dtype", "float32"]) == 0


def test_a_scenario_is_the_same_whatever_their_number(tmp_path):
    checkpoint = save_policy(tmp_path / "policy.pt", "AC-IQN")
    assert record(checkpoint, tmp_path / "one.json", "--stage", "2") == 0
    assert record(checkpoint, tmp_path, "--stage", "2", "--episodes", "2") == 0
    one, same, other = (
        read_episode(tmp_path / name)
        for name in ("one.json", "episode_4_0.json", "episode_4_1.json")
    )
    assert len(one.lengths) == 4
    for key in ("start", "goal", "init_theta"):
        assert one.robots[key] == same.robots[key] != other.robots[key]
    pairs = zip(one.robots["action_history"], same.robots["action_history"], strict=True)
    for first, second in pairs:
        np.testing.assert_allclose(first, second, atol=1e-3)


def test_no_noise_is_that_of_a_scenario_that_has_its_own_sensor_too(tmp_path):
    checkpoint = save_policy(tmp_path / "policy.pt", "AC-IQN")
    vessel = {"start": [0, 0], "goal": [30, 0]}
    content = {"name": "near", "vessels": [vessel], "perception": {"range": 12.0}}
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    files, worlds = [], ["--scenario", str(tmp_path / "s.yaml"), "--seed", "4"]
    for noise in ("--noise", "--no-noise"):
        files.append(tmp_path / f"{noise}.json")
        command = ["record", "--checkpoint", str(checkpoint), *worlds, noise, "--limit", "3"]
        assert program.main([*command, "--output", str(files[-1])]) == 0
    seen = [read_episode(file).data["robots"]["perception"] for file in files]
    assert [one["pos_std"] for one in seen] == [[0.05], [0.0]]
    assert [one["range"] for one in seen] == [[12.0], [12.0]]


def test_a_shield_guards_the_policy(tmp_path, capsys, refused):
    checkpoint = save_policy(tmp_path / "policy.pt", "AC-IQN")
    assert record(checkpoint, tmp_path / "bare.json", "--no-noise") == 0
    guarded = (tmp_path / "guarded.json", "--no-noise", "--shield", "margin_m=1")
    assert record(checkpoint, *guarded) == 0
    assert "changed, " in capsys.readouterr().out
    bare, other = (read_episode(tmp_path / f"{name}.json") for name in ("bare", "guarded"))
    assert bare.robots["start"] == other.robots["start"]
    assert bare.robots["action_history"] != other.robots["action_history"]
    assert program.main(["replay", str(tmp_path / "guarded.json")]) == 0
    wrong = recording(checkpoint, tmp_path / "x.json", "--shield", "margin_m=-1")
    refused(program.main, wrong, "margin_m")


def test_bad_input(tmp_path, refused):
    checkpoint = save_policy(tmp_path / "policy.pt", "AC-IQN")
    output = tmp_path / "x.json"
    for path, options, message in (
        (tmp_path / "none.pt", (), "no checkpoint"),
        (checkpoint, ("--robots", "200"), "200 robots do not fit the map"),
        (checkpoint, ("--min-distance", "90"), "starts and goals lie at most"),
        (checkpoint, ("--robots", "0"), "Stage.robots is 0"),
    ):
        refused(program.main, recording(path, output, *options), message)
        assert not output.exists()
    for name, message in (
        ("no/x.json", "its folder is missing, make it"),
        ("x.csv", "x.csv' ends in '.csv': give a folder, new ones without an ending, or a file"),
        ("folder.npz", "folder.npz' is no file: give the name of one"),
        ("file", "file' is a file: give a folder, new ones without an ending, or a file"),
    ):
        (tmp_path / "folder.npz").mkdir(exist_ok=True)
        (tmp_path / "file").touch()
        refused(program.main, recording(checkpoint, tmp_path / name), message, status=2)
    for options, message in (
        (("--episodes", "0"), "give 1 or more"),
        (("--stage", "one"), "give the number of a stage of the task"),
        (("--episodes", "2"), "is one file for 2 episodes: give a folder"),
    ):
        refused(program.main, recording(checkpoint, output, *options), message, status=2)


def test_files_that_would_not_replay_are_refused(tmp_path, refused):
    env = {"wind": {"speed": [3.0, 4.0]}}
    checkpoint, output = save_policy(tmp_path / "policy.pt", "AC-IQN", env=env), tmp_path / "x.json"
    message = "env.wind.speed is (3.0, 4.0): the episode format has no place for it"
    refused(program.main, recording(checkpoint, output), message)
    assert not output.exists()


def test_a_boat_of_one_s_own_is_recorded_and_replays(tmp_path):
    boat = "{length: 3.5, mass: 180, transport_term: true, max_thrust_rate: 240}"
    checkpoint, output = save_policy(tmp_path / "policy.pt", "AC-IQN"), tmp_path / "own.json"
    command = recording(checkpoint, output, f"env.vessel={boat}", "--no-noise")
    assert program.main(command) == 0
    robots = read_episode(output).robots
    assert robots["vessel"] == ["wamv16"] * len(robots["vessel"])
    assert (robots["maxThrustRate"][0], robots["transportTerm"][0]) == (240.0, True)
    assert program.main(["replay", str(output)]) == 0


DISTURBED = (
    *("env.wind.speed=[5,5]", "env.wind.gust_std=1", "env.stream.speed=[0.3,0.3]"),
    *("env.waves.height=0.2", "env.thrusters.loss_probability=0.5", "env.perception.miss=0.1"),
)


def test_an_archive_holds_episodes_of_any_water(tmp_path, capsys):
    checkpoint, file = save_policy(tmp_path / "policy.pt", "AC-IQN"), tmp_path / "rough.npz"
    stages = ("--stage", "2,1,3,20", "--stage", "1", "--episodes", "2")
    assert record(checkpoint, file, *stages, *DISTURBED) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{file}: 4 episodes; ")
    data = np.load(file)
    assert data["position"].shape[::3] == (4, 2)
    assert data["label"].tolist() == ["2 robots, 3 buoys, 1 vortex"] * 2 + ["3 robots, 0 buoys"] * 2
    np.testing.assert_allclose(np.hypot(*data["wind"].T), 5.0)
    assert set(data["thruster_loss"][data["present"][:, 0], 1]) <= {-1.0, 0.0, 1.0}


def test_an_archive_has_the_episodes_of_the_files(tmp_path):
    checkpoint, file = save_policy(tmp_path / "policy.pt", "Rainbow"), tmp_path / "x.npz"
    zones = "env.colregs.margin=2"
    assert record(checkpoint, file, "--episodes", "2", zones) == 0
    assert record(checkpoint, tmp_path / "files", "--episodes", "2") == 0
    data = np.load(file)
    for index in range(2):
        episode = read_episode(tmp_path / "files" / f"episode_4_{index}.json")
        for robot, length in enumerate(episode.lengths):
            assert data["present"][index, :, robot].sum() == length + 1
            states = np.array(episode.robots["trajectory"][robot])
            np.testing.assert_array_equal(
                data["position"][index, : length + 1, robot], states[:, :2]
            )
            actions = data["action"][index, :length, robot].tolist()
            assert actions == episode.robots["action_history"][robot]


def test_an_archive_of_scenarios_and_of_range_finders(tmp_path):
    file = tmp_path / "x.npz"
    windy = tmp_path / "windy.yaml"
    windy.write_text(ASTRAY + "wind: {speed: [3, 3]}\n")
    worlds = ["--checkpoint", "baseline:goal-straight", "--scenario", str(windy)]
    assert program.main(["record", *worlds, "--output", str(file)]) == 0
    data = np.load(file)
    assert (data["label"].tolist(), data["steer"].tolist()) == (
        ["astray"],
        [["policy", "straight"]],
    )
    assert data["reached"].any(1).tolist() == [[True, False]]
    assert data["present"].sum(1).tolist() == [[len(data["time"])] * 2]
    sectors = ["--checkpoint", "pretrained/sectors_dqn", "--limit", "5"]
    assert program.main(["record", *sectors, "--output", str(file)]) == 0
    assert len(np.load(file)["time"]) == 6


def test_zones_that_only_the_reward_knows_are_recorded_as_published(tmp_path, capsys, refused):
    env = {"colregs": {"head_on_x_max": 22.0}, "reward": {"colregs": -3.0}}
    checkpoint, output = save_policy(tmp_path / "policy.pt", "AC-IQN", env=env), tmp_path / "x.json"
    assert record(checkpoint, output) == 0
    assert "note: the rules of the road apply in the published zones" in capsys.readouterr().err
    assert program.main(["replay", str(output)]) == 0
    plain = save_policy(tmp_path / "plain.pt", "AC-IQN")
    assert record(plain, tmp_path / "plain.json") == 0
    assert "note" not in capsys.readouterr().err
    first, second = map(read_episode, (output, tmp_path / "plain.json"))
    assert first.robots["trajectory"] == second.robots["trajectory"]
    message = "env.colregs.margin is 2.0, env.colregs.head_on_x_max is 22.0: the episode format"
    for setting in ("env.colregs.margin=2", "env.colregs={margin: 2.0}"):
        refused(program.main, recording(checkpoint, output, setting), message)


def test_several_stages_and_scenarios(tmp_path, capsys):
    checkpoint = save_policy(tmp_path / "policy.pt", "AC-IQN")
    stages = ["--stage", "2,1,3,20", "--stage", "1"]
    assert record(checkpoint, tmp_path / "stages", *stages, "--episodes", "2") == 0
    files = [tmp_path / "stages" / f"episode_4_{index}.json" for index in range(4)]
    counts = [(len(e.lengths), len(e.env["obstacles"]["r"])) for e in map(read_episode, files)]
    assert counts == [(2, 3), (2, 3), (3, 0), (3, 0)]
    assert "3 robots, 0 buoys; " in capsys.readouterr().out
    assert record(checkpoint, tmp_path / "ho.json", "--scenario", "HO-scripted") == 0
    assert "HO-scripted; " in capsys.readouterr().out
    known = read_episode(tmp_path / "ho.json")
    np.testing.assert_allclose(known.robots["start"], [[-20, 0], [20, 0]], atol=1e-9)
    other = np.array(known.robots["trajectory"][1])  # holds course and speed
    np.testing.assert_allclose(other[:, 1], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.diff(other[:, 0]), -1.25, atol=1e-9)
    assert program.main(["replay", *map(str, files), str(tmp_path / "ho.json")]) == 0


ASTRAY = """
name: astray
vessels:
  - {start: [0, 0], goal: [20, 0], speed: 2.5}
  - {start: [60, 0], goal: [60, 60], speed: 2.5, steer: straight}
"""


def test_an_episode_ends_with_the_vessels_of_the_policy(tmp_path, capsys, monkeypatch):
    """The scripted vessel leaves its goal aside, and would sail to the limit."""
    scenario, file = tmp_path / "astray.yaml", tmp_path / "astray.json"
    scenario.write_text(ASTRAY)
    worlds = ["--checkpoint", "baseline:goal-straight", "--scenario", str(scenario)]
    assert program.main(["record", *worlds, "--output", str(file)]) == 0
    assert capsys.readouterr().out.endswith(" decisions; 1 x reach goal\n")
    episode = read_episode(file)
    assert episode.robots["steer"] == ["policy", "straight"]
    assert episode.lengths[0] == episode.lengths[1] < 40
    assert episode.recorded["infos"][-1] == ["reach goal", "normal"]
    assert program.main(["replay", str(file)]) == 0
    capsys.readouterr()
    assert program.main(["score", str(file)]) == 0
    safety = json.loads(capsys.readouterr().out)["safety"]
    assert (safety["vessel_episodes"], safety["robot_success"]["value"]) == (1, 1.0)
    drawn = []
    monkeypatch.setattr(plot, "plot_scene", lambda scene, _: drawn.append(scene))
    monkeypatch.setattr(plot, "save_figure", lambda *_: None)
    assert program.main(["plot", *worlds, "--output", str(tmp_path / "x.png")]) == 0
    assert [len(path) for path in drawn[0].paths] == [episode.decisions + 1] * 2


def test_what_steers_the_traffic_is_in_the_file(tmp_path):
    other = save_policy(tmp_path / "other.pt", "SAC")
    for traffic, name in (("orca", "orca"), (other, f"policy {other}")):
        command = ["--stage", "3,0,0,30", "--traffic", str(traffic)]
        assert record("baseline:goal-straight", tmp_path / "x.json", *command) == 0
        assert set(read_episode(tmp_path / "x.json").robots["steer"]) == {"policy", name}
    assert record("baseline:goal-straight", tmp_path / "x.json") == 0
    assert "steer" not in read_episode(tmp_path / "x.json").robots


def test_worlds_that_files_do_not_hold(tmp_path, refused):
    checkpoint, output = save_policy(tmp_path / "policy.pt", "AC-IQN"), tmp_path / "x.json"
    for options, message in (
        (["env.wind.speed=[3,3]"], "env.wind.speed is (3.0, 3.0): the episode format has no place"),
        (["env.wind.sped=[3,3]"], "unknown setting 'env.wind.sped'"),
        (["--scenario", "singels"], "nearest name is 'singles'"),
    ):
        refused(program.main, recording(checkpoint, output, *options), message)
    for option, message in (("--robots", "--scenario has its own"), ("--stage", "not allowed")):
        command = recording(checkpoint, output, "--scenario", "HO", option, "1")
        refused(program.main, command, message, status=2)
    replay = ["replay", "x.json", "env.wind.speed=3"]
    refused(program.main, replay, "is for record and plot", status=2)
    assert not output.exists()


def test_no_noise_leaves_out_noise_and_faults_of_any_sensor():
    faulty = BeamsConfig(perception=BeamConfig(range=8.0, miss=0.1, range_std=0.1))
    for noise, perception in ((True, faulty.perception), (False, BeamConfig(range=8.0))):
        adapt = adapted(argparse.Namespace(limit=50, noise=noise))
        assert adapt(faulty).perception == perception
        assert adapt(Icra2024Config()).perception == Icra2024Config().perception


VESSELS = "vessels: [{start: [0, 0], goal: [40, 0]}]"
WINDS = {"a": "wind: {speed: [3.0, 3.0]}", "b": "wind: {speed: [5.0, 5.0]}"}


def test_a_scenario_names_the_section_that_files_do_not_hold(tmp_path, refused):
    scenario, output = tmp_path / "windy.yaml", tmp_path / "x.json"
    sections = "perception: {range: 15.0}\nwind: {speed: [3.0, 3.0]}"
    scenario.write_text(f"name: windy\n{VESSELS}\n{sections}\n")
    command = recording("baseline:goal-straight", output, "--scenario", str(scenario))
    wrong, remedy = (
        "env.wind.speed is (3.0, 3.0): the",
        ", or remove the section wind of 'windy' from",
    )
    said = refused(program.main, command, wrong, f"{remedy} {str(scenario)!r} for the recording")
    assert "set env" not in said
    scenario.write_text(f"name: calm\n{VESSELS}\n{sections.splitlines()[0]}\n")
    assert program.main(command) == 0


def test_scenarios_of_a_file_whose_disturbances_differ(tmp_path, refused):
    scenario = tmp_path / "harbour.yaml"
    both = (f"- {{name: {name}, {VESSELS}, {wind}}}" for name, wind in WINDS.items())
    scenario.write_text("\n".join(both))
    command = ["plot", "--checkpoint", "baseline:goal-straight", "--scenario", str(scenario)]
    message = "in which disturbances differ: put one of its scenarios into a file of its own"
    refused(program.main, command, message, status=2)
