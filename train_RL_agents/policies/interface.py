"""The deployed policy: what other programs call, and what its file says of itself.

An exported network takes the tuple of an observation's tensors, raw and in their units, in the
marine environment `model((self [B, 7k], objects [B, 5k, 5], mask [B, 5k]))`; what an agent's
network takes besides follows as further arguments.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import plain
from marinenav_env.stepper import Stepper
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.build import LoadedPolicy
from train_RL_agents.run.source import source_commit

SIMULATED_DECISIONS = 20


def acting_network(agent: Agent, dtype: torch.dtype) -> nn.Module:
    """Return a copy of the agent's network to export on the CPU, fit for inference only."""
    return copy.deepcopy(agent.deployed_network()).to("cpu", dtype).eval().requires_grad_(False)


def call_inputs(agent: Agent, observation: ObservationTensors, dtype: torch.dtype) -> list[Tensor]:
    """Return all inputs of the acting network `[B, ...]`: the observation's, then the others.

    Args:
        agent: says which others there are.
        observation: `[B, ...]`.
        dtype: of the result.
    """
    rows = observation[0].shape[0]
    others = [value.cpu().expand(rows, -1) for value in agent.actor_inputs().values()]
    return [part.cpu().to(dtype) for part in (*observation, *others)]


def call(network: nn.Module, inputs: Sequence[Tensor], parts: int) -> list[Tensor]:
    """Call an acting network as a planner does, and return its outputs as a list.

    Args:
        network: the network.
        inputs: from `call_inputs`.
        parts: how many of them are the observation's.
    """
    result = network(tuple(inputs[:parts]), *inputs[parts:])
    return list(result) if isinstance(result, tuple) else [result]


def simulated_observation(policy: LoadedPolicy) -> ObservationTensors:
    """Return what robots see that the policy steers, one world for each stage of its settings."""
    agent, config = policy.agent, policy.config
    stages = config.evaluation.stages
    env = TASKS[config.task](
        len(stages),
        stages=stages,
        config=config.env,
        discrete=agent.discrete,
        device=agent.device,
        stack_k=config.stack_k,
    )
    env.set_stage(torch.arange(len(stages), device=agent.device))
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    seen = []
    for _ in range(SIMULATED_DECISIONS):
        seen.append(tuple(part[env.alive].cpu() for part in stepper.now.obs))
        stepper.step(agent.act(stepper.now.obs))
        stepper.advance()
    return joined(seen)


def joined(observations: Sequence[ObservationTensors]) -> ObservationTensors:
    """Return observations `[B_i, ...]` as one `[sum B_i, ...]`."""
    return tuple(torch.cat(parts) for parts in zip(*observations, strict=True))


def describe(policy: LoadedPolicy, outputs: Sequence[Tensor], dtype: torch.dtype) -> dict[str, Any]:
    """Return what an exported file says of itself, as JSON values; its format adds the `call`.

    Args:
        policy: what is exported.
        outputs: of the network for one observation, `[1, ...]` each.
        dtype: of all inputs and outputs.
    """
    agent, config = policy.agent, policy.config
    others = agent.actor_inputs()
    meanings = zip(agent.actor_outputs.items(), outputs, strict=True)
    return {
        "program": "marinenav",
        "agent": agent.name,
        "commit": source_commit(),
        "origin": policy.origin,
        "dtype": str(dtype).removeprefix("torch."),
        "inputs": agent.spec.observation.describe()
        + [
            {"name": name, "shape": ["B", value.shape[0]], "acting": value.tolist()}
            for name, value in others.items()
        ],
        "outputs": [
            {"name": name, "shape": ["B", *value.shape[1:]], "meaning": meaning}
            for (name, meaning), value in meanings
        ],
        "actions": dict(agent.spec.action.meaning),
        "applied_settings": list(agent.acting_settings),
        **agent.export_metadata(),
        "config": plain(config),
    }
