"""The actor of a policy as the start of a training that goes on from it."""

from __future__ import annotations

import torch

from marinenav_env.fields import ConfigError
from train_RL_agents.agents.actor_critic import DeterministicActing
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.torchscript import ScriptedNetwork


def take_actor(agent: DeterministicActing, path: str, config: TrainConfig) -> None:
    """Copy the actor of a policy into an agent.

    Args:
        agent: takes it over, its average too.
        path: what `load_policy` takes.
        config: of the agent's run.

    Raises:
        CheckpointError: there is no such policy.
        ConfigError: it has no such actor, or of another network; says in what it differs.
    """
    start, other = load_policy(path)
    if not isinstance(start, DeterministicActing) or isinstance(start.actor, ScriptedNetwork):
        raise ConfigError(
            f"algorithm.start is {path!r}, which holds no actor to train further: give a run, a "
            "checkpoint or a folder of AC-IQN, DDPG, PPO, DAgger or RPI, no export"
        )
    settings = {
        "task": (other.task, config.task),
        "stack_k": (other.stack_k, config.stack_k),
        **{
            f"algorithm.{name}": (getattr(other.algorithm, name), getattr(config.algorithm, name))
            for name in ("encoder", "widening", "ego_magnitude", "object_magnitude")
        },
    }
    differ = [f"{key}={theirs}" for key, (theirs, own) in settings.items() if theirs != own]
    weights, own = start.actor.state_dict(), agent.policy.state_dict()
    same = {name: tensor.shape for name, tensor in weights.items()} == {
        name: tensor.shape for name, tensor in own.items()
    }
    scaled = all(torch.equal(weights[n], own[n]) for n in own if same and "input_scale" in n)
    if differ or not same or not scaled:
        raise ConfigError(
            f"algorithm.start is {path!r}, whose actor is another network: give its settings, "
            f"{' '.join(differ) or 'with the same observation and magnitudes'}, or another policy"
        )
    for network in (agent.policy, agent.actor):
        network.load_state_dict(weights)
