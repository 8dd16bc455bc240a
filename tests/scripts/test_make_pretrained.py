"""The folder that is made of a run, and what it tells of the run."""

import hashlib
import json
import shutil

import pytest
import torch

from marinenav_env.fields import plain
from scripts import make_pretrained
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.run import checkpoint
from train_RL_agents.run.source import ROOT

START = {
    "time": "2025-01-01T00:00:00+00:00",
    "command": [
        "/venv/bin/python",
        f"{ROOT}/train_RL_agents/train.py",
        "--output",
        "/far/away/run",
    ],
    "commit": "abc",
    "diff": "+a line",
    "versions": {"torch": "2.13.0"},
    "device": "cpu: x86_64",
    "processes": 1,
    "cpu_threads": 2,
    "cpu_count": 2,
    "platform": "Linux",
}


@pytest.fixture
def run(tmp_path):
    """A run's folder with a best checkpoint of step 5."""
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    save_policy(
        folder / "checkpoints" / "best.pt",
        "AC-IQN",
        evaluation={"stages": [[1, 0, 0, 30.0], [2, 0, 0, 30.0]]},
    )
    (folder / "run.json").write_text(
        json.dumps({"seed": 0, "config": {}, "starts": [START, START]})
    )
    records = [
        {"mode": "train", "step": 3, "elapsed_s": 30.0},
        {"mode": "evaluation", "step": 5, "elapsed_s": 50.0},
        {"mode": "train", "step": 8, "elapsed_s": 80.0},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in records))
    return folder


def make(run, output, *options, others=()):
    few = ["--output", str(output), "--device", "cpu", "--encounters", "1"]
    return make_pretrained.main([*map(str, (run, *others)), *few, *options])


def test_the_risk_level_to_ship(run, tmp_path, capsys):
    options = ("--episodes", "1", "--cvar", "0.25")
    assert make(run, tmp_path / "ac_iqn", *options) == 1
    assert "cvar is 0.25: this AC-IQN was trained with" in capsys.readouterr().err
    save_policy(run / "checkpoints" / "best.pt", "IQN", evaluation={"stages": [[1, 0, 0, 30.0]]})
    assert make(run, tmp_path / "iqn", *options) == 0
    agent, config = load_policy(tmp_path / "iqn")
    assert agent.config.cvar == config.algorithm.cvar == 0.25
    provenance = json.loads((tmp_path / "iqn" / "provenance.json").read_text())
    assert provenance["trained_with"] == {"cvar": load_policy(run)[0].config.cvar}
    assert provenance["trained_with"] != {"cvar": 0.25}
    made = ("--episodes", "1", "--encounters", "0", "--cvar", "0.1")
    assert make(tmp_path / "iqn", tmp_path / "again", *made) == 0
    again = json.loads((tmp_path / "again" / "provenance.json").read_text())
    assert again["trained_with"] == provenance["trained_with"]
    assert load_policy(tmp_path / "again")[1].algorithm.cvar == 0.1


def test_a_folder_of_a_run(run, tmp_path, capsys):
    output = tmp_path / "pretrained" / "ac_iqn"
    assert make(run, output, "--episodes", "2", "--seed", "7") == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith(f"{output}: ")
    assert "AC-IQN, seed 7" in printed

    agent, _ = load_policy(output)
    own, _ = load_policy(run)
    for key, value in agent.actor.state_dict().items():
        assert torch.equal(value, own.actor.state_dict()[key])

    table = json.loads((output / "evaluation.json").read_text())
    assert table["seed"] == 7
    assert [row["episodes"] for row in table["stages"]] == [2, 2]
    assert 0.0 <= table["stages"][0]["success"] <= 1.0
    assert table["encounters"]["set"] == "singles"
    assert len(table["encounters"]["success"]) == 9
    assert {"head_on", "give_way", "classes"} < set(table["encounters"]["rules"])

    made = json.loads((output / "provenance.json").read_text())
    checkpoint = (run / "checkpoints" / "best.pt").read_bytes()
    assert made["checkpoint_sha256"] == hashlib.sha256(checkpoint).hexdigest()
    assert (made["agent"], made["checkpoint"]) == ("AC-IQN", "best.pt")
    assert (made["step"], made["commit"], made["training_s"]) == (5, "abc", 50.0)
    assert len(made["starts"]) == 2
    start = made["starts"][0]
    assert start["command"] == "python train_RL_agents/train.py --output run"
    assert start["uncommitted_changes"] is True
    assert "/" not in "".join(map(str, start["versions"].values()))


