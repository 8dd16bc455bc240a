"""The policy wrapper: greedy and random actions, exploration per robot, TorchRL's surface."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict
from torchrl.envs.utils import ExplorationType, set_exploration_type

from marinenav_env.envs.observation import Observation
from tests.host_reads import no_host_reads
from tests.train_RL_agents.agent_samples import make_agent, random_observation
from train_RL_agents.agents.policy_wrapper import PolicyWrapper
from train_RL_agents.agents.registry import AGENTS


@pytest.fixture(params=AGENTS)
def agent(request):
    return make_agent(request.param)


def as_tensordict(observation: Observation) -> TensorDict:
    robots = dict(zip(("self", "objects", "mask"), observation, strict=True))
    return TensorDict({"robots": robots}, batch_size=observation.ego.shape[:1])


def test_without_epsilon_the_agent_explores_alone(agent):
    policy, observation = PolicyWrapper(agent), random_observation(20, 5)
    torch.manual_seed(1)
    expected = agent.explore(observation)
    torch.manual_seed(1)
    assert torch.equal(policy.explore(observation), expected)


def test_with_epsilon_one_actions_are_uniform_within_the_bounds(agent):
    torch.manual_seed(0)
    policy = PolicyWrapper(agent, (500, 20), epsilon=1.0)
    action = policy.explore(random_observation(500, 20))
    if agent.discrete:
        shares = action.flatten().bincount(minlength=25) / action.numel()
        assert shares.shape == (25,)
        assert (shares - 1 / 25).abs().max() < 0.01
    else:
        assert action.shape == (500, 20, 2)
        shares = torch.histc(action, bins=10, min=-1, max=1) / action.numel()
        assert shares.sum() == pytest.approx(1.0)
        assert (shares - 0.1).abs().max() < 0.01
        correlation = torch.corrcoef(action.flatten(0, 1).T)[0, 1]
        assert correlation.abs() < 0.05


def test_epsilon_is_the_share_of_random_actions_of_every_robot():
    agent = make_agent("DDPG")
    policy, observation = PolicyWrapper(agent, (3000, 2)), random_observation(3000, 2)
    policy.set_epsilon(torch.tensor([0.1, 0.7]))
    differs = (policy.explore(observation) != agent.act(observation)).all(-1)
    torch.testing.assert_close(
        differs.float().mean(0), torch.tensor([0.1, 0.7]), rtol=0.0, atol=0.03
    )


def test_the_spread_over_robots_is_geometric():
    policy = PolicyWrapper(make_agent("DQN"), (2, 3), epsilon=0.4, spread=7.0)
    expected = [[0.4 ** (1 + 7 * (3 * w + r) / 5) for r in range(3)] for w in range(2)]
    torch.testing.assert_close(policy.epsilon, torch.tensor(expected))
    policy.set_epsilon(0.0)
    assert policy.epsilon.max() == 0
    policy.set_epsilon(torch.tensor([[1.0], [0.5]]))
    assert torch.equal(policy.epsilon[0], torch.ones(3))
    assert policy.epsilon[1, 2] == 0.5**8
    assert torch.equal(
        PolicyWrapper(make_agent("DQN"), (2, 3), epsilon=0.4).epsilon.unique(), torch.tensor([0.4])
    )


def test_parts_of_a_run_continue_the_spread():
    whole = PolicyWrapper(make_agent("DQN"), (2, 3), epsilon=0.4, spread=7.0)
    place = {"epsilon": 0.4, "spread": 7.0, "all_robots": 6}
    for first in (0, 3):
        part = PolicyWrapper(make_agent("DQN"), (1, 3), first_robot=first, **place)
        assert torch.equal(part.epsilon.flatten(), whole.epsilon.flatten()[first : first + 3])
    with pytest.raises(ValueError, match=r"first_robot is 4: .* from 0 to 3"):
        PolicyWrapper(make_agent("DQN"), (1, 3), first_robot=4, **place)


def test_setting_epsilon_writes_the_same_buffer():
    policy = PolicyWrapper(make_agent("DQN"), (2, 3), epsilon=0.4)
    buffer, value = policy.epsilon, torch.tensor(0.2)
    with no_host_reads():
        policy.set_epsilon(0.3)
        policy.set_epsilon(value)
    assert policy.epsilon is buffer
    assert torch.equal(buffer, torch.full((2, 3), 0.2))


def test_action_noise_has_its_deviation_and_stays_in_bounds():
    agent = make_agent("AC-IQN")
    observation = random_observation(2000)
    noise = PolicyWrapper(agent, action_noise=0.1).explore(observation) - agent.act(observation)
    assert noise.std() == pytest.approx(0.1, rel=0.1)
    wide = PolicyWrapper(agent, action_noise=5.0).explore(observation)
    assert wide.abs().max() == 1.0


def test_exploration_draws_anew_at_every_call(agent):
    policy, observation = PolicyWrapper(agent, epsilon=1.0), random_observation(50)
    assert not torch.equal(policy.explore(observation), policy.explore(observation))


def test_exploring_reads_nothing_from_the_device(agent):
    noise = 0.0 if agent.discrete else 0.1
    policy = PolicyWrapper(agent, (4, 3), epsilon=0.5, spread=7.0, action_noise=noise)
    observation = random_observation(4, 3)
    with no_host_reads():
        policy.explore(observation)
        policy.act(observation)


def test_a_tensordict_gets_its_action_by_the_exploration_type(agent):
    policy = PolicyWrapper(agent, (6, 3), epsilon=1.0)
    observation = random_observation(6, 3)

    def action(kind: ExplorationType) -> torch.Tensor:
        torch.manual_seed(1)
        with set_exploration_type(kind):
            return policy(as_tensordict(observation))["robots", "action"]

    torch.manual_seed(1)
    explored = policy.explore(observation)
    assert torch.equal(action(ExplorationType.RANDOM), explored)
    torch.manual_seed(1)
    assert torch.equal(policy(as_tensordict(observation))["robots", "action"], explored)
    mean = policy.act(observation, mean=True)
    assert not torch.equal(mean, explored)
    for kind in (ExplorationType.DETERMINISTIC, ExplorationType.MODE, ExplorationType.MEAN):
        with set_exploration_type(kind):
            assert torch.equal(policy(as_tensordict(observation))["robots", "action"], mean)


def test_an_observation_that_does_not_fit_is_refused(agent):
    policy = PolicyWrapper(agent, (6, 3))
    seen = as_tensordict(random_observation(6, 3))
    with pytest.raises(KeyError, match=policy.in_keys[-1][-1]):
        policy(seen.exclude(policy.in_keys[-1]))
    with pytest.raises(ValueError, match=r"leading dimensions that end in \(6, 3\)"):
        policy(as_tensordict(random_observation(6, 4)))
    with pytest.raises(ValueError, match=r"dtype torch\.float64: give float32"):
        policy(seen.double())
    assert policy(as_tensordict(random_observation(6, 3)))["robots", "action"].shape[:2] == (6, 3)


def test_epsilon_and_bounds_are_buffers_that_a_state_dict_carries(agent):
    policy = PolicyWrapper(agent, (2, 3), epsilon=0.3)
    state = policy.state_dict()
    assert {"epsilon", "action_low", "action_high"} <= set(state)
    other = PolicyWrapper(agent, (2, 3))
    other.load_state_dict(state)
    assert torch.equal(other.epsilon, policy.epsilon)


def test_bad_exploration_is_refused():
    agent = make_agent("DQN")
    with pytest.raises(ValueError, match=r"epsilon is 1\.5"):
        PolicyWrapper(agent, epsilon=1.5)
    with pytest.raises(ValueError, match=r"action_noise is 0\.1"):
        PolicyWrapper(agent, action_noise=0.1)
    with pytest.raises(ValueError, match=r"shape \(4,\), which does not broadcast to \(2, 3\)"):
        PolicyWrapper(agent, (2, 3)).set_epsilon(torch.zeros(4))
