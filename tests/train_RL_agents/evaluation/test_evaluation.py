"""Evaluation: the table's numbers, policies whose result is known, and files of policies."""

import json
import re

import pytest
import torch
from rich.console import Console

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.fields import plain
from tests.train_RL_agents.evaluation.trajectories import measured, vessel
from tests.train_RL_agents.policy_samples import save_policy, table_of
from train_RL_agents import evaluate
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.evaluation import episodes
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.results import Outcomes, StageResult
from train_RL_agents.evaluation.table import print_table
from train_RL_agents.metrics.writer import AnalysisReceiver, read_metrics
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run import checkpoint
from train_RL_agents.training.counters import Counters
from train_RL_agents.training.evaluations import RunEvaluation

ALONE = Stage(robots=1, vortices=0, buoys=0, min_distance_m=30.0)
KEYS = ["robots", "vortices", "buoys", "min_distance_m", "episodes", "success", "success_ci95"]
KEYS += ["collision", "timeout", "mean_time_s", "mean_energy", "mean_return", "mean_return_ci95"]
KEYS += ["safety"]


def idle(observation):
    return torch.zeros(*observation.ego.shape[:-1], 2)


def toward_goal(observation):
    """Turn to the goal and drive; thrusts of 300 N, differing by the bearing of the goal."""
    goal_x, goal_y, _, _, yaw_rate, left, right = observation.ego.unbind(-1)
    turn = (300.0 * torch.atan2(goal_y, goal_x) - 300.0 * yaw_rate).clamp(-400.0, 400.0)
    wanted = torch.stack((300.0 + turn, 300.0 - turn), -1)
    return ((wanted - torch.stack((left, right), -1)) / 500.0).clamp(-1.0, 1.0)


def evaluated(policy, stages=(ALONE,), episodes=(20,), seed=7):
    make = Evaluation(stages, episodes, seed=seed, config=EnvConfig(), discrete=False)
    return make.run(policy), make


def row_of(success: list[bool], times: list[float]) -> StageResult:
    flags, none = torch.tensor(success), torch.zeros(len(success))
    outcomes = Outcomes(flags, ~flags, flags & False, torch.tensor(times), none, none)
    return StageResult(outcomes, measured([vessel((0, 0), 0, 1)]), ALONE)


def test_standing_by_hand():
    quick, slow = row_of([True, True], [10.0, 20.0]), row_of([True, False], [30.0, 99.0])
    standing = StageResult.standing([quick, slow])
    # 3 of 4 succeed: (3 + 1) / (4 + 2) = 2/3, and sqrt(2/3 * 1/3 / 4)
    assert standing == (0.75, pytest.approx(0.23570, abs=1e-5), 22.5)
    all_succeed, none_does = StageResult.standing([quick]), row_of([False], [99.0])
    assert all_succeed == (1.0, pytest.approx((3 / 4 * 1 / 4 / 2) ** 0.5), 15.0)
    assert StageResult.standing([quick, none_does]).time_s == float("inf")
    # 3 of 3 succeed: 4/5, and of a mean of stages with 2 and 1 episodes sqrt(4/25 (1/2 + 1) / 4)
    few = StageResult.standing([quick, row_of([True], [10.0])])
    assert few.error == pytest.approx((4 / 25 * 1.5 / 4) ** 0.5)


def test_no_policy_is_quicker_for_failing_in_its_slowest_episode():
    times = [10.0, 20.0, 31.0, 30.0]
    all_succeed, one_fails = row_of([True] * 4, times), row_of([True, True, False, True], times)
    assert one_fails.mean_time_s < all_succeed.mean_time_s
    assert StageResult.standing([all_succeed]).time_s == 22.75
    assert StageResult.standing([one_fails]).time_s == 22.5
    fails_in_a_quick_one = row_of([False, True, True, True], times)
    assert StageResult.standing([fails_in_a_quick_one]).time_s == 28.0


