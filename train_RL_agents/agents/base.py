"""What all agents share: their settings, the gradient step, and their state as plain tensors.

An agent is one algorithm. A subclass builds its networks, says which parameters descend which loss
(`register_learners`), and computes those losses from a batch (`objectives`); the rest is here.
"""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from marinenav_env.envs.spec import (
    EntitySpec,
    EnvSpec,
    ObservationSpec,
    ObservationTensors,
    TwoListSpec,
)
from marinenav_env.fields import ConfigError, Settings, setting
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.encoders import KINDS, Encoder, make_encoder
from train_RL_agents.agents.networks import ActionValues
from train_RL_agents.device.precision import bfloat16_products, multiplies_bfloat16

PROTOTYPE = "vectorised prototype of AC-IQN on this task"
PUBLISHED = "published training code"
CHOICE = "this project"
MEASURED = "docs/results.md"


@dataclass(frozen=True)
class AgentConfig(Settings):
    """Settings of every algorithm; each adds its own."""

    learning_rate: float = setting(3e-4, unit="-", source=PROTOTYPE, low=0.0)
    """Adam's rate for the value networks."""
    gamma: float = setting(0.99, unit="1/decision", source=PUBLISHED, low=0.0, high=1.0)
    """Discount of a decision; a replay turns it into the batch's `discount`."""
    acting_average: float = setting(1e-3, unit="1/update", source=MEASURED, low=0.0, high=1.0)
    """Act as deployed with an exponential average of the acting network, which takes this share of
    the learned one at every update; 0 acts with the learned network itself."""
    max_grad_norm: float | None = setting(10.0, unit="-", source=CHOICE, low=1e-9)
    """Gradients of a network are scaled down to this Euclidean norm; null leaves them alone."""
    autocast: bool | None = setting(None, unit="-", source="docs/scaling.md")
    """Learn and explore with bfloat16 products; losses and `act` stay in float32. null does so
    where the device has instructions for them (GPUs from compute capability 8.0, CPUs with AMX
    or AVX-512 BF16)."""
    encoder: str = setting("published", unit="-", source=PUBLISHED, choices=KINDS)
    """published: raw features. relative_motion: features worked out of them, such as the time to
    the closest point of approach (agents/relative_motion.py)."""
    widening: int = setting(1, unit="-", source=PUBLISHED, low=1, high=64)
    """Factor of the published widths of the networks' layers."""
    ego_magnitude: tuple[float, ...] | None = setting(
        None, unit="units of the features", source=CHOICE, low=1e-6
    )
    """Divisors of the robot's own features inside the network; null takes the environment's."""
    object_magnitude: tuple[float, ...] | None = setting(
        None, unit="units of the features", source=CHOICE, low=1e-6
    )
    """Divisors of an object's features inside the network; null takes the environment's."""

    def check_observation(self, spec: ObservationSpec) -> None:
        """Check that the settings fit what the agent observes.

        Raises:
            ConfigError: a setting is for objects, and there are none in an observation, or for the
                raw features that the encoder does not take.
        """
        relative = self.encoder == "relative_motion"
        if relative and not isinstance(spec, EntitySpec | TwoListSpec):
            raise ConfigError(
                "encoder is 'relative_motion', but the environment shows no list of objects with "
                "their velocities: leave it out"
            )
        for name in ("ego_magnitude", "object_magnitude"):
            if relative and getattr(self, name) is not None:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}, but encoder 'relative_motion' scales its "
                    "features itself: give algorithm.encoder=published, or leave it out"
                )
        if not isinstance(spec, EntitySpec) and self.object_magnitude is not None:
            raise ConfigError(
                f"object_magnitude is {self.object_magnitude}, but the environment shows no "
                "objects of one kind: leave it out"
            )


@dataclass(frozen=True)
class ReplayAgentConfig(AgentConfig):
    """Settings of an algorithm that learns from a replay of transitions."""

    n_step: int = setting(5, unit="decisions", source=MEASURED, low=1)
    """Length of the return; the replay computes it."""
    prioritized: bool = setting(False, unit="-", source=PUBLISHED)
    """Sample by priority; `update` then returns the new priorities."""
    polyak: float = setting(0.01, unit="1/update", source=PROTOTYPE, low=0.0, high=1.0)
    """Share of the networks that enters their targets at every update."""


