"""Policies that act by an exported network, read from a TorchScript file.

The agent's own way of acting stays; only its network is the file's. What that network applies
itself (`applied_settings` in its description; earlier exports have none) the agent leaves to it.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import torch
from torch import Tensor, nn

from marinenav_env.envs.spec import ObservationTensors
from marinenav_env.fields import ConfigError
from marinenav_env.files import parse_json
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.build import LoadedPolicy, build_agent
from train_RL_agents.config.plain import config_of_file
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.interface import call, call_inputs
from train_RL_agents.policies.seal import checksum
from train_RL_agents.run.checkpoint import BAD_ARCHIVE, CheckpointError, check_archive

METADATA = "marinenav.json"
"""Name of the description inside a TorchScript file."""
DTYPE = torch.float64
"""Of the inputs and outputs of a deployed TorchScript network."""


class ScriptedNetwork(nn.Module):
    """An exported network, called with any leading dimensions, as an agent calls its own.

    Attributes:
        shielded: whether it has a shield inside.
    """

    def __init__(self, module: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.module = module
        self.shielded = False

    def forward(
        self, observation: ObservationTensors, *others: Tensor
    ) -> Tensor | tuple[Tensor, ...]:
        """Return what the file's network returns, `[..., ...]` in the observation's dtype.

        Args:
            observation: leading dimensions `[...]`.
            *others: `[..., N]`, or `[N]` for all rows alike.
        """
        leading, dtype = observation[0].shape[:-1], observation[0].dtype
        rows = [part.reshape(-1, *part.shape[len(leading) :]) for part in observation]
        for value in others:
            n = value.shape[-1]
            rows.append(value.expand(*leading, n).reshape(-1, n))
        outputs = call(self.module, [part.to(DTYPE) for part in rows], len(observation))
        shaped = tuple(part.reshape(*leading, *part.shape[1:]).to(dtype) for part in outputs)
        return shaped if len(shaped) > 1 else shaped[0]


def is_torchscript(path: Path) -> bool:
    """Whether a file is a TorchScript archive, by its content."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def open_network(path: Path, device: torch.device) -> tuple[ScriptedNetwork, str, str | None]:
    """Return the network of a TorchScript file, its description and its checksum.

    Foreign files have an empty description, and neither they nor earlier exports a checksum.

    Raises:
        CheckpointError: the file is damaged.
    """
    texts = {METADATA: ""}
    try:
        content = path.read_bytes()
        digest = checksum(content)
        check_archive(io.BytesIO(content))  # which torch does not
        module = torch.jit.load(io.BytesIO(content), map_location=device, _extra_files=texts)
    except (OSError, RuntimeError, ValueError, *BAD_ARCHIVE) as error:
        raise CheckpointError(f"{path} is damaged ({error}): export it again") from error
    return ScriptedNetwork(module.eval()), texts[METADATA], digest


def read_deployed(
    path: Path,
    network: ScriptedNetwork,
    description: str,
    digest: str | None,
    device: torch.device,
) -> LoadedPolicy:
    """Return the policy of a TorchScript file that this project wrote.

    Raises:
        CheckpointError: the description is damaged, or the network does not act as it says.
    """
    try:
        content = parse_json(description)
        config = config_of_file(content["config"], path)
        origin = content["origin"]
        applied = tuple(content.get("applied_settings", ()))
        shield = content.get("shield")
        if shield is not None:
            origin = {**origin, "shield": " ".join(f"{k}={v}" for k, v in shield.items())}
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(
            f"{path} does not say rightly what it is ({error}): export it again"
        ) from error
    agent = build_agent(config, device)
    if output_shapes(network, agent) != output_shapes(agent.actor, agent):
        raise CheckpointError(f"{path} does not act as {agent.name}: export it again")
    agent.applied_settings = applied
    network.shielded = shield is not None
    return acting_by(network, agent, config, {**origin, "sha256": digest})


def acting_by(
    network: ScriptedNetwork, agent: Agent, config: TrainConfig, origin: dict
) -> LoadedPolicy:
    """Return the policy of an agent with a network in the place of its own."""
    own = next(name for name, child in agent.named_children() if child is agent.actor)
    setattr(agent, own, network)
    return LoadedPolicy(agent, config, origin)


@torch.no_grad()
def output_shapes(network: nn.Module, agent: Agent) -> list[torch.Size] | None:
    """Return the shapes of a network's outputs for what an agent gives it; None if it refuses."""
    observation = agent.spec.observation.draw(2, torch.Generator().manual_seed(0))
    inputs = [part.to(agent.device) for part in call_inputs(agent, observation, torch.float32)]
    try:
        return [output.shape for output in call(network, inputs, len(observation))]
    except RuntimeError:
        return None
