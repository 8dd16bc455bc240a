"""What single algorithms promise beyond what all of them do."""

from __future__ import annotations

import math

import pytest
import torch

from marinenav_env.fields import ConfigError
from tests.host_reads import no_host_reads
from tests.train_RL_agents.agent_samples import (
    HISTORY,
    MARINE,
    make_agent,
    random_batch,
    random_fresh_batch,
    random_observation,
)
from train_RL_agents.agents.quantiles import (
    QuantileConfig,
    distort,
    draw_taus,
    midpoints,
    risk_level,
)
from train_RL_agents.agents.registry import AGENTS

QUANTILE_AGENTS = [n for n, kind in AGENTS.items() if issubclass(kind.Config, QuantileConfig)]


@pytest.mark.parametrize("shared", [True, False])
def test_drawn_fractions_are_uniform(shared):
    torch.manual_seed(0)
    draws = torch.stack([draw_taus(4, 8, torch.device("cpu"), shared=shared) for _ in range(500)])
    assert draws.shape == ((500, 8) if shared else (500, 4, 8))
    assert draws.min() >= 0
    assert draws.max() < 1
    assert draws.mean() == pytest.approx(0.5, abs=0.02)
    assert draws.std() == pytest.approx(12**-0.5, abs=0.02)
    assert not torch.equal(draws[0], draws[1])
    if shared:
        assert torch.equal((8 * draws).floor(), torch.arange(8.0).expand(500, 8))


def test_fixed_fractions_are_the_middles_of_equal_parts():
    assert midpoints(4).tolist() == [0.125, 0.375, 0.625, 0.875]


def test_the_adaptive_risk_level_is_the_closest_surface_distance_over_ten_metres():
    observation = random_observation(4)
    observation.mask.zero_()
    observation.objects.zero_()
    observation.mask[1:, :2] = 1.0
    observation.objects[1:, 1, :2] = torch.tensor([3.0, -4.0])
    observation.objects[1:, 0] = torch.tensor([30.0, 0.0, 0.0, 0.0, 1.0])
    observation.objects[2, 1, 4] = 1.5
    observation.objects[3, 1, 4] = 3.0
    expected = torch.tensor([1.0, (5 - 2.795085) / 10, (5 - 1.5 - 2.795085) / 10, 0.0])
    level = risk_level(observation, MARINE)
    torch.testing.assert_close(level, expected, rtol=0.0, atol=1e-6)


def test_the_adaptive_risk_level_reads_the_newest_frame_only():
    observation = random_observation(8, spec=HISTORY)
    newest = type(observation)(
        observation.ego[:, :7], observation.objects[:, :5], observation.mask[:, :5]
    )
    level = risk_level(observation, HISTORY)
    assert torch.equal(level, risk_level(newest, MARINE))


def test_risk_scales_the_fractions():
    taus, observation = torch.tensor([0.5, 1.0]), random_observation(3)
    fixed = distort(taus, observation, QuantileConfig(cvar=0.3), MARINE)
    torch.testing.assert_close(fixed, torch.tensor([0.15, 0.3]))
    adaptive = distort(taus, observation, QuantileConfig(cvar=0.5, adaptive_cvar=True), MARINE)
    expected = 0.5 * risk_level(observation, MARINE).unsqueeze(1) * taus
    torch.testing.assert_close(adaptive, expected)


@pytest.mark.parametrize("name", QUANTILE_AGENTS)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("risk", [{"cvar": 0.2}, {"adaptive_cvar": True}])
def test_a_risk_level_changes_the_policy(name, risk, shared):
    agents = [make_agent(name, shared_taus=shared, **settings) for settings in ({}, risk)]
    batch, observation = random_batch(agents[0], 16), random_observation(4, 50)
    for agent in agents:
        torch.manual_seed(1)
        with no_host_reads():
            agent.update(batch)
    actions = [agent.act(observation) for agent in agents]
    assert actions[0].shape == actions[1].shape
    assert not torch.equal(*actions)


def test_the_temperature_of_sac_stays_if_told_so():
    for tune in (True, False):
        agent = make_agent("SAC", tune_alpha=tune, alpha=0.3)
        for _ in range(3):
            agent.update(random_batch(agent, 16))
        alpha = agent.log_alpha.detach().exp()
        assert (alpha == pytest.approx(0.3, abs=1e-6)) is not tune


def test_the_temperature_of_sac_moves_towards_the_target_entropy():
    for target, sign in ((50.0, 1.0), (-50.0, -1.0)):
        agent = make_agent("SAC", target_entropy=target, alpha_learning_rate=0.1)
        before = agent.log_alpha.item()
        agent.update(random_batch(agent, 16))
        assert sign * (agent.log_alpha.item() - before) > 0


