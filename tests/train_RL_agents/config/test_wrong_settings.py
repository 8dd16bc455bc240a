"""What a wrong setting is told: its field, its value and a remedy."""

import pytest

from marinenav_env.fields import ConfigError
from train_RL_agents.config import files
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import TrainConfig


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("algorithm.gama=0.9", ["algorithm.gama", "'algorithm.gamma'"]),
        ("learnin_rate=1", ["learnin_rate", "'algorithm.learning_rate'"]),
        ("env.rewrd.goal=1", ["env.rewrd", "'env.reward'"]),
        ("lr=1", ["'lr'", "'algorithm.learning_rate'"]),
        ("algorithm.tau=1", ["'algorithm.tau'", "'algorithm.polyak'"]),
        ("buffer_size=1", ["'buffer_size'", "'replay.capacity'"]),
        ("num_envs=1", ["'num_envs'", "'worlds'"]),
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


def test_a_value_where_a_file_gives_parts_is_told_with_them(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("env: {vessel: {mass: 600.0}, stream: {speed: [0.1, 0.2]}}\n")
    asks = "give a section, as other settings do"
    for override, told in {
        "env.vessel=otter": rf"'otter': {asks} \(env.vessel.mass\), or env.vessel.name=otter$",
        "env.stream=fast": rf"env.stream is 'fast': {asks} \(env.stream.speed\)$",
    }.items():
        with pytest.raises(ConfigError, match=told):
            load_config(path=path, overrides=[override])
    named = load_config(path=path, overrides=["env.vessel.name=otter"])[0].env.vessel
    assert (named.name, named.mass) == ("otter", 600.0)


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


def test_a_file_that_begins_with_a_preset_it_cannot_have(tmp_path):
    path = tmp_path / "own.yaml"
    for wrong in ("warp", "[rules]", "{}"):
        path.write_text(f"preset: {wrong}\n")
        with pytest.raises(ConfigError, match=f"^{path}: preset is .*choose one of .*quickstart"):
            load_config(path=path)
    path.write_text("preset: rules\n")
    message = f"^{path}: preset is 'rules', and --preset says 'scale': give one"
    with pytest.raises(ConfigError, match=message):
        load_config(preset="scale", path=path)
    with pytest.raises(ConfigError, match=r"^preset is 'rules': give it as --preset NAME"):
        load_config(overrides=["preset=rules"])


def test_presets_that_begin_with_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CONFIGS", tmp_path)
    for name, base in {"one": "two", "two": "one", "three": "warp"}.items():
        (tmp_path / f"{name}.yaml").write_text(f"preset: {base}\n")
    with pytest.raises(ConfigError, match=r"^preset two: preset is 'one', which begins with this"):
        load_config(preset="one")
    with pytest.raises(ConfigError, match=r"^preset three: preset is 'warp': choose one of"):
        load_config(preset="three")


def test_a_file_on_a_preset_is_not_blamed_for_others(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("preset: rules\nalgorithm: {alpha_learning_rate: 1e-4}\n")
    with pytest.raises(ConfigError, match=r"^worlds is 0: give 1 or more"):
        load_config(path=path, overrides=["worlds=0"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5: 3", "key 5: give names"),
        ("env: {5: 1}", "env has the key 5: give names"),
        ("null: 3", "is damaged"),
        ("worlds: 3\nseed: 1\nworlds: 4", r"duplicate key worlds\n.* line 3,"),
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
