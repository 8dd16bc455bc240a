"""Gradients, their limit, learning rates, and networks that follow, of every algorithm."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.train_RL_agents.agent_samples import (
    main_loss,
    make_agent,
    parameters,
    random_batch,
    random_observation,
)
from train_RL_agents.agents.registry import AGENTS


def test_the_first_step_is_adams(agent):
    before = {id(p): p.detach().clone() for p in agent.parameters()}
    seen: list[torch.Tensor] = []
    agent.gradient_sync = lambda gradients: seen.extend(g.clone() for g in gradients)
    agent.update(random_batch(agent, 32))
    groups = [(p, g["lr"]) for g in agent.descent.optimizer.param_groups for p in g["params"]]
    assert len(seen) == len(groups)
    for (parameter, rate), gradient in zip(groups, seen, strict=True):
        # With both moments' bias corrected, the first step is the rate times the gradient's sign.
        large = gradient.abs() > 1e-4
        step = (parameter.detach() - before[id(parameter)])[large]
        torch.testing.assert_close(step, -rate * gradient[large].sign(), rtol=0.01, atol=1e-7)


def test_targets_follow_by_polyak_averaging(replay_agent):
    agent = replay_agent
    before = parameters(agent)
    agent.update(random_batch(agent, 16))
    polyak, pairs = agent.config.polyak, 0
    after = parameters(agent)
    for name, value in after.items():
        if "target" in name:
            online = name.replace("target_", "") if "target_" in name else None
            online = online or name.replace("target.", "network.")
            expected = before[name] + polyak * (after[online] - before[name])
            torch.testing.assert_close(value, expected)
            pairs += 1
    assert pairs > 0


def test_gradients_are_clipped_per_group(agent):
    limit = 1e-3
    agent = type(agent)(dataclasses.replace(agent.config, max_grad_norm=limit), agent.spec)
    seen: dict[int, torch.Tensor] = {}
    step = agent.descent.optimizer.step

    def spy() -> None:
        for index, group in enumerate(agent.descent.optimizer.param_groups):
            norms = torch.stack([p.grad.norm() for p in group["params"]])
            seen[index] = norms.norm()
        step()

    agent.descent.optimizer.step = spy
    metrics = agent.update(random_batch(agent, 16))
    assert main_loss(metrics, "grad_norm") > limit
    assert len(seen) == len(agent.descent.optimizer.param_groups)
    assert all(norm < 1.001 * limit for norm in seen.values())


@pytest.mark.parametrize("limit", [None, 1e6])
def test_gradients_below_the_limit_are_left_alone(limit):
    agent = make_agent("DQN", max_grad_norm=limit)
    batch = random_batch(agent, 16)
    batch = batch._replace(weight=100.0 * batch.weight)
    computed, stepped = [], []
    agent.gradient_sync = lambda gradients: computed.extend(g.clone() for g in gradients)
    step = agent.descent.optimizer.step

    def spy() -> None:
        parameters = (p for group in agent.descent.optimizer.param_groups for p in group["params"])
        stepped.extend(p.grad.clone() for p in parameters)
        step()

    agent.descent.optimizer.step = spy
    norm = agent.update(batch)["critic_grad_norm"]
    assert norm > 10.0, "less than the limit that the defaults have"
    assert len(computed) == len(stepped) > 0
    assert all(map(torch.equal, computed, stepped))


def test_the_gradient_hook_sees_all_gradients_and_may_replace_them(agent):
    counts = []

    def silence(gradients: list[torch.Tensor]) -> None:
        counts.append(len(gradients))
        for gradient in gradients:
            gradient.zero_()

    agent.gradient_sync = silence
    before = parameters(agent)
    agent.update(random_batch(agent, 16))
    learned = [p for group in agent.descent.optimizer.param_groups for p in group["params"]]
    assert counts == [len(learned)]
    assert all(torch.equal(before[k], v) for k, v in agent.named_parameters())


def test_learning_rates_follow_the_scale(agent):
    base = [group["lr"] for group in agent.descent.optimizer.param_groups]
    for scale in (0.25, torch.tensor(0.25)):
        agent.set_learning_rate_scale(scale)
        rates = [group["lr"] for group in agent.descent.optimizer.param_groups]
        assert rates == pytest.approx([0.25 * rate for rate in base])
    before = parameters(agent)
    agent.set_learning_rate_scale(0.0)
    agent.update(random_batch(agent, 16))
    assert all(torch.equal(before[k], v) for k, v in agent.named_parameters())


@pytest.mark.parametrize("name", AGENTS)
def test_acting_average_follows_the_learned_network_and_acts(name):
    share = 0.25
    agent = make_agent(name, acting_average=share)
    before = [p.detach().clone() for p in agent.policy_network.parameters()]
    agent.update(random_batch(agent, 32))
    learned = [p.detach() for p in agent.policy_network.parameters()]
    assert any(not torch.equal(a, b) for a, b in zip(before, learned, strict=True))
    for old, new, average in zip(before, learned, agent.actor.parameters(), strict=True):
        torch.testing.assert_close(average, old + share * (new - old))
    observation = random_observation(200)
    acted, explored = agent.act(observation, mean=True), agent.explore(observation)
    with torch.no_grad():
        for parameter in agent.policy_network.parameters():
            parameter.fill_(0.01)
    assert torch.equal(agent.act(observation, mean=True), acted)
    assert not torch.equal(agent.explore(observation), explored)
