"""Policies from published weights and from shipped folders, and how published IQN acts."""

import json

import numpy as np
import pytest
import torch
import yaml

from tests.conftest import ROOT
from tests.train_RL_agents.agent_samples import (
    make_agent,
    names_by_weights,
    random_observation,
    without_scale,
)
from tests.train_RL_agents.policy_samples import save_policy
from train_RL_agents import evaluate
from train_RL_agents.policies.interface import acting_network
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.pretrained import (
    CONFIG,
    EVALUATION,
    PROVENANCE,
    WEIGHTS,
    write_pretrained,
)
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError


@pytest.mark.parametrize("file", ["network_params.pth", "weights.npz"])
@pytest.mark.parametrize("name", ["AC-IQN", "IQN", "DQN", "DDPG", "SAC"])
def test_published_weights_find_their_agent(tmp_path, name, file):
    path = tmp_path / file
    own = without_scale(make_agent(name).actor)
    if path.suffix == ".npz":
        np.savez(path, **{key: value.numpy() for key, value in own.items()})
    else:
        torch.save(own, path)
    agent, config = load_policy(path)
    assert agent.name == names_by_weights(name)
    assert config.agent == agent.name.partition(" or ")[0]
    assert torch.all(agent.actor.encoder.self_input_scale == 1.0)
    loaded = without_scale(agent.actor)
    assert all(torch.equal(loaded[key], value) for key, value in own.items())


def test_published_rainbow(tmp_path):
    """Its layers have names of their own, and the file holds the last draw of the noise."""
    sizes = {"hidden_layer_{}": (128, 256), "hidden_layer_{}_2": (128, 128)}
    published = {
        "self_encoder.0.weight": torch.rand(56, 7, dtype=torch.float64),
        "self_encoder.0.bias": torch.rand(56, dtype=torch.float64),
        "object_encoder.0.weight": torch.rand(40, 5, dtype=torch.float64),
        "object_encoder.0.bias": torch.rand(40, dtype=torch.float64),
    }
    for stream, outputs in (("v", 51), ("a", 25 * 51)):
        for layer, (rows, columns) in {**sizes, "output_layer_{}": (outputs, 128)}.items():
            for part in ("mu", "sigma", "epsilon"):
                name = layer.format(stream)
                published[f"{name}.weight_{part}"] = torch.rand(rows, columns).double()
                published[f"{name}.bias_{part}"] = torch.rand(rows).double()
    torch.save(published, tmp_path / "network_params.pth")
    agent, config = load_policy(tmp_path / "network_params.pth")
    assert (agent.name, config.algorithm.v_min, config.algorithm.v_max) == ("Rainbow", -1.0, 1.0)
    for stream, here in (("v", agent.actor.value_stream), ("a", agent.actor.advantage_stream)):
        for name in ("hidden_layer", "hidden_layer_2", "output_layer"):
            layer = getattr(here, name)
            there = f"_{stream}_2" if name.endswith("_2") else f"_{stream}"
            there = f"{name.removesuffix('_2')}{there}"
            torch.testing.assert_close(
                layer.weight.double(), published[f"{there}.weight_mu"], rtol=0, atol=1e-6
            )
            torch.testing.assert_close(
                layer.bias_sigma.double(), published[f"{there}.bias_sigma"], rtol=0, atol=1e-6
            )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("network_params.pth", [1, 2], "not a state dict"),
        ("network_params.pth", {"weight": torch.ones(3)}, "fits the network of no agent"),
        ("weights.npz", {"weight": torch.ones(3)}, "fits the network of no agent"),
        ("network_params.pth", None, "no checkpoint"),
        ("weights.npz", None, "no file"),
        ("weights.pt", None, "no checkpoint"),
        ("policy.onnx", b"as exported", "is an ONNX file"),
        *((f"weights.{kind}", b"rubbish", "is damaged") for kind in ("pth", "npz", "pt")),
        *((f"weights.{kind}", b"", "is damaged") for kind in ("pth", "npz", "pt")),
    ],
)
def test_files_without_a_policy(tmp_path, refused, name, content, message):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".npz" and content:
        np.savez(path, **content)
    elif content:
        torch.save(content, path)
    with pytest.raises(CheckpointError, match=message):
        load_policy(path)
    assert refused(evaluate.main, ["--checkpoint", str(path)], message).startswith("error: ")


def test_published_iqn_draws_its_fractions_for_every_robot_anew(tmp_path, monkeypatch):
    torch.save(without_scale(make_agent("IQN").actor), tmp_path / "network_params.pth")
    agent, _ = load_policy(tmp_path / "network_params.pth")
    used = []
    forward = agent.actor.forward
    monkeypatch.setattr(
        agent.actor, "forward", lambda seen, taus: used.append(taus) or forward(seen, taus)
    )
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        assert agent.act(random_observation(2, 3)).shape == (2, 3)
    assert used[0].shape == (2, 3, 32)
    assert used[0].unique().numel() == 2 * 3 * 32
    assert used[0].min() >= 0.0
    assert used[0].max() < 1.0
    assert torch.equal(used[0], used[1])
    assert not torch.equal(used[0], used[2])
    trained = make_agent("IQN")
    assert trained.config.random_acting_taus is False