def test_row_by_hand():
    success = torch.tensor([True, True, False, False])
    columns = {"reached": torch.zeros(1), "collided": torch.zeros(1), "energy": torch.zeros(1)}
    measures = measured([vessel((0, 0), 0, 1)])
    measures = measures._replace(vessels=measures.vessels | columns)
    outcomes = Outcomes(
        success=success,
        collision=torch.tensor([False, False, True, False]),
        timeout=torch.tensor([False, False, False, True]),
        time_s=torch.tensor([10.0, 20.0, 99.0, 500.0]),
        energy=torch.tensor([100.0, 300.0, 1e9, 1e9]),
        episode_return=torch.tensor([1.0, 3.0, 1.0, 3.0]),
    )
    row = StageResult(outcomes, measures, PUBLISHED_STAGES[3]).as_json()
    assert list(row) == KEYS
    assert (row["robots"], row["buoys"], row["episodes"]) == (5, 2, 4)
    assert (row["vortices"], row["min_distance_m"]) == (0, 40.0)
    assert (row["success"], row["collision"], row["timeout"]) == (0.5, 0.25, 0.25)
    assert (row["mean_time_s"], row["mean_energy"], row["mean_return"]) == (15.0, 200.0, 2.0)
    # a variance of 4/3, of four episodes: 3.18245 times sqrt(1/3)
    assert row["mean_return_ci95"] == pytest.approx([2.0 - 1.83739, 2.0 + 1.83739], abs=1e-4)


def test_an_idle_policy_times_out():
    (result,), _ = evaluated(idle, episodes=(3,))
    row = result.as_json()
    assert (row["success"], row["timeout"], row["mean_time_s"]) == (0.0, 1.0, None)
    assert torch.all(result.outcomes.time_s == 500.0)
    assert torch.all(result.measures.vessels["time"] == 500.0)
    assert torch.all(result.measures.vessels["path"] < 1.0)
    assert row["safety"]["robot_success"]["value"] == 0.0


def test_driving_to_the_goal_succeeds_alone_and_collides_in_company():
    company = Stage(robots=5, vortices=0, buoys=4, min_distance_m=40.0)
    (alone, together), _ = evaluated(toward_goal, (ALONE, company), (20, 20))
    assert alone.success == 1.0
    assert 10.0 < alone.as_json()["mean_time_s"] < 60.0
    row, numbers = together.as_json(), together.safety
    assert row["collision"] > 0.3
    assert alone.safety["robot_success"]["value"] == 1.0
    assert alone.safety["least_gap_vessel"]["median_m"]["value"] is None
    assert 1.0 < alone.safety["path_ratio"]["value"] < 1.2
    assert numbers["vessel_episodes"] == 100
    assert numbers["encounters"]["HO"] > 0
    hits = [numbers[f"collision_{kind}"]["value"] for kind in ("vessel", "buoy")]
    assert max(hits) <= row["collision"] <= sum(hits)


def test_what_is_measured_is_what_the_simulator_says():
    company = Stage(robots=5, vortices=1, buoys=4, min_distance_m=40.0)
    (result,), _ = evaluated(toward_goal, (company,), (30,))
    vessels, world = result.measures.vessels, result.measures.vessels["world"]
    time = torch.zeros(30, dtype=torch.float64).index_add(0, world, vessels["time"]) / 5
    torch.testing.assert_close(time, result.outcomes.time_s.double())
    energy = torch.zeros(30, dtype=torch.float64).index_add(0, world, vessels["energy"]) / 5
    torch.testing.assert_close(energy, result.outcomes.energy.double(), rtol=1e-6, atol=0.0)
    touching = torch.minimum(vessels["end_vessel"], vessels["end_buoy"]) <= 1e-5
    assert torch.equal(touching, vessels["collided"] > 0)
    assert torch.all(vessels["gap_vessel"] <= vessels["end_vessel"])
    assert torch.all(vessels["gap_buoy"] <= vessels["end_buoy"])
    assert (
        result.success
        == torch.stack([(vessels["reached"][world == w] > 0).all() for w in range(30)])
        .double()
        .mean()
    )


def test_the_same_episodes_each_time():
    results, make = evaluated(toward_goal, PUBLISHED_STAGES[:2], (6, 4))
    again = make.run(toward_goal)
    other, _ = evaluated(toward_goal, PUBLISHED_STAGES[:2], (6, 4), seed=8)
    for first, second, third in zip(results, again, other, strict=True):
        assert torch.equal(first.outcomes.episode_return, second.outcomes.episode_return)
        assert not torch.equal(first.outcomes.episode_return, third.outcomes.episode_return)
    assert [len(result.outcomes.success) for result in results] == [6, 4]


def test_no_training_of_the_same_seed_has_these_episodes():
    first = []

    def act(observation):
        first.append(observation.ego.clone())
        return idle(observation)

    evaluated(act, episodes=(50,))
    training = MarineNavEnv(50, stages=(ALONE,), seed=7)
    buffers = training.make_buffers()
    training.reset_into(buffers)
    goals, trained = first[0][:, 0, :2], buffers.obs.ego[:, 0, :2]
    assert torch.cdist(goals, trained).min() > 1e-3


