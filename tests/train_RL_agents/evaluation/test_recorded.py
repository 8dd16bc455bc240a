"""Scores of recorded episodes."""

import dataclasses
import json

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.fields import ConfigError
from marinenav_env.tracks import record_tracks
from scripts import episode
from tests.train_RL_agents.evaluation.test_evaluation import toward_goal
from tests.train_RL_agents.policy_samples import EPISODES
from train_RL_agents.evaluation.episodes import (
    FIRST_WORLD,
    LOOK_INTERVAL,
    Evaluation,
    evaluation_config,
)
from train_RL_agents.evaluation.recorded import measure_tracks, score_recorded
from train_RL_agents.evaluation.safety import safety

COMPANY = Stage(robots=5, vortices=1, buoys=4, min_distance_m=40.0)
FILES = sorted(EPISODES.glob("*policy*.json"))


def test_tracks_of_an_evaluation_have_its_numbers():
    config = EnvConfig()
    (evaluated,) = Evaluation((COMPANY,), (12,), seed=7, config=config, discrete=False).run(
        toward_goal
    )
    env = MarineNavEnv(
        12, stages=(COMPANY,), config=evaluation_config(config), seed=7, first_world=FIRST_WORLD
    )
    tracks = record_tracks(env, toward_goal, 1_000, look_interval=LOOK_INTERVAL)
    recorded = measure_tracks(tracks)
    for name, column in evaluated.measures.vessels.items():
        torch.testing.assert_close(recorded.vessels[name] > 0, column > 0, msg=name)
        if name not in ("reached", "collided"):  # flags: bits of the status
            torch.testing.assert_close(recorded.vessels[name], column, rtol=1e-5, atol=1e-4)
    for name, column in evaluated.measures.encounters.items():
        torch.testing.assert_close(recorded.encounters[name], column, equal_nan=True)


def test_episodes_together_are_those_alone():
    tracks = [tracks_of(read_episode(path)) for path in FILES]
    numbers = score_recorded(tracks)
    alone = [safety(measure_tracks(one)) for one in tracks]
    for name in ("vessel_episodes", "vessel_hours"):
        total = sum(part[name] for part in alone)
        assert numbers["safety"][name] == pytest.approx(total, abs=1e-3)
    encounters = [part["encounters"]["GW"] for part in alone]
    assert numbers["safety"]["encounters"]["GW"] == sum(encounters) > 0
    assert numbers["rules"]["score"] == "v1"


def test_an_energy_that_was_not_recorded_is_none():
    whole = read_episode(FILES[0])
    bare = dataclasses.replace(
        whole, data={key: value for key, value in whole.data.items() if key != "recorded"}
    )
    whole, bare = (score_recorded([tracks_of(one)])["safety"] for one in (whole, bare))
    assert whole["robot_energy"]["value"] > 0.0
    assert bare["robot_energy"]["value"] is None


def test_vessels_of_two_sizes_are_refused():
    first = tracks_of(read_episode(FILES[0]))
    with pytest.raises(ConfigError, match="one kind of vessel"):
        score_recorded([first, dataclasses.replace(first, hull_radius=1.0)])


def test_command_line(tmp_path, capsys, refused):
    assert episode.main(["score", *map(str, FILES[:2])]) == 0
    assert json.loads(capsys.readouterr().out)["safety"]["vessel_episodes"] > 2
    (tmp_path / "a.json").write_text("{}")
    refused(episode.main, ["score", str(tmp_path / "a.json")], "a.json", status=2)
