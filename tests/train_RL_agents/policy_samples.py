"""Files of untrained policies, for the tests of what reads and exports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from marinenav_env.envs.observation import Observation
from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.tracks import tracks_of
from marinenav_env.fields import plain
from tests.marinenav_env.rollouts import EPISODES
from train_RL_agents import evaluate, export
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.plain import config_from_plain
from train_RL_agents.policies.formats import FORMATS
from train_RL_agents.run import checkpoint

OUTPUTS = {
    "AC-IQN": [(2,)],
    "DDPG": [(2,)],
    "SAC": [(2,), (2,)],
    "DQN": [(25,)],
    "IQN": [(32, 25)],
    "Rainbow": [(25, 51)],
    "PPO": [(2,)],
}
"""What the deployed networks that a planner knows return for one robot, and how many tensors."""


def save_policy(path: Path, name: str, **settings: object) -> Path:
    """Save a checkpoint of an untrained agent, always the same, and return its path.

    Its weights are larger than usual, so that what it sees decides what it does.
    """
    torch.manual_seed(0)
    config = config_from_plain({"agent": name, **settings})
    agent = build_agent(config, "cpu")
    with torch.no_grad():
        for parameter in agent.actor.parameters():
            parameter.mul_(2.0)
    state = {"step": 5, "config": plain(config), "model": agent.training_state()}
    checkpoint.save(path, state)
    return path


def export_policy(path: Path, kind: str = "torchscript", *options: str) -> Path:
    """Export a checkpoint's file by the command, and return the file that lies beside it then."""
    assert export.main(["--checkpoint", str(path), "--format", kind, *options]) == 0
    return path.with_suffix(FORMATS[kind].suffix)  # unless the options name another


def table_of(folder: Path, *arguments: str) -> dict[str, Any]:
    """Evaluate by the command, and return the table that it writes into a folder."""
    file = folder / "table.json"
    assert evaluate.main([*arguments, "--json", str(file)]) == 0
    return json.loads(file.read_text())


def recorded_observation(name: str = "calm_policy_5r_4o.json") -> Observation:
    """Return what the robots of a recorded episode of the published simulator saw, [B, ...]."""
    tracks = tracks_of(read_episode(EPISODES / name))
    return Observation(*(part[tracks.present] for part in tracks.observation))
