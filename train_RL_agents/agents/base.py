"""What all agents share: their interface, acting, and their state as plain tensors.

An agent is one algorithm. A subclass builds its networks, says which parameters descend which loss
(`register_learners`), and computes those losses from a batch (`objectives`). `descent.py` takes the
gradient steps; the rest is here.
"""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import EnvSpec, ObservationTensors
from marinenav_env.fields import ConfigError
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.descent import Descent
from train_RL_agents.agents.encoders import Encoder, make_encoder
from train_RL_agents.agents.networks import ActionValues
from train_RL_agents.agents.settings import AgentConfig, ReplayAgentConfig
from train_RL_agents.device.precision import bfloat16_products, multiplies_bfloat16

LearnsFrom = Literal["replay", "rounds", "teacher", "lookahead"]
"""A replay of its decisions; rounds of its latest ones; a replay of what a teacher would do there;
or one of what other actions would have brought."""


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
    learns_from: ClassVar[LearnsFrom] = "replay"
    bootstraps: ClassVar[bool] = True  # learns from what followed, so a replay keeps that too
    stochastic: ClassVar[bool] = False  # acting as deployed draws a sample
    actor_outputs: ClassVar[dict[str, str]] = {
        "action": "action in (-1, 1), as `actions` describes it"
    }  # what `actor` returns: name and meaning of each tensor
    acting_settings: ClassVar[tuple[str, ...]] = ()  # enter only when acting, see `act_under`
    idle_settings: ClassVar[tuple[str, ...]] = ()  # beginnings of settings it has no use for
    network_settings: ClassVar[tuple[str, ...]] = (
        *("encoder", "widening", "ego_magnitude", "object_magnitude"),
    )  # say which networks it has: who begins with another one needs the same
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
        autocast = config.autocast
        self.uses_bfloat16 = multiplies_bfloat16(self.device) if autocast is None else autocast
        self.gradient_sync: Callable[[list[Tensor]], None] | None = None
        self.average: nn.Module | None = None
        self.applied_settings: tuple[str, ...] = ()  # of `acting_settings`, inside `actor` already
        self.build_networks()

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """Shape of what a replay keeps of a robot's action, `Batch.action` without its batch."""
        return () if self.discrete else (self.actions,)

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

    def value_of(self, observation: ObservationTensors, action: Tensor) -> Tensor | None:
        """Return what the critic takes actions to be worth; None: no critic here knows actions.

        Args:
            observation: as in `act`.
            action: `[..., A]`, continuous.

        Returns:
            `[...]`, as the algorithm's critic counts: its returns are discounted, SAC's hold
            entropy too.
        """
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

    @property
    def only_acting_network_learns(self) -> bool:
        """Whether nothing beside `policy_network` learns, such as a critic."""
        acting = {id(parameter) for parameter in self.policy_network.parameters()}
        return all(id(parameter) in acting for parameter in self.descent.parameters)

    def taken_over(self, other: Agent, *, whole: bool) -> dict[str, Tensor] | None:
        """Return what this agent begins with where it begins with another one.

        Args:
            other: the other agent.
            whole: whether all its networks are its own, or only the one that it acts with.

        Returns:
            By names of its own `state_dict`; None: there is too little to begin with.
        """
        if not whole or type(other) is not type(self):
            return None
        weights = {n: w for n, w in other.state_dict().items() if not n.startswith("average.")}
        if self.average is not None:
            weights |= {f"average.{n}": w for n, w in other.actor.state_dict().items()}
        return weights

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
        """Move to the device and set up the descent; the last call of `build_networks`.

        Args:
            groups: by the name of its loss, the parameters that descend it and their Adam rate.
            targets: pairs (network, target network); a target follows by Polyak averaging.
        """
        config = self.config
        followers: list[tuple[nn.Module, nn.Module, float]] = [
            (network, target, cast("ReplayAgentConfig", config).polyak)
            for network, target in targets
        ]
        if config.acting_average > 0.0:
            self.average = copy.deepcopy(self.policy_network)
            followers.append((self.policy_network, self.average, config.acting_average))
        self.to(self.device)
        self.descent = Descent(groups, followers, config.max_grad_norm, self.device)

    def precision(self, *networks: nn.Module) -> contextlib.AbstractContextManager:
        """Return the context of bfloat16 products, if the settings ask for it.

        Args:
            networks: those that are used inside. Without them all is right, and slower.
        """
        if not self.uses_bfloat16:
            return contextlib.nullcontext()
        return bfloat16_products(self.device, networks)

    def read(self, observation: ObservationTensors) -> ObservationTensors:
        """Return what of an observation the networks read, as views: what a replay must keep."""
        return cast("Encoder", self.policy_network.encoder).read(observation)

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
        return metrics | self.descent.step(losses, self.gradient_sync)

    def set_learning_rate_scale(self, scale: Tensor | float) -> None:
        """Multiply the learning rates of the settings by `scale`; see `Descent.scale_rates`."""
        self.descent.scale_rates(scale)

    def training_state(self) -> dict[str, Any]:
        """Return networks, targets and optimizer as nested dictionaries of copied tensors."""
        networks = {key: value.detach().clone() for key, value in self.state_dict().items()}
        return {"networks": networks, **self.descent.state()}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Restore what `training_state` returned, in place, from any device.

        Raises:
            ValueError: the state belongs to other networks.
        """
        moments, expected = len(state["optimizer"]), len(self.descent.parameters)
        if moments != expected:
            raise ValueError(
                f"the state holds {moments} optimized tensors, agent {self.name} has {expected}: "
                "load it into the agent and the settings that wrote it"
            )
        self.load_state_dict(state["networks"])
        self.descent.load_state(state)