def test_stages_that_differ_in_distance_have_records_and_rows_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 1)
    stages = [[1, 0, 0, 20.0], [1, 0, 0, 30.0], [2, 0, 0, 30.0]]
    config, _, _ = load_config(
        overrides=[f"evaluation.stages={stages}", "evaluation.episodes=[1,1,1]"]
    )
    agent = build_agent(config, "cpu")
    receiver = AnalysisReceiver(tmp_path)
    results = RunEvaluation(config, agent).periodic(receiver, Counters())
    receiver.close()
    modes = [record["mode"] for record in read_metrics(tmp_path / "metrics.jsonl")]
    names = ["1 robot, 0 buoys, 20 m", "1 robot, 0 buoys, 30 m", "2 robots, 0 buoys"]
    assert modes == ["evaluation", *(f"evaluation, {name}" for name in names)]
    console = Console(width=200, record=True)
    print_table(results, "three", console)
    text = console.export_text()
    assert "distance" in text
    assert "near vessel" in text
    assert "score v1" in text


def test_leaving_out_finished_worlds_changes_nothing(monkeypatch):
    reduced, _ = evaluated(toward_goal)
    monkeypatch.setattr(episodes, "LOOK_INTERVAL", 10_000)
    whole, _ = evaluated(toward_goal)
    assert torch.equal(reduced[0].outcomes.energy, whole[0].outcomes.energy)
    assert reduced[0].safety == whole[0].safety


@pytest.fixture
def saved(tmp_path):
    """A run's folder with one checkpoint of untrained SAC, and its agent."""
    config, _, _ = load_config(agent="SAC", overrides=["evaluation.stages=[[1,0,0,30]]"])
    agent = build_agent(config, "cpu")
    state = {"step": 5, "config": plain(config), "model": agent.training_state()}
    checkpoint.save(checkpoint.CheckpointFolder(tmp_path / "checkpoints").path(5), state)
    return tmp_path, agent


def test_a_policy_from_a_folder_a_file_and_the_best(saved):
    folder, agent = saved
    file = folder / "checkpoints" / "step_000000000005.pt"
    weights = agent.actor.state_dict()
    for path in (folder, file, folder / "checkpoints"):
        loaded, config = load_policy(path)
        assert (loaded.name, config.agent) == ("SAC", "SAC")
        for name, value in loaded.actor.state_dict().items():
            assert torch.equal(value, weights[name])
    file.rename(folder / "best.pt")
    assert load_policy(folder)[0].name == "SAC"


def test_command_line(saved, tmp_path, capsys, short_evaluations):
    folder, _ = saved
    arguments = ["--checkpoint", str(folder), "--episodes", "2", "--seed", "3"]
    figure = tmp_path / "episodes.png"
    table = table_of(tmp_path, *arguments, "--figure", str(figure))
    assert figure.read_bytes().startswith(b"\x89PNG")
    asked = ["seed", "config", "settings", "scenario", "traffic", "cvar", "adaptive_cvar", "commit"]
    assert list(table) == ["checkpoint", *asked, "env", "stages", "stages_mean_actions"]
    ends = table["env"]["episode"]  # of the evaluation, not of the training
    assert (ends["max_steps"], ends["stop_on_collision"]) == (episodes.DECISION_LIMIT, True)
    assert [list(row) for row in table["stages"]] == [KEYS]
    assert [list(row) for row in table["stages_mean_actions"]] == [KEYS]
    assert table["stages"] != table["stages_mean_actions"]
    printed = capsys.readouterr().out
    assert "mean action" in printed
    assert "95% CI" in printed


def test_scenarios_by_mean_actions_behind_a_shield(saved, tmp_path, monkeypatch):
    folder, _ = saved
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 5)
    played = ["--scenario", "imazu-01", "--episodes", "1", "--shield"]
    table = table_of(tmp_path, "--checkpoint", str(folder), *played)
    for key in ("scenarios", "rules", "shield"):
        assert type(table[f"{key}_mean_actions"]) is type(table[key])
    played = table_of(tmp_path, "--checkpoint", "baseline:goal-straight", *played)
    assert not [key for key in played if key.endswith("_mean_actions")]  # it samples none


