"""Random observations and batches for the tests of agents."""

from __future__ import annotations

import torch

from marinenav_env.envs.observation import Observation
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.networks import ObservationDims
from train_RL_agents.agents.registry import AGENTS


def random_observation(
    *leading: int, dims: ObservationDims | None = None, dtype: torch.dtype = torch.float32
) -> Observation:
    """Return an observation `[*leading, ...]` of about the task's magnitudes, with padded rows."""
    dims = ObservationDims() if dims is None else dims
    ego = 10.0 * torch.randn(*leading, dims.ego, dtype=dtype)
    mask = (torch.rand(*leading, dims.objects) < 0.7).to(dtype)
    objects = 5.0 * torch.randn(*leading, dims.objects, dims.object_features, dtype=dtype)
    return Observation(ego, objects * mask.unsqueeze(-1), mask)


def names_by_weights(name: str) -> str:
    """Return what a policy is called of which only the acting network is known."""

    def shapes(kind: type[Agent]) -> dict[str, torch.Size]:
        return {key: value.shape for key, value in kind().actor.state_dict().items()}

    own = shapes(AGENTS[name])
    return " or ".join(other for other, kind in AGENTS.items() if shapes(kind) == own)


def random_batch(agent: Agent, size: int) -> Batch:
    """Return a batch `[size]` that `agent` can learn from."""
    if agent.discrete:
        action = torch.randint(0, agent.actions, (size,))
    else:
        action = 2.0 * torch.rand(size, agent.actions) - 1.0
    return Batch(
        obs=random_observation(size, dims=agent.dims),
        action=action,
        reward=torch.randn(size),
        next_obs=random_observation(size, dims=agent.dims),
        discount=0.99 * (torch.rand(size) < 0.9),
        weight=0.5 + 0.5 * torch.rand(size),
        index=torch.arange(size),
    )


def make_agent(name: str, *, dims: ObservationDims | None = None, **settings: object) -> Agent:
    """Return the agent `name`, always with the same initial weights.

    Unless a test asks for them, it has neither bfloat16 products nor averaged weights.
    """
    torch.manual_seed(0)
    kind = AGENTS[name]
    return kind(kind.Config(**{"autocast": False, "acting_average": 0.0, **settings}), dims)