@pytest.mark.parametrize(
    "name", [folder.name for folder in (ROOT / "pretrained").iterdir() if folder.is_dir()]
)
def test_every_shipped_policy_acts(name):
    agent, _ = load_policy(ROOT / "pretrained" / name)
    observation = agent.spec.observation.draw(4, torch.Generator().manual_seed(0))
    assert agent.act(observation).isfinite().all()


@pytest.fixture
def shipped(tmp_path):
    """A folder as in ``pretrained/``, and the policy it was written from."""
    settings = {"ego_magnitude": [9, 9, 1, 1, 1, 9, 9]}
    policy = read_policy(save_policy(tmp_path / "best.pt", "SAC", algorithm=settings))
    folder = tmp_path / "pretrained" / "sac"
    write_pretrained(folder, policy, {"stages": []}, {"step": 5, "commit": "abc", "starts": []})
    return folder, policy


def test_a_shipped_folder_holds_what_it_takes_to_act(shipped):
    folder, own = shipped
    assert {file.name for file in folder.iterdir()} == {WEIGHTS, CONFIG, EVALUATION, PROVENANCE}
    assert sum(file.stat().st_size for file in folder.iterdir()) < 250_000
    agent, config = load_policy(folder)
    assert (agent.name, config) == ("SAC", own.config)
    expected = own.agent.actor.state_dict()
    for key, value in agent.actor.state_dict().items():
        assert torch.equal(value, expected[key])
    observation = random_observation(3, 4)
    assert torch.equal(agent.act(observation, mean=True), own.agent.act(observation, mean=True))
    for path in (folder, folder / WEIGHTS):
        origin = {"file": "sac/weights.pt", "step": 5, "commit": "abc"}
        assert read_policy(path).origin == origin


def test_shipped_settings_are_fit_to_train_with(shipped):
    values = yaml.safe_load((shipped[0] / CONFIG).read_text())
    assert values["algorithm"]["ego_magnitude"] == [9.0, 9.0, 1.0, 1.0, 1.0, 9.0, 9.0]
    assert values["agent"] == "SAC"


def test_damaged_shipped_folders(shipped):
    folder, _ = shipped
    texts = {name: (folder / name).read_text() for name in (CONFIG, PROVENANCE)}
    for name, text, message in (
        (CONFIG, texts[CONFIG].replace("agent: SAC", "agent: DDPG"), "does not fit config.yaml"),
        (CONFIG, "a: [", "is damaged"),
        (CONFIG, "just words", "holds str"),
        (PROVENANCE, json.dumps([1]), "holds list"),
        (PROVENANCE, "{", "is damaged"),
    ):
        (folder / name).write_text(text)
        with pytest.raises(CheckpointError, match=message):
            load_policy(folder)
        (folder / name).write_text(texts[name])
    load_policy(folder)
    (folder / PROVENANCE).unlink()
    with pytest.raises(CheckpointError, match=r"weights.pt needs config.yaml and provenance.json"):
        load_policy(folder)
    (folder / CONFIG).unlink()
    with pytest.raises(CheckpointError, match="holds no policy known here"):
        load_policy(folder)


def test_a_checkpoint_that_does_not_fit_its_settings(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "DQN")
    state = torch.load(path, weights_only=True)
    del state["model"]["networks"]["network.output_layer.bias"]
    torch.save(state, path)
    with pytest.raises(CheckpointError, match="holds no policy known here"):
        load_policy(path)


def spoiled(name):
    """Return an agent of which one weight is not finite."""
    agent = make_agent(name)
    with torch.no_grad():
        next(agent.actor.parameters()).view(-1)[3] = float("nan")
    return agent


def a_checkpoint(path):
    save_policy(path, "DQN")
    state = checkpoint.load(path)
    for value in state["model"]["networks"].values():
        value.view(-1)[0] = float("nan")
    path.unlink()  # what was loaded is mapped from it
    checkpoint.save(path, state)


def published_weights(path):
    torch.save(without_scale(spoiled("DQN").actor), path)


def a_network(path):
    torch.jit.script(acting_network(spoiled("DQN"), torch.float64)).save(str(path))


@pytest.mark.parametrize(
    ("write", "name"),
    [(a_checkpoint, "a.pt"), (published_weights, "a.pth"), (a_network, "a.torchscript.pt")],
)
def test_weights_that_are_not_finite_are_refused(tmp_path, write, name):
    write(tmp_path / name)
    with pytest.raises(CheckpointError, match=rf"{name} holds weights that are not finite \("):
        load_policy(tmp_path / name)
