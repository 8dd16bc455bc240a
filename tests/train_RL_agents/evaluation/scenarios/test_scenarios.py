"""Scenarios from files, in the simulator, and on the command line."""

import dataclasses

import pytest
import torch
import yaml

from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.state import Slots
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.faults import ThrusterConfig
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper
from marinenav_env.water import StreamConfig
from tests.train_RL_agents.policy_samples import EPISODES, save_policy, table_of
from train_RL_agents import evaluate
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.files import find_scenarios, read_scenarios
from train_RL_agents.evaluation.scenarios.scenes import place_scenarios, stages_of
from train_RL_agents.evaluation.scenarios.schema import DISTURBANCES, Buoy, Scenario, Vessel, Vortex
from train_RL_agents.evaluation.steering import hold as keep

STRAIGHT = Vessel((0.0, 0.0), (30.0, 0.0), speed=2.5)
CROSSING = Vessel((20.0, 30.0), (20.0, -30.0), heading_deg=270.0, speed=2.0, steer="straight")


def evaluation(*scenarios, repeats=None, discrete=False):
    settings = {"seed": 1, "config": EnvConfig(), "discrete": discrete}
    return ScenarioEvaluation(scenarios, repeats, **settings)


def test_a_vessel_that_changes_no_thrust_holds_course_and_speed():
    results = evaluation(Scenario("alone", (STRAIGHT,), repeats=2)).run(keep)
    (row,) = results.rows
    vessels = row.measures.vessels
    assert row.success == 1.0
    assert vessels["path"].tolist() == pytest.approx([28.75, 28.75])  # 23 decisions of 1.25 m
    assert vessels["time"].tolist() == [11.5, 11.5]


def test_scripted_vessels_meet_as_computed():
    """Course crosses course 20 m ahead: own there after 8 s, the other after 15 s."""
    results = evaluation(Scenario("two", (STRAIGHT, CROSSING), repeats=1)).run(keep)
    assert results.measures.vessels["robot"].tolist() == [0]  # the scripted one is not judged
    assert results.rules["encounters"] == 1
    rows = results.measures.encounters
    assert (rows["own"].tolist(), rows["other"].tolist()) == ([0], [1])
    assert rows["beta0"].item() > 0 > rows["alpha0"].item()
    # Nearest at (-20, -30) . (-2.5, -2) / (2.5^2 + 2^2) = 10.73 s, 10.93 m between centres.
    assert rows["least_distance"].item() == pytest.approx(10.93, abs=0.01)
    assert rows["turn"].item() == pytest.approx(0.0, abs=1e-3)


def test_only_the_policys_vessels_are_steered():
    def circle(observation):
        action = keep(observation)
        action[..., 0] = 1.0
        return action

    recording = Recording()
    evaluation(Scenario("two", (STRAIGHT, CROSSING), repeats=1)).run(circle, recording)
    action = recording.tracks(0).action[:20, 0]
    assert torch.equal(action[..., 0], torch.tensor([[1.0, 0.0]]).expand(20, 2))
    assert not action[..., 1].any()


def test_offsets_differ_and_repeat():
    scenario = Scenario("two", (STRAIGHT, CROSSING), repeats=3, offset_m=0.5, offset_deg=5.0)
    first, second = (evaluation(scenario).run(keep).measures for _ in range(2))
    paths = first.vessels["direct"].tolist()
    assert len(set(paths)) == 3
    assert paths == second.vessels["direct"].tolist()


def test_index_policies_steer_too():
    def accelerate(observation):
        return torch.full(observation.ego.shape[:-1], 18, dtype=torch.int64)

    scenario = Scenario("two", (STRAIGHT, CROSSING), repeats=2)
    results = evaluation(scenario, discrete=True).run(accelerate)
    assert torch.all(results.measures.vessels["time"] < 11.5)


