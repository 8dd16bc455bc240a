"""Everything foreign: weights and networks published elsewhere.

Published state dicts (``.npz``, ``.pth``) and TorchScript files do not say what they are. The agent
whose acting network fits is taken; agents that are alike in this are named together, since they act
alike.
"""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from marinenav_env.envs.make import VESSEL_TASKS
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.config.build import LoadedPolicy, build_agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.torchscript import ScriptedNetwork, acting_by, output_shapes
from train_RL_agents.run.checkpoint import CheckpointError, load_archive, name_to_give

SETTINGS: dict[str, dict[str, Any]] = {
    # Their success and travel time were measured with random fractions.
    "IQN": {"random_acting_taus": True},
    "Rainbow": {"v_min": -1.0, "v_max": 1.0},
}
"""Settings with which published weights act, where they are not the defaults."""
RAINBOW_LAYER = re.compile(r"(hidden_layer|output_layer)_([va])(_2)?\.(weight|bias)_(mu|sigma)")
RAINBOW_STREAMS = {"v": "value_stream", "a": "advantage_stream"}


def published_config(name: str, task: str = "marine") -> TrainConfig:
    """Return the settings with which published weights of the agent ``name`` act in a task."""
    algorithm = AGENTS[name].Config(**SETTINGS.get(name, {}))
    return TrainConfig(task=task, agent=name, algorithm=algorithm)


def load_published(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Load weights trained without input scaling, and set the network's scaling to the identity.

    Args:
        network: of the kind and the sizes of the weights.
        weights: every parameter by its published name, and no scaling buffer.

    Raises:
        RuntimeError: a name is missing, unknown, or its shape does not fit.
    """
    identity = {
        name: torch.ones_like(value)
        for name, value in network.state_dict().items()
        if name.endswith("_input_scale")
    }
    # Rainbow's files also hold the last draw of the noise.
    renamed = {
        RAINBOW_LAYER.sub(_rainbow_name, name): value
        for name, value in weights.items()
        if not name.endswith("_epsilon")
    }
    network.load_state_dict({**renamed, **identity}, strict=True)


def _rainbow_name(match: re.Match[str]) -> str:
    layer, stream, number, kind, part = match.groups(default="")
    suffix = "" if part == "mu" else f"_{part}"
    return f"{RAINBOW_STREAMS[stream]}.{layer}{number}.{kind}{suffix}"


def _read_npz(path: Path) -> dict[str, Tensor]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: torch.from_numpy(archive[name]) for name in archive.files}


def _read_pth(path: Path) -> dict[str, Tensor]:
    weights = load_archive(path)
    if not isinstance(weights, Mapping) or not all(
        isinstance(value, Tensor) for value in weights.values()
    ):
        raise ValueError("not a state dict: names with their tensors")
    return dict(weights)


READERS: dict[str, Callable[[Path], dict[str, Tensor]]] = {".npz": _read_npz, ".pth": _read_pth}
"""How the files of published weights are read, by their suffix."""


def read_weights(path: Path, device: torch.device) -> LoadedPolicy:
    """Load published weights, of the agent whose acting network has exactly these.

    Raises:
        CheckpointError: the file is missing or damaged, or fits no agent known here.
    """
    try:
        weights = READERS[path.suffix](path)
    except FileNotFoundError as error:
        raise CheckpointError(f"no file {str(path)!r}: {name_to_give(path)}") from error
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} is damaged or holds no weights ({error})") from error
    alike = []
    for agent, config in _candidates(device, VESSEL_TASKS):
        try:
            load_published(agent.actor, weights)
        except RuntimeError:
            continue
        alike.append((agent, config))
    if not alike:
        raise CheckpointError(
            f"{path} fits the network of no agent ({', '.join(REPLAY_AGENTS)}): "
            "give the weights under their published names"
        )
    agent, config = _named_together(alike)
    return LoadedPolicy(agent, config, {"file": path.name})


def read_network(path: Path, network: ScriptedNetwork, device: torch.device) -> LoadedPolicy:
    """Load a TorchScript network that does not say what it is, by what it takes and returns.

    Raises:
        CheckpointError: it acts like no agent known here.
    """
    alike = [
        (agent, config)
        for agent, config in _candidates(device, ("marine",))
        if output_shapes(network, agent) == output_shapes(agent.actor, agent)
    ]
    if not alike:
        raise CheckpointError(
            f"{path} acts like no agent ({', '.join(REPLAY_AGENTS)}): give a network called "
            "as model((self [B, 7], objects [B, 5, 5], mask [B, 5]))"
        )
    agent, config = _named_together(alike)
    return acting_by(network, agent, config, {"file": path.name})


def _candidates(device: torch.device, tasks: Iterable[str]) -> Iterator[tuple[Agent, TrainConfig]]:
    """Return each agent of these tasks that published weights may be of."""
    for task, name in itertools.product(tasks, REPLAY_AGENTS):
        config = published_config(name, task)
        yield build_agent(config, device), config


def _named_together(alike: Sequence[tuple[Agent, TrainConfig]]) -> tuple[Agent, TrainConfig]:
    agent, config = alike[0]
    agent.name = " or ".join(other.name for other, _ in alike)
    return agent, config
