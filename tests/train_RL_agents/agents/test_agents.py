"""What every algorithm of the registry promises; tests iterate over the registry."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch

from marinenav_env.fields import ConfigError
from tests.host_reads import no_host_reads
from tests.train_RL_agents.agent_samples import (
    main_loss,
    make_agent,
    random_batch,
    random_observation,
    spec_for,
)
from train_RL_agents.agents import base
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.device.precision import multiplies_bfloat16

CONTINUOUS = [n for n, kind in AGENTS.items() if not kind.discrete]


@pytest.fixture(params=AGENTS)
def agent(request) -> Agent:
    return make_agent(request.param)


@pytest.fixture(params=REPLAY_AGENTS)
def replay_agent(request) -> Agent:
    return make_agent(request.param)


def parameters(agent: Agent) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in agent.named_parameters()}


def test_the_registry_holds_all_by_their_names():
    assert list(REPLAY_AGENTS) == ["AC-IQN", "IQN", "DQN", "Rainbow", "DDPG", "SAC"]
    assert list(AGENTS) == [*REPLAY_AGENTS, "PPO", "DAgger"]
    assert [name for name, kind in AGENTS.items() if kind.on_policy] == ["PPO"]
    assert [name for name, kind in AGENTS.items() if kind.imitates] == ["DAgger"]
    assert all(kind.name == name for name, kind in AGENTS.items())


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("name", AGENTS)
def test_actions_have_the_leading_shape_and_the_bounds(name, frames):
    agent = make_agent(name, spec=spec_for(name, frames))
    for leading in [(4, 3), (6,), ()]:
        observation = random_observation(*leading, spec=agent.spec.observation)
        for action in (agent.act(observation), agent.explore(observation)):
            assert not action.requires_grad
            if agent.discrete:
                assert action.shape == leading
                assert action.dtype == torch.int64
                assert action.min() >= 0
                assert action.max() <= 24
            else:
                assert action.shape == (*leading, 2)
                assert action.dtype == torch.float32
                assert action.abs().max() < 1


def test_acting_is_deterministic_unless_the_agent_samples(agent):
    observation = random_observation(200)
    same = torch.equal(agent.act(observation), agent.act(observation))
    assert same is not agent.stochastic
    means = agent.act(observation, mean=True), agent.act(observation, mean=True)
    assert torch.equal(*means)


def test_a_robots_action_does_not_depend_on_the_others(agent):
    observation = random_observation(6, 5)
    alone = type(observation)(*(part[2:3, 1:2] for part in observation))
    together = agent.act(observation, mean=True)[2:3, 1:2]
    torch.testing.assert_close(agent.act(alone, mean=True), together)


def test_update_returns_detached_metrics_and_changes_every_learned_parameter(agent):
    before = parameters(agent)
    metrics = agent.update(random_batch(agent, 32))
    assert not any(value.requires_grad for value in metrics.values())
    assert all(torch.isfinite(value).all() for value in metrics.values())
    assert main_loss(metrics).shape == ()
    learned = {id(p) for group in agent.descent.optimizer.param_groups for p in group["params"]}
    for name, parameter in agent.named_parameters():
        changed = not torch.equal(before[name], parameter)
        followed = "target" in name or name.startswith("average.")
        assert changed == (id(parameter) in learned or followed), name


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


def test_the_replay_is_told_priorities_exactly_if_it_uses_them():
    for name in (*REPLAY_AGENTS, "DAgger"):
        for prioritized in (False, True):
            agent = make_agent(name, prioritized=prioritized)
            metrics = agent.update(random_batch(agent, 16))
            assert ("priority" in metrics) is prioritized, name
            if prioritized:
                assert metrics["priority"].shape == (16,)
                assert metrics["priority"].min() >= 0


def test_importance_weights_scale_the_critics_loss(replay_agent):
    agent = replay_agent.eval()
    batch = random_batch(agent, 16)
    results = []
    for weight in (batch.weight, 2.0 * batch.weight):
        torch.manual_seed(1)
        results.append(agent.objectives(batch._replace(weight=weight))[0]["critic"])
    torch.testing.assert_close(2.0 * results[0], results[1])


def test_a_terminated_sample_ignores_the_next_state(replay_agent):
    agent = replay_agent
    batch = random_batch(agent, 16)
    ended = batch._replace(discount=torch.zeros(16))
    other = ended._replace(next_obs=random_observation(16))
    results = []
    for sample in (ended, other, batch):
        torch.manual_seed(1)
        results.append(agent.objectives(sample)[0]["critic"])
    torch.testing.assert_close(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_the_actor_does_not_pull_at_the_critic():
    for name in CONTINUOUS:
        agent = make_agent(name)
        if agent.imitates:  # has no critic
            continue
        batch = random_batch(agent, 16)
        torch.manual_seed(1)
        objectives, _ = agent.objectives(batch)
        group = agent.descent.optimizer.param_groups[0]
        assert group["name"] == "critic"
        expected = torch.autograd.grad(objectives["critic"], group["params"])
        torch.manual_seed(1)
        synced: list[torch.Tensor] = []
        agent.gradient_sync = lambda grads, out=synced: out.extend(g.clone() for g in grads)
        agent.update(batch)
        for ours, theirs in zip(synced, expected, strict=False):
            assert torch.equal(ours, theirs), name


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


def test_the_training_state_makes_the_next_update_bit_identical(agent):
    batch = random_batch(agent, 16)
    for _ in range(3):
        agent.update(batch)
    agent.set_learning_rate_scale(0.5)
    state = agent.training_state()
    torch.manual_seed(7)
    agent.update(batch)
    torch.manual_seed(99)
    other = type(agent)(agent.config, agent.spec)
    other.update(random_batch(other, 16))
    other.load_training_state(state)
    torch.manual_seed(7)
    other.update(batch)
    expected = agent.training_state()
    for name, value in other.training_state()["networks"].items():
        assert torch.equal(value, expected["networks"][name]), name
    for index, moments in other.training_state()["optimizer"].items():
        for key, value in moments.items():
            assert torch.equal(value, expected["optimizer"][index][key])


def test_the_training_state_is_a_copy_fit_for_a_safe_load(agent, tmp_path):
    state = agent.training_state()
    kept = {key: value.clone() for key, value in state["networks"].items()}
    agent.update(random_batch(agent, 8))
    assert all(torch.equal(state["networks"][key], kept[key]) for key in kept)
    torch.save(state, tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt", weights_only=True)
    agent.load_training_state(loaded)
    assert all(torch.equal(value, kept[key]) for key, value in agent.state_dict().items())


def test_the_training_state_of_another_agent_is_refused():
    state = make_agent("DQN").training_state()
    with pytest.raises(ValueError, match="10 optimized tensors, agent AC-IQN has"):
        make_agent("AC-IQN").load_training_state(state)


def test_nothing_reads_the_device(agent):
    batch, observation = random_batch(agent, 16), random_observation(4, 3)
    with no_host_reads():
        agent.update(batch)
        agent.explore(observation)
        agent.act(observation)


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


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("encoder", ["published", "relative_motion"])
def test_both_observations_of_a_batch_are_worked_out_at_once(encoder, frames):
    agent = make_agent("DQN", spec=spec_for("DQN", frames), encoder=encoder)
    batch, layers = random_batch(agent, 7), agent.network.encoder.layers
    for inputs, observation in zip(agent.inputs(batch), (batch.obs, batch.next_obs), strict=True):
        # Products of another batch, or by several threads, may add up in another order.
        torch.testing.assert_close(layers(inputs), agent.network.encoder(observation))


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


def test_a_config_of_another_agent_is_refused():
    with pytest.raises(TypeError, match=r"DQNConfig.*AC-IQN needs a ACIQNConfig"):
        AGENTS["AC-IQN"](AGENTS["DQN"].Config(), spec_for("AC-IQN"))


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("settings", [{"gamma": 1.5}, {"learning_rate": -1.0}, {"widening": 0}])
def test_settings_outside_their_bounds_are_refused(name, settings):
    field = next(iter(settings))
    with pytest.raises(ConfigError, match=field):
        AGENTS[name].Config(**settings)


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