def test_disturbances_of_a_scenario_are_its_own():
    """Vessels that hold their thrust: 2.5 m/s through the water, north as the stream."""
    north = StreamConfig(speed=(0.5, 0.5), direction=(0.0, 0.0))
    scenarios = [
        Scenario("stream", (STRAIGHT,), repeats=2, stream=north),
        Scenario("still", (STRAIGHT,), repeats=1),
        Scenario("again", (STRAIGHT,), repeats=1, stream=north),
        Scenario("weak", (STRAIGHT,), repeats=1, thrusters=ThrusterConfig(loss_probability=1.0)),
    ]
    recording = Recording()
    results = evaluation(*scenarios).run(keep, recording)
    times = [row.measures.vessels["time"].tolist() for row in results.rows[:3]]
    assert times == [[9.5, 9.5], [11.5], [9.5]]  # 28 m at 3 and at 2.5 m/s
    assert results.rows[3].success == 0.0
    assert results.measures.vessels["time"].tolist()[:4] == [9.5, 9.5, 11.5, 9.5]
    lengths = [len(recording.tracks(world).acted) for world in range(4)]
    assert lengths == [19, 19, 23, 19]


def test_a_scenario_may_give_every_disturbance():
    groups = {field.name for field in dataclasses.fields(EnvConfig)}
    fixed = {"vessel", "colregs", "reward", "current", "scenario", "episode"}
    assert groups - fixed == set(DISTURBANCES)


def test_disturbances_in_a_file(tmp_path):
    content = SHORT | {"wind": {"speed": [3, 5]}, "perception": {"range": 12.0}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(content))
    (scenario,) = read_scenarios(tmp_path / "s.yaml")
    config = scenario.env_config(EnvConfig(stream=StreamConfig(speed=(0.1, 0.1))))
    assert config.wind.speed == (3.0, 5.0)
    assert config.perception == PerceptionConfig(range=12.0)
    assert config.stream.speed == (0.1, 0.1)  # the policy's


def test_a_recorded_episode_begins_as_it_did():
    path = EPISODES / "calm_policy_5r_4o.json"
    (scenario,) = find_scenarios(str(path))
    known = tracks_of(read_episode(path))
    env = MarineNavEnv(
        2,
        stages=stages_of([scenario]),
        config=EnvConfig(perception=PerceptionConfig().noiseless()),
        dtype=torch.float64,
        slots=Slots(6, 4, 0),
    )
    place_scenarios(env, torch.zeros(2, dtype=torch.int64))
    seen = Stepper(env, restarts=False).observe().obs
    assert torch.equal(env.state.world_field("robots")[:2], torch.full((2,), 5).int())
    for own, recorded in zip(seen, known.observation, strict=True):
        torch.testing.assert_close(own[1, :5], recorded[0, 0], rtol=1e-6, atol=1e-5)


def test_a_vessel_at_rest_drifts_with_the_current():
    vortices = (Vortex((10.0, 5.0), circulation=9.0), Vortex((-3.0, 0.2), circulation=-6.0))
    scenario = Scenario("stream", (Vessel((0.0, 0.0), (30.0, 0.0)),), vortices=vortices)
    env = MarineNavEnv(
        1,
        stages=stages_of([scenario]),
        dtype=torch.float64,
    )
    place_scenarios(env, torch.zeros(1, dtype=torch.int64))
    place, over_ground = (
        [env.state.robot_field(name)[:, :1] for name in names]
        for names in (("x", "y"), ("vx", "vy"))
    )
    known = ops.water(env.state, torch.stack(place, -1))
    assert known.norm() > 0.2
    torch.testing.assert_close(torch.stack(over_ground, -1), known)


SHORT = {"name": "a", "vessels": [{"start": [0, 0], "goal": [30, 0]}]}


