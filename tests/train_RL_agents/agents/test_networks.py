"""The networks: published names and sizes, input scaling, masks, and the published forward pass."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from marinenav_env.envs.icra2024 import Icra2024Config, icra2024_spec
from marinenav_env.envs.observation import Observation
from tests.train_RL_agents.agent_samples import HISTORY, MARINE, random_observation, without_scale
from train_RL_agents.agents.encoders import make_encoder
from train_RL_agents.agents.encoders.parts import reciprocal_scale
from train_RL_agents.agents.networks import (
    Critic,
    DeterministicActor,
    GaussianActor,
    QNetwork,
    QuantileCritic,
    QuantileQNetwork,
)
from train_RL_agents.agents.quantiles import RiskAdjusted, risk_level
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.policies.published import load_published

ROOT = Path(__file__).parents[3]
REFERENCE = Path(os.environ.get("MARINENAV_REFERENCE", ROOT.parent / "shared" / "reference"))
POLICIES = REFERENCE / "policies"
EPISODES = sorted((ROOT / "tests" / "reference" / "episodes").glob("*policy*.json"))

ENCODER = {
    "self_encoder.0.weight": (56, 7),
    "self_encoder.0.bias": (56,),
    "object_encoder.0.weight": (40, 5),
    "object_encoder.0.bias": (40,),
}
HIDDEN = {
    "hidden_layer.weight": (128, 256),
    "hidden_layer.bias": (128,),
    "hidden_layer_2.weight": (128, 128),
    "hidden_layer_2.bias": (128,),
}
COSINE = {"cos_embedding.weight": (256, 64), "cos_embedding.bias": (256,)}
ACTION = {"action_encoder.0.weight": (128, 2), "action_encoder.0.bias": (128,)}


def output(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (size, 128), f"{name}.bias": (size,)}


PUBLISHED = {
    QNetwork: (25, ENCODER | HIDDEN | output("output_layer", 25)),
    QuantileQNetwork: (25, ENCODER | HIDDEN | COSINE | output("output_layer", 25)),
    DeterministicActor: (2, ENCODER | HIDDEN | output("output_layer", 2)),
    Critic: (2, ENCODER | HIDDEN | ACTION | output("output_layer", 1)),
    QuantileCritic: (2, ENCODER | HIDDEN | COSINE | ACTION | output("output_layer", 1)),
    GaussianActor: (
        2,
        ENCODER | HIDDEN | output("output_layer_mu", 2) | output("output_layer_log_std", 2),
    ),
}


def published(name: str) -> dict[str, torch.Tensor]:
    path = POLICIES / f"{name}.npz"
    if not path.exists():
        pytest.skip("published weights not here: point MARINENAV_REFERENCE at the reference data")
    with np.load(path, allow_pickle=False) as file:
        return {key: torch.from_numpy(file[key]) for key in file.files}


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.__name__)
def test_parameters_have_the_published_names_and_shapes(kind):
    actions, expected = PUBLISHED[kind]
    network = kind(make_encoder(MARINE), actions)
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert shapes == expected | {"self_input_scale": (7,), "object_input_scale": (5,)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ac_iqn", DeterministicActor), ("iqn", QuantileQNetwork), ("sac", GaussianActor)],
)
def test_published_weights_load_strictly(name, kind):
    weights = published(name)
    network = kind(make_encoder(MARINE), PUBLISHED[kind][0])
    load_published(network, weights)
    for key, value in weights.items():
        assert torch.equal(network.state_dict()[key], value)
    assert torch.equal(network.encoder.self_input_scale, torch.ones(7))
    del weights["hidden_layer.bias"]
    with pytest.raises(RuntimeError, match=r"hidden_layer\.bias"):
        load_published(network, weights)


@pytest.mark.parametrize("path", EPISODES, ids=lambda path: path.stem)
def test_published_actor_repeats_the_recorded_actions(path):
    network = DeterministicActor(make_encoder(MARINE), 2)
    load_published(network, published("ac_iqn"))
    network.double()
    episode = json.loads(path.read_text())
    observations, actions = [], []
    for robot, history in enumerate(episode["robots"]["action_history"]):
        for t, action in enumerate(history):
            seen = episode["recorded"]["obs"][t][robot]
            if seen is not None:
                observations.append(seen)
                actions.append(action)
    ego = torch.tensor([seen[0] for seen in observations], dtype=torch.float64)
    objects = torch.zeros(len(observations), 5, 5, dtype=torch.float64)
    mask = torch.zeros(len(observations), 5, dtype=torch.float64)
    for row, (_, seen) in enumerate(observations):
        for slot, features in enumerate(seen):
            objects[row, slot] = torch.tensor(features, dtype=torch.float64)
            mask[row, slot] = 1.0
    with torch.no_grad():
        ours = network((ego, objects, mask))
    recorded = torch.tensor(actions, dtype=torch.float64)
    assert len(actions) > 20
    assert (ours - recorded).abs().max() < 5e-7


def test_input_scale_divides_the_raw_observation():
    scaled = QNetwork(make_encoder(MARINE), 25)
    plain = QNetwork(make_encoder(MARINE, "published", (1.0,), (1.0,)), 25)
    load_published(plain, without_scale(scaled))
    observation = random_observation(4)
    ego = observation.ego / torch.tensor(MARINE.ego.magnitudes)
    objects = observation.objects / torch.tensor(MARINE.objects.magnitudes)
    divided = Observation(ego, objects, observation.mask)
    torch.testing.assert_close(scaled(observation), plain(divided))
    assert not torch.allclose(scaled(observation), plain(observation))


def test_a_masked_object_changes_nothing():
    network = QNetwork(make_encoder(MARINE), 25)
    observation = random_observation(3)
    mask = torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0]).expand(3, 5)
    other = observation.objects.clone()
    other[:, 2:] = 7.0
    before = network(Observation(observation.ego, observation.objects, mask))
    assert torch.equal(before, network(Observation(observation.ego, other, mask)))
    other[:, 1] = 7.0
    assert not torch.equal(before, network(Observation(observation.ego, other, mask)))


def test_a_history_widens_the_encoder_and_repeats_the_scale():
    network = DeterministicActor(make_encoder(HISTORY), 2)
    assert network.hidden_layer.in_features == 56 + 10 * 40
    assert torch.equal(network.encoder.self_input_scale[:7], network.encoder.self_input_scale[7:])
    assert network(random_observation(3, 2, spec=HISTORY)).shape == (3, 2, 2)


@pytest.mark.parametrize("kind", [QuantileQNetwork, QuantileCritic])
def test_shared_fractions_give_what_fractions_of_each_sample_give(kind):
    network = kind(make_encoder(MARINE), 2).double()
    observation = random_observation(6, dtype=torch.float64)
    taus = torch.rand(8, dtype=torch.float64)
    action = () if kind is QuantileQNetwork else (torch.rand(6, 2, dtype=torch.float64),)
    shared = network(observation, *action, taus)
    each = network(observation, *action, taus.expand(6, 8))
    torch.testing.assert_close(shared, each, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(shared, network(observation, *action, taus + 0.1))


def test_cosine_features_are_those_of_the_paper():
    network = QuantileQNetwork(make_encoder(MARINE), 25).double()
    with torch.no_grad():
        network.cos_embedding.weight.copy_(torch.eye(64).repeat(4, 1))
        network.cos_embedding.bias.fill_(2.0)
    embedded = network.embed(torch.tensor([0.3], dtype=torch.float64))[0, :64]
    expected = 2.0 + np.cos(np.pi * np.arange(64) * 0.3)
    torch.testing.assert_close(embedded, torch.from_numpy(expected), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kind", PUBLISHED, ids=lambda kind: kind.__name__)
def test_networks_can_be_scripted(kind):
    network = kind(make_encoder(MARINE), PUBLISHED[kind][0]).double()
    arguments = [tuple(random_observation(4, dtype=torch.float64))]
    if "Critic" in kind.__name__:
        arguments.append(torch.rand(4, 2, dtype=torch.float64))
    if "Quantile" in kind.__name__:
        arguments.append(torch.rand(4, 32, dtype=torch.float64))
    torch.testing.assert_close(torch.jit.script(network)(*arguments), network(*arguments))


@pytest.mark.parametrize(
    ("magnitudes", "message"),
    [((1.0, 2.0), "do not divide"), ((), "do not divide"), ((1.0,) * 6 + (0.0,), "positive")],
)
def test_bad_scales_are_refused(magnitudes, message):
    with pytest.raises(ValueError, match=message):
        reciprocal_scale("ego_magnitude", magnitudes, MARINE.ego, 7)


# ---- ICRA 2024 --------------------------------------------------------------------------------

LISTS = icra2024_spec(Icra2024Config(), discrete=True)
LIST_EPISODES = sorted((ROOT / "tests/reference/icra2024/episodes").glob("policy*.json"))


def test_parameters_of_icra2024_have_the_published_names_and_shapes():
    network = QuantileQNetwork(make_encoder(LISTS.observation), 9)
    shapes = {name: tuple(value.shape) for name, value in without_scale(network).items()}
    layers = {
        **{"self_encoder.0": (32, 4), "static_encoder.0": (120, 15)},
        **{"dynamic_encoder.0": (160, 20), "cos_embedding": (312, 64)},
        **{"hidden_layer": (156, 312), "hidden_layer_2": (156, 156), "output_layer": (9, 156)},
    }
    weights = {f"{name}.weight": shape for name, shape in layers.items()}
    assert shapes == weights | {f"{name}.bias": shape[:1] for name, shape in layers.items()}


@pytest.mark.parametrize("path", LIST_EPISODES, ids=lambda path: path.stem)
def test_published_icra2024_policy_repeats_the_recorded_actions(path):
    """The recorded actions are greedy at the 32 midpoints, as IQN acts here."""
    weights = published("../icra2024/iqn")
    agent = AGENTS["IQN"](AGENTS["IQN"].Config(autocast=False), LISTS)
    load_published(agent.actor, weights)
    episode = json.loads(path.read_text())
    for robot, history in enumerate(episode["robots"]["action_history"]):
        rows = [episode["recorded"]["obs"][t][robot] for t in range(len(history))]
        ego, static, dynamic = torch.tensor(rows).split((4, 15, 20), dim=-1)
        seen = ego, static.unflatten(-1, (5, 3)), dynamic.unflatten(-1, (5, 4))
        assert agent.act(seen).tolist() == history


def test_lists_set_the_risk_level_by_what_is_nearest():
    """Surface distances |p| - r - 0.8 of buoys and |p| - 1.6 of robots; padding does not count."""
    static, dynamic = torch.zeros(4, 5, 3), torch.zeros(4, 5, 4)
    static[1, 0] = torch.tensor([3.0, 4.0, 1.0])  # 3.2 m away
    dynamic[1, 0, :2] = torch.tensor([0.0, -7.0])  # 5.4 m
    dynamic[2, 0, :2] = torch.tensor([0.0, -7.0])
    static[3, 0] = torch.tensor([0.0, 1.5, 1.0])  # touched
    level = risk_level((torch.zeros(4, 4), static, dynamic), LISTS.observation)
    assert level.tolist() == pytest.approx([1.0, 0.32, 0.54, 0.0], abs=1e-6)
    config = AGENTS["IQN"].Config(cvar=0.5, adaptive_cvar=True)
    agent = AGENTS["IQN"](config, LISTS)
    taus = torch.rand(4, 32)
    seen = torch.randn(4, 4), static, dynamic
    scripted = torch.jit.script(RiskAdjusted(agent.actor, config, LISTS.observation))
    expected = agent.actor(seen, 0.5 * level.unsqueeze(-1) * taus)
    torch.testing.assert_close(scripted(seen, taus), expected)