def test_double_dqn_values_the_learning_networks_choice():
    agents = [make_agent("DQN", double=double) for double in (False, True)]
    losses = []
    for agent in agents:
        torch.manual_seed(3)
        for parameter in agent.network.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        batch = random_batch(agent, 64)
        losses.append(agent.objectives(batch)[0]["critic"].detach())
        values = agent.target(batch.next_obs)
        chooser = agent.network(batch.next_obs) if agent.config.double else values
        best = values.gather(1, chooser.argmax(1, keepdim=True)).squeeze(1)
        target = agent._target(batch, agent.inputs(batch)[1])
        torch.testing.assert_close(target, batch.reward + batch.discount * best)
    assert losses[0] != losses[1]


def test_rainbow_is_quiet_when_acting_and_noisy_when_exploring():
    agent = make_agent("Rainbow")
    one = random_observation(1)
    observation = type(one)(*(part.expand(300, *part.shape[1:]) for part in one))
    assert agent.act(observation).unique().numel() == 1
    assert agent.explore(observation).unique().numel() > 3


def test_rainbows_noise_has_the_factorised_moments():
    torch.manual_seed(0)
    layer = make_agent("Rainbow").network.value_stream.hidden_layer
    x = torch.randn(1, 256).expand(4000, 256)
    for shared, draws in ((False, 1), (True, 4000)):
        rows = x if not shared else x[:1]
        noise = torch.cat([layer.noisy(rows, shared=shared) for _ in range(draws)]) - layer(rows)
        # E f(e)^2 = E|e| = sqrt(2/pi): the variances of the weights' and the bias' noise add up.
        root = (2 / torch.pi) ** 0.5
        variance = root**2 * (layer.weight_sigma**2 @ x[0] ** 2) + root * layer.bias_sigma**2
        assert noise.mean().abs() < 0.02
        torch.testing.assert_close(noise.var(0).mean(), variance.mean(), rtol=0.1, atol=0.0)


@pytest.mark.parametrize(("reward", "mass"), [(0.0, 0.0), (1000.0, 1.0), (-1000.0, 1.0)])
def test_rainbow_tells_whether_returns_lie_on_its_support(reward, mass):
    agent = make_agent("Rainbow")
    batch = random_batch(agent, 16)
    batch = batch._replace(
        reward=torch.full_like(batch.reward, reward), discount=torch.zeros_like(batch.discount)
    )
    assert agent.objectives(batch)[1]["mass_at_ends"] == mass


def test_rainbow_refuses_an_empty_support():
    with pytest.raises(ConfigError, match="v_min is 5"):
        AGENTS["Rainbow"].Config(v_min=5.0, v_max=5.0)


def test_the_losses_of_ppo_are_those_of_a_gaussian_and_of_scaled_returns():
    agent = make_agent("PPO", value_scale=5.0, clip=0.1)
    batch = random_fresh_batch(agent, 64)
    with torch.no_grad():  # another actor than the one that drew the actions
        agent.log_deviation.add_(0.2)
        for parameter in agent.policy.parameters():
            parameter.mul_(1.01)
    found, metrics = agent.objectives(batch)
    mean = agent.policy.act(agent.policy.encoder.layers(batch.inputs))
    gaussian = torch.distributions.Normal(mean, agent.log_deviation.exp())
    constant = 0.5 * math.log(2.0 * math.pi) * mean.shape[-1]
    ratio = (gaussian.log_prob(batch.drawn).sum(-1) + constant - batch.log_probability).exp()
    limited = ratio.clamp(0.9, 1.1)
    assert 0.1 < (ratio != limited).float().mean() < 0.9
    gain = torch.minimum(ratio * batch.advantage, limited * batch.advantage).mean()
    torch.testing.assert_close(found["actor"], -gain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(metrics["clipped_share"], (ratio != limited).float().mean())
    value = 5.0 * make_agent("PPO", value_scale=1.0).value(batch.inputs)
    torch.testing.assert_close(agent.value(batch.inputs), value)
    error = (value - batch.target) / 5.0
    torch.testing.assert_close(found["critic"], error.square().mean())


def test_the_deviation_of_ppo_keeps_its_floor():
    agent = make_agent("PPO", least_deviation=0.05)
    batch = random_fresh_batch(agent, 8)
    with torch.no_grad():
        agent.log_deviation.copy_(torch.tensor([0.01, 0.5]).log())
    agent.update(batch)
    low, high = agent.log_deviation.detach().exp().tolist()
    assert low == pytest.approx(0.05)
    assert high > 0.4
