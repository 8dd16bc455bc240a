"""Settings of the environment in the benchmark: in force in every row, and in its record."""

import dataclasses
import json

import pytest
import torch

from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VESSELS
from scripts.bench import main
from scripts.bench import options as command_line
from scripts.bench.case import Case
from scripts.bench.simulation import Simulation, chooser_of
from scripts.bench.training import training_config
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.schema import training_env

CPU = torch.device("cpu")


def test_they_are_in_force_in_every_row():
    command = ["--modes", *command_line.MODES, "env.vessel=otter", "--worlds", "4"]
    command += ["--agents", "DQN", "--device", "cpu", "env.episode.max_steps=200"]
    command += ["--vortices", "0", "--train-worlds", "4"]
    rows = list(main.cases(command_line.parse(command), CPU))
    assert {case.mode for case in rows} == set(command_line.MODES)
    for case in rows:
        assert case.settings == ("env.vessel=otter", "env.episode.max_steps=200")
        env = training_config(case).env if case.mode == "train" else Simulation(case).env.config
        assert env.vessel == VESSELS["otter"]
        assert (env.episode.max_steps == 200) == (case.resets != "none")


def test_disturbances_come_on_top():
    settings = ("env.wind.speed=[9,9]", "env.wind.gust_time=7", "env.stream.speed=[1,1]")
    case = Case("step", CPU, 4, disturbances="wind", settings=settings)
    env = Simulation(case).env.config
    assert (env.wind.speed, env.wind.gust_time) == ((0.0, 6.0), 7.0)
    assert env.stream.speed == (1.0, 1.0)


def test_episodes_without_resets_keep_how_they_end():
    settings = ("env.episode.stop_on_collision=true",)
    env = Simulation(Case("step", CPU, 4, resets="none", settings=settings)).env
    assert (env.config.episode.max_steps, env.config.episode.stop_on_collision) == (10**6, True)


def test_what_a_training_in_a_task_needs_remains():
    case = Case("train", CPU, 4, 1, 0, min_distance_m=0.0, agent="DQN", task="mountain_car")
    case = dataclasses.replace(case, batch_size=64, samples_per_insert=1.0)
    usual = training_config(case).env
    changed = training_config(dataclasses.replace(case, settings=("env.episode.max_steps=99",)))
    assert usual.physics == changed.env.physics != training_env("mountain_car").physics
    assert changed.env.episode.max_steps == 99


def test_a_fringe_is_no_second_one():
    """The benchmark trains without that of the curriculum in `configs/icra2024.yaml`."""
    case = Case("train", CPU, 4, 3, 0, 4, 30.0, agent="DQN", task="icra2024", batch_size=64)
    case = dataclasses.replace(case, samples_per_insert=1.0, settings=("env.reward.fringe=1",))
    assert training_config(case).collecting_env.reward.fringe == 1.0
    assert Simulation(dataclasses.replace(case, mode="inference")).env.config.reward.fringe == 1


def test_the_record_and_the_table_say_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(main, "matmul_flops_per_s", lambda device: {"float32": 1e9})
    path = tmp_path / "record.json"
    few = ["--worlds", "2", "--repeats", "1", "--seconds", "0.001", "--device", "cpu"]
    acting = ["--modes", "inference", "--policies", "baseline:goal-straight"]
    assert main.main([*acting, "env.wind.speed=[3,5]", *few, "--json", str(path)]) == 0
    (found,) = json.loads(path.read_text())["rows"]
    assert found["settings"] == ["env.wind.speed=[3,5]"]
    assert "env.wind.speed=[3,5]" in capsys.readouterr().out
    assert main.main([*acting, *few, "--json", str(path)]) == 0
    (found,) = json.loads(path.read_text())["rows"]
    assert found["settings"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["env.wind.sped=3"], "unknown setting 'env.wind.sped'"),
        (["env.vessel=raft"], "env.vessel.name is 'raft': choose one of wamv16"),
        (["env.perception.rays=40"], "env.perception.rays is a setting of marine_sectors, and"),
        (["--task", "cartpole", "env.vessel=otter"], "and the task is cartpole: give another"),
        (
            ["env.vessel.x_u=-6000", "--disturbances", "off", "variation"],
            "the greatest dampings gives a vessel whose x_u is -7800.0: ",
        ),
    ],
)
def test_those_of_no_use_are_refused_before_any_row(arguments, message, refused, monkeypatch):
    monkeypatch.setattr(main, "measure", lambda *_: pytest.fail("it has begun"))
    refused(main.main, [*arguments, "--device", "cpu"], message, status=2)


def test_a_policy_acts_on_the_vessel_that_it_knows():
    otter = Case("inference", CPU, 2, agent="pretrained/sac", settings=("env.vessel=otter",))
    assert not chooser_of(otter).discrete
    heavy = ("env.vessel.mass=450",)
    dqn = dataclasses.replace(otter, agent="pretrained/dqn")
    assert chooser_of(dataclasses.replace(dqn, settings=heavy)).discrete
    with pytest.raises(ConfigError, match=r"pretrained/dqn': its discrete actions are not"):
        chooser_of(dqn)
    assert not chooser_of(dataclasses.replace(otter, agent="baseline:orca")).discrete
    undamped = Case("inference", CPU, 2, agent="baseline:orca", settings=("env.vessel.n_r=0",))
    undamped = dataclasses.replace(undamped, settings=(*undamped.settings, "env.vessel.n_rr=0"))
    with pytest.raises(ConfigError, match=r"'orca': env\.vessel has no top yaw rate"):
        chooser_of(undamped)


def test_a_shield_plans_for_the_vessel_of_the_worlds():
    case = Case("inference", CPU, 2, agent="pretrained/sac", settings=("env.vessel=otter",))
    case = dataclasses.replace(case, shield=ShieldConfig())
    with pytest.raises(ConfigError, match=r"a vessel 'otter' looks as small as"):
        chooser_of(case)
    small = (*case.settings, "env.scenario.buoy_radius_min=0.5")
    small += ("env.scenario.buoy_radius_max=0.6",)
    assert chooser_of(dataclasses.replace(case, settings=small)).act.shield
