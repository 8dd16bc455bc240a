"""The deployed policy: what other programs call, and what its file says of itself.

An exported network is called as `model((self [B, 7k], objects [B, 5k, 5], mask [B, 5k]))` with raw
observations in metric units; what an agent's network takes besides follows as further arguments.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from marinenav_env.config import VesselConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import EGO_FEATURES, OBJECT_FEATURES, Observation
from marinenav_env.fields import plain
from marinenav_env.stepper import Stepper
from train_RL_agents.agents.base import Agent, AgentConfig
from train_RL_agents.agents.networks import EGO_MAGNITUDE, OBJECT_MAGNITUDE, ObservationDims
from train_RL_agents.config.build import Policy
from train_RL_agents.run.provenance import source_commit

OBSERVATION_NAMES = ("self", "objects", "mask")
SIMULATED_DECISIONS = 20


def acting_network(agent: Agent, dtype: torch.dtype) -> nn.Module:
    """Return a copy of the agent's network to export on the CPU, fit for inference only."""
    return copy.deepcopy(agent.deployed_network()).to("cpu", dtype).eval().requires_grad_(False)


def call_inputs(agent: Agent, observation: Observation, dtype: torch.dtype) -> list[Tensor]:
    """Return all inputs of the acting network `[B, ...]`: the observation's three, then the others.

    Args:
        agent: says which others there are.
        observation: `[B, ...]`.
        dtype: of the result.
    """
    rows = observation.ego.shape[0]
    others = [value.cpu().expand(rows, -1) for value in agent.actor_inputs().values()]
    return [part.cpu().to(dtype) for part in (*observation, *others)]


def call(network: nn.Module, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Call an acting network as a planner does, and return its outputs as a list."""
    result = network(tuple(inputs[:3]), *inputs[3:])
    return list(result) if isinstance(result, tuple) else [result]


def random_observation(rows: int, dims: ObservationDims, generator: torch.Generator) -> Observation:
    """Draw observations `[rows, ...]` of the task's magnitudes; the first sees no object."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    frames = dims.ego // len(EGO_FEATURES)
    ego = draw(rows, dims.ego) * torch.tensor(EGO_MAGNITUDE * frames)
    objects = draw(rows, dims.objects, dims.object_features) * torch.tensor(OBJECT_MAGNITUDE)
    mask = (torch.rand(rows, dims.objects, generator=generator) < 0.7).float()
    mask[0] = 0.0
    return Observation(ego, objects * mask.unsqueeze(-1), mask)


def simulated_observation(policy: Policy) -> Observation:
    """Return what robots see that the policy steers, one world for each stage of its settings."""
    agent, config = policy.agent, policy.config
    stages = config.evaluation.stages
    env = MarineNavEnv(
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
        seen.append(Observation(*(part[env.alive].cpu() for part in stepper.now.obs)))
        stepper.step(agent.act(stepper.now.obs))
        stepper.advance()
    return joined(seen)


def joined(observations: Sequence[Observation]) -> Observation:
    """Return observations `[B_i, ...]` as one `[sum B_i, ...]`."""
    return Observation(*(torch.cat(parts) for parts in zip(*observations, strict=True)))


def describe(policy: Policy, outputs: Sequence[Tensor], dtype: torch.dtype) -> dict[str, Any]:
    """Return what an exported file says of itself, as JSON values.

    Args:
        policy: what is exported.
        outputs: of the network for one observation, `[1, ...]` each.
        dtype: of all inputs and outputs.
    """
    agent, config = policy.agent, policy.config
    others = agent.actor_inputs()
    arguments = ", ".join([f"({', '.join(OBSERVATION_NAMES)})", *others])
    meanings = zip(agent.actor_outputs.items(), outputs, strict=True)
    return {
        "program": "marinenav",
        "agent": agent.name,
        "commit": source_commit(),
        "origin": policy.origin,
        "call": f"model({arguments})",
        "dtype": str(dtype).removeprefix("torch."),
        "inputs": _describe_observation(agent.dims)
        + [
            {"name": name, "shape": ["B", value.shape[0]], "acting": value.tolist()}
            for name, value in others.items()
        ],
        "outputs": [
            {"name": name, "shape": ["B", *value.shape[1:]], "meaning": meaning}
            for (name, meaning), value in meanings
        ],
        "actions": _describe_actions(agent, config.env.vessel),
        "applied_settings": list(agent.acting_settings),
        **agent.export_metadata(),
        "config": plain(config),
    }


def _describe_observation(dims: ObservationDims) -> list[dict[str, Any]]:
    frames = dims.ego // len(EGO_FEATURES)
    frame = "body frame, x forward, y starboard; velocities over ground"
    history = f"{frames} decisions, the newest first"
    return [
        {
            "name": "self",
            "shape": ["B", dims.ego],
            "features": EGO_FEATURES,
            "units": _units("ego_magnitude"),
            "frame": frame,
            "history": history,
        },
        {
            "name": "objects",
            "shape": ["B", dims.objects, dims.object_features],
            "features": OBJECT_FEATURES,
            "units": _units("object_magnitude"),
            "frame": frame,
            "order": "nearest first, padding 0",
        },
        {
            "name": "mask",
            "shape": ["B", dims.objects],
            "meaning": "1 for an object, 0 for padding",
        },
    ]


def _units(setting: str) -> list[str]:
    """Return the units of the features that a setting scales."""
    fields = {field.name: field.metadata for field in dataclasses.fields(AgentConfig)}
    return fields[setting]["unit"].split(", ")


def _describe_actions(agent: Agent, vessel: VesselConfig) -> dict[str, Any]:
    actions: dict[str, Any] = {"decision_s": vessel.dt * vessel.substeps}
    if agent.discrete:
        return actions | {
            "index": f"left choice * {len(vessel.right_thrust_rates)} + right choice",
            "left_thrust_rates_n_per_s": vessel.left_thrust_rates,
            "right_thrust_rates_n_per_s": vessel.right_thrust_rates,
        }
    return actions | {"order": "left, right", "largest_rate_n_per_s": vessel.max_thrust_rate}
