"""Policies among vessels that they do not steer, and are judged by their own."""

import math
import re

import pytest
import torch
import yaml

from marinenav_env.config import EnvConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.episodes.format import read_episode
from scripts import episode
from tests.conftest import ROOT
from tests.train_RL_agents.policy_samples import save_policy, table_of
from train_RL_agents import evaluate
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.baselines.registry import Baseline
from train_RL_agents.evaluation.episodes import Batch, Evaluation
from train_RL_agents.evaluation.recording import Recording
from train_RL_agents.evaluation.report.playback import pack_episode
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.files import read_scenarios
from train_RL_agents.evaluation.scenarios.schema import Scenario, Vessel
from train_RL_agents.evaluation.steering import hold, traffic_robots
from train_RL_agents.policies.load import load_policy

STAGES = [Stage(3, 0, 0, 30.0), Stage(5, 0, 4, 40.0)]
goal_straight = Baseline("goal-straight").act
OWN = Vessel((0.0, 0.0), (30.0, 0.0), speed=2.5)


def evaluation(**options):
    config = options.pop("config", EnvConfig())
    return Evaluation(STAGES, (20, 20), seed=1, config=config, discrete=False, **options)


def played(*scenarios, act=hold, recording=None):
    worlds = {"seed": 1, "config": EnvConfig(), "discrete": False}
    return ScenarioEvaluation(scenarios, 2, **worlds).run(act, recording)


def test_outcomes_of_all_robots_are_those_of_the_core():
    """A batch with traffic of no vessel judges by the robots' own sums, the other by the core's."""
    env = evaluation().env
    nobody = torch.zeros(env.worlds, env.robots, dtype=torch.bool)
    batches = Batch(env, seed=1), Batch(env, seed=1, steering=[(nobody, hold)])
    (known, whole), (found, own) = (batch.play(goal_straight) for batch in batches)
    assert 0.0 < known.success.double().mean() < 1.0
    for name, expected, value in zip(known._fields, known, found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-3, msg=name)
    assert all(torch.equal(column, own.vessels[name]) for name, column in whole.vessels.items())


def test_every_other_vessel_is_the_controllers_and_the_rest_is_judged():
    tested = evaluation(traffic=goal_straight)
    robots = traffic_robots(1.0, 40, 5)
    first, second = tested.run(hold)
    assert (first.success, second.success) == (0.0, 0.0)  # its own vessels stay where they are
    vessels = first.measures.vessels
    judged = torch.zeros(20, 5, dtype=torch.bool)
    judged[vessels["world"], vessels["robot"].long()] = True
    assert torch.equal(judged, ~robots[:20] & (torch.arange(5) < 3))
    assert {int(own) for own in judged.sum(1)} == {1, 2}
    first, second = tested.run(goal_straight)
    assert first.success > 0.3
    moving = evaluation(traffic=hold).run(goal_straight)[0]
    assert moving.success != first.success  # who holds a thrust of 0 is where it was


def test_a_share_of_the_worlds_has_traffic():
    robots = traffic_robots(0.25, 400, 5)
    among = robots.any(1)
    assert int(among.sum()) == 100
    assert set(robots[among].sum(1).tolist()) == {2, 3}
    assert torch.equal(robots[among][:, 1:], ~robots[among][:, :-1])  # every other one
    assert 30 < int(robots[:, 0].sum()) < 70
    stages = torch.arange(400) % 6
    counts = torch.bincount(stages[among], minlength=6)
    assert counts.min() > 5  # of each of what comes in turns


def test_what_others_do_to_each_other_is_not_the_policys_failure():
    """Two hit each other 60 m away, one leaves its goal aside: the own vessel arrives."""
    far = Vessel((100.0, 0.0), (200.0, 0.0), speed=2.5, steer="straight")
    meeting = Vessel((130.0, 0.0), (0.0, 60.0), 180.0, 2.5, "straight")
    astray = Vessel((-100.0, 0.0), (-50.0, 0.0), 180.0, 2.5, "straight")
    recording = Recording()
    vessels = (OWN, far, meeting, astray)
    (row,) = played(Scenario("they collide", vessels), recording=recording).rows
    tracks = recording.tracks(0)
    assert len(tracks.acted) == 23  # till its own vessel has ended
    assert tracks.own.tolist() == [[True, False, False, False]]
    alone = played(Scenario("alone", (OWN,))).rows[0]
    for name in ("success", "collision", "timeout", "mean_time_s", "mean_energy"):
        assert row.as_json()[name] == pytest.approx(alone.as_json()[name], rel=1e-4), name
    assert row.success == 1.0
    assert row.measures.vessels["time"].tolist() == alone.measures.vessels["time"].tolist()


def test_a_world_in_which_no_vessel_of_the_policy_found_room_is_no_success():
    """In 1 of 400 worlds on a map that is hardly wide enough the traffic is alone."""
    wide = Stage(2, 0, 0, 52.0)
    settings = {"seed": 1, "config": EnvConfig(), "discrete": False}
    recording = Recording()
    (row,) = Evaluation([wide], (400,), **settings, traffic=goal_straight).run(
        goal_straight, recording
    )
    judged = set(row.measures.vessels["world"].tolist())
    (alone,) = set(range(400)) - judged
    ends = (row.outcomes.success, row.outcomes.collision, row.outcomes.timeout)
    assert not any(flag[alone] for flag in ends)
    table = row.as_json()
    assert all(math.isfinite(table[f"mean_{name}"]) for name in ("time_s", "energy", "return"))
    assert len(recording.tracks(alone).acted) == 0
    pack_episode(recording.tracks(alone), EnvConfig())