def test_a_folder_of_two_runs_has_the_mean_of_their_weights(run, tmp_path, capsys):
    settings = {
        "algorithm": {"start": "/home/me/runs/sac"},
        "evaluation": {"stages": [[1, 0, 0, 30.0]]},
    }
    save_policy(run / "checkpoints" / "best.pt", "DPI", **settings)
    other = tmp_path / "other"
    shutil.copytree(run, other)
    policy = read_policy(other)
    for parameter in policy.agent.actor.parameters():
        parameter.data.mul_(3.0)
    (other / "run.json").write_text(
        json.dumps({"seed": 1, "config": {}, "starts": [START | {"commit": "def"}]})
    )
    state = {"step": 8, "config": plain(policy.config), "model": policy.agent.training_state()}
    checkpoint.save(other / "checkpoints" / "best.pt", state)
    own = read_policy(run).agent.actor.state_dict()

    output = tmp_path / "mean"
    assert make(run, output, "--episodes", "1", others=[other]) == 0
    agent, config = load_policy(output)
    for key, value in agent.actor.state_dict().items():
        moved = "input_scale" not in key
        torch.testing.assert_close(value, own[key] * (2.0 if moved else 1.0))
    assert config.algorithm.start == "RUN"
    made = json.loads((output / "provenance.json").read_text())
    assert (made["step"], made["training_s"], made["agent"]) == (13, 130.0, "DPI")
    assert [(one["step"], one["training_s"]) for one in made["mean_of"]] == [(5, 50.0), (8, 80.0)]
    assert made["commit"] is None
    assert len({one["checkpoint_sha256"] for one in made["mean_of"]}) == 2

    assert make(run, output, "--episodes", "1", others=[run]) == 0
    made = json.loads((output / "provenance.json").read_text())
    assert (made["step"], made["commit"], len(made["mean_of"])) == (5, "abc", 2)

    assert make(run, tmp_path / "one", "--episodes", "1") == 0
    shipped = run / "shipped"  # has its own record, and not that of the run around it
    assert make(other, shipped, "--episodes", "1") == 0
    assert make(tmp_path / "one", output, "--episodes", "1", others=[shipped]) == 0
    made = json.loads((output / "provenance.json").read_text())
    assert [one["commit"] for one in made["mean_of"]] == ["abc", "def"]
    assert made["step"] == 13
    assert make(output, tmp_path / "again", "--episodes", "1", others=[run]) == 0
    made = json.loads((tmp_path / "again" / "provenance.json").read_text())
    assert made["step"] == 13, "a run that is in a mean, too, counts once"

    with pytest.raises(SystemExit):
        make(run, output, "--all-networks", others=[other])
    assert "--all-networks: several runs have no mean" in capsys.readouterr().err


