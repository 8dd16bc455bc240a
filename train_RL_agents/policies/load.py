"""Loads a policy from whatever file holds one."""

from __future__ import annotations

from pathlib import Path

import torch

from marinenav_env.fields import ConfigError
from train_RL_agents.config.build import LoadedPolicy, build_agent
from train_RL_agents.config.plain import config_of_file
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.config.shipped import find_shipped
from train_RL_agents.evaluation.baselines.registry import PREFIX, Actor, Baseline
from train_RL_agents.evaluation.ensemble import ENSEMBLE, Ensemble
from train_RL_agents.policies.formats import FORMATS
from train_RL_agents.policies.pretrained import WEIGHTS, is_pretrained, read_pretrained
from train_RL_agents.policies.published import READERS, read_network, read_weights
from train_RL_agents.policies.torchscript import is_torchscript, open_network, read_deployed
from train_RL_agents.run.checkpoint import BEST, FOREIGN, CheckpointError, load, newest
from train_RL_agents.run.provenance import commit_of_run

NAMED = (PREFIX, ENSEMBLE)
"""What no single file holds begins with one of these."""


def load_policy(path: str | Path, device: torch.device | str = "cpu") -> tuple[Actor, TrainConfig]:
    """Load a policy to act with.

    Args:
        path: a run's folder (its best checkpoint by evaluation, else its newest), a checkpoint, a
            folder of ``pretrained/`` (from any folder: where there is no such path, the shipped one
            is taken), an exported or published TorchScript file, or published weights as ``.npz``
            or ``.pth``; or ``baseline:NAME``, a classical controller; or ``mean:PATH,PATH``,
            trained policies that act by the mean of their actions.
        device: where it acts.

    Returns:
        An agent whose `act` is the policy, and the settings of its training; for published weights
        and baselines the defaults, for an ensemble those of its first member.

    Raises:
        CheckpointError: the file is missing, damaged, or holds no policy known here.
        ConfigError: there is no baseline of that name; or the members of an ensemble are too few,
            have discrete actions, are no trained policies, or observe or steer other vessels.
    """
    if str(path).startswith(ENSEMBLE):
        return _read_ensemble(str(path), device)
    if str(path).startswith(PREFIX):
        return Baseline(str(path).removeprefix(PREFIX), device), TrainConfig()
    policy = read_policy(path, device)
    return policy.agent, policy.config


def read_policy(path: str | Path, device: torch.device | str = "cpu") -> LoadedPolicy:
    """Load a policy and what is known of its origin; arguments and errors as `load_policy`."""
    if str(path).startswith(NAMED):
        raise CheckpointError(
            f"{path} is no single network: give a policy that is, or let one learn what it does "
            f"(train.py --preset distil algorithm.teacher={path})"
        )
    path = policy_file(find_shipped(Path(path)))
    try:
        policy = _read(path, torch.device(device))
    except (CheckpointError, ConfigError):
        raise
    except FOREIGN as error:
        raise CheckpointError(
            f"{path} is damaged or holds no policy known here ({error}): use another file"
        ) from error
    for name, value in policy.agent.state_dict().items():
        if not value.isfinite().all():
            raise CheckpointError(
                f"{path} holds weights that are not finite ({name}): use an older checkpoint, the "
                "run has diverged"
            )
    return policy


def _read_ensemble(named: str, device: torch.device | str) -> tuple[Ensemble, TrainConfig]:
    """Load the members of an ensemble; arguments and errors as `load_policy`."""
    paths = [path for path in named.removeprefix(ENSEMBLE).split(",") if path]
    if len(paths) < 2:
        raise ConfigError(f"{named!r} names fewer than two policies: part them by commas")
    for path in paths:
        if path.startswith(NAMED):
            raise ConfigError(f"{named!r} has {path} as a member: give trained policies only")
    members = [read_policy(path, device) for path in paths]
    first = shared_by_members(members[0])
    for path, member in zip(paths, members, strict=True):
        for name, value in shared_by_members(member).items():
            if value != first[name]:
                raise ConfigError(
                    f"{named!r}: {path} is of another {name} than {paths[0]}; give policies that "
                    "observe and steer the same vessel"
                )
    return Ensemble([member.agent for member in members]), members[0].config


def shared_by_members(policy: LoadedPolicy) -> dict[str, object]:
    """Return what policies that act as one have in common, by its name in a message."""
    config = policy.config
    return {
        "task": config.task,
        "stack_k": config.stack_k,
        "observation": policy.agent.spec.observation,
        "vessel": getattr(config.env, "vessel", None),  # the classic tasks have none
    }


def _read(path: Path, device: torch.device) -> LoadedPolicy:
    if is_pretrained(path):
        return read_pretrained(path.parent, device)
    if path.suffix == FORMATS["onnx"].suffix:
        raise CheckpointError(
            f"{path} is an ONNX file, which a vessel takes and this program does not: give the "
            "checkpoint, or an export with --format torchscript"
        )
    if path.suffix in READERS:
        return read_weights(path, device)
    if is_torchscript(path):
        network, description, digest = open_network(path, device)
        if description:
            return read_deployed(path, network, description, digest, device)
        return read_network(path, network, device)
    return _read_checkpoint(path, device)


def policy_file(path: Path) -> Path:
    """Return the file of a folder that holds its policy; a file is its own.

    Raises:
        CheckpointError: the folder holds none.
    """
    if not path.is_dir():
        return path
    places = (path / WEIGHTS, path / "checkpoints" / BEST, path / BEST)
    return next((file for file in places if file.is_file()), None) or newest(path)


def _read_checkpoint(path: Path, device: torch.device) -> LoadedPolicy:
    """Build the agent of a checkpoint, with its weights."""
    state = load(path)  # on the CPU: the agent takes what it needs of it to its device
    try:
        config = config_of_file(state["config"], path)
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    agent = build_agent(config, device)
    agent.load_training_state(state["model"])
    origin = {"file": path.name, "step": int(state["step"]), "commit": commit_of_run(path)}
    return LoadedPolicy(agent, config, origin, whole=True)
