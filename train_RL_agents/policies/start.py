"""Begins a training with the networks of another one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from marinenav_env.fields import ConfigError
from train_RL_agents.agents.actor_critic import LoneActor
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.load import NAMED, read_policy
from train_RL_agents.policies.pretrained import NETWORKS
from train_RL_agents.run.checkpoint import CheckpointError

PLACEHOLDER = "RUN"
"""Stands in presets and shipped settings for the run that they go on from."""
GROWING = ("stack_k", "algorithm.widening")
"""Settings in which an actor may be larger than what it begins with."""
IN_WEIGHTS = {"algorithm.ego_magnitude", "algorithm.object_magnitude"}
"""Settings of which the networks keep what they lead to: a list may say what null means."""


def begin_with(agent: Agent, config: TrainConfig) -> None:
    """Copy the networks of the policy `algorithm.start` into an agent.

    An actor alone may be larger than the policy that it begins with: see more frames, or have wider
    layers. It acts alike, since its outputs and old units begin with weights of 0 on what is new.

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
    smaller_in = {key for key in GROWING if key in differ and theirs[key] < own[key]}
    places = places_in(agent, start.agent)
    if smaller_in and places is not None:
        differ = {key: value for key, value in differ.items() if key not in smaller_in}
        if not differ.keys() - IN_WEIGHTS:
            for name in weights.keys() & state.keys():
                weights[name] = grown(name, weights[name], state[name], places)
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


def places_in(agent: Agent, start: Agent) -> Tensor | None:
    """Return where the features of a smaller policy are among those of an actor alone.

    Returns:
        Index [F of the policy]; None where that one has another encoder, or one that cannot grow.
    """
    if not isinstance(agent, LoneActor):
        return None
    smaller, own = start.actor.encoder, agent.policy.encoder
    alike = type(smaller) is type(own)
    return own.places_of(smaller) if alike else None


def grown(name: str, weight: Tensor, fresh: Tensor, places: Tensor) -> Tensor:
    """Return what the weights of a network are in a larger one that acts alike.

    Old units take nothing from new inputs and units; new units have fresh weights. (Chen et al.
    2016, "Net2Net", copy old units instead.)

    Args:
        name: of the tensor.
        weight: of the layer, its bias, or a scale of inputs.
        fresh: the same of the larger network, as it was made.
        places: of the features that the first hidden layer takes.
    """
    weight = weight.to(fresh.device)
    if "input_scale" in name:  # repeated from frame to frame
        return weight[torch.arange(len(fresh), device=fresh.device) % len(weight)]
    larger, units = fresh.clone(), len(weight)
    if weight.dim() == 1:
        larger[:units] = weight
        return larger
    on_features = name.endswith("hidden_layer.weight")
    columns = places if on_features else torch.arange(weight.shape[1])
    larger[:units] = 0.0
    larger[:units, columns.to(fresh.device)] = weight
    return larger


def of_what(start: Agent, agent: Agent) -> str:
    """Return what a policy holds that an agent cannot begin with, for a message."""
    if type(start) is type(agent):
        return "where only the network that acts is left of the agent"
    return f"the {start.name} of which {agent.name} cannot begin with"


def what_would_do(agent: Agent) -> str:
    """Return what an agent can begin with, for a message."""
    if isinstance(agent, LoneActor):
        *most, last = [name for name, kind in AGENTS.items() if not kind.discrete]
        kinds = f"{', '.join(most)} or {last}"
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
