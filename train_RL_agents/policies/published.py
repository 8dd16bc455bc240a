"""Everything foreign: weights and networks published elsewhere, and how this project's compare.

Published state dicts (``.npz``, ``.pth``) and TorchScript files do not say what they are. The agent
whose acting network fits is taken; agents that are alike in this are named together, since they act
alike.
"""

from __future__ import annotations

import itertools
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from marinenav_env.envs.make import VESSEL_TASKS
from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from marinenav_env.fields import ConfigError
from marinenav_env.files import read_parsed
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.build import Policy, build_agent
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.policies.pretrained import CONFIG, EVALUATION
from train_RL_agents.policies.torchscript import ScriptedNetwork, acting_by, output_shapes
from train_RL_agents.run.checkpoint import CheckpointError, load_archive
from train_RL_agents.run.provenance import run_record_of

SETTINGS: dict[str, dict[str, Any]] = {
    # Their success and travel time were measured with random fractions.
    "IQN": {"random_acting_taus": True},
    "Rainbow": {"v_min": -1.0, "v_max": 1.0},
}
"""Settings with which published weights act, where they are not the defaults."""
RAINBOW_LAYER = re.compile(r"(hidden_layer|output_layer)_([va])(_2)?\.(weight|bias)_(mu|sigma)")
RAINBOW_STREAMS = {"v": "value_stream", "a": "advantage_stream"}
SIGNIFICANT = 0.05
STAGE = ("robots", "buoys", "vortices", "min_distance_m")
"""Keys of an evaluation's row that say which stage it is."""
HEADER = (
    "| stage | success (95% CI) | published | p | collision | time-out | time s | published |\n"
    "|---|---|---|---|---|---|---|---|"
)


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


def read_weights(path: Path, device: torch.device) -> Policy:
    """Load published weights, of the agent whose acting network has exactly these.

    Raises:
        CheckpointError: the file is missing or damaged, or fits no agent known here.
    """
    try:
        weights = READERS[path.suffix](path)
    except FileNotFoundError as error:
        raise CheckpointError(f"no file {str(path)!r}: check the name") from error
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
            f"{path} fits the network of no agent ({', '.join(AGENTS)}): "
            "give the weights under their published names"
        )
    agent, config = _named_together(alike)
    return Policy(agent, config, {"file": path.name})


def read_network(path: Path, network: ScriptedNetwork, device: torch.device) -> Policy:
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
            f"{path} acts like no agent ({', '.join(AGENTS)}): give a network that is called as "
            "model((self [B, 7], objects [B, 5, 5], mask [B, 5]))"
        )
    agent, config = _named_together(alike)
    return acting_by(network, agent, config, {"file": path.name})


def _candidates(device: torch.device, tasks: Iterable[str]) -> Iterator[tuple[Agent, TrainConfig]]:
    """Return each agent of these tasks that published weights may be of."""
    for task, name in itertools.product(tasks, AGENTS):
        config = published_config(name, task)
        yield build_agent(config, device), config


def _named_together(alike: Sequence[tuple[Agent, TrainConfig]]) -> tuple[Agent, TrainConfig]:
    agent, config = alike[0]
    agent.name = " or ".join(other.name for other, _ in alike)
    return agent, config


class ComparisonError(ValueError):
    """A file cannot be compared; the message says which and why."""


@dataclass(frozen=True)
class Comparison:
    """One stage of a policy beside the published policy.

    Attributes:
        row: of the evaluation, as `evaluate.py --json` writes it.
        published: of the published policy.
        p: probability of so high a success if it were not higher, corrected for all stages.
    """

    row: Mapping[str, Any]
    published: Mapping[str, Any]
    p: float

    @property
    def higher(self) -> bool:
        """Whether the success is significantly higher."""
        return self.p < SIGNIFICANT

    def markdown(self) -> str:
        """Return the line of the table."""
        row, published = self.row, self.published
        low, high = row["success_ci95"]
        success = f"{row['success']:.3f} ({low:.3f} to {high:.3f})"
        cells = (
            f"{row['robots']} robots, {row['buoys']} buoys",
            f"**{success}**" if self.higher else success,
            f"{published['success']:.3f}",
            "< 0.001" if self.p < 0.001 else f"{self.p:.3f}",
            f"{row['collision']:.3f}",
            f"{row['timeout']:.3f}",
            "-" if row["mean_time_s"] is None else f"{row['mean_time_s']:.1f}",
            f"{published['mean_time_s']:.1f}",
        )
        return f"| {' | '.join(cells)} |"


