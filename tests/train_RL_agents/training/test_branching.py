"""RPI: what branches bring is what the simulator would do, and what is learned from them."""

from unittest import mock

import pytest
import torch

from marinenav_env import MarineNavEnv
from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.stepper import Stepper
from tests.train_RL_agents.agent_samples import make_agent, random_batch
from tests.train_RL_agents.short_runs import SMALL
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.policies.load import load_policy
from train_RL_agents.training.branches import Branches
from train_RL_agents.training.branching import without_noise
from train_RL_agents.training.trainer import make_learner

CPU = torch.device("cpu")
STAGES = (Stage(2, 0, 3, 30.0), Stage(4, 0, 2, 30.0))
CALM = EnvConfig(perception=PerceptionConfig().noiseless())
WORLDS, HORIZON = 5, 12
SHORT = ["worlds=4", "algorithm.horizon=4", "algorithm.tried=4", "algorithm.critic_widening=1"]


@pytest.fixture(scope="module")
def policy():
    agent, _ = load_policy("pretrained/ddpg")
    return agent.act


def environment():
    """Return an environment without noise some decisions after its start, and its stepper."""
    env = MarineNavEnv(WORLDS, stages=STAGES, config=CALM, seed=4)
    env.set_stage(torch.arange(WORLDS) % 2)
    stepper = Stepper(env)
    stepper.reset()
    return env, stepper


def branches(env, hold=2, horizon=HORIZON, tried=3):
    return Branches(env, CALM, tried=tried, hold=hold, horizon=horizon)


def played(env, policy, first, robot, hold):
    """Return a robot's rewards if it acts as `first` says for a while, then all as the policy."""
    start = env.state_dict()
    stepper = Stepper(env, restarts=False)
    stepper.observe()
    total = torch.zeros(WORLDS)
    for decision in range(HORIZON):
        action = policy(stepper.now.obs).clone()
        if decision < hold:
            action[:, robot] = first
        total += stepper.step(action).reward[:, robot]
        stepper.advance()
    env.load_state_dict(start)
    return total


@pytest.mark.parametrize("asks_all", [False, True])
def test_a_branch_is_what_the_simulator_does(policy, asks_all):
    env, stepper = environment()
    for _ in range(20):
        stepper.step(policy(stepper.now.obs))
        stepper.advance()
    own = policy(stepper.now.obs)
    torch.manual_seed(0)
    actions = 2.0 * torch.rand(WORLDS, env.robots, 3, 2) - 1.0
    made = branches(env)
    made.asks_all = asks_all
    before = env.state_dict()
    returns = made.returns(stepper.now, policy, own, actions)
    assert all(torch.equal(before[name], now) for name, now in env.state_dict().items())
    for robot in range(env.robots):
        for tried in range(3):
            expected = played(env, policy, actions[:, robot, tried], robot, hold=2)
            torch.testing.assert_close(returns[:, robot, tried], expected, rtol=1e-4, atol=1e-3)
    assert returns[env.alive].std(-1).max() > 0.5
    assert (returns[~env.alive] == 0.0).all()


def test_collisions_of_a_branch_count(policy):
    env, stepper = environment()
    made = branches(env, horizon=60)
    full = torch.ones(WORLDS, env.robots, 3, 2)  # ahead at full thrust, whatever is there
    with mock.patch.object(made, "hold", 60):
        returns = made.returns(stepper.now, policy, policy(stepper.now.obs), full)
    assert (made.env.state.status & 2).any()
    assert torch.equal(returns[..., 0], returns[..., 2])


def test_the_actions_proposed_are_the_own_one_others_anywhere_and_others_near_it():
    agent = make_agent("RPI", tried=9, near=0.1)
    own = torch.tensor([0.5, -0.95]).expand(2000, 2)
    tried = agent.propose(own)
    assert tried.shape == (2000, 9, 2)
    assert torch.equal(tried[:, 0], own)
    assert tried.abs().max() <= 1.0
    anywhere, near = tried[:, 1:5], tried[:, 5:]
    assert anywhere.mean().abs() < 0.05
    assert 0.5 < anywhere.std() < 0.65
    assert (near - own.unsqueeze(1)).abs().max() < 0.6
    assert (near - own.unsqueeze(1)).abs().mean() > 0.04


def worth(batch, best):
    """Return the batch with returns that fall with the distance to an action."""
    actions = batch.action[..., :2]
    returns = 5.0 - 4.0 * (actions - best).square().sum(-1, keepdim=True)
    return batch._replace(action=torch.cat((actions, returns), -1))


def test_the_actor_climbs_what_the_critic_has_learned():
    best = torch.tensor([0.4, -0.3])
    rates = {"learning_rate": 3e-3, "actor_learning_rate": 3e-3, "anchor": 0.0}
    agent = make_agent("RPI", critic_widening=1, **rates)
    batch = random_batch(agent, 64)
    before = (agent.act(batch.obs) - best).norm(dim=-1).mean()
    for _ in range(200):
        metrics = agent.update(worth(random_batch(agent, 64)._replace(obs=batch.obs), best))
    assert metrics["explained"] > 0.8
    assert (agent.act(batch.obs) - best).norm(dim=-1).mean() < 0.3 * before


def test_the_anchor_keeps_the_actor_near_the_followed_policy():
    moved = []
    for anchor in (0.0, 10.0):
        rates = {"acting_average": 1e-3, "actor_learning_rate": 3e-3}
        agent = make_agent("RPI", critic_widening=1, anchor=anchor, **rates)
        for _ in range(100):
            metrics = agent.update(worth(random_batch(agent, 64), torch.ones(2)))
        moved.append(metrics["moved"])
    assert moved[1] < 0.5 * moved[0]


def test_only_the_order_of_returns_within_a_state_counts():
    agent = make_agent("RPI")
    batch = random_batch(agent, 16)
    shifted = batch._replace(action=batch.action + torch.tensor([0.0, 0.0, 7.0]))
    for name, loss in agent.objectives(batch)[0].items():
        torch.testing.assert_close(agent.objectives(shifted)[0][name], loss)


def learner(*overrides):
    made = make_learner(
        load_config(agent="RPI", overrides=[*SMALL, *SHORT, *overrides])[0], CPU, Processes()
    )
    made.start(torch.full((4,), 5))  # five robots, four buoys
    return made


def test_a_learner_keeps_what_was_tried_and_lets_the_actor_lead():
    made = learner("exploration.action_noise=0")
    seen = tuple(part.clone() for part in made.stepper.now.obs)
    with mock.patch.object(made.stepper, "step", wraps=made.stepper.step) as step:
        made.collect()
    batch = made.replay.sample(50)
    assert batch.action.shape == (50, 4, 3)
    assert batch.action[..., 2].std(-1).max() > 0.0
    torch.testing.assert_close(step.call_args.args[0], made.agent.act(seen))


def test_the_actor_learns_once_the_critic_has_settled():
    made = learner("algorithm.settling_updates=3")
    made.collect()
    actor, critic = (
        [part.clone() for part in network.parameters()]
        for network in (made.agent.policy, made.agent.critic)
    )
    made.learn(2)
    assert all(map(torch.equal, actor, made.agent.policy.parameters()))
    assert not all(map(torch.equal, critic, made.agent.critic.parameters()))
    made.learn(2)
    assert made.agent.settled == 1.0
    assert not all(map(torch.equal, actor, made.agent.policy.parameters()))


def test_branches_see_without_noise():
    assert without_noise(EnvConfig()).perception == PerceptionConfig().noiseless()
    other = load_config(task="icra2024", agent="AC-IQN")[0].env
    assert without_noise(other) == other
