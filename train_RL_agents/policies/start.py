"""Begins a training with the networks of another one."""

from __future__ import annotations

from typing import Any

from marinenav_env.fields import ConfigError
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import PREFIX
from train_RL_agents.policies.load import read_policy
from train_RL_agents.policies.pretrained import NETWORKS


def begin_with(agent: Agent, config: TrainConfig) -> None:
    """Copy the networks of the policy `algorithm.start` into an agent.

    Args:
        agent: takes over what it can use of them; its optimizer stays as it is.
        config: of the agent's run.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: it has other networks, or too few; says in what they differ.
    """
    path = config.algorithm.start
    if path.startswith(PREFIX):
        raise ConfigError(f"algorithm.start is {path!r}, which has no networks: name a policy")
    start = read_policy(path)
    state, weights = agent.state_dict(), agent.taken_over(start.agent, whole=start.whole)
    if weights is None:
        raise ConfigError(
            f"algorithm.start is {path!r}, the {start.agent.name} of which {agent.name} cannot "
            f"begin with: give a run or a checkpoint of {agent.name}, or a folder of pretrained/ "
            f"with its {NETWORKS}; DAgger and PPO also begin with the actor alone of AC-IQN, DDPG, "
            "SAC, DAgger or PPO, unless it is an export"
        )
    theirs, own = settings_of_networks(start.config), settings_of_networks(config)
    differ = [f"{key}={value}" for key, value in theirs.items() if value != own[key]]
    fit = all(
        name in state
        and state[name].shape == weight.shape
        and ("input_scale" not in name or weight.equal(state[name].to(weight.device)))
        for name, weight in weights.items()
    )
    if differ or not fit:
        raise ConfigError(
            f"algorithm.start is {path!r}, whose networks are others: give its settings, "
            f"{' '.join(differ) or 'with the same observation and magnitudes'}, or another policy"
        )
    agent.load_state_dict(weights, strict=False)


def settings_of_networks(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that say which networks a run has."""
    names = ("encoder", "widening", "ego_magnitude", "object_magnitude")
    own = {f"algorithm.{name}": getattr(config.algorithm, name) for name in names}
    return {"task": config.task, "stack_k": config.stack_k, **own}
