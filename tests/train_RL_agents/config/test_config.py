"""Settings: where they come from, and which of two sources wins."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import yaml

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, Settings, plain
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config import files, shipped
from train_RL_agents.config import schema as config_module
from train_RL_agents.config.files import CONFIGS, load_config, presets
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.config.schema import TrainConfig, fitting_agents


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
    of_ac_iqn = preset in ("rules_ac_iqn", "rules_finish", "rules_gpu", "rules_gpu_finish")
    wrong = None
    if of_ac_iqn and agent not in ("AC-IQN", "IQN"):  # others have no risk level
        wrong = (
            "preset rules_ac_iqn: unknown .* 'algorithm.cvar'.*; its settings are for --agent AC"
        )
    if preset in ("generalist", "randomised") and agent != "DPI":
        wrong = f"preset {preset}: unknown .* 'algorithm.lookahead'.* for --agent DPI"
    if wrong:
        with pytest.raises(ConfigError, match=wrong):
            load_config(preset=preset, agent=agent)
        return
    config, _, _ = load_config(preset=preset, agent=agent)
    assert config.agent == agent


def test_the_rules_on_a_gpu_have_the_sizes_of_the_preset_for_it():
    sizes, rules, finish = (
        yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
        for name in ("gpu", "rules_gpu", "rules_gpu_finish")
    )
    assert rules == sizes | {"preset": "rules_ac_iqn", "total_steps": 100_000_000}
    assert finish == sizes | {
        "preset": "rules_finish",
        "total_steps": 30_000_000,
        "env": {"reward": {"colregs": -2.5}},
        "updates": {"batch_size": sizes["updates"]["batch_size"], "rate_factor": 2.0},
        "evaluation": {"interval_steps": 10_000_000, "episodes": [60]},
    }


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
    expected = ("relative_motion", 0.6) if name == "ac_iqn_rules" else ("published", 0.0)
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


def test_a_preset_begins_with_another_one():
    config, rules = (load_config(preset=name)[0] for name in ("quickstart", "rules"))
    assert (config.env, config.curriculum, config.scenarios) == (
        rules.env,
        rules.curriculum,
        rules.scenarios,
    )
    assert (config.total_steps, rules.total_steps) == (6_000_000, 20_000_000)
    assert config.updates == rules.updates
    assert config.env != load_config(agent="SAC")[0].env


def test_looking_ahead_has_the_rates_of_its_own_algorithm_and_not_those_of_the_rules():
    config, alone, rules = (
        load_config(**of)[0]
        for of in ({"preset": "lookahead"}, {"agent": "DPI"}, {"preset": "rules"})
    )
    averages = [of.algorithm.acting_average for of in (config, alone, rules)]
    factors = [of.updates.rate_factor for of in (config, alone, rules)]
    for own, algorithms, others in (averages, factors):
        assert own == algorithms != others


def test_a_file_begins_with_a_preset(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("preset: quickstart\nenv: {reward: {timestep: -0.2}}\n")
    config, _, _ = load_config(path=file, overrides=["total_steps=20_000"])
    base = load_config(preset="quickstart")[0]
    assert config.env.colregs == base.env.colregs != type(base.env.colregs)()
    assert config.env.reward == dataclasses.replace(base.env.reward, timestep=-0.2)
    assert (config.total_steps, config.updates) == (20_000, base.updates)
    assert load_config(preset="quickstart", path=file)[0].env == config.env
