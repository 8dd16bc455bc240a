"""Exports with a shield inside: called as without, and acting as `evaluate.py --shield` does."""

import functools

import pytest
import torch

from marinenav_env.envs.observation import Observation
from tests.train_RL_agents.policies.shield.situations import random_situations, remembered
from tests.train_RL_agents.policy_samples import OUTPUTS, export_policy, save_policy, table_of
from train_RL_agents import evaluate, export
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.formats import FORMATS
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.shield.acting import shield_agent
from train_RL_agents.policies.shield.deployed import exchanged

DETERMINISTIC = [name for name in OUTPUTS if name != "SAC"]
SETTINGS = ("margin_m=0.5", "closer_m=0.2", "hidden_buoy_m=0.7")
FEW_SUBSTEPS = {"dt": 0.25, "substeps": 2}
"""Of a decision: an ONNX file holds the operators of each, and many take long to write and read."""


def exported(path, *options):
    return export_policy(path, "torchscript", "--shield", *options)


def test_entries_are_exchanged_along_the_axis_of_actions():
    outputs = torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]).expand(2, 2, 3)
    first, second = torch.tensor([0, 1]), torch.tensor([2, 1])
    swapped = exchanged(outputs, first, second, -1)
    assert swapped.tolist() == [[[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]], outputs[1].tolist()]
    by_row = exchanged(outputs, torch.tensor([0, 1]), torch.tensor([1, 1]), -2)
    assert by_row.tolist() == [[[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]], outputs[1].tolist()]


@pytest.mark.parametrize("name", DETERMINISTIC)
@torch.no_grad()
def test_the_file_acts_as_the_shielded_policy(name, tmp_path, capsys):
    """In every situation, one at a time too; what it leaves alone has the bits of the bare file."""
    path, bare = save_policy(tmp_path / "policy.pt", name), tmp_path / "bare.pt"
    export_policy(path, "torchscript", "--output", str(bare))
    loaded, known = read_policy(exported(path, "margin_m=0.5")), read_policy(bare)
    assert "shielded, torchscript" in capsys.readouterr().out
    count = 40  # quantiles take long
    observation = random_situations(count)
    agent, config = load_policy(path)
    agent.double()
    guarded = shield_agent(agent, config, ShieldConfig(margin_m=0.5), agent.act)
    expected = guarded(observation)
    assert "margin_m=0.5" in loaded.origin["shield"]
    assert "shield" not in known.origin
    found = loaded.agent.act(observation)
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-9)
    lone = loaded.agent.act(Observation(*(part[7:8] for part in observation)))
    torch.testing.assert_close(lone, expected[7:8], rtol=0.0, atol=1e-9)

    others = list(agent.actor_inputs().values())
    arguments = [tuple(observation), *(value.expand(count, -1).double() for value in others)]
    shielded, plain = (p.agent.actor.module(*arguments) for p in (loaded, known))
    changed = (expected != agent.act(observation)).reshape(count, -1).any(-1)
    assert 5 < changed.sum() < count - 5
    assert torch.equal(shielded[~changed], plain[~changed])
    differ = (shielded != plain).flatten(1).any(-1)
    assert torch.equal(differ, changed)


@torch.no_grad()
def test_the_file_of_a_policy_with_a_memory_acts_as_the_shielded_policy(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "DDPG", stack_k=2)
    loaded = read_policy(exported(path, "margin_m=0.5", "closer_m=0.2"))
    agent, config = load_policy(path)
    agent.double()
    settings = ShieldConfig(margin_m=0.5, closer_m=0.2)
    guarded = shield_agent(agent, config, settings, agent.act)
    observation = remembered(random_situations(200), random_situations(200, seed=5))
    found, expected = loaded.agent.act(observation), guarded(observation)
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-9)
    assert guarded.report()["changed"] > 0.05


@torch.no_grad()
def test_a_gaussian_is_that_of_the_guarded_mean(tmp_path):
    path, bare = save_policy(tmp_path / "policy.pt", "SAC"), tmp_path / "bare.pt"
    export_policy(path, "torchscript", "--output", str(bare))
    loaded, known = read_policy(exported(path, "margin_m=0.5")), read_policy(bare)
    observation = random_situations(100)
    agent, config = load_policy(path)
    agent.double()
    mean = functools.partial(agent.act, mean=True)
    expected = shield_agent(agent, config, ShieldConfig(margin_m=0.5), mean)(observation)
    changed = (expected != mean(observation)).any(-1)
    assert 10 < changed.sum() < 100
    for found in (loaded.agent.act(observation), loaded.agent.act(observation, mean=True)):
        torch.testing.assert_close(found, expected, rtol=0.0, atol=5e-4)
    (mu, log_std), (plain, _) = (p.agent.actor.module(tuple(observation)) for p in (loaded, known))
    assert torch.equal(mu[~changed], plain[~changed])
    assert (log_std == -20.0).all()


