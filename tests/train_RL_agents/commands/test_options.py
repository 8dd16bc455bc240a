"""Options that say which worlds a policy meets."""

import functools

import pytest

from marinenav_env.envs.icra2024 import ICRA2024_EXPERIMENTS
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.replay import task_of_episode
from scripts import episode, robustness
from tests.conftest import ROOT
from tests.marinenav_env.rollouts import EPISODES
from tests.train_RL_agents.policies.test_export import torchscript_metadata
from tests.train_RL_agents.policy_samples import export_policy, save_policy, table_of
from train_RL_agents import evaluate, train
from train_RL_agents.commands import training
from train_RL_agents.commands.options import (
    split_settings,
    with_share,
    with_world_options,
    world_settings,
)
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation import episodes

POLICY = ["--checkpoint", "baseline:goal-straight", "--episodes", "2"]


def test_stages_and_settings():
    given = ["--stage", "6,6,4,40", "env.wind.speed=[3,5]", "--stage", "2"]
    parsed = evaluate.parse([*POLICY, *given, "env.perception.range=9"])
    config = with_world_options(TrainConfig(), parsed)
    assert config.evaluation.stages == (Stage(6, 6, 4, 40.0), PUBLISHED_STAGES[1])
    assert config.env.wind.speed == (3.0, 5.0)
    assert config.env.perception.range == 9.0
    assert config.env.episode == TrainConfig().env.episode
    assert with_world_options(TrainConfig(), evaluate.parse(POLICY)) == TrainConfig()


WATER = """
preset: short
env: {scenario: {width: 80}, stream: {speed: [0.0, 0.3]}, episode: {max_steps: 9}}
evaluation: {stages: [[1, 0, 2, 50], [2, 0, 0, 50]]}
algorithm: {tune_alpha: false}
"""


@pytest.fixture
def water(tmp_path):
    """A file of a training with SAC, which the command line would name."""
    (tmp_path / "water.yaml").write_text(WATER)
    return ["--config", str(tmp_path / "water.yaml")]


def test_a_training_s_file_says_which_worlds(water):
    def given(*arguments):
        return with_world_options(TrainConfig(), evaluate.parse([*POLICY, *water, *arguments]))

    config = given()
    assert config.evaluation.stages == (Stage(1, 0, 2, 50.0), Stage(2, 0, 0, 50.0))
    assert (config.env.scenario.width, config.env.stream.speed) == (80.0, (0.0, 0.3))
    assert config.total_steps == TrainConfig().total_steps
    assert given("--stage", "2").evaluation.stages == PUBLISHED_STAGES[1:2]
    assert given("env.scenario.width=70").env.scenario.width == 70.0
    assert given("env.scenario.width=70").env.stream.speed == (0.0, 0.3)


def test_every_program_takes_the_file(water, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 3)
    table = table_of(tmp_path, *POLICY, *water)
    assert table["config"] == water[1]
    assert [row["robots"] for row in table["stages"]] == [1, 2]
    assert table["env"]["stream"]["speed"] == [0.0, 0.3]
    assert table["env"]["episode"]["max_steps"] == 3  # evaluations have their own ends
    steered = ["--checkpoint", "baseline:goal-straight", *water, "--limit", "3"]
    calm = "env.stream.speed=[0,0]"  # which episode files cannot hold
    assert episode.main(["record", *steered, calm, "--output", str(tmp_path / "files")]) == 0
    recorded = [task_of_episode(read_episode(file)) for file in (tmp_path / "files").iterdir()]
    assert [config.scenario.width for _, config, _ in recorded] == [80.0, 80.0]
    assert episode.main(["plot", *steered, "--output", str(tmp_path / "x.png")]) == 0
    path = save_policy(tmp_path / "policy.pt", "DDPG")
    said = torchscript_metadata(export_policy(path, "torchscript", *water))
    assert said["config"]["env"]["scenario"]["width"] == 80.0


