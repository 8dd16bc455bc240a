"""Begins a training with the networks of another one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from marinenav_env.fields import ConfigError
from train_RL_agents.agents.actor_critic import LoneActor
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.load import NAMED, read_policy
from train_RL_agents.policies.pretrained import NETWORKS
from train_RL_agents.run.checkpoint import CheckpointError

PLACEHOLDER = "RUN"
"""Stands in presets and shipped settings for the run that they go on from."""
IN_WEIGHTS = {"algorithm.ego_magnitude", "algorithm.object_magnitude"}
"""Settings of which the networks keep what they lead to: a list may say what null means."""


def begin_with(agent: Agent, config: TrainConfig) -> None:
    """Copy the networks of the policy `algorithm.start` into an agent.

    An actor alone may see more frames than the policy that it begins with, where its encoder has
    the older ones last: it acts alike, since what comes of these has weights of 0.

    Args:
        agent: takes over what it can use of them; its optimizer stays as it is.
        config: of the agent's run.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: it has other networks, or too few; says in what they differ.
    """
    path = config.algorithm.start
    if path == PLACEHOLDER:
        raise ConfigError(
            f"algorithm.start is {path!r}, which stands for the run that these settings go on "
            "from: give algorithm.start=FOLDER, or a policy of pretrained/"
        )
    if path.startswith(NAMED):
        raise ConfigError(f"algorithm.start is {path!r}, which has no one network: name a policy")
    try:
        start = read_policy(path)
    except CheckpointError as error:
        raise CheckpointError(f"algorithm.start is {path!r}: {error}") from error
    state, weights = agent.state_dict(), agent.taken_over(start.agent, whole=start.whole)
    if weights is None:
        raise ConfigError(
            f"algorithm.start is {path!r}, {of_what(start.agent, agent)}: give "
            f"{what_would_do(agent)}, and no export"
        )
    names = agent.network_settings
    theirs, own = settings_of(start.config, names), settings_of(config, names)
    differ = {key: value for key, value in theirs.items() if value != own[key]}
    if sees_older_frames(agent, start.agent):
        del differ["stack_k"]
        for name in weights.keys() & state.keys():
            weights[name] = with_older_frames(weights[name], state[name])
    fit = all(
        name in state
        and state[name].shape == weight.shape
        and ("input_scale" not in name or weight.equal(state[name].to(weight.device)))
        for name, weight in weights.items()
    )
    if differ.keys() - IN_WEIGHTS or not fit:
        settings = " ".join(f"{key}={as_typed(value)}" for key, value in differ.items())
        raise ConfigError(
            f"algorithm.start is {path!r}, whose networks are others: give its settings, "
            f"{settings or 'with the same observation and magnitudes'}, or another policy"
        )
    agent.load_state_dict(weights, strict=False)


def sees_older_frames(agent: Agent, start: Agent) -> bool:
    """Return whether an agent can begin with a policy that sees fewer frames."""
    fewer = start.spec.observation.frames < agent.spec.observation.frames
    return fewer and isinstance(agent, LoneActor) and agent.policy.encoder.older_frames_last


def with_older_frames(weight: Tensor, like: Tensor) -> Tensor:
    """Return what the weights of one network are in a network that sees more frames.

    The newest frame comes first: a layer's further columns are 0, and a scale of inputs is that of
    all frames.

    Args:
        weight: of the layer, its bias, or a scale.
        like: the same of the other network.
    """
    if weight.dim() == 1:
        return weight[torch.arange(like.numel()) % weight.numel()]
    return functional.pad(weight, (0, like.shape[-1] - weight.shape[-1]))


def of_what(start: Agent, agent: Agent) -> str:
    """Return what a policy holds that an agent cannot begin with, for a message."""
    if type(start) is type(agent):
        return "where only the network that acts is left of the agent"
    return f"the {start.name} of which {agent.name} cannot begin with"


def what_would_do(agent: Agent) -> str:
    """Return what an agent can begin with, for a message."""
    if isinstance(agent, LoneActor):
        kinds = "AC-IQN, DDPG, SAC, DAgger, DPI or PPO"
        return f"a run, a checkpoint or a folder of pretrained/ of {kinds}"
    there = "" if agent.only_acting_network_learns else f" that has {NETWORKS}"
    return f"a run or a checkpoint of {agent.name}, or a folder of pretrained/{there}"


def as_typed(value: Any) -> str:
    """Return a setting's value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def settings_of(config: TrainConfig, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a run that say which networks it has, by their keys."""
    own = {f"algorithm.{name}": getattr(config.algorithm, name) for name in names}
    return {"task": config.task, "stack_k": config.stack_k, **own}