def test_a_policy_of_other_worlds_is_shipped_with_the_usual_ones(run, tmp_path):
    own = {
        "stream": {"speed": [0.0, 0.6]},
        "current": {"edge_speed_max": 6.0},
        "scenario": {"width": 80.0},
        "reward": {"timestep": -0.3},
    }
    evaluation = {"stages": [[2, 0, 8, 30.0], [2, 0, 9, 30.0]], "episodes": [0, 4]}
    save_policy(run / "checkpoints" / "best.pt", "SAC", env=own, evaluation=evaluation)
    shipped = {}
    for options in ((), ("--usual-worlds",)):
        output = tmp_path / str(len(options))
        assert make(run, output, "--episodes", "1", *options) == 0
        _, config = load_policy(output)
        table = json.loads((output / "evaluation.json").read_text())
        stages = [(row["robots"], row["buoys"]) for row in table["stages"]]
        shipped[options] = config.env.stream.speed, stages
    published = [(3, 0), (4, 0), (5, 0), (5, 2), (5, 3), (5, 4)]
    assert list(shipped.values()) == [((0.0, 0.6), [(2, 8), (2, 9)]), ((0.0, 0.0), published)]
    assert config.env.reward.timestep == -0.3
    made = json.loads((output / "provenance.json").read_text())
    assert made["trained_with"]["env"]["stream"]["speed"] == [0.0, 0.6]
    usual = TrainConfig().env
    assert (config.env.current, config.env.scenario) == (usual.current, usual.scenario)

    for others in ((), (output,)):  # made of what was made, what it was trained with stays known
        again = tmp_path / f"again{len(others)}"
        assert make(output, again, "--episodes", "1", "--usual-worlds", others=others) == 0
        made = json.loads((again / "provenance.json").read_text())
        assert made["trained_with"]["env"]["stream"]["speed"] == [0.0, 0.6]


def test_networks_that_are_not_known_are_not_shipped(run, tmp_path, capsys):
    once = tmp_path / "once"
    assert make(run, once, "--episodes", "1") == 0
    assert make(once, tmp_path / "twice", "--episodes", "1", "--all-networks") == 1
    assert f"{once} has the acting network alone; give the run" in capsys.readouterr().err
    assert not (tmp_path / "twice").exists()


def test_places_of_files_are_left_out():
    shipped = "pretrained/ddpg"
    starts = {"/home/me/runs/a": "RUN", "a.pt": "RUN", f"{ROOT}/{shipped}": shipped, "": ""}
    for start, kept in starts.items():
        config = config_from_plain({"agent": "PPO", "algorithm": {"start": start}})
        assert make_pretrained.without_places(config).algorithm.start == kept
    members = f"mean:/home/me/runs/a,{ROOT}/{shipped}"
    assert make_pretrained.without_place(members) == f"mean:a,{shipped}"
    command = ["train.py", "algorithm.start=/home/me/runs/a", f"x={ROOT}/configs/a.yaml", "b=1/c=2"]
    kept = "python algorithm.start=a x=configs/a.yaml b=1/c=2"
    assert make_pretrained.command_of(command) == kept


def test_bad_input(run, tmp_path, capsys):
    output = tmp_path / "out"
    assert make(tmp_path / "none", output) == 1
    assert "no checkpoint" in capsys.readouterr().err
    (run / "run.json").unlink()
    assert make(run, output) == 1
    assert "without run.json nobody could tell how it was trained" in capsys.readouterr().err
    assert not output.exists()
    with pytest.raises(SystemExit, match="2"):
        make(run, output, "--episodes", "0")
    with pytest.raises(SystemExit):
        make(run, output, "--encounters", "-1")


def test_the_output_is_checked_before_any_work(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(make_pretrained, "read_policy", None)
    file = tmp_path / "README.md"
    file.write_text("")
    for output in (file, file / "x"):
        assert make(run, output) == 1
        assert f"{str(file)!r} is no folder to write to: give" in capsys.readouterr().err
    assert make(run, run) == 1
    told = capsys.readouterr().err
    assert f"output is {str(run)!r}, which holds 'checkpoints' and is no pretrained policy" in told
    assert sorted(path.name for path in run.iterdir()) == [
        "checkpoints",
        "metrics.jsonl",
        "run.json",
    ]


def test_an_empty_folder_is_filled_and_a_pretrained_one_is_replaced(run, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    assert make(run, output, "--episodes", "1", "--seed", "1") == 0
    (output / "policy.onnx").write_text("an export of it")
    assert make(run, output, "--episodes", "1", "--seed", "2") == 0
    assert json.loads((output / "evaluation.json").read_text())["seed"] == 2