def test_a_collision_with_another_is_the_policys_failure():
    meeting = Vessel((20.0, 0.0), (-30.0, 0.0), 180.0, 2.5, "straight")
    (row,) = played(Scenario("head-on", (OWN, meeting))).rows
    assert (row.success, row.as_json()["collision"], row.as_json()["timeout"]) == (0.0, 1.0, 0.0)


def test_the_scenario_of_the_page_can_succeed(tmp_path):
    page = (ROOT / "docs" / "evaluation.md").read_text()
    (text,) = re.findall(r"```yaml\n(name: crossing.*?)```", page, flags=re.DOTALL)
    assert yaml.safe_load(text)["vessels"][1]["steer"] == "straight"
    file = tmp_path / "page.yaml"
    file.write_text(text)
    agent, _ = load_policy(str(ROOT / "pretrained" / "iqn_rules"))
    worlds = {"seed": 1, "config": EnvConfig(), "discrete": agent.discrete}
    (row,) = ScenarioEvaluation(read_scenarios(file), 20, **worlds).run(agent.act).rows
    assert row.success > 0.8


def test_episodes_with_traffic_are_recorded_and_drawn(tmp_path, refused):
    """In the first world the first of three vessels is the controller's, or the second."""
    policy, files = str(save_policy(tmp_path / "policy.pt", "DDPG")), []
    worlds = ["--checkpoint", policy, "--stage", "1", "--limit", "6"]
    for traffic in ([], ["--traffic", "goal-straight"]):
        files.append(tmp_path / f"{len(traffic)}.json")
        assert episode.main(["record", *worlds, *traffic, "--output", str(files[-1])]) == 0
    alone, among = (read_episode(file).robots["action_history"] for file in files)
    others = [bool(flag) for flag in traffic_robots(1.0, 1, 3)[0]]
    first = [one[0] != other[0] for one, other in zip(alone, among, strict=True)]
    assert first == others
    drawn = tmp_path / "drawn.png"
    assert episode.main(["plot", *worlds, "--traffic", "orca", "--output", str(drawn)]) == 0
    assert drawn.exists()
    message = "the worlds of an episode file are its own"
    refused(episode.main, ["plot", str(files[0]), "--traffic", "orca"], message, status=2)
    both = ["plot", "--checkpoint", policy, "--scenario", "HO", "--traffic", "orca"]
    refused(episode.main, both, "a scenario says itself what steers", status=2)


def test_the_command(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 120)
    command = ["--checkpoint", "baseline:goal-straight", "--episodes", "10", "--stage", "3"]
    alone, among = (
        table_of(tmp_path, *command, *more) for more in ([], ["--traffic", "goal-straight"])
    )
    assert (alone["traffic"], among["traffic"]) == (None, "goal-straight")
    assert among["stages"][0]["success"] > alone["stages"][0]["success"]  # of two or three, not 5
    policy = str(save_policy(tmp_path / "policy.pt", "DQN"))
    against = ["--checkpoint", policy, "--episodes", "10", "--stage", "3", "--traffic", "orca"]
    compared = table_of(tmp_path, *against, "--against", "baseline:goal-straight")["against"]
    assert compared["stages"][0]["safety"]["robot_success"]["value"] > 0.1
    same = table_of(tmp_path, *against[2:], "--checkpoint", policy, "--traffic", policy)
    assert same["traffic"] == policy
    message = "policy.pt', a policy of another task, number of frames or meaning of actions"
    refused(evaluate.main, [*command, "--traffic", policy], message)
    message = "traffic is 'nobody', which is no file: choose one of straight, goal-straight"
    refused(evaluate.main, [*command, "--traffic", "nobody"], message)
    alone = ["--checkpoint", policy, "--stage", "1,0,4,40", "--traffic", "orca"]
    refused(evaluate.main, alone, "it takes two robots or more; leave the stage or the traffic out")
    with_scenario = ["--checkpoint", policy, "--scenario", "HO", "--traffic", "orca"]
    refused(evaluate.main, with_scenario, "a scenario says itself what steers", status=2)
    figure = [*command, "--traffic", "orca", "--figure", str(tmp_path / "x.png")]
    refused(evaluate.main, figure, "episode.py plot --traffic draws both", status=2)
    other = ["--checkpoint", "pretrained/icra2024_dqn", "--traffic", "orca"]
    refused(evaluate.main, other, "it steers vessels of the task 'marine' only")
    undamped = [*against, "env.vessel={x_u: 0, x_uu: 0}"]
    refused(evaluate.main, undamped, "traffic is 'orca': env.vessel has no top speed")
    kept = ["--checkpoint", policy, "--episodes", "1", "--stage", "1", "--traffic"]
    rates = "env.vessel.left_thrust_rates=[-1000,-500,250,500,1000]"
    refused(evaluate.main, [*kept, "straight", rates], "a thrust rate of 0 is missing")
    assert table_of(tmp_path, *kept, policy, "env.vessel=otter")["traffic"] == policy


def test_traffic_that_does_not_fit_a_later_policy_is_refused_before_any_work(
    tmp_path, monkeypatch, refused
):
    monkeypatch.setattr(evaluate, "evaluate", None)
    first = str(save_policy(tmp_path / "first.pt", "SAC"))
    second = str(save_policy(tmp_path / "second.pt", "DQN"))
    for option in ([], ["--against"]):
        command = ["--checkpoint", first, *option, second, "--traffic", first]
        refused(evaluate.main, command, "a policy of another task, number of frames or meaning")
