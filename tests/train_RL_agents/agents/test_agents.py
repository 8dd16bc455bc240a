"""What every algorithm of the registry promises; tests iterate over the registry."""

from __future__ import annotations

import pytest
import torch

from marinenav_env.fields import ConfigError
from tests.host_reads import no_host_reads
from tests.train_RL_agents.agent_samples import (
    main_loss,
    make_agent,
    parameters,
    random_batch,
    random_observation,
    spec_for,
)
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS

CONTINUOUS = [n for n, kind in AGENTS.items() if not kind.discrete]


def test_the_registry_holds_all_by_their_names():
    assert list(REPLAY_AGENTS) == ["AC-IQN", "IQN", "DQN", "Rainbow", "DDPG", "SAC"]
    assert list(AGENTS) == [*REPLAY_AGENTS, "PPO", "DAgger", "DPI"]
    assert [name for name, kind in AGENTS.items() if kind.learns_from == "rounds"] == ["PPO"]
    assert [name for name, kind in AGENTS.items() if kind.learns_from == "teacher"] == ["DAgger"]
    assert [name for name, kind in AGENTS.items() if kind.learns_from == "lookahead"] == ["DPI"]
    assert [name for name, kind in AGENTS.items() if kind.bootstraps] == [*REPLAY_AGENTS, "PPO"]
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


@pytest.mark.parametrize("name", ["DAgger", "DPI"])
def test_who_does_not_bootstrap_learns_without_what_followed(name):
    agent = make_agent(name)
    batch = random_batch(agent, 16)
    whole, _ = agent.objectives(batch)
    half, _ = agent.objectives(batch._replace(next_obs=()))
    assert torch.equal(whole["actor"], half["actor"])


def test_the_actor_does_not_pull_at_the_critic():
    for name in CONTINUOUS:
        agent = make_agent(name)
        if agent.learns_from in ("teacher", "lookahead"):  # has no critic
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


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("encoder", ["published", "relative_motion"])
def test_both_observations_of_a_batch_are_worked_out_at_once(encoder, frames):
    agent = make_agent("DQN", spec=spec_for("DQN", frames), encoder=encoder)
    batch, layers = random_batch(agent, 7), agent.network.encoder.layers
    for inputs, observation in zip(agent.inputs(batch), (batch.obs, batch.next_obs), strict=True):
        # Products of another batch, or by several threads, may add up in another order.
        torch.testing.assert_close(layers(inputs), agent.network.encoder(observation))


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
def test_critics_of_continuous_actions_value_any_action(name):
    agent = make_agent(name)
    observation, action = random_observation(4, 3), 2.0 * torch.rand(4, 3, 2) - 1.0
    value = agent.value_of(observation, action)
    if name not in REPLAY_AGENTS or agent.discrete:
        assert value is None
        return
    assert value.shape == (4, 3)
    assert not value.requires_grad
    assert (value != agent.value_of(observation, -action)).all()
    if name == "AC-IQN":
        many = (torch.arange(1000) + 0.5) / 1000
        mean = agent.critic(observation, action, many).mean(-1)
        torch.testing.assert_close(value, mean, rtol=0.05, atol=0.01)
    if name == "SAC":
        values = torch.stack([critic(observation, action) for critic in agent.critics])
        assert torch.equal(value, values.amin(0))
