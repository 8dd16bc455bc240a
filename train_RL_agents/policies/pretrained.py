"""Shipped policies: a folder with weights, settings, evaluation and provenance, each in its file.

The weights are those of the acting network alone: what it takes to act. A further file may hold
all networks: what it takes to train on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from marinenav_env.fields import ConfigError, plain
from marinenav_env.files import parse_json, read_parsed, write_atomically
from train_RL_agents.agents.base import Agent
from train_RL_agents.config.build import LoadedPolicy, build_agent
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError

WEIGHTS = "weights.pt"
NETWORKS = "networks.pt"
CONFIG = "config.yaml"  # all settings, fit for --config
EVALUATION = "evaluation.json"
PROVENANCE = "provenance.json"
FETCH_AGAIN = "fetch the folder again"


def write_pretrained(
    folder: Path,
    policy: LoadedPolicy,
    evaluation: Mapping[str, Any],
    provenance: Mapping[str, Any],
    *,
    whole: bool = False,
) -> None:
    """Write a policy into a folder, made if missing.

    Args:
        folder: of this policy alone.
        policy: the policy.
        evaluation: its table, as JSON values.
        provenance: how it was made, as JSON values; `step` and `commit` are what exports tell.
        whole: write all networks, too.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.cpu() for name, value in policy.agent.actor.state_dict().items()}
    checkpoint.save(folder / WEIGHTS, {"actor": weights})
    if whole:
        networks = {name: value.cpu() for name, value in policy.agent.state_dict().items()}
        checkpoint.save(folder / NETWORKS, {"networks": networks})
    else:
        (folder / NETWORKS).unlink(missing_ok=True)  # of another policy, written here before
    settings = yaml.safe_dump(plain(policy.config), sort_keys=False)
    texts = {
        CONFIG: settings,
        EVALUATION: json.dumps(evaluation, indent=1) + "\n",
        PROVENANCE: json.dumps(provenance, indent=1) + "\n",
    }
    for name, text in texts.items():
        write_atomically(folder / name, methodcaller("write", text.encode()))


def is_pretrained(path: Path) -> bool:
    """Whether a file is the weights in a folder that `write_pretrained` wrote."""
    return path.name in (WEIGHTS, NETWORKS) and path.with_name(CONFIG).is_file()


def read_pretrained(folder: Path, device: torch.device | str = "cpu") -> LoadedPolicy:
    """Load the policy of a folder that `write_pretrained` wrote.

    Raises:
        CheckpointError: a file is missing or damaged, or they do not fit each other.
    """
    values = _read(folder / CONFIG, yaml.safe_load)
    provenance = read_provenance(folder)
    state = checkpoint.load(folder / WEIGHTS, device)
    try:
        config = config_from_plain(values)
        agent = build_agent(config, device)
        whole = _load_networks(agent, folder, state["actor"])
    except CheckpointError:
        raise
    except (ConfigError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"{folder / WEIGHTS} does not fit {CONFIG}: {error}") from error
    known = {name: value for name, value in provenance.items() if name in ("step", "commit")}
    return LoadedPolicy(agent, config, {"file": f"{folder.name}/{WEIGHTS}", **known}, whole)


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return how the policy of a folder that `write_pretrained` wrote was made.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    return _read(folder / PROVENANCE, parse_json)


def _load_networks(agent: Agent, folder: Path, actor: dict[str, Tensor]) -> bool:
    """Load all networks that the folder has; return whether none of the agent's is missing."""
    file = folder / NETWORKS
    if agent.only_acting_network_learns:
        agent.policy_network.load_state_dict(actor)
        agent.descent.follow()
    elif file.is_file():
        networks = checkpoint.load(file, agent.device)
        try:
            agent.load_state_dict(networks["networks"])
        except (RuntimeError, KeyError) as error:
            raise CheckpointError(f"{file} does not fit {CONFIG}: {error}") from error
        if any(not actor[n].equal(w) for n, w in agent.actor.state_dict().items()):
            raise CheckpointError(f"{file} is of another policy than {WEIGHTS}: {FETCH_AGAIN}")
    agent.actor.load_state_dict(actor)
    return agent.only_acting_network_learns or file.is_file()


def _read(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    remedy = f"{FETCH_AGAIN}, {WEIGHTS} needs {CONFIG} and {PROVENANCE} beside it"
    try:
        values = read_parsed(path, parse, remedy)
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds {type(values).__name__}: {FETCH_AGAIN}")
    return values