@pytest.mark.parametrize("name", ["AC-IQN", "SAC", "DQN", "IQN"])
@torch.no_grad()
def test_an_onnx_file_gives_what_the_scripted_one_gives(name, tmp_path, capsys):
    """For any batch, on features of relative motion, within float32."""
    own = {"algorithm": {"encoder": "relative_motion"}, "env": {"vessel": FEW_SUBSTEPS}}
    path = save_policy(tmp_path / "policy.pt", name, **own)
    short = ("margin_m=0.5", "horizon_s=1", "hold_s=0.5")
    output = export_policy(path, "onnx", "--shield", *short)
    assert "shielded, onnx" in capsys.readouterr().out
    agent, _ = load_policy(path)
    scripted = read_policy(exported(path, *short)).agent.actor.module
    observation = random_situations(30)
    taus = [value.expand(30, -1).double() for value in agent.actor_inputs().values()]
    expected = scripted(tuple(observation), *taus)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = FORMATS["onnx"].read(output.read_bytes(), 3)(
        [part.float() for part in (*observation, *taus)]
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_an_onnx_file_of_a_policy_with_a_memory(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "DDPG", stack_k=2, env={"vessel": FEW_SUBSTEPS})
    short = ("margin_m=0.5", "horizon_s=1", "hold_s=0.5", "closer_m=0.2")
    output = export_policy(path, "onnx", "--shield", *short)
    scripted = read_policy(exported(path, *short)).agent.actor.module
    observation = remembered(random_situations(30), random_situations(30, seed=5))
    (found,) = FORMATS["onnx"].read(output.read_bytes(), 3)([part.float() for part in observation])
    torch.testing.assert_close(found.double(), scripted(tuple(observation)), rtol=1e-3, atol=1e-3)


def test_a_few_decisions_may_differ_in_float32():
    rows = torch.full((200,), 1e-5)
    rows[:2] = 0.3
    assert export.judged(rows, 1e-3, 0.01) == (pytest.approx(1e-5), 2, 200)
    assert export.judged(rows[2:], 1e-3, 0.01).otherwise == 0
    assert export.judged(rows, 1e-3, 0.0).largest == pytest.approx(0.3)
    rows[2] = 0.2
    assert export.judged(rows, 1e-3, 0.01).largest == pytest.approx(0.3)
    assert not export.judged(torch.tensor([1e-5] * 199 + [torch.nan]), 1e-3, 0.01).largest <= 1e-3


@torch.no_grad()
def test_all_settings_reach_the_file(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "DQN")
    found, _ = load_policy(exported(path, *SETTINGS))
    agent, config = load_policy(path)
    settings = ShieldConfig(margin_m=0.5, closer_m=0.2, hidden_buoy_m=0.7)
    guarded = shield_agent(agent.double(), config, settings, agent.act)
    observation = random_situations(200)
    assert torch.equal(found.act(observation), guarded(observation))


def test_what_cannot_be_exported(tmp_path, refused):
    path = tmp_path / "policy.pt"
    scripted = ["--checkpoint", str(path), "--format", "torchscript", "--shield"]
    save_policy(path, "DQN")
    refused(export.main, [*scripted, "margin=1"], "margin")
    save_policy(path, "DQN", stack_k=2)
    refused(export.main, [*scripted, "hidden_buoy_m=0.7"], "hidden_buoy_m is 0.7: leave it out")
    save_policy(path, "DQN")
    onnx = ["--checkpoint", str(path), "--format", "onnx", "--shield", "planned_share=0.5"]
    refused(export.main, onnx, "planned_share is 0.5: in such a file as many vessels would be")
    assert sorted(tmp_path.iterdir()) == [path]


def test_evaluate_takes_the_file(tmp_path, capsys, refused, short_evaluations):
    path = save_policy(tmp_path / "policy.pt", "DQN")
    arguments = ["--checkpoint", str(exported(path, "margin_m=0.6")), "--episodes", "2"]
    rows = table_of(tmp_path, *arguments)["stages"]
    assert "margin_m=0.6" in capsys.readouterr().out
    own = ["--checkpoint", str(path), "--episodes", "2", "--shield", "margin_m=0.6"]
    for row, other in zip(rows, table_of(tmp_path, *own)["stages"], strict=True):
        assert row["success"] == other["success"]
        assert row["mean_time_s"] == other["mean_time_s"]
    refused(evaluate.main, [*arguments, "--shield"], "has one inside already")
    file = exported(save_policy(tmp_path / "sac.pt", "SAC"))
    assert evaluate.main(["--checkpoint", str(file), "--episodes", "1", "--stage", "1"]) == 0
    assert "mean actions" not in capsys.readouterr().out  # it acts by them already