def vessel(**changes):
    return SHORT | {"vessels": [SHORT["vessels"][0] | changes]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("vessels: [", "is damaged"),
        ([], "is empty"),
        ("", r"s.yaml\[0\].name is missing: give it"),
        ({"name": "a"}, r"s.yaml\[0\].vessels is missing: give it"),
        (
            {"name": "a", "vessels": [{"start": [0, 0]}]},
            r"s.yaml\[0\].vessels\[0\].goal is missing: give it",
        ),
        ("name: a\nvessels: []\nbuoys: []\nvessels: []", r"duplicate key vessels\n.* line 4,"),
        ("- name: a\n- {name: b, vessels: [{start: 1, start: 2}]}", r"key start\n.* line 2,"),
        (SHORT | {"vessel": []}, r"unknown setting .*vessel': the nearest valid one is .*vessels'"),
        (SHORT | {"obstacles": []}, r"obstacles': choose one of name, vessels, buoys, vortices, "),
        (vessel(name=" "), r"vessels\[0\].name is ' ': give a text that is not empty, or leave it"),
        (
            SHORT | {"vessels": [SHORT["vessels"][0] | {"name": "ferry"}] * 2},
            r"s.yaml\[0\].vessels\[1\].name is 'ferry': vessels\[0\] has it too; give another",
        ),
        (vessel(start=[0]), r"s.yaml\[0\].vessels\[0\].start is \[0\]: give 2 values"),
        (vessel(start=[0, float("nan")]), r"vessels\[0\].start is nan: give a finite number"),
        (vessel(speed=-1), r"vessels\[0\].speed is -1.0: give 0.0 or more"),
        (vessel(steer="straight"), r"vessels is .*: give at least one that has steer: policy"),
        (SHORT | {"repeats": 0}, "repeats is 0: give 1 or more"),
        ([SHORT, SHORT], "give every scenario one of its own"),
        (SHORT | {"wind": {"sped": 1}}, r"'s.yaml\[0\].wind.sped': the nearest .*wind.speed'"),
        (SHORT | {"waves": {"height": 3}}, r"s.yaml\[0\].waves.height is 3.0: give 0.3 or less"),
        (SHORT | {"stream": 0.5}, r"s.yaml\[0\].stream is 0.5: give a section with the keys"),
        (SHORT | {"thrusters": {"loss_time": [5, 1]}}, "loss_time .*: give the lower end first"),
    ],
)
def test_files_that_are_refused(tmp_path, content, message):
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_scenarios(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vessels": (STRAIGHT, STRAIGHT)}, r"vessels\[1\].start .* touches vessels\[0\].start"),
        ({"vessels": (Vessel((0, 0), (1, 1)),)}, r"vessels\[0\].goal is .*within 2.0 m"),
        (
            {"vessels": (Vessel((0, 0), (30, 0)),), "buoys": (Buoy((31.7, 0.0), 1.0),)},
            r"vessels\[0\].goal is .*, where buoys\[0\] lies at",
        ),
        ({"vessels": (Vessel((0, 0), (9, 9), speed=4.0),)}, r"vessels\[0\].speed is 4.0"),
        (
            {"vessels": (Vessel((0, 0), (9, 9), speed=4.0, name="tug"),)},
            r"vessels\[0\] \(tug\).speed is 4.0",
        ),
        (
            {"vessels": (STRAIGHT, Vessel((9, 9), (1, 1), steer="pilot"))},
            r"vessels\[1\].steer is 'pilot': choose one of policy, straight",
        ),
    ],
)
def test_scenarios_that_cannot_be_played(changes, message):
    with pytest.raises(ConfigError, match=f"scenario 'a': {message}"):
        evaluation(Scenario("a", **changes))


def test_names_of_sets_cases_and_files(tmp_path):
    assert len(find_scenarios("imazu")) == 22
    assert [scenario.name for scenario in find_scenarios("GW45")] == ["GW45"]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump([SHORT]))
    assert find_scenarios(str(tmp_path / "own.yaml"))[0].name == "a"
    with pytest.raises(ConfigError, match="is no set, case or file: the nearest name is 'imazu'"):
        find_scenarios("imasu")


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 20)
    save_policy(tmp_path / "policy.pt", "AC-IQN")
    arguments = ["--checkpoint", str(tmp_path / "policy.pt"), "--scenario", "singles"]
    arguments += ["--against", str(tmp_path / "policy.pt"), "--episodes", "2"]
    table = table_of(tmp_path, *arguments)
    assert [row["scenario"] for row in table["scenarios"]][:2] == ["HO", "HO+o"]
    assert all(row["episodes"] == 2 for row in table["scenarios"])
    assert table["rules"]["score"] == "v1"
    assert len(table["against"]["paired"]) == 9
    printed = capsys.readouterr().out
    assert "rules, score v1" in printed
    assert "…" not in printed  # nothing is cut off at 80 columns
    assert evaluate.main(["--checkpoint", str(tmp_path / "policy.pt"), "--scenario", "x"]) == 1
    assert "scenario is 'x'" in capsys.readouterr().err
