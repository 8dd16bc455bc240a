"""Loads a policy from whatever file holds one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.checkpoint import BEST, CheckpointError, load, newest
from train_RL_agents.config import TrainConfig
from train_RL_agents.config_files import config_from_plain
from train_RL_agents.networks import ObservationDims, load_published


def load_policy(path: str | Path, device: torch.device | str = "cpu") -> tuple[Agent, TrainConfig]:
    """Load a policy to act with.

    Args:
        path: a run's folder (its best checkpoint by evaluation, else its newest), a checkpoint, a
            folder of ``pretrained/``, or published weights as ``.npz``.
        device: where it acts.

    Returns:
        An agent whose `act` is the policy, and the settings of its training; for published weights
        the defaults.

    Raises:
        CheckpointError: the file is missing, damaged, or holds no policy known here.
    """
    path = Path(path)
    if path.suffix == ".npz":
        return _from_arrays(path, torch.device(device))
    if path.is_dir():
        best = [folder / BEST for folder in (path / "checkpoints", path)]
        path = next((file for file in best if file.is_file()), None) or newest(path)
    state = load(path, device)
    return agent_from_state(state, torch.device(device))


def agent_from_state(state: dict[str, Any], device: torch.device) -> tuple[Agent, TrainConfig]:
    """Build the agent of a loaded checkpoint, with its weights."""
    config = config_from_plain(state["config"])
    agent = build_agent(config, device)
    agent.load_training_state(state["model"])
    return agent, config


def build_agent(config: TrainConfig, device: torch.device) -> Agent:
    """Build an agent with fresh weights."""
    dims = ObservationDims(ego=7 * config.stack_k, objects=5 * config.stack_k)
    return AGENTS[config.agent](config.algorithm, dims, device)


def _from_arrays(path: Path, device: torch.device) -> tuple[Agent, TrainConfig]:
    """Find the first agent whose acting network has exactly these arrays."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            weights = {name: torch.from_numpy(archive[name]) for name in archive.files}
    except FileNotFoundError as error:
        raise CheckpointError(f"no file {str(path)!r}: check the name") from error
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} is damaged or holds no arrays ({error})") from error
    for name, kind in AGENTS.items():
        agent = kind(device=device)
        try:
            load_published(agent.actor, weights)
        except RuntimeError:
            continue
        return agent, TrainConfig(agent=name)
    raise CheckpointError(
        f"{path} fits the network of no agent ({', '.join(AGENTS)}): "
        "give the arrays under their published names"
    )
