"""The worlds of ICRA 2024's published experiment: drawn as recorded, and played."""

import json

import numpy as np
import pytest

from marinenav_env.envs.scenarios import Stage
from scripts.checks import icra2024_check
from scripts.checks.icra2024_check import draw_world
from train_RL_agents.evaluation.episodes import Batch


def test_a_world_is_the_one_that_the_published_simulator_draws(reference):
    recorded = json.loads((reference / "icra2024/episodes/policy_3r_4v_4o.json").read_text())
    water, robots = recorded["env"], recorded["robots"]
    world = draw_world(np.random.RandomState(water["seed"]), Stage(3, 4, 4, 30.0))
    starts, goals = np.array(robots["start"]), np.array(robots["goal"])
    began = np.column_stack((starts, robots["init_theta"], robots["init_speed"], goals))
    np.testing.assert_allclose(world.robots, began, atol=1e-7)
    sense = np.where(water["cores"]["clockwise"], 1.0, -1.0)
    vortices = np.column_stack((water["cores"]["positions"], sense * water["cores"]["Gamma"]))
    np.testing.assert_allclose(world.vortices, vortices, atol=1e-7)
    buoys = np.column_stack((water["obstacles"]["positions"], water["obstacles"]["r"]))
    np.testing.assert_allclose(world.buoys, buoys, atol=1e-7)


def test_what_finds_no_room_is_left_out():
    world = draw_world(np.random.RandomState(0), Stage(12, 40, 99, 40.0))
    assert 7 < len(world.robots) <= 12
    assert 4 < len(world.vortices) < 40
    assert 20 < len(world.buoys) < 99
    places = np.array([row[:2] for row in world.buoys])
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)[~np.eye(len(places), dtype=bool)]
    assert gaps.min() > 2.0


@pytest.mark.parametrize("name", ["icra2024_dqn", "icra2024_iqn"])
def test_a_policy_plays_them_from_the_start_in_every_repeat(name, tmp_path, capsys, monkeypatch):
    class Watched(Batch):
        def __init__(self, env, **options):
            began.append(int(env.alive.sum()))
            super().__init__(env, **options)

    began = []
    monkeypatch.setattr(icra2024_check, "Batch", Watched)
    path = tmp_path / "record.json"
    few = ["--worlds", "2", "--repeats", "2", "--json", str(path)]
    adaptive = ["--adaptive-cvar"] if name == "icra2024_iqn" else []
    assert icra2024_check.main([f"pretrained/{name}", *few, *adaptive]) == 0
    record = json.loads(path.read_text())
    assert [row["robots"] for row in record["rows"]] == [3, 4, 5, 6, 7]
    assert began == [6, 6, 8, 8, 10, 10, 12, 12, 14, 14]
    assert all(len(row["success_of_repeats"]) == 2 for row in record["rows"])
    assert record["rows"][0]["success"] >= 0.5
    assert record["command"][2] == f"pretrained/{name}"
    assert "7 robots: " in capsys.readouterr().out
