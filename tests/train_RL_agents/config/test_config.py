"""Settings: where they come from, which of two sources wins, and what a wrong one is told."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import yaml

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, Settings, plain
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.config import files, shipped
from train_RL_agents.config import schema as config_module
from train_RL_agents.config.files import CONFIGS, config_from_plain, load_config, presets
from train_RL_agents.config.schema import TrainConfig, fitting_agents

PUBLISHED = {
    "seed": [9, 10],
    "total_timesteps": 6000000,
    "eval_freq": 60000,
    "save_dir": "training_data",
    "training_schedule": {
        "timesteps": [0, 1000000, 2000000],
        "num_robots": [3, 4, 5],
        "num_cores": [0, 0, 4],
        "num_obstacles": [0, 0, 2],
        "min_start_goal_dis": [30.0, 35.0, 40.0],
    },
    "eval_schedule": {
        "num_episodes": [10, 0, 5],
        "num_robots": [3, 4, 5],
        "num_cores": [0, 0, 0],
        "num_obstacles": [0, 0, 4],
        "min_start_goal_dis": [30.0, 35.0, 40.0],
    },
    "imitation_learning": False,
    "agent_type": "IQN",
}


def published(tmp_path, **changes):
    path = tmp_path / "training.json"
    path.write_text(json.dumps({**PUBLISHED, **changes}))
    return path


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("algorithm.gama=0.9", ["algorithm.gama", "'algorithm.gamma'"]),
        ("learnin_rate=1", ["learnin_rate", "'algorithm.learning_rate'"]),
        ("env.rewrd.goal=1", ["env.rewrd", "'env.reward'"]),
        ("updates.batch_size=0", ["updates.batch_size is 0", "1 or more"]),
        ("updates.batch_size=2.5", ["updates.batch_size is 2.5", "whole number"]),
        ("algorithm.learning_rate=fast", ["algorithm.learning_rate is 'fast'", "number"]),
        ("compile=maybe", ["compile is 'maybe'", "true or false"]),
        ("device=tpu", ["device is 'tpu'", "auto, cpu, cuda"]),
        ("agent=TRPO", ["agent is 'TRPO'", "AC-IQN"]),
        ("total_steps=3", ["total_steps is 3", "512 worlds", "raise"]),
        ("env.vessel.dt=-1", ["env.vessel.dt is -1.0", "more than 0.0 [s]"]),
        ("curriculum.stages=[[0,0,0,30]]", ["curriculum.stages[0].robots is 0", "1 or more"]),
        ("curriculum.stages=[[3,0,30]]", ["curriculum.stages[0]", "4 values"]),
        ("curriculum.starts=[0,5]", ["curriculum.starts is (0, 5)", "give 6, one per stage"]),
        ("curriculum.starts=[0,1,2,3,4,5]", ["curriculum.starts is", "mixed", "mode=sequential"]),
        ("exploration.epsilon_start=.nan", ["exploration.epsilon_start is nan", "finite"]),
        ("evaluation.episodes=[1,2]", ["evaluation.episodes is (1, 2)", "6"]),
        ("replay.capacity=100", ["updates.warmup_transitions is 5000", "replay.capacity 100"]),
        ("justaword", ["'justaword'", "key=value"]),
        ("updates.batch_size=1e18", ["updates.batch_size is 1000000000000000000", "lower it"]),
        ("updates.samples_per_insert=1e9", ["updates.samples_per_insert is 1", "100000 updates"]),
        ("threads=100000", ["threads is 100000", "1024 or less"]),
        ("worlds=1e300", ["worlds is 1e+300", "beyond any use"]),
        ("worlds=" + "9" * 400, ["worlds is 9999", "beyond any use"]),
        ("algorithm.gamma=" + "9" * 400, ["algorithm.gamma is 9999", "beyond any use"]),
        ("algorithm.n_taus=1e6", ["algorithm.n_taus is 1000000", "4096 or less"]),
        ("agent=[1]", ["agent is [1]", "AC-IQN"]),
        ("output=5", ["output is 5", "a text"]),
        ("algorithm=[1,2]", ["algorithm is [1, 2]", "give a section"]),
        ("a=" + "[" * 900, ["cannot be read"]),
        ("env.vessel.x_u=3", ["env.vessel.x_u is 3.0", "0.0 or less"]),
        ("env.vessel.width=-2", ["env.vessel.width is -2.0", "more than 0.0"]),
        ("env.vessel.mass=21", ["env.vessel.x_u is -100.0", "inertia 1", "more mass"]),
        ("curriculum.fringe=4", ["curriculum.fringe is 4.0", "inside each other", "10.39 or more"]),
        ("env.scenario.clear_radius=5", ["env.scenario.clear_radius is 5.0", "inside each other"]),
    ],
)
def test_wrong_settings_name_field_value_and_remedy(override, parts):
    with pytest.raises(ConfigError) as raised:
        load_config(overrides=[override])
    for part in parts:
        assert part in str(raised.value)


def test_later_sources_win(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("worlds: 32\nupdates: {batch_size: 128}\nseed: [4, 5]\noutput: here\n")
    config, seeds, output = load_config(path=path, overrides=["updates.batch_size=512"])
    assert (config.worlds, config.updates.batch_size) == (32, 512)
    assert config.updates.samples_per_insert == TrainConfig().updates.samples_per_insert
    assert (seeds, config.seed, output) == ((4, 5), 4, "here")


def test_a_part_of_a_section_keeps_the_rest_of_its_defaults():
    config, _, _ = load_config(overrides=["env.episode.stop_on_collision=true"])
    assert config.env.episode.stop_on_collision
    assert config.env.episode.max_steps == TrainConfig().env.episode.max_steps


def test_published_training_file(tmp_path):
    config, seeds, output = load_config(path=published(tmp_path))
    assert (config.agent, seeds, output) == ("IQN", (9, 10), "training_data")
    assert (config.total_steps, config.evaluation.interval_steps) == (6_000_000, 60_000)
    assert config.curriculum.mode == "sequential"
    assert config.curriculum.starts == (0, 1_000_000, 2_000_000)
    last = config.curriculum.stages[2]
    assert (last.robots, last.vortices, last.buoys, last.min_distance_m) == (5, 4, 2, 40.0)
    assert config.evaluation.episodes_per_stage == (10, 0, 5)
    assert config.evaluation.stages[2].buoys == 4


@pytest.mark.parametrize("task", ["marine", "icra2024"])
@pytest.mark.parametrize("agent", REPLAY_AGENTS)
def test_a_published_training_file_leaves_the_projects_own_settings_out(tmp_path, task, agent):
    """Networks, hulls and risk level are the published ones, not what was found better here."""
    config, _, _ = load_config(task=task, path=published(tmp_path, agent_type=agent))
    assert config.algorithm == AGENTS[agent].Config()
    assert (config.algorithm.encoder, config.algorithm.widening) == ("published", 1)
    assert (config.stack_k, config.curriculum.fringe, config.curriculum.hull_margin) == (1, 0, 0)
    assert config.updates == TrainConfig(agent=agent).updates


@pytest.mark.parametrize("agent", ["PPO", "DAgger"])
def test_an_algorithm_that_was_not_published_keeps_its_settings(tmp_path, agent):
    path = published(tmp_path, agent_type=agent)
    usual, _, _ = load_config(agent=agent, overrides=["algorithm.encoder=published"])
    config, _, _ = load_config(path=path, overrides=["algorithm.encoder=published"])
    assert (config.algorithm, config.updates) == (usual.algorithm, usual.updates)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eval_frequency": 3}, "unknown setting 'eval_frequency'.*'eval_freq'"),
        ({"imitation_learning": True}, "imitation_learning is true"),
        ({"agent_type": "XYZ"}, "agent is 'XYZ'"),
        ({"total_timesteps": "many"}, "total_steps is 'many'"),
        (
            {"training_schedule": {**PUBLISHED["training_schedule"], "num_cores": [0]}},
            r"training_schedule.num_cores is \[0\]",
        ),
        ({"eval_schedule": {"num_episode": [1]}}, "'eval_schedule.num_episodes'"),
    ],
)
def test_wrong_published_training_file(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        load_config(path=published(tmp_path, **changes))


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.yaml' cannot be read"):
        load_config(path=tmp_path / "gone.yaml")
    (tmp_path / "half.json").write_text('{"seed": [0, ')
    with pytest.raises(ConfigError, match=r"half\.json' is damaged"):
        load_config(path=tmp_path / "half.json")
    (tmp_path / "list.yaml").write_text("- 1\n- 2\n")
    with pytest.raises(ConfigError, match="holds no settings"):
        load_config(path=tmp_path / "list.yaml")
    with pytest.raises(ConfigError, match=r"preset is .warp.*quickstart"):
        load_config(preset="warp")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5: 3", "key 5: give names"),
        ("env: {5: 1}", "env has the key 5: give names"),
        ("null: 3", "is damaged"),
        ("agent: {a: 1}", "agent is .*: choose one of"),
        ("output: [1, 2]", r"output is \[1, 2\]"),
        ("a: " + "[" * 800 + "]" * 800, "is damaged"),
        ("worlds: " + "9" * 5000, "is damaged"),
        ('{"agent_type": "DQN", "save_dir": 5}', "output is 5"),
        ('{"agent_type": ["DQN"]}', r"agent is \['DQN'\]"),
    ],
)
def test_values_of_the_wrong_kind_in_a_file_are_named(tmp_path, content, message):
    (tmp_path / "settings.yaml").write_text(content)
    with pytest.raises(ConfigError, match=message):
        load_config(path=tmp_path / "settings.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("algorithm: [2]", r"algorithm is \[2\]: give a section"),
        ("env: {episode: [9, true, true]}", r"env\.episode is \[9, True, True\]: give a section"),
    ],
)
def test_what_cannot_be_merged_with_a_section_is_named(tmp_path, content, message):
    (tmp_path / "settings.yaml").write_text(content)
    with pytest.raises(ConfigError, match=message):
        load_config(path=tmp_path / "settings.yaml", overrides=["env.episode.max_steps=50"])


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_has_a_file_of_differences(name):
    config, _, _ = load_config(agent=name)
    assert config.agent == name
    assert (CONFIGS / f"{name.lower().replace('-', '_')}.yaml").exists()
    assert config_from_plain(plain(config)) == config
    json.dumps(plain(config))


def test_an_agent_without_its_file_is_an_error(tmp_path, monkeypatch):
    """Its defaults alone would be another algorithm: AC-IQN with risk level 1 instead of 0.5."""
    monkeypatch.setattr(files, "CONFIGS", tmp_path)
    with pytest.raises(ConfigError, match=r"no file .*ac_iqn\.yaml.* with the settings of AC-IQN"):
        load_config(agent="AC-IQN")


def test_shipped_policies_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = Path("pretrained/ac_iqn")
    assert shipped.find_shipped(shown) == CONFIGS.parent / shown
    for absent in (Path("pretrained/warp"), Path("elsewhere/ac_iqn"), tmp_path / shown):
        assert shipped.find_shipped(absent) == absent
    shown.mkdir(parents=True)
    assert shipped.find_shipped(shown) == shown


@pytest.mark.parametrize("preset", presets())
@pytest.mark.parametrize("agent", AGENTS)
def test_every_preset_goes_with_every_agent(preset, agent):
    config, _, _ = load_config(preset=preset, agent=agent)
    assert config.agent == agent


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("agent", AGENTS)
def test_every_task_goes_with_every_agent_that_fits(task, agent):
    if agent not in fitting_agents(task):
        with pytest.raises(ConfigError, match="choose one of"):
            load_config(task=task, agent=agent)
        return
    config, _, _ = load_config(task=task, agent=agent)
    assert (config.agent, config.task) == (agent, task)


@pytest.mark.parametrize("name", ["ac_iqn", "ac_iqn_rules"])
def test_complete_settings_take_nothing_from_other_files(name):
    path = shipped.shipped_folder("pretrained") / name / "config.yaml"
    config, _, _ = load_config(path=path)
    expected = ("relative_motion", 0.8) if name == "ac_iqn_rules" else ("published", 0.0)
    assert (config.algorithm.encoder, config.curriculum.hull_margin) == expected


def test_a_tasks_file_comes_before_all_others(tmp_path):
    assert load_config()[0].algorithm.encoder == "relative_motion"
    assert load_config(task="marine_beams", agent="DDPG")[0].algorithm.encoder == "published"
    assert load_config(task="icra2024", agent="IQN")[0].stack_k == 8
    assert load_config(task="cartpole", agent="DQN")[0].worlds == 16
    file = tmp_path / "own.yaml"
    file.write_text("task: cartpole\nagent: DQN\nworlds: 20\n")
    config, _, _ = load_config(path=file)
    assert (config.task, config.worlds, config.updates.batch_size) == ("cartpole", 20, 64)
    overrides = ["algorithm.encoder=published", "curriculum.hull_margin=0"]
    config, _, _ = load_config(overrides=overrides)
    assert (config.algorithm.encoder, config.curriculum.hull_margin) == ("published", 0.0)


def test_every_field_has_unit_and_source():
    kinds = [kind for kind in vars(config_module).values() if isinstance(kind, type)]
    kinds = {kind for kind in kinds if issubclass(kind, Settings) and kind is not Settings}
    kinds |= {agent.Config for agent in AGENTS.values()}
    for kind in kinds:
        for field in dataclasses.fields(kind):
            if isinstance(field.default_factory, type) or field.name in ("algorithm", "env"):
                continue
            assert field.metadata["unit"], (kind, field.name)
            assert field.metadata["source"], (kind, field.name)


def test_no_module_shadows_a_standard_one():
    folder = Path(config_module.__file__).parent
    names = {path.stem for path in folder.iterdir()}
    assert not names & set(sys.stdlib_module_names)


def test_keys_of_older_versions_are_taken_for_those_of_today(tmp_path):
    stage = {"robots": 2, "cores": 1, "buoys": 0, "min_distance_m": 30.0}
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump({"curriculum": {"stages": [stage]}}))
    config, _, _ = load_config(path=file, overrides=["updates.replay_ratio=3"])
    assert config.updates.samples_per_insert == 3.0
    assert config.curriculum.stages == (Stage(2, 1, 0, 30.0),)


def test_an_option_and_a_setting_that_contradict_each_other_are_refused():
    for key, option, other in (("agent", "SAC", "DQN"), ("task", "icra2024", "marine")):
        with pytest.raises(ConfigError, match=f"{key} is '{other}': --{key} says '{option}'"):
            load_config(**{key: option}, overrides=[f"{key}={other}"])
    assert load_config(agent="SAC", overrides=["agent=SAC"])[0].agent == "SAC"


def test_a_file_at_fault_is_named_and_others_are_not(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("worlds: 8\nupdates: {batch_size: x}")
    with pytest.raises(ConfigError, match=f"^{path}: updates.batch_size is 'x'"):
        load_config(path=path)
    path.write_text("worlds: 8")
    with pytest.raises(ConfigError, match=r"^worlds is 0: give 1 or more"):
        load_config(path=path, overrides=["worlds=0"])
    with pytest.raises(ConfigError, match=r"^preset rules: "):
        load_config(preset="rules", task="icra2024")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["env=[]", "env.vessel.mass=1"], "cannot be read"),
        (["env=[]", "env.0=1"], "cannot be read"),
        (["worlds=${x}"], "cannot be read: Interpolation key 'x' not found"),
        (["log=8", "log.interval_steps=1"], "'log=8' gives log a value, and log.interval_steps a"),
        (["evaluation.stages=[]"], r"evaluation.stages is \(\): give at least one stage"),
    ],
)
def test_overrides_without_sense_are_named(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config(overrides=overrides)


def test_a_part_made_of_something_else_is_named_in_python_too():
    with pytest.raises(ConfigError, match=r"TrainConfig.env is \[\]: give 12 values"):
        TrainConfig(env=[])
    with pytest.raises(ConfigError, match=r"TrainConfig.worlds is 1000.*: its size is beyond"):
        TrainConfig(worlds=10**400)
    with pytest.raises(ConfigError, match=r"TrainConfig.algorithm is 5: give a section"):
        TrainConfig(algorithm=5)
    assert TrainConfig(env={"vessel": {"mass": 500.0}}).env.episode.max_steps == 300


@pytest.mark.parametrize(
    ("override", "task", "message"),
    [
        ("env.perception.rays=40", "marine", "perception.rays is a setting of marine_sectors, and"),
        ("env.vessel.mass=300", "icra2024", "vessel.mass is a setting of marine and marine_sec"),
        ("env.vesel.mass=300", "marine", "the nearest valid one is 'env.vessel'"),
    ],
)
def test_a_setting_of_other_tasks_is_told_with_them(override, task, message):
    with pytest.raises(ConfigError, match=message):
        load_config(task=task, overrides=[override])


def test_a_preset_beside_its_parts_is_told_how():
    overrides = ["env.vessel=otter", "env.vessel.mass=90"]
    with pytest.raises(ConfigError, match=r"or the value as env\.vessel\.name"):
        load_config(overrides=overrides)
    config, *_ = load_config(overrides=["env.vessel.name=otter", overrides[1]])
    assert config.env.vessel.mass == 90.0


def test_one_fringe_is_enough():
    overrides = ["curriculum.fringe=1", "env.reward.fringe=0.5"]
    with pytest.raises(
        ConfigError, match=r"env\.reward\.fringe is 0\.5: curriculum\.fringe 1 takes"
    ):
        load_config(overrides=overrides)
