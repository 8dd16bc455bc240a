"""Where TorchRL has the same loss, both give the same value on the same batch."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torch.distributions import Independent, Normal, TransformedDistribution, constraints
from torch.distributions.transforms import Transform
from torchrl.modules import (
    DistributionalQValueActor,
    ProbabilisticActor,
    QValueActor,
    ValueOperator,
)
from torchrl.objectives import DDPGLoss, DistributionalDQNLoss, DQNLoss, SACLoss

from tests.train_RL_agents.agent_samples import make_agent, random_batch
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.networks import EncodedNetwork

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KEYS = ["ego", "objects", "mask"]
SIZE = 64


class Unpacked(nn.Module):
    """A network called with the parts of an observation, as TorchRL passes keys."""

    def __init__(self, network: EncodedNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, ego, objects, mask, *others):
        return self.network((ego, objects, mask), *others)


class Valued(Unpacked):
    """A critic with TorchRL's trailing dimension."""

    def forward(self, *parts):
        return super().forward(*parts).unsqueeze(-1)


class LogProbabilities(Unpacked):
    """A categorical network as log-probabilities `[B, Z, A]`."""

    def forward(self, *parts):
        return super().forward(*parts).log().transpose(-1, -2)


class LocationScale(Unpacked):
    """A Gaussian actor with a standard deviation in place of its logarithm."""

    def forward(self, *parts):
        mu, log_std = super().forward(*parts)
        return mu, log_std.exp()


class Atan(Transform):
    """a = (2/pi) atan(z), written apart from the project's."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True

    def _call(self, x):
        return 2.0 / math.pi * x.atan()

    def _inverse(self, y):
        return (0.5 * math.pi * y).tan()

    def log_abs_det_jacobian(self, x, y):
        return (2.0 / math.pi / (1.0 + x.square())).log()


class SquashedNormal(TransformedDistribution):
    """The distribution of SAC's actions."""

    def __init__(self, loc, scale):
        super().__init__(Independent(Normal(loc, scale), 1), Atan())


def prepared(name: str, **settings: object) -> tuple[Agent, Batch, TensorDict]:
    """An agent whose targets differ from its networks, and one batch in both formats."""
    agent = make_agent(name, **settings)
    for key, parameter in agent.named_parameters():
        if "target" in key and "sigma" not in key:
            parameter.data.add_(0.05 * torch.randn_like(parameter))
    batch = random_batch(agent, SIZE)._replace(weight=torch.ones(SIZE))
    ended = (batch.discount == 0).unsqueeze(-1)
    following = dict(zip(KEYS, batch.next_obs, strict=True))
    following |= {"reward": batch.reward.unsqueeze(-1), "done": ended, "terminated": ended}
    here = dict(zip(KEYS, batch.obs, strict=True)) | {"action": batch.action}
    data = TensorDict({**here, "next": TensorDict(following, [SIZE])}, [SIZE])
    assert ended.any()
    return agent, batch, data


def set_target(loss: nn.Module, name: str, module: nn.Module) -> None:
    """Write the parameters of `module` over TorchRL's target parameters."""
    getattr(loss, f"target_{name}_params").data.update_(TensorDict.from_module(module).data)


@pytest.mark.parametrize("double", [False, True])
def test_dqn(double):
    agent, batch, data = prepared("DQN", double=double, kappa=1.0)  # smooth_l1

    def wrap(network):
        return QValueActor(Unpacked(network), in_keys=KEYS, action_space="categorical")

    theirs = DQNLoss(
        wrap(copy.deepcopy(agent.network)),
        loss_function="smooth_l1",
        delay_value=True,
        double_dqn=double,
        action_space="categorical",
    )
    theirs.make_value_estimator(gamma=agent.config.gamma)
    set_target(theirs, "value_network", wrap(agent.target))
    torch.testing.assert_close(agent.objectives(batch)[0]["critic"], theirs(data)["loss"])


def test_c51():
    agent, batch, data = prepared("Rainbow", sigma=0.0, v_min=-2.0, v_max=2.0)

    def wrap(network):
        module = TensorDictModule(LogProbabilities(network), KEYS, ["action_value"])
        return DistributionalQValueActor(
            module, support=agent.support.clone(), action_space="categorical"
        )

    theirs = DistributionalDQNLoss(wrap(copy.deepcopy(agent.network)), gamma=agent.config.gamma)
    set_target(theirs, "value_network", wrap(agent.target))
    objectives, metrics = agent.objectives(batch)
    torch.testing.assert_close(objectives["critic"], theirs(data)["loss"])
    torch.testing.assert_close(metrics["priority"], data["td_error"].squeeze(-1))


def test_ddpg():
    agent, batch, data = prepared("DDPG")

    def wrap(policy, critic):
        return (
            TensorDictModule(Unpacked(policy), in_keys=KEYS, out_keys=["action"]),
            ValueOperator(Valued(critic), in_keys=[*KEYS, "action"]),
        )

    theirs = DDPGLoss(
        *wrap(copy.deepcopy(agent.policy), copy.deepcopy(agent.critic)),
        delay_actor=True,
        delay_value=True,
        loss_function="l2",
    )
    theirs.make_value_estimator(gamma=agent.config.gamma)
    actor, critic = wrap(agent.target_policy, agent.target_critic)
    set_target(theirs, "actor_network", actor)
    set_target(theirs, "value_network", critic)
    expected, (objectives, _) = theirs(data), agent.objectives(batch)
    torch.testing.assert_close(objectives["critic"], expected["loss_value"])
    torch.testing.assert_close(objectives["actor"], expected["loss_actor"])


def test_sac():
    agent, batch, data = prepared("SAC", alpha=0.3)

    def wrap(critic):
        return ValueOperator(Valued(critic), in_keys=[*KEYS, "action"])

    actor = ProbabilisticActor(
        TensorDictModule(LocationScale(copy.deepcopy(agent.policy)), KEYS, ["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=SquashedNormal,
        return_log_prob=True,
    )
    theirs = SACLoss(
        actor,
        [wrap(copy.deepcopy(critic)) for critic in agent.critics],
        loss_function="l2",
        alpha_init=0.3,
        target_entropy=-2.0,
        action_spec=None,
    )
    theirs.make_value_estimator(gamma=agent.config.gamma)
    targets = [TensorDict.from_module(wrap(critic)).data for critic in agent.target_critics]
    theirs.target_qvalue_network_params.data.update_(torch.stack(targets))
    torch.manual_seed(5)  # both draw the next action first, then the actor's
    expected = theirs(data)
    torch.manual_seed(5)
    objectives, _ = agent.objectives(batch)
    torch.testing.assert_close(objectives["critic"], expected["loss_qvalue"])
    torch.testing.assert_close(objectives["actor"], expected["loss_actor"])
    torch.testing.assert_close(objectives["alpha"], expected["loss_alpha"])
