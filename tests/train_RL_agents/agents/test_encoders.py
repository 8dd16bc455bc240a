"""Encoders: the environment's description chooses one, and every algorithm works with any."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch

from marinenav_env.envs.classic import CartPoleConfig, CartPoleEnv
from marinenav_env.envs.icra2024 import Icra2024Config, icra2024_spec
from marinenav_env.envs.ranging import SectorsConfig, sectors_spec
from marinenav_env.envs.spec import FlatObservation
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from tests.host_reads import no_host_reads
from tests.train_RL_agents.agent_samples import (
    HISTORY,
    MARINE,
    flat_spec,
    main_loss,
    make_agent,
    random_batch,
    random_observation,
    spec_for,
)
from train_RL_agents.agents.encoders import KINDS, EntityEncoder, FlatEncoder, make_encoder
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.agents.quantiles import QuantileConfig, RiskAdjusted, distort
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.policies.interface import acting_network, call, call_inputs
from train_RL_agents.replay.buffer import DeviceReplay
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout

MAGNITUDES = (2.4, 2.0, 0.2, 2.0)
WORLDS, ACTIONS = 6, 3


def flat(name: str):
    return flat_spec(name, MAGNITUDES, ACTIONS)


OBSERVATIONS = {
    "marine": MARINE,
    "history": HISTORY,
    "lists": icra2024_spec(Icra2024Config(), discrete=True, stack_k=2).observation,
    "rays": sectors_spec(SectorsConfig(), discrete=True).observation,
    "flat": flat("DQN").observation,
}
ENCODED = [
    (name, kind)
    for name, kind in itertools.product(OBSERVATIONS, KINDS)
    if kind == "published" or name not in ("rays", "flat")
]
"""Observations, each with the kinds of encoder that know it."""


@pytest.mark.parametrize("name", REPLAY_AGENTS)
def test_every_agent_learns_from_a_flat_observation(name):
    agent = make_agent(name, spec=flat(name))
    policy = PolicyWrapper(agent, (WORLDS, 1), epsilon=0.5)
    obs = random_observation(WORLDS, 1, spec=agent.spec.observation)
    action = policy.explore(obs)
    assert action.shape == ((WORLDS, 1) if agent.discrete else (WORLDS, 1, ACTIONS))
    config = ReplayConfig(capacity=60, n_step=1, prioritized=agent.config.prioritized)
    replay = DeviceReplay(config, TransitionLayout.of(obs, action), "cpu")
    reward, flag = torch.randn(WORLDS, 1), torch.zeros(WORLDS, 1, dtype=torch.bool)
    replay.store(obs, action, reward, ~flag, flag, flag, obs)
    batch = replay.sample(8)
    assert isinstance(batch.obs, FlatObservation)
    assert batch.obs.state.shape == (8, 4)
    before = [p.clone() for p in agent.policy_network.encoder.parameters()]
    with no_host_reads():
        metrics = agent.update(batch)
    assert metrics["critic_loss"].isfinite()
    after = agent.policy_network.encoder.parameters()
    assert all(not torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_an_agent_learns_in_the_second_environment():
    spec = CartPoleEnv.describe(CartPoleConfig())
    env, agent = CartPoleEnv(WORLDS), make_agent("DQN", spec=spec)
    stepper = Stepper(env)
    stepper.reset()
    obs = stepper.now.obs
    assert [*agent.spec.observation.keys] == [env.entry_keys[name] for name in obs._fields]
    assert [tuple(part.shape[2:]) for part in obs] == list(agent.spec.observation.shapes)
    policy = PolicyWrapper(agent, (WORLDS, 1), epsilon=0.5)
    layout = TransitionLayout.of(obs, policy.explore(obs))
    replay = DeviceReplay(ReplayConfig(capacity=600), layout, "cpu")
    for _ in range(40):
        now = stepper.now
        action = policy.explore(now.obs)
        following = stepper.step(action)
        ends = following.acted, following.terminated, following.truncated
        replay.store(now.obs, action, following.reward, *ends, following.obs)
        stepper.advance()
    metrics = agent.update(replay.sample(32))
    assert metrics["critic_grad_norm"] > 0.0
    data = env.rollout(5, PolicyWrapper(agent), break_when_any_done=False)
    assert data["action"].shape == (WORLDS, 5)
    assert len(replay) == 40 * WORLDS


@pytest.mark.parametrize("name", AGENTS)
def test_the_network_to_export_takes_a_flat_observation(name):
    agent = make_agent(name, spec=flat(name))
    spec = agent.spec.observation
    observation = spec.draw(5, torch.Generator().manual_seed(0))
    (entry,) = spec.describe()
    assert entry["shape"] == ["B", 4]
    inputs = call_inputs(agent, observation, torch.float64)
    first, *_ = call(acting_network(agent, torch.float64), inputs, len(observation))
    assert first.shape[0] == 5
    assert first.isfinite().all()


def test_the_description_chooses_the_encoder():
    assert isinstance(make_encoder(flat("DQN").observation), FlatEncoder)
    assert isinstance(make_encoder(spec_for("DQN").observation), EntityEncoder)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (flat("DQN").observation, "relative_motion"),
        (flat("DQN").observation, "attention"),
        (MARINE, "attention"),
    ],
)
def test_a_kind_that_knows_no_such_observation_is_refused(spec, kind):
    """As a new one that has no line for it: nothing else takes its place."""
    with pytest.raises(ConfigError, match=f"encoder is '{kind}': .* choose one of published"):
        make_encoder(spec, kind)


def test_a_flat_observation_is_divided_by_its_magnitudes():
    spec = flat("DQN").observation
    own, plain = make_encoder(spec), make_encoder(spec, ego_magnitude=(1.0,))
    state = own.state_dict() | {"observation_input_scale": torch.ones(4)}
    plain.load_state_dict(state)
    observation = random_observation(3, spec=spec)
    divided = FlatObservation(observation.state / torch.tensor(MAGNITUDES))
    torch.testing.assert_close(own(observation), plain(divided))
    assert not torch.allclose(own(observation), plain(observation))


def test_an_environment_with_other_actions_is_refused():
    with pytest.raises(ConfigError, match="continuous actions: agent DQN needs discrete"):
        make_agent("DQN", spec=spec_for("SAC"))


@pytest.mark.parametrize(("seen", "kind"), ENCODED)
def test_encoders_are_widened(seen, kind):
    spec = OBSERVATIONS[seen]
    plain, wide = (make_encoder(spec, kind, widening=factor) for factor in (1, 3))
    assert (wide.features, wide.hidden_width) == (3 * plain.features, 3 * plain.hidden_width)
    assert wide(spec.draw(4, torch.default_generator)).shape == (4, wide.features)


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_is_widened(name):
    plain, wide = (make_agent(name, widening=factor) for factor in (1, 2))
    weights = [sum(p.numel() for p in agent.policy_network.parameters()) for agent in (plain, wide)]
    assert weights[1] > 2 * weights[0]
    assert main_loss(wide.update(random_batch(wide, 16))).isfinite()


@pytest.mark.parametrize(
    ("name", "settings"),
    [("DQN", {"object_magnitude": (1.0,)}), ("AC-IQN", {"adaptive_cvar": True})],
)
def test_settings_for_objects_are_refused_without_any(name, settings):
    with pytest.raises(ConfigError, match=f"{next(iter(settings))}.*no objects.*leave it out"):
        make_agent(name, spec=flat(name), **settings)


def test_a_risk_level_that_adapts_is_refused_when_acting_without_objects():
    agent = make_agent("IQN", spec=flat("IQN"))
    with pytest.raises(ConfigError, match="adaptive_cvar"):
        agent.act_under(adaptive_cvar=True)
    assert not agent.config.adaptive_cvar


class Echo(torch.nn.Module):
    """Returns the fractions that it is called with."""

    def forward(self, observation: tuple[torch.Tensor, ...], taus: torch.Tensor) -> torch.Tensor:
        return taus


@pytest.mark.parametrize(("radius", "level"), [(1.0, 0.4), (3.0, 0.2)])
def test_the_radius_of_the_adaptive_risk_level_is_the_environments(radius, level):
    spec = dataclasses.replace(MARINE, own_radius=radius)
    config = QuantileConfig(adaptive_cvar=True)
    observation = random_observation(4)._replace(
        objects=torch.tensor([6.0, 0.0, 0.0, 0.0, 1.0]).expand(4, 5, 5), mask=torch.ones(4, 5)
    )
    taus, expected = torch.ones(2), torch.full((4, 2), level)
    torch.testing.assert_close(distort(taus, observation, config, spec), expected)
    torch.testing.assert_close(RiskAdjusted(Echo(), config, spec)(observation, taus), expected)


@pytest.mark.parametrize(("name", "kind"), ENCODED)
def test_what_an_encoder_reads_is_all_that_it_needs(name, kind):
    encoder = make_encoder(OBSERVATIONS[name], kind)
    whole = OBSERVATIONS[name].draw(WORLDS, torch.Generator().manual_seed(0))
    read = encoder.read(whole)
    assert type(read) is type(whole)
    for of_all, of_part in zip(encoder.inputs(whole), encoder.inputs(read), strict=True):
        assert torch.equal(of_all, of_part)
    if name == "lists" and kind == "relative_motion":
        assert [2 * part.shape[-2] for part in read[1:]] == [part.shape[-2] for part in whole[1:]]
    else:
        assert all(part is given for part, given in zip(read, whole, strict=True))