def test_a_file_without_an_algorithm_is_for_that_of_the_policy(tmp_path, monkeypatch):
    """The default one steers no cart."""
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 3)
    policy = save_policy(tmp_path / "policy.pt", "DQN", task="cartpole")
    file = str(ROOT / "configs" / "cartpole.yaml")
    table = table_of(tmp_path, "--checkpoint", str(policy), "--episodes", "1", "--config", file)
    assert table["config"] == file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: {stream: {sped: 1}}", "unknown setting 'env.stream.sped'"),
        ("updates: {batch_sise: 1}", "unknown setting 'updates.batch_sise'"),
        ("exploration: {nois: 1}", "unknown setting 'exploration.nois'"),
        ("agent: DQN\nalgorithm: {tune_alpha: true}", "unknown setting 'algorithm.tune_alpha'"),
        ("task: icra2024\nagent: DQN", "task is 'icra2024', and the policy's 'marine'"),
        ("preset: shrt", "preset is 'shrt': choose one of"),
        ("env:", "env is None"),
    ],
)
def test_a_file_that_no_training_would_take(tmp_path, text, message, refused):
    path = tmp_path / "water.yaml"
    path.write_text(text)
    said = refused(evaluate.main, [*POLICY, "--config", str(path)], message)
    assert said.count(str(path)) == 1
    refused(evaluate.main, [*POLICY, "--config", "missing.yaml"], "missing.yaml")


def test_an_episode_file_has_its_own_worlds(water, refused):
    drawn = ["plot", str(EPISODES / "calm_policy_5r_4o.json"), *water]
    refused(episode.main, drawn, "--checkpoint is missing", status=2)


def test_hulls_of_a_training_do_not_decide_which_worlds_a_policy_can_meet(tmp_path, monkeypatch):
    """Hulls 0.8 m larger would start inside each other; who evaluates or draws has true ones."""
    monkeypatch.setattr(episodes, "DECISION_LIMIT", 3)
    close = "env.scenario.clear_radius=6"
    policy = save_policy(tmp_path / "policy.pt", "DDPG", curriculum={"hull_margin": 0.8})
    worlds = ["--checkpoint", str(policy), "--stage", "1", "--episodes", "1", close]
    assert table_of(tmp_path, *worlds)["env"]["scenario"]["clear_radius"] == 6.0
    quantities = ["--quantities", "lag", "--json", str(tmp_path / "record.json")]
    assert robustness.main([*worlds, *quantities]) == 0
    picture = tmp_path / "x.png"
    worlds = ["--checkpoint", str(policy), "--stage", "1", close, "--limit", "3"]
    assert episode.main(["plot", *worlds, "--output", str(picture)]) == 0
    assert picture.exists()


def test_settings_of_the_environment_are_told_from_those_of_a_shield():
    rest, settings = split_settings(["--shield", "margin_m=0.5", "env.waves.height=0.1"])
    assert rest == ["--shield", "margin_m=0.5"]
    assert settings == ["env.waves.height=0.1"]


@pytest.mark.parametrize("text", ["one", "-1", "5,0,4", "5,0,4,x", "0,0,0,30", "1.5,0,0,30", ""])
def test_stages_that_are_refused(text, refused):
    message = "give the number of a stage of the task, or robots,vortices"
    refused(evaluate.parse, [*POLICY, f"--stage={text}"], message, status=2)


