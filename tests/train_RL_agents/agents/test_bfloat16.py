"""Products in bfloat16: what they change, and where they are used."""

from __future__ import annotations

import functools

import pytest
import torch

from tests.train_RL_agents.agent_samples import (
    main_loss,
    make_agent,
    random_batch,
    random_observation,
)
from train_RL_agents.agents import base
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.device.precision import multiplies_bfloat16


@pytest.mark.parametrize("name", AGENTS)
def test_bfloat16_changes_an_update_only_by_its_rounding(name):
    results = {}
    for autocast in (False, True):
        agent = make_agent(name, autocast=autocast)
        batch = random_batch(agent, 256)
        torch.manual_seed(1)
        metrics = agent.update(batch)
        results[autocast] = main_loss(metrics), main_loss(metrics, "grad_norm")
        assert all(p.dtype == torch.float32 for p in agent.parameters())
    for exact, rounded in zip(*results.values(), strict=True):
        assert exact != rounded
        torch.testing.assert_close(rounded, exact, rtol=0.03, atol=0.0)


def casts_of_an_update(agent: Agent) -> tuple[list[torch.Tensor], int]:
    """Update and explore once; return all weights, and how often one tensor alone was cast."""
    batch, observation = (
        random_batch(agent, 32),
        random_observation(4, 3, spec=agent.spec.observation),
    )
    torch.manual_seed(1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        agent.update(batch)
        action = agent.explore(observation)
    casts = sum(event.name == "aten::_to_copy" for event in profile.events())
    return [*agent.state_dict().values(), action], casts


@pytest.mark.parametrize("name", AGENTS)
def test_weights_cast_together_give_the_bits_of_weights_cast_singly(name, monkeypatch):
    """Those of torch's autocast alone, of which nothing else is asked."""
    agent = make_agent(name, autocast=True)
    together, few = casts_of_an_update(agent)
    assert all(isinstance(p, torch.nn.Parameter) for _, p in agent.named_parameters())
    alone = functools.partial(torch.autocast, "cpu", dtype=torch.bfloat16)
    monkeypatch.setattr(base, "bfloat16_products", lambda device, networks: alone())
    singly, many = casts_of_an_update(make_agent(name, autocast=True))
    assert all(map(torch.equal, together, singly))
    assert few <= many - 4


def test_weights_are_the_agents_own_again_after_an_error():
    agent = make_agent("DQN", autocast=True)
    own = dict(agent.named_parameters())
    with pytest.raises(KeyError, match="bfloat16"), agent.precision(agent.network):
        raise KeyError(agent.network.hidden_layer.weight.dtype)
    assert all(parameter is own[name] for name, parameter in agent.named_parameters())


@pytest.mark.parametrize("layers", [[torch.nn.Linear(3, 2, bias=False)], [torch.nn.ReLU()]])
def test_networks_with_other_layers_take_bfloat16_too(layers):
    agent, network, x = (
        make_agent("DQN", autocast=True),
        torch.nn.Sequential(*layers),
        torch.ones(4, 3),
    )
    with agent.precision(network):
        y = network(x)
    weights = list(network.parameters())
    if weights:
        assert y.dtype == torch.bfloat16
        (gradient,) = torch.autograd.grad(y.float().sum(), weights)
        assert torch.equal(gradient, torch.full((2, 3), 4.0))


@pytest.mark.parametrize("name", REPLAY_AGENTS)
def test_bfloat16_resolves_values_of_the_size_of_returns(name):
    agent = make_agent(name, autocast=True)
    layers = [
        module
        for path, module in agent.named_modules()
        if path.endswith("output_layer") and "policy" not in path and "stream" not in path
    ]
    if not layers:
        pytest.skip("its values are means of a distribution")
    observation, chosen, losses = random_observation(2000), [], []
    for shift in (0.0, 35.0):  # of all returns: what is better stays better
        with torch.no_grad():
            for layer in layers:
                layer.bias.add_(shift)
        torch.manual_seed(0)
        batch = random_batch(agent, 256)._replace(discount=torch.ones(256))
        if agent.discrete:
            chosen.append(agent.explore(observation))
        losses.append(agent.objectives(batch)[0]["critic"].detach())
    torch.testing.assert_close(*losses, rtol=1e-3, atol=0.0)
    if agent.discrete:
        assert (chosen[0] != chosen[1]).double().mean() < 0.005


@pytest.mark.parametrize(
    ("amx", "avx512", "native"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_processors_with_instructions_for_bfloat16(amx, avx512, native, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    assert multiplies_bfloat16(torch.device("cpu")) is native


@pytest.mark.parametrize("native", [False, True])
def test_bfloat16_is_used_where_asked_or_where_the_device_has_it(native, monkeypatch):
    monkeypatch.setattr(base, "multiplies_bfloat16", lambda device: native)
    used = {
        wanted: make_agent("DQN", autocast=wanted).uses_bfloat16 for wanted in (None, False, True)
    }
    assert used == {None: native, False: False, True: True}
