"""A network to export with its shield inside: called as the network alone, with the same outputs.

Continuous actions are replaced. Of action values, quantiles and probabilities those of the proposed
and the guarded action are exchanged, so that a planner that takes the best one takes the guarded
action. Where the shield leaves the policy alone the outputs keep their bits.
"""

import torch
from torch import Tensor, nn

from marinenav_env.fields import ConfigError
from train_RL_agents.config.build import Policy
from train_RL_agents.policies.shield.acting import check_guarded
from train_RL_agents.policies.shield.config import ShieldConfig
from train_RL_agents.policies.shield.core_rollout import CoreRollout
from train_RL_agents.policies.shield.shield import Shield
from train_RL_agents.policies.shield.torch_rollout import TorchRollout


class Best(nn.Module):
    """A policy: the index of the best action value of a network's output."""

    def __init__(self, network: nn.Module, values: nn.Module) -> None:
        super().__init__()
        self.network, self.values = network, values

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return indices `[...]`."""
        return self.values(self.network(observation)).argmax(-1)


class BestAt(nn.Module):
    """As `Best`, for a network that takes fractions besides: always the same ones `[N]`."""

    fractions: Tensor

    def __init__(self, network: nn.Module, values: nn.Module, fractions: Tensor) -> None:
        super().__init__()
        self.network, self.values = network, values
        self.register_buffer("fractions", fractions.clone())

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return indices `[...]`."""
        return self.values(self.network(observation, self.fractions)).argmax(-1)


class ShieldedActor(nn.Module):
    """A network that returns actions, guarded."""

    def __init__(self, shield: Shield) -> None:
        super().__init__()
        self.shield = shield

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return actions `[B, A]`."""
        return self.shield(observation).action


class ShieldedValues(nn.Module):
    """A network that values actions, guarded; `axis` is that of actions in its output."""

    def __init__(self, shield: Shield, network: nn.Module, values: nn.Module, axis: int) -> None:
        super().__init__()
        self.shield, self.network, self.values, self.axis = shield, network, values, axis

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return what the network returns, entries exchanged."""
        looked = self.shield.look(observation)
        outputs = self.network(looked.seen)
        proposed = self.values(outputs).argmax(-1)
        action = self.shield.guard(looked, proposed).action
        return exchanged(outputs, proposed, action, self.axis)


class ShieldedQuantiles(nn.Module):
    """As `ShieldedValues`, for a network that takes fractions `[B, N]` besides.

    The plans are rolled out with the fractions of acting, the decision itself with the caller's.
    """

    def __init__(self, shield: Shield, network: nn.Module, values: nn.Module, axis: int) -> None:
        super().__init__()
        self.shield, self.network, self.values, self.axis = shield, network, values, axis

    def forward(self, observation: tuple[Tensor, Tensor, Tensor], taus: Tensor) -> Tensor:
        """Return what the network returns, entries exchanged."""
        looked = self.shield.look(observation)
        outputs = self.network(looked.seen, taus)
        proposed = self.values(outputs).argmax(-1)
        action = self.shield.guard(looked, proposed).action
        return exchanged(outputs, proposed, action, self.axis)


def exchanged(outputs: Tensor, first: Tensor, second: Tensor, axis: int) -> Tensor:
    """Return outputs `[B, ...]` with the entries of two actions `[B]` exchanged along an axis."""
    count = outputs.shape[axis]
    actions = torch.arange(count, device=outputs.device).expand(outputs.shape[0], count)
    first, second = first.unsqueeze(-1), second.unsqueeze(-1)
    order = torch.where(actions == first, second, torch.where(actions == second, first, actions))
    shape = [1] * outputs.dim()
    shape[0], shape[axis] = outputs.shape[0], count
    return outputs.gather(axis, order.view(shape).expand_as(outputs))


def shielded_network(
    policy: Policy,
    network: nn.Module,
    config: ShieldConfig,
    rollout: type[CoreRollout | TorchRollout],
) -> nn.Module:
    """Return a policy's network with a shield, in the network's dtype.

    Args:
        policy: what is deployed.
        network: of it, from `acting_network`.
        config: of the shield.
        rollout: `TorchRollout` to be scripted.

    Raises:
        ConfigError: the shield cannot guard the policy, or reach its actions.
    """
    agent, env = policy.agent, check_guarded(policy.config)
    if agent.stochastic:
        raise ConfigError(
            f"shield is given: {agent.name} draws its action outside the exported network, where "
            "no shield reaches; leave it out, or act through evaluate.py --shield"
        )
    values, others = agent.action_values(), list(agent.actor_inputs().values())
    module: nn.Module
    if values is None:
        module = ShieldedActor(Shield(network, env, config, discrete=False, rollout=rollout))
    else:
        acting = BestAt(network, values, others[0]) if others else Best(network, values)
        shield = Shield(acting, env, config, discrete=True, rollout=rollout)
        kind = ShieldedQuantiles if others else ShieldedValues
        module = kind(shield, network, values, values.axis)
    return module.to(next(network.parameters()).dtype).eval().requires_grad_(False)