def test_a_number_is_one_of_the_task_s_own_stages(tmp_path, refused):
    parsed = evaluate.parse([*POLICY, "--stage", "5"])
    config, _, _ = load_config(task="icra2024", agent="DQN")
    assert with_world_options(config, parsed).evaluation.stages == ICRA2024_EXPERIMENTS[4:]
    trained = train.parse(["--task", "icra2024", "--stage", "5"])
    (curriculum, evaluated) = world_settings(trained, "icra2024")
    assert curriculum.endswith("[[7, 8, 8, 40.0]]")
    assert evaluated.endswith("[[7, 8, 8, 40.0]]")
    for number in ("0", "7"):
        message = f"stage is {number}: give 1 to 6 for a stage of the task 'marine', or robots,"
        refused(evaluate.main, [*POLICY, "--stage", number], message)
        refused(train.main, ["--stage", number, "--output", str(tmp_path / "run")], message)
    command = ["--task", "icra2024", "--agent", "DQN", "--stage", "6"]
    message = "stage is 6: give 1 to 5 for a stage of the task 'icra2024'"
    refused(train.main, [*command, "--output", str(tmp_path / "run")], message)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["env.wind.sped=3"], "unknown setting 'env.wind.sped'"),
        (["env.perception.rays=40"], "env.perception.rays is a setting of marine_sectors, and the"),
        (["env.waves.height=9"], "env.waves.height is 9.0: give 0.3 or less"),
        (["env.wind.gust_std=1000"], "env.wind.gust_std is 1000.0: give 20.0 or less"),
        (
            ["--stage", "1,0,0,20", "env.wind.speed=[60,60]", "env.wind.sway=1e5"],
            "the state of 2 robots is not finite (first in world 0, robot 0): a setting below env",
        ),
        (["--stage", "40,0,0,50"], "40 robots do not fit the map"),
    ],
)
def test_worlds_that_are_refused(options, message, refused):
    refused(evaluate.main, [*POLICY, *options], message)


def test_they_change_what_is_evaluated(tmp_path):
    table = functools.partial(table_of, tmp_path, *POLICY)
    rows = table("--stage", "2,1,0,30", "--stage", "1,0,2,20")["stages"]
    names = ("robots", "vortices", "buoys", "min_distance_m")
    assert [[row[name] for name in names] for row in rows] == [[2, 1, 0, 30], [1, 0, 2, 20]]
    calm = table("--stage", "1,0,0,20")
    against = ["--against", "baseline:goal-straight"]
    carried = table("--stage", "1,0,0,20", "env.stream.speed=[0.8,0.8]", *against)
    assert calm["stages"] != carried["stages"]
    assert carried["against"]["stages"] == carried["stages"]  # the other meets the same worlds


def test_what_they_mean_to_a_training():
    parsed = train.parse(["--stage", "6,6,4,40", "--stage", "1", "scenarios.offset_m=1"])
    config, _, _ = load_config(overrides=[*world_settings(parsed, "marine"), *parsed.overrides])
    stages = (Stage(6, 6, 4, 40.0), PUBLISHED_STAGES[0])
    assert config.curriculum.stages == config.evaluation.stages == stages
    assert config.scenarios.share == 0.0
    parsed = train.parse(["--scenario", "singles"])
    config, _, _ = load_config(overrides=world_settings(parsed, "marine"))
    config = with_share(config, parsed.overrides)
    assert (config.scenarios.set, config.scenarios.share) == ("singles", 0.25)
    parsed = train.parse(["--scenario", "HO+o", "scenarios.share=0.5"])
    config, _, _ = load_config(overrides=[*world_settings(parsed, "marine"), *parsed.overrides])
    assert (config.scenarios.set, config.scenarios.share) == ("HO+o", 0.5)
    (name,) = world_settings(train.parse(["--scenario", "7"]), "marine")
    assert name == 'scenarios.set="7"'  # a name, where 7 alone is a number


def test_settings_of_a_training_may_count_its_stages(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(training, "start_in", lambda _, configs, __: found.extend(configs))
    start = ["--output", str(tmp_path / "run"), "--stage", "1"]
    more = ["--stage", "2", "curriculum.mode=sequential", "curriculum.starts=[0,1000]"]
    assert train.main([*start, *more, "evaluation.episodes=[10,20]"]) == 0
    assert train.main([*start, "--task", "icra2024", "--agent", "DQN"]) == 0
    first, second = found
    assert first.evaluation.episodes == (10, 20)
    assert first.curriculum.starts == (0, 1000)
    assert first.curriculum.stages == PUBLISHED_STAGES[:2]
    assert second.curriculum.stages == ICRA2024_EXPERIMENTS[:1]


def test_a_resumed_run_takes_none(refused):
    refused(train.parse, ["--resume", "run", "--stage", "1"], "--resume takes no --stage", status=2)