class Agent(nn.Module, abc.ABC):
    """One algorithm: networks, acting, and one gradient update at a time.

    Nothing here reads the device: `update` can be captured in a CUDA graph.

    Args:
        config: of the class's `Config`.
        spec: of the environment.
        device: where the networks live.

    Raises:
        ConfigError: the environment has another kind of actions, or a setting does not fit it.

    Attributes:
        actions: number of discrete actions, or of continuous action coordinates A.
        uses_bfloat16: whether it learns and explores with bfloat16 products.
        gradient_sync: called in place on the list of all gradients between the backward pass and
            the optimizer step, to average them over processes; None does nothing.
    """

    name: str
    discrete: ClassVar[bool]
    on_policy: ClassVar[bool] = False  # learns from fresh decisions, not from a replay
    stochastic: ClassVar[bool] = False  # acting as deployed draws a sample
    actor_outputs: ClassVar[dict[str, str]] = {
        "action": "action in (-1, 1), as `actions` describes it"
    }  # what `actor` returns: name and meaning of each tensor
    acting_settings: ClassVar[tuple[str, ...]] = ()  # enter only when acting, see `act_under`
    Config: ClassVar[type[AgentConfig]]

    def __init__(
        self,
        config: AgentConfig,
        spec: EnvSpec,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        if not isinstance(config, self.Config):
            raise TypeError(
                f"config is a {type(config).__name__}: agent {self.name} needs a "
                f"{self.Config.__name__}"
            )
        if spec.action.discrete != self.discrete:
            kinds = {True: "discrete", False: "continuous"}
            raise ConfigError(
                f"the environment has {kinds[spec.action.discrete]} actions: agent {self.name} "
                f"needs {kinds[self.discrete]} ones"
            )
        config.check_observation(spec.observation)
        self.config = config
        self.spec = spec
        self.device = torch.device(device)
        self.actions = spec.action.size
        wanted = config.autocast
        self.uses_bfloat16 = multiplies_bfloat16(self.device) if wanted is None else wanted
        self.gradient_sync: Callable[[list[Tensor]], None] | None = None
        self.average: nn.Module | None = None
        self.applied_settings: tuple[str, ...] = ()  # of `acting_settings`, inside `actor` already
        self.build_networks()

    def make_encoder(self) -> Encoder:
        """Return a new encoder of the environment's observations, for a network."""
        config = self.config
        scale = config.ego_magnitude, config.object_magnitude
        return make_encoder(self.spec.observation, config.encoder, *scale, config.widening)

    @abc.abstractmethod
    def build_networks(self) -> None:
        """Build the networks from the settings and the sizes; call `register_learners` last."""

    @property
    @abc.abstractmethod
    def policy_network(self) -> nn.Module:
        """The network that learns to act, a child of this module."""

    @property
    def actor(self) -> nn.Module:
        """The network that acts as deployed: `actor(observation)`."""
        return self.policy_network if self.average is None else self.average

    def actor_inputs(self) -> dict[str, Tensor]:
        """Return what an exported network takes after the observation, for one robot.

        Returns:
            By name, a value `[N]` with which it acts as `act` does.
        """
        return {}

    def deployed_network(self) -> nn.Module:
        """Return the network to export: `actor`, with all `acting_settings` applied inside."""
        return self.actor

    def action_values(self) -> ActionValues | None:
        """Return what makes action values of the exported network's output; None: it has none."""
        return None

    def export_metadata(self) -> dict[str, Any]:
        """Return what a caller of the exported actor must know besides, as JSON values."""
        return {}

    @abc.abstractmethod
    def choose(
        self, network: nn.Module, observation: ObservationTensors, *, mean: bool = False
    ) -> Tensor:
        """Choose actions by a network like `policy_network`; arguments and result as in `act`."""

    @torch.no_grad()
    def act(self, observation: ObservationTensors, *, mean: bool = False) -> Tensor:
        """Act as deployed, for any leading dimensions.

        Args:
            observation: `[..., *shape]` each, of the environment's shapes.
            mean: take the mean action instead of a sample; only stochastic agents differ.

        Returns:
            `[...]` int64 (discrete) or `[..., A]` in (-1, 1).
        """
        return self.choose(self.actor, observation, mean=mean)

    def act_under(self, **settings: Any) -> None:
        """Change settings of a trained agent that enter only when it acts, as deployed or not.

        A setting that the agent learned with may be given too, with the value it has.

        Raises:
            ConfigError: the agent learned with another value, or its network is an export that
                applies another one, or it has no setting of the name, or the value is out of its
                bounds.
        """
        for name, value in settings.items():
            if name in self.acting_settings and name not in self.applied_settings:
                continue
            if name in self.applied_settings:
                applied = getattr(self.config, name)
                if value == applied:
                    continue
                remedy = (
                    f"the exported network acts under {applied!r}: leave it out, or give the "
                    "checkpoint that the export was made of"
                )
            elif hasattr(self.config, name):
                trained = getattr(self.config, name)
                if value == trained:
                    continue
                remedy = (
                    f"this {self.name} was trained with {trained!r}: leave it out, or train with "
                    f"algorithm.{name}={value}"
                )
            else:
                remedy = f"agent {self.name} has no such setting, so leave it out"
            raise ConfigError(f"{name} is {value!r}: {remedy}")
        config = dataclasses.replace(self.config, **settings)
        config.check_observation(self.spec.observation)
        self.config = config

    @torch.no_grad()
    def explore(self, observation: ObservationTensors) -> Tensor:
        """Act while collecting, before any epsilon: by the learned network."""
        with self.precision(self.policy_network):
            action = self.choose(self.policy_network, observation)
        return action if self.discrete else action.to(observation[0].dtype)

    @abc.abstractmethod
    def objectives(self, batch: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the loss `[]` of each group of `register_learners`, and metrics for the log.

        The metrics are detached: scalars `[]`, and `priority` `[B]` if the replay is prioritised.
        """

    def register_learners(
        self,
        groups: dict[str, tuple[Iterable[nn.Parameter], float]],
        targets: Sequence[tuple[nn.Module, nn.Module]] = (),
    ) -> None:
        """Move to the device and set up the optimizer; the last call of `build_networks`.

        Args:
            groups: by the name of its loss, the parameters that descend it and their Adam rate.
            targets: pairs (network, target network); a target follows by Polyak averaging.
        """
        if self.config.acting_average > 0.0:
            self.average = copy.deepcopy(self.policy_network).requires_grad_(False)
        self.to(self.device)
        self._rates = {name: rate for name, (_, rate) in groups.items()}
        self._rate_scale: Tensor | float = 1.0
        on_gpu = self.device.type == "cuda"
        parameter_groups = [
            {
                "name": name,
                "params": list(parameters),
                "lr": torch.tensor(rate, device=self.device) if on_gpu else rate,
            }
            for name, (parameters, rate) in groups.items()
        ]
        self.optimizer = torch.optim.Adam(parameter_groups, fused=True, capturable=on_gpu)
        self._sources: list[Tensor] = [p for network, _ in targets for p in network.parameters()]
        self._targets: list[Tensor] = [p for _, target in targets for p in target.parameters()]
        for source, target in targets:
            target.load_state_dict(source.state_dict())
            target.requires_grad_(False)
        self._allocate_optimizer_state()

    def _allocate_optimizer_state(self) -> None:
        """Create Adam's moments now, so that a captured graph and a checkpoint find them in place.

        A step with zero gradients changes no parameter; only its count has to be undone.
        """
        for parameter in self._parameters_in_order():
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for parameter in self._parameters_in_order():
            self.optimizer.state[parameter]["step"].zero_()

    def _parameters_in_order(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def precision(self, *networks: nn.Module) -> contextlib.AbstractContextManager:
        """Return the context of bfloat16 products, if the settings ask for it.

        Args:
            networks: those that are used inside. Without them all is right, and slower.
        """
        if not self.uses_bfloat16:
            return contextlib.nullcontext()
        return bfloat16_products(self.device, networks)

    def inputs(self, batch: Batch) -> tuple[Any, Any]:
        """Return what the networks' encoders take in their `layers`, of `obs` and of `next_obs`.

        It depends on no weight, so it is worked out once for all networks, and in one pass.
        """
        pairs = zip(batch.obs, batch.next_obs, strict=True)
        both: Any = tuple(torch.cat(pair) for pair in pairs)  # [2 B, ...] each
        encoder = cast("Encoder", self.policy_network.encoder)
        halves = [part.chunk(2) for part in encoder.inputs(both)]
        return tuple(now for now, _ in halves), tuple(following for _, following in halves)

    def update(self, batch: Any) -> dict[str, Tensor]:
        """Do one gradient update.

        Args:
            batch: transitions `[B, ...]` on the agent's device, a `Batch` from a replay or a
                `FreshBatch`.

        Returns:
            Detached metrics on the device: scalars `[]`, and `priority` `[B]` if prioritised.
        """
        losses, metrics = self.objectives(batch)
        groups = self.optimizer.param_groups
        gradients = [torch.autograd.grad(losses[g["name"]], g["params"]) for g in groups]
        if self.gradient_sync is not None:
            self.gradient_sync([gradient for group in gradients for gradient in group])
        for group, values in zip(groups, gradients, strict=True):
            metrics[f"{group['name']}_loss"] = losses[group["name"]].detach()
            metrics[f"{group['name']}_grad_norm"] = self._clip(values)
            for parameter, gradient in zip(group["params"], values, strict=True):
                parameter.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self._targets:
            with torch.no_grad():
                polyak = cast("ReplayAgentConfig", self.config).polyak
                torch._foreach_lerp_(self._targets, self._sources, polyak)
        if self.average is not None:
            with torch.no_grad():
                averages: list[Tensor] = list(self.average.parameters())
                learned: list[Tensor] = list(self.policy_network.parameters())
                torch._foreach_lerp_(averages, learned, self.config.acting_average)
        return metrics

    def _clip(self, gradients: tuple[Tensor, ...]) -> Tensor:
        """Scale gradients down to the largest norm allowed, in place; return their norm `[]`."""
        norm = get_total_norm(gradients)
        if self.config.max_grad_norm is not None:
            scale = (self.config.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)  # []
            torch._foreach_mul_(gradients, scale)
        return norm

    def set_learning_rate_scale(self, scale: Tensor | float) -> None:
        """Multiply the learning rates of the settings by `scale`, from the next update on.

        Args:
            scale: a float, or a 0-d tensor on the agent's device: inside a captured graph it has to
                be a tensor, on the CPU a float spares a read.
        """
        self._rate_scale = scale
        for group in self.optimizer.param_groups:
            rate = self._rates[group["name"]] * scale
            if not isinstance(group["lr"], Tensor):
                group["lr"] = float(rate)
            elif isinstance(rate, Tensor):
                group["lr"].copy_(rate)
            else:
                group["lr"].fill_(rate)

    def training_state(self) -> dict[str, Any]:
        """Return networks, targets and optimizer as nested dictionaries of copied tensors."""
        moments = [
            {key: value.detach().clone() for key, value in self.optimizer.state[p].items()}
            for p in self._parameters_in_order()
        ]
        return {
            "networks": {key: value.detach().clone() for key, value in self.state_dict().items()},
            "optimizer": dict(enumerate(moments)),
            "learning_rate_scale": torch.as_tensor(self._rate_scale, dtype=torch.float64).clone(),
        }

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Restore what `training_state` returned, in place, from any device.

        Raises:
            ValueError: the state belongs to other networks.
        """
        parameters = self._parameters_in_order()
        if len(state["optimizer"]) != len(parameters):
            raise ValueError(
                f"the state holds {len(state['optimizer'])} optimized tensors, agent {self.name} "
                f"has {len(parameters)}: load it into the agent and the settings that wrote it"
            )
        self.load_state_dict(state["networks"])
        for parameter, moments in zip(parameters, state["optimizer"].values(), strict=True):
            for key, value in self.optimizer.state[parameter].items():
                value.copy_(moments[key])
        self.set_learning_rate_scale(float(state["learning_rate_scale"]))
