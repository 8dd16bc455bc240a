"""Random observations and batches for the tests of agents."""

from __future__ import annotations

from typing import Any

import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import marine_spec
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.spec import (
    ActionSpec,
    EnvSpec,
    Features,
    FlatObservation,
    FlatSpec,
    ObservationSpec,
    ObservationTensors,
    TwoListSpec,
)
from train_RL_agents.agents.base import Agent
from train_RL_agents.agents.batch import Batch
from train_RL_agents.agents.ppo import FreshBatch
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS

MARINE = marine_spec(EnvConfig(), discrete=False).observation
HISTORY = marine_spec(EnvConfig(), discrete=False, stack_k=2).observation


def spec_for(name: str, frames: int = 1) -> EnvSpec:
    """Return the marine environment's description for an algorithm's kind of actions."""
    return marine_spec(EnvConfig(), discrete=AGENTS[name].discrete, stack_k=frames)


def flat_spec(name: str, magnitudes: tuple[float, ...], actions: int) -> EnvSpec:
    """Return a description with one vector as observation."""
    features = Features(tuple("abcdefgh"[: len(magnitudes)]), ("-",) * len(magnitudes), magnitudes)
    return EnvSpec(FlatSpec(features), ActionSpec(AGENTS[name].discrete, actions, {}))


def random_observation(
    *leading: int, spec: ObservationSpec = MARINE, dtype: torch.dtype = torch.float32
) -> ObservationTensors:
    """Return an observation `[*leading, ...]` of about the task's magnitudes, with padded rows."""
    if isinstance(spec, FlatSpec):
        return FlatObservation(10.0 * torch.randn(*leading, *spec.shapes.state, dtype=dtype))
    if isinstance(spec, TwoListSpec):
        return spec.draw(*leading, torch.default_generator)
    ego = 10.0 * torch.randn(*leading, *spec.shapes.ego, dtype=dtype)
    mask = (torch.rand(*leading, *spec.shapes.mask) < 0.7).to(dtype)
    objects = 5.0 * torch.randn(*leading, *spec.shapes.objects, dtype=dtype)
    return Observation(ego, objects * mask.unsqueeze(-1), mask)


def main_loss(metrics: dict[str, torch.Tensor], what: str = "loss") -> torch.Tensor:
    """Return a metric of the critic, or of the actor where there is no critic."""
    return metrics[f"{'critic' if 'critic_loss' in metrics else 'actor'}_{what}"]


def names_by_weights(name: str) -> str:
    """Return what a policy is called of which only the acting network is known."""

    def shapes(name: str) -> dict[str, torch.Size]:
        return {key: value.shape for key, value in make_agent(name).actor.state_dict().items()}

    own = shapes(name)
    return " or ".join(other for other in REPLAY_AGENTS if shapes(other) == own)


def without_scale(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return a network's parameters as the published files hold them."""
    state = network.state_dict()
    return {name: value for name, value in state.items() if "input_scale" not in name}


def parameters(agent: Agent) -> dict[str, torch.Tensor]:
    """Return copies of an agent's parameters, by name."""
    return {name: value.clone() for name, value in agent.named_parameters()}


def random_fresh_batch(agent: Agent, size: int) -> FreshBatch:
    """Return a batch `[size]` that an on-policy agent can learn from."""
    observation = random_observation(size, spec=agent.spec.observation)
    inputs = agent.policy_network.encoder.inputs(tuple(observation))
    drawn, log_probability, value = agent.draw(inputs)
    moved = log_probability + 0.1 * torch.randn(size)
    return FreshBatch(inputs, drawn, moved, torch.randn(size), value + torch.randn(size))


def random_batch(agent: Agent, size: int) -> Any:
    """Return a batch `[size]` that `agent` can learn from."""
    if agent.learns_from == "rounds":
        return random_fresh_batch(agent, size)
    if agent.discrete:
        action = torch.randint(0, agent.actions, (size,))
    else:
        action = 2.0 * torch.rand(size, *agent.kept_shape) - 1.0
    return Batch(
        obs=random_observation(size, spec=agent.spec.observation),
        action=action,
        reward=torch.randn(size),
        next_obs=random_observation(size, spec=agent.spec.observation),
        discount=0.99 * (torch.rand(size) < 0.9),
        weight=0.5 + 0.5 * torch.rand(size),
        index=torch.arange(size),
    )


def make_agent(name: str, *, spec: EnvSpec | None = None, **settings: object) -> Agent:
    """Return the agent `name`, always with the same initial weights.

    Unless a test asks for them, it has neither bfloat16 products nor averaged weights.
    """
    torch.manual_seed(0)
    kind = AGENTS[name]
    config = kind.Config(**{"autocast": False, "acting_average": 0.0, **settings})
    agent = kind(config, spec or spec_for(name))
    if agent.learns_from == "rounds":
        agent.settled.fill_(1.0)  # as after its first rounds: the actor learns too
    return agent