def test_a_risk_level_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 30)
    stages = {"stages": [[3, 0, 4, 30.0]]}
    save_policy(tmp_path / "iqn.pt", "IQN", evaluation=stages)
    save_policy(tmp_path / "averse.pt", "IQN", evaluation=stages, algorithm={"cvar": 0.1})
    save_policy(
        tmp_path / "careful.pt", "IQN", evaluation=stages, algorithm={"adaptive_cvar": True}
    )

    def returns(name, *options):
        arguments = ["--checkpoint", str(tmp_path / name), "--episodes", "4", *options]
        parsed = evaluate.parse(arguments)
        policy = evaluate.evaluate(parsed, parsed.checkpoint[0], Console())
        (row,) = policy.results
        return row.outcomes.episode_return.tolist()

    neutral = returns("iqn.pt")
    assert returns("iqn.pt", "--cvar", "0.1") == returns("averse.pt") != neutral
    assert returns("iqn.pt", "--adaptive-cvar") == returns("careful.pt") != neutral
    assert returns("careful.pt", "--no-adaptive-cvar") == neutral
    assert "cvar 0.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("AC-IQN", ["--cvar", "0.5"], "cvar is 0.5: .* with 1.0: .* train with algorithm.cvar=0.5"),
        ("AC-IQN", ["--adaptive-cvar"], "with False: .* train with algorithm.adaptive_cvar=True"),
        ("DDPG", ["--cvar", "1"], "cvar is 1.0: agent DDPG has no such setting"),
        ("IQN", ["--cvar", "1.5"], "cvar is 1.5: give 1.0 or less"),
    ],
)
def test_a_risk_level_that_cannot_be_set(tmp_path, refused, name, options, message):
    path = save_policy(tmp_path / "policy.pt", name)
    arguments = ["--checkpoint", str(path), "--episodes", "1", *options]
    assert re.search(message, refused(evaluate.main, arguments))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--cvar", "0.2"], "cvar is 0.2: "),
        (["--shield", "hidden_buoy_m=1"], "hidden_buoy_m is 1.0"),
    ],
)
def test_what_the_second_policy_refuses_is_told_before_the_first_is_played(
    tmp_path, refused, monkeypatch, option, message
):
    monkeypatch.setattr(evaluate, "evaluate", None)
    first = save_policy(tmp_path / "first.pt", "IQN")
    second = save_policy(tmp_path / "second.pt", "AC-IQN", stack_k=2)
    arguments = ["--checkpoint", str(first), str(second), *option]
    refused(evaluate.main, arguments, message)


def test_a_group_of_a_scenario_file_and_of_the_command_line(tmp_path, refused, monkeypatch):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 5)
    path = save_policy(tmp_path / "policy.pt", "DDPG")
    vessel = {"start": [0, 0], "goal": [30, 0]}
    content = {"name": "calm", "vessels": [vessel], "wind": {"speed": [0, 0]}, "repeats": 1}
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    arguments = ["--checkpoint", str(path), "--scenario", str(tmp_path / "s.yaml")]
    told = "env.wind is given in 'env.wind.speed=[9,9]', and scenario 'calm' has wind of its own"
    refused(evaluate.main, [*arguments, "env.wind.speed=[9,9]"], told)
    assert evaluate.main([*arguments, "env.stream.speed=[0.1,0.1]"]) == 0


def test_the_risk_level_of_the_training_is_accepted(tmp_path, monkeypatch):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 5)
    stages = {"stages": [[3, 0, 4, 30.0]]}
    path = save_policy(tmp_path / "policy.pt", "AC-IQN", evaluation=stages, algorithm={"cvar": 0.5})
    options = ["--cvar", "0.5", "--no-adaptive-cvar"]
    assert evaluate.main(["--checkpoint", str(path), "--episodes", "1", *options]) == 0


def test_actions_that_are_not_finite_end_an_evaluation(monkeypatch):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 5)
    evaluation = episodes.Evaluation(
        PUBLISHED_STAGES[:1], (2,), seed=1, config=EnvConfig(), discrete=False
    )

    def act(observation):
        return torch.full((*observation[0].shape[:-1], 2), float("nan"))

    with pytest.raises(ValueError, match="30 actions of 6 robots were not finite numbers"):
        evaluation.run(act)


@pytest.mark.parametrize("option", ["--json", "--figure"])
def test_a_missing_folder_is_told_before_the_work(tmp_path, refused, option):
    path = str(tmp_path / "missing" / "out.png")
    message = f"{path!r}: its folder is missing, make it"
    refused(evaluate.parse, ["--checkpoint", "any", option, path], option, message, status=2)


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--json", "", "is no file: give the name of one"),
        ("--json", "x" * 300, "File name too long"),
        ("--figure", "x.foo", "ends in '.foo': use one of .png .pdf .svg"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    tmp_path, refused, option, name, message
):
    path = str(tmp_path / name)
    refused(evaluate.parse, ["--checkpoint", "any", option, path], option, message, status=2)