def compare(
    rows: Sequence[Mapping[str, Any]], published: Sequence[Mapping[str, Any]]
) -> list[Comparison]:
    """Compare an evaluation with the published one.

    Args:
        rows: the stages of the evaluation, in the published order.
        published: the stages of the published policy.

    Raises:
        ComparisonError: these are not the published stages.
    """
    # Older evaluations lack the vortices and the distance.
    names = [name for name in STAGE if all(name in row for row in rows)]
    stages = [tuple(row[name] for name in names) for row in rows]
    wanted = [tuple(getattr(stage, name) for name in names) for stage in PUBLISHED_STAGES]
    if stages != wanted:
        raise ComparisonError(
            f"stages of ({', '.join(names)}) {stages}, the published policy has {wanted}: evaluate "
            "it on the published stages"
        )
    return [
        Comparison(row, figure, min(1.0, len(rows) * p_higher(row, figure)))
        for row, figure in zip(rows, published, strict=True)
    ]


def p_higher(row: Mapping[str, Any], published: Mapping[str, Any]) -> float:
    """Return the p of Fisher's one-sided exact test for two shares with their numbers."""
    from scipy.stats import fisher_exact  # slow to import, and who loads a policy has no use for it

    table = [
        [round(side["success"] * side["episodes"]), round((1 - side["success"]) * side["episodes"])]
        for side in (row, published)
    ]
    return float(fisher_exact(table, alternative="greater").pvalue)


def published_stages(file: Path, agent: str) -> list[dict[str, Any]]:
    """Return the published figures of an algorithm.

    Args:
        file: success of the published policies in the published simulator.
        agent: the algorithm.

    Raises:
        ComparisonError: there are none.
    """
    policies = read_parsed(file, lambda text: json.loads(text)["policies"], "fetch it again")
    name = agent.replace("-", "_")
    if name not in policies:
        known = ", ".join(policies)
        raise ComparisonError(f"no published figures of {agent!r}: choose --against from {known}")
    return policies[name]


def read_evaluation(path: Path, against: str | None) -> tuple[list[dict[str, Any]], str]:
    """Return an evaluation's stages, and the algorithm to compare it with.

    Args:
        path: a folder of `pretrained/` or of a run, or the JSON file of an evaluation.
        against: the algorithm; None takes that of the folder.

    Raises:
        ComparisonError: the file is not there or is no evaluation, or the algorithm is not known.
    """
    file = path / EVALUATION if path.is_dir() else path
    try:
        stages = read_parsed(file, lambda text: json.loads(text)["stages"], "give an evaluation")
    except ConfigError as error:
        raise ComparisonError(f"{file} holds no evaluation ({error})") from error
    if against is None:
        against = _agent_of(file)
    return stages, against


def _agent_of(file: Path) -> str:
    config, record = file.with_name(CONFIG), run_record_of(file)
    if config.is_file():
        return read_parsed(config, lambda text: yaml.safe_load(text)["agent"], "give --against")
    if record is None:
        raise ComparisonError(f"{file} does not name its algorithm: give --against")
    return record["config"]["agent"]


def comparison_table(path: Path, figures: Path, against: str | None = None) -> str:
    """Return the Markdown table of one evaluation beside the published figures.

    Args:
        path: as `read_evaluation` takes it.
        figures: as `published_stages` takes them.
        against: as `read_evaluation` takes it.

    Raises:
        ComparisonError: it cannot be compared.
    """
    stages, against = read_evaluation(path, against)
    lines = [line.markdown() for line in compare(stages, published_stages(figures, against))]
    return "\n".join([HEADER, *lines])
