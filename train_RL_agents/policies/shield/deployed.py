"""A network to export with its shield inside: called as the network alone, with the same outputs.

Continuous actions are replaced. Of action values, quantiles and probabilities those of the proposed
and the guarded action are exchanged, so that a planner that takes the best one takes the guarded
action. A Gaussian becomes that of the guarded mean action, with the least deviation. Where the
shield leaves the policy alone the outputs, but for that deviation, keep their bits.
"""

import math

import torch
from torch import Tensor, nn

from train_RL_agents.agents.networks import squash
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.build import LoadedPolicy
from train_RL_agents.policies.shield.acting import check_guarded
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


class MeanAction(nn.Module):
    """A policy: the mean action of a Gaussian network's output."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return actions `[..., A]`."""
        mu, _ = self.network(observation)
        return squash(mu)


class ShieldedGaussian(nn.Module):
    """A network of mean and log standard deviation of z, a = (2/pi) atan(z), guarded.

    It acts by the mean: a caller's draw would leave the action that was found safe.
    """

    def __init__(self, shield: Shield, network: nn.Module) -> None:
        super().__init__()
        self.shield, self.network = shield, network
        self.least_log_std = -20.0  # the network's own bound
        self.inside = 1.0 - 2.0**-11  # z is infinite at 1, and float32 has to resolve it

    def forward(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the means `[B, A]` of guarded actions, and the least deviation."""
        looked = self.shield.look(observation)
        mu, log_std = self.network(looked.seen)
        proposed = squash(mu)
        action = self.shield.guard(looked, proposed).action
        inside = action.clamp(-self.inside, self.inside)
        guarded = torch.tan(0.5 * math.pi * inside)
        changed = (action != proposed).any(-1, keepdim=True)
        # From the network's output: what is made anew has a fixed batch in an ONNX file.
        return torch.where(changed, guarded, mu), 0.0 * log_std + self.least_log_std


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
    actions = torch.arange(count, device=outputs.device)
    first, second = first.unsqueeze(-1), second.unsqueeze(-1)  # [B, 1]
    order = torch.where(actions == first, second, torch.where(actions == second, first, actions))
    shape = [1] * outputs.dim()
    shape[0], shape[axis] = -1, count  # an extent that is read has a fixed batch in an ONNX file
    return outputs.gather(axis, order.view(shape).expand_as(outputs))


def shielded_network(
    policy: LoadedPolicy,
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
        ConfigError: the shield cannot guard the policy.
    """
    agent, env, frames = policy.agent, check_guarded(policy.config), policy.config.stack_k
    values, others = agent.action_values(), list(agent.actor_inputs().values())
    module: nn.Module
    if agent.stochastic:
        acting = MeanAction(network)
        guard = Shield(acting, env, config, discrete=False, frames=frames, rollout=rollout)
        module = ShieldedGaussian(guard, network)
    elif values is None:
        guard = Shield(network, env, config, discrete=False, frames=frames, rollout=rollout)
        module = ShieldedActor(guard)
    else:
        best = BestAt(network, values, others[0]) if others else Best(network, values)
        guard = Shield(best, env, config, discrete=True, frames=frames, rollout=rollout)
        kind = ShieldedQuantiles if others else ShieldedValues
        module = kind(guard, network, values, values.axis)
    return module.to(next(network.parameters()).dtype).eval().requires_grad_(False)
