"""Two policies in the same worlds."""

import shlex

import pytest
import torch
import yaml

from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from tests.train_RL_agents.evaluation.trajectories import HULL_RADIUS
from tests.train_RL_agents.policy_samples import save_policy, table_of
from train_RL_agents import evaluate
from train_RL_agents.commands.vessel_notes import as_setting
from train_RL_agents.config.files import load_config
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.against import compare
from train_RL_agents.evaluation.intervals import WorldBootstrap
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.results import Outcomes, StageResult


def result(success, time, gap):
    """One robot in each world."""
    success, time, gap = (torch.tensor(row) for row in (success, time, gap))
    worlds = len(success)
    vessels = {
        "world": torch.arange(worlds),
        "reached": success.double(),
        "gap_vessel": gap.double(),
        "gap_buoy": torch.full((worlds,), torch.inf),
        "path": torch.full((worlds,), 50.0),
        "direct": torch.full((worlds,), 40.0),
    }
    no = torch.zeros(worlds)
    outcomes = Outcomes(success, ~success, no.bool(), time, time * 100.0, -time)
    measures = Measures(worlds, vessels, {}, {}, HULL_RADIUS, 0.5)
    return StageResult(outcomes, measures, PUBLISHED_STAGES[0])


def test_differences_by_hand():
    first = result([True, True, True, False], [10.0, 20.0, 30.0, 1.0], [1.0, 1.0, 5.0, 30.0])
    second = result([True, True, False, False], [8.0, 17.0, 1.0, 1.0], [3.0, 1.0, 5.0, 9.0])
    row = compare(first, second)
    counts = [row[name] for name in ("both", "only_first", "only_second", "neither")]
    assert counts == [2, 1, 0, 1]
    assert row["mcnemar_p"] == 1.0
    values = {name: entry["value"] for name, entry in row["difference"].items()}
    assert values["success"] == 0.25
    assert values["time_s"] == 2.5
    assert values["energy"] == 250.0
    assert values["return"] == -(2.0 + 3.0 + 29.0 + 0.0) / 4, "of all worlds"
    assert values["near_miss_vessel"] == 0.25
    assert values["near_miss_buoy"] == 0.0
    assert values["path_ratio"] == 0.0
    assert values["least_gap_vessel_m"] == pytest.approx((-2 + 0 + 0 + 17 - 9) / 4)


def test_pairing_narrows_the_interval():
    """Worlds differ much, the policies little: only the paired interval sees the difference."""
    hard = torch.randn(200, generator=torch.Generator().manual_seed(0)).double() * 10.0
    ones = torch.ones(200)
    bootstrap = WorldBootstrap(200)
    paired = bootstrap.difference((hard + 0.5, ones), (hard, ones))
    assert (paired.low, paired.high) == pytest.approx((0.5, 0.5))
    alone = bootstrap.ratio(hard + 0.5, ones)
    assert alone.high - alone.low > 2.0


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 30)
    stages = {"stages": [[3, 0, 4, 30.0], [1, 0, 0, 30.0]]}
    save_policy(tmp_path / "first.pt", "IQN", evaluation=stages)
    save_policy(tmp_path / "second.pt", "AC-IQN", stack_k=2)
    arguments = ["--checkpoint", str(tmp_path / "first.pt"), "--episodes", "3", "--against"]
    table = table_of(tmp_path, *arguments, str(tmp_path / "second.pt"))
    assert [row["robots"] for row in table["against"]["stages"]] == [3, 1]
    assert "success" in table["against"]["paired"][0]["difference"]
    assert "only second" in capsys.readouterr().out
    table = table_of(tmp_path, *arguments, str(tmp_path / "first.pt"))
    paired = table["against"]["paired"]
    assert table["against"]["stages"] == table["stages"]
    assert {entry["value"] for entry in paired[0]["difference"].values()} <= {0.0, None}
    assert evaluate.main([*arguments, str(tmp_path / "third.pt")]) == 1


def test_differences_of_shares_where_nothing_happened():
    """Ten worlds in which two policies do alike do not show that they are alike."""
    same = result([True] * 10, [10.0] * 10, [5.0] * 10)
    found = compare(same, same)["difference"]
    for name in ("success", "collision", "robot_success", "near_miss_vessel", "near_miss_buoy"):
        assert found[name]["ci95"] == pytest.approx([-0.27753, 0.27753], abs=1e-4), name
    assert found["time_s"]["ci95"] == [0.0, 0.0]


def test_several_policies_meet_the_worlds_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 30)
    stages = {"stages": [[2, 0, 4, 30.0], [1, 0, 0, 30.0]]}
    first = str(save_policy(tmp_path / "first.pt", "AC-IQN", evaluation=stages))
    drifting = {"stream": {"speed": [0.6, 0.6]}}
    second = str(save_policy(tmp_path / "second.pt", "AC-IQN", env=drifting))
    own = table_of(tmp_path, "--checkpoint", second, "--episodes", "3", "--stage", "2,0,4,30")
    command = ["--checkpoint", first, second, "--episodes", "3"]
    report = ["--report", str(tmp_path / "report")]
    one, other = table_of(tmp_path, *command, *report)["policies"]
    assert other["stages"] == one["stages"]  # since their weights are the same
    assert other["stages"][0] != own["stages"][0]


