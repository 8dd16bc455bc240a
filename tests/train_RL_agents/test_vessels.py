"""Another vessel on the command lines: settings, training, evaluation, export, recording."""

import json

import pytest
import torch

from marinenav_env.episodes.format import read_episode
from marinenav_env.fields import ConfigError
from marinenav_env.vessels import VESSELS
from scripts import episode
from tests.train_RL_agents.policy_samples import table_of
from tests.train_RL_agents.short_runs import TINY
from train_RL_agents import export, train
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.schema import Scenario
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import shield_agent

pytestmark = pytest.mark.usefixtures("short_evaluations")


def test_a_vessel_is_named_on_the_command_line_or_in_parts():
    config, _, _ = load_config(overrides=["env.vessel=otter"])
    assert config.env.vessel == VESSELS["otter"]
    config, _, _ = load_config(overrides=["env.vessel.name=heron", "env.vessel.max_thrust=20"])
    assert (config.env.vessel.mass, config.env.vessel.max_thrust) == (35.96, 20.0)
    with pytest.raises(ConfigError, match=r"env\.vessel\.name is 'raft': choose one of wamv16"):
        load_config(overrides=["env.vessel=raft"])


@pytest.mark.parametrize(("name", "agent"), [("otter", "IQN"), ("cybership2", "AC-IQN")])
def test_train_evaluate_export_and_record(name, agent, tmp_path, capsys):
    run = tmp_path / "run"
    stage = "evaluation.stages=[[3,0,1,30]]"
    arguments = ["--agent", agent, "--output", str(run), *TINY, f"env.vessel={name}", stage]
    assert train.main(arguments) == 0
    _, config = load_policy(run)
    assert config.env.vessel == VESSELS[name]
    assert len(table_of(tmp_path, "--checkpoint", str(run), "--episodes", "1")["stages"]) == 1
    assert export.main(["--checkpoint", str(run), "--format", "torchscript"]) == 0
    file, figure = tmp_path / "episode.json", tmp_path / "episode.png"
    arguments = ["record", "--checkpoint", str(run), "--output", str(file), "--limit", "20"]
    assert episode.main([*arguments, "--no-noise"]) == 0
    robots = read_episode(file).robots
    assert robots["vessel"] == [name] * len(robots["vessel"])
    assert robots["xG"][0] == VESSELS[name].x_g
    assert episode.main(["replay", str(file)]) == 0
    assert episode.main(["plot", str(file), "--output", str(figure)]) == 0
    assert figure.stat().st_size > 0


def test_files_of_the_first_vessel_have_the_published_keys_alone(tmp_path):
    file = tmp_path / "episode.json"
    arguments = ["record", "--checkpoint", "pretrained/iqn", "--output", str(file), "--limit", "3"]
    assert episode.main(arguments) == 0
    assert not {"vessel", "xG", "maxThrustRate"} & read_episode(file).robots.keys()


def test_an_unknown_vessel_in_a_file_is_refused(tmp_path):
    file = tmp_path / "episode.json"
    arguments = ["record", "--checkpoint", "pretrained/iqn", "--output", str(file), "--limit", "3"]
    assert episode.main(arguments) == 0
    data = json.loads(file.read_text())
    data["robots"]["vessel"] = ["raft"] * data["env"]["num_robots"]
    file.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="key 'xG' is missing in 'robots'"):
        read_episode(file)


def test_safety_refuses_what_it_cannot_tell():
    agent, config = load_policy("pretrained/iqn")
    small, _, _ = load_config(agent="IQN", overrides=["env.vessel=otter"])
    with pytest.raises(ConfigError, match=r"vessel\.radius is 1\.14: .* smaller? ?buoys"):
        shield_agent(agent, small, ShieldConfig(), agent.act)
    buoys = ["env.scenario.buoy_radius_min=0.4", "env.scenario.buoy_radius_max=0.4"]
    clear, _, _ = load_config(agent="IQN", overrides=["env.vessel=otter", *buoys])
    guarded = shield_agent(agent, clear, ShieldConfig(), agent.act)
    seen = agent.spec.observation.draw(2, torch.Generator().manual_seed(0))
    assert guarded(seen).shape == (2,)
    assert shield_agent(agent, config, ShieldConfig(), agent.act)


def test_classical_controllers_refuse_a_vessel_without_a_top_speed():
    own = {"start": [0, 0], "goal": [30, 0], "heading_deg": 0, "steer": "policy"}
    other = {"start": [30, 10], "goal": [0, 10], "heading_deg": 180, "steer": "orca"}
    scenario = Scenario(name="meeting", vessels=[own, other])
    settings = TrainConfig(env=load_config(overrides=["env.vessel={x_u: 0, x_uu: 0}"])[0].env)
    with pytest.raises(ConfigError, match=r"steer is 'orca': env\.vessel has no top speed"):
        ScenarioEvaluation([scenario], seed=0, config=settings.env, discrete=True)
