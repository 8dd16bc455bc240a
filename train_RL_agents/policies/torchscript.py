"""Policies that act by an exported network: TorchScript files of this project, or published ones.

The agent's own way of acting stays; only its network is the file's. What that network applies
itself (`applied_settings` in its description; earlier exports have none) the agent leaves to it.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import torch
from torch import Tensor, nn

from marinenav_env.fields import ConfigError
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.build import Policy, build_agent, published_config
from train_RL_agents.config.files import config_from_plain
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.interface import call, call_inputs, random_observation
from train_RL_agents.run.checkpoint import CheckpointError

METADATA = "marinenav.json"
"""Name of the description inside a TorchScript file."""
DTYPE = torch.float64
"""Of the inputs and outputs of a deployed TorchScript network."""


class ScriptedNetwork(nn.Module):
    """An exported network, called with any leading dimensions, as an agent calls its own."""

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.module = module

    def forward(
        self, observation: tuple[Tensor, Tensor, Tensor], *others: Tensor
    ) -> Tensor | tuple[Tensor, ...]:
        """Return what the file's network returns, `[..., ...]` in the observation's dtype.

        Args:
            observation: leading dimensions `[...]`.
            *others: `[..., N]`, or `[N]` for all rows alike.
        """
        ego, objects, mask = observation
        leading, dtype = ego.shape[:-1], ego.dtype
        rows = [
            ego.reshape(-1, ego.shape[-1]),
            objects.reshape(-1, *objects.shape[-2:]),
            mask.reshape(-1, mask.shape[-1]),
        ]
        width = [value.shape[-1] for value in others]
        rows += [
            value.expand(*leading, n).reshape(-1, n) for value, n in zip(others, width, strict=True)
        ]
        outputs = call(self.module, [part.to(DTYPE) for part in rows])
        shaped = tuple(part.unflatten(0, leading).to(dtype) for part in outputs)
        return shaped if len(shaped) > 1 else shaped[0]


def is_torchscript(path: Path) -> bool:
    """Whether a file is a TorchScript archive, by its content."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def read_deployed(path: Path, device: torch.device | str = "cpu") -> Policy:
    """Load a TorchScript file.

    A file of this project says which agent it is. Another one is recognised by what it takes and
    returns; agents that are alike in this are named together, since they act alike.

    Raises:
        CheckpointError: the file is damaged, or acts like no agent known here.
    """
    said = {METADATA: ""}
    try:
        module = torch.jit.load(str(path), map_location=device, _extra_files=said)
    except RuntimeError as error:
        raise CheckpointError(f"{path} is damaged ({error}): export it again") from error
    network = ScriptedNetwork(module.eval())
    if not said[METADATA]:
        name, agent = _recognised(path, network, device)
        config = published_config(agent.name)
        agent.name = name
        return _acting_by(network, agent, config, {"file": path.name})
    try:
        description = json.loads(said[METADATA])
        config = config_from_plain(description["config"])
        origin = description["origin"]
        applied = tuple(description.get("applied_settings", ()))
    except (ValueError, KeyError, TypeError, ConfigError) as error:
        raise CheckpointError(
            f"{path} does not say rightly what it is ({error}): export it again"
        ) from error
    agent = build_agent(config, device)
    if _shapes(network, agent) != _shapes(agent.actor, agent):
        raise CheckpointError(f"{path} does not act as {agent.name}: export it again")
    agent.applied_settings = applied
    return _acting_by(network, agent, config, origin)


def _acting_by(network: ScriptedNetwork, agent: Agent, config: TrainConfig, origin: dict) -> Policy:
    """Put a network in the place of the agent's own."""
    own = next(name for name, child in agent.named_children() if child is agent.actor)
    setattr(agent, own, network)
    return Policy(agent, config, origin)


def _recognised(
    path: Path, network: ScriptedNetwork, device: torch.device | str
) -> tuple[str, Agent]:
    """Return the names of the agents whose networks are like this one, and the first of them."""
    alike = []
    for name in AGENTS:
        agent = build_agent(published_config(name), device)
        if _shapes(network, agent) == _shapes(agent.actor, agent):
            alike.append(agent)
    if not alike:
        raise CheckpointError(
            f"{path} acts like no agent ({', '.join(AGENTS)}): give a network that is called as "
            "model((self [B, 7], objects [B, 5, 5], mask [B, 5]))"
        )
    return " or ".join(agent.name for agent in alike), alike[0]


@torch.no_grad()
def _shapes(network: nn.Module, agent: Agent) -> list[torch.Size] | None:
    """Return the shapes of a network's outputs for what an agent gives it; None if it refuses."""
    generator = torch.Generator().manual_seed(0)
    observation = random_observation(2, agent.dims, generator)
    inputs = [part.to(agent.device) for part in call_inputs(agent, observation, torch.float32)]
    try:
        return [output.shape for output in call(network, inputs)]
    except RuntimeError:
        return None