@pytest.mark.parametrize("option", [[], ["--against"]])
def test_policies_that_steer_otherwise_are_refused_before_any_work(
    tmp_path, monkeypatch, refused, option
):
    monkeypatch.setattr(evaluate, "evaluate", None)
    first = str(save_policy(tmp_path / "first.pt", "DQN"))
    rates = [-1000.0, -500.0, 0.0, 500.0, 1000.0]
    reordered = {"vessel": {"left_thrust_rates": rates}}
    second = str(save_policy(tmp_path / "second.pt", "DQN", env=reordered))
    message, remedy = (
        f"{second} steers otherwise than {first}",
        "or give all one vessel, as that of FIRST: env.vessel=wamv16",
    )
    command = ["--checkpoint", first, *option, second]
    refused(evaluate.main, command, message, remedy.replace("FIRST", first))
    command = ["--checkpoint", second, *option, first]
    own = "'env.vessel={left_thrust_rates: [-1000.0, -500.0, 0.0, 500.0, 1000.0]}'"
    refused(evaluate.main, command, f"as that of {second}: {own}")


@pytest.mark.parametrize("vessel", ["otter", "{name: otter, mass: 90}", "{mass: 500, x_u: -1e-5}"])
def test_a_vessel_is_written_as_the_setting_that_gives_it(vessel):
    given = load_config(overrides=[f"env.vessel={vessel}"])[0].env.vessel
    (setting,) = shlex.split(as_setting(given))
    assert load_config(overrides=[setting])[0].env.vessel == given


@pytest.mark.parametrize("option", [[], ["--against"]])
def test_a_baseline_steers_the_vessel_of_the_first(tmp_path, option):
    own = {"length": 3.5, "mass": 180.0, "min_thrust": -120.0, "max_thrust": 240.0}
    own["max_thrust_rate"] = 240.0
    first = str(save_policy(tmp_path / "first.pt", "SAC", env={"vessel": own}))
    command = ["--checkpoint", first, *option, "baseline:orca", "--episodes", "1"]
    assert evaluate.main([*command, "--stage", "1,0,0,20"]) == 0


@pytest.mark.parametrize(
    "vessel", ["otter", "{length: 4.0, width: 2.0, max_thrust_rate: 350.0, transport_term: true}"]
)
def test_policies_of_two_vessels_are_compared_on_one_that_is_named(tmp_path, vessel, refused):
    read = {"vessel": yaml.safe_load(vessel)}
    own = str(save_policy(tmp_path / "own.pt", "AC-IQN", env=read))
    usual = str(save_policy(tmp_path / "usual.pt", "AC-IQN"))
    small = ["--episodes", "1", "--stage", "1,0,0,20"]
    for both in ([usual, own], [own, usual]):
        refused(evaluate.main, ["--checkpoint", *both, *small], "steers otherwise")
        assert evaluate.main(["--checkpoint", *both, *small, f"env.vessel={vessel}"]) == 0


def test_ends_of_episodes_are_those_of_evaluations(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(evaluate, "evaluate", None)
    for setting in ("env.episode.max_steps=3", "env.episode={max_steps: 3}"):
        command = ["--checkpoint", "baseline:orca", setting]
        refused(evaluate.main, command, "env.episode is given in 'env.episode")


def test_hulls_of_the_others_training_do_not_matter(tmp_path, monkeypatch):
    """Its margin would not fit where robots of the first start."""
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 10)
    near = {"scenario": {"clear_radius": 6.0}}
    first = save_policy(tmp_path / "first.pt", "AC-IQN", env=near, curriculum={"hull_margin": 0.0})
    second = save_policy(tmp_path / "second.pt", "AC-IQN", curriculum={"hull_margin": 0.8})
    command = ["--checkpoint", str(first), "--episodes", "1", "--against", str(second)]
    assert evaluate.main(command) == 0


def test_policies_of_two_tasks_are_refused_before_any_work(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(evaluate, "evaluate", None)
    first, second = str(tmp_path / "first.pt"), str(tmp_path / "second.pt")
    save_policy(tmp_path / "first.pt", "IQN")
    save_policy(tmp_path / "second.pt", "IQN", task="icra2024")
    for together in ([first, "--against", second], [first, second], ["baseline:orca", second]):
        message = f"task of {second} is 'icra2024', that of"
        refused(evaluate.main, ["--checkpoint", *together], message)
    report = ["--checkpoint", second, "--report", str(tmp_path / "report")]
    refused(evaluate.main, report, "--report knows the vessels of 'marine' only")
