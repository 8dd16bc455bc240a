"""An agent as a TensorDict policy: all robots in one forward, exploration on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torchrl.envs.utils import ExplorationType, exploration_type

from marinenav_env.envs.spec import ObservationTensors
from train_RL_agents.agents.base import Agent


class PolicyWrapper(TensorDictModuleBase):
    """Chooses actions for `[W, R]` robots with one agent.

    Called with a TensorDict it follows TorchRL's exploration type: `RANDOM`, or none set, explores;
    the others take the mean action, and so draw nothing. A training loop calls `explore`, and `act`
    as deployed, with an observation. Random numbers come from the device's default generator.

    Args:
        agent: chooses the greedy actions.
        shape: `(W, R)` if robots explore differently, or `()` for one epsilon for all.
        epsilon: probability of a uniformly random action.
        spread: exponent alpha of Horgan et al. 2018 (Ape-X): the i-th of N = W * R robots, counted
            world by world, explores with epsilon ** (1 + alpha * i / (N - 1)); 0 treats all alike.
        first_robot: i of the first robot here, where other processes have robots too.
        all_robots: N, of all processes together; None if all are here.
        action_noise: standard deviation of Gaussian noise on continuous actions, as a share of half
            their range; applied where the action is not a random one.

    Raises:
        ValueError: a number is out of its range; the message names it, its value and the remedy.

    Attributes:
        epsilon: buffer of `shape`; `set_epsilon` writes it.
        action_low: buffer `[A]`, or `[]` for an index.
        action_high: buffer `[A]`, or `[]` for an index, itself allowed.
    """

    def __init__(
        self,
        agent: Agent,
        shape: Sequence[int] = (),
        *,
        epsilon: float = 0.0,
        spread: float = 0.0,
        first_robot: int = 0,
        all_robots: int | None = None,
        action_noise: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0.0 <= epsilon <= 1.0:
            raise ValueError(f"epsilon is {epsilon}: give a probability, from 0 to 1")
        if action_noise < 0.0 or (action_noise > 0.0 and agent.discrete):
            raise ValueError(
                f"action_noise is {action_noise}: give 0 or more, and 0 for an agent with discrete "
                f"actions like {agent.name}"
            )
        self.in_keys = [agent.spec.key(name) for name in agent.spec.observation.keys]
        self.out_keys = [agent.spec.key("action")]
        self.agent = agent
        self.action_noise = action_noise
        device = agent.device
        if agent.discrete:
            low, high = torch.tensor(0), torch.tensor(agent.actions - 1)
        else:
            low, high = -torch.ones(agent.actions), torch.ones(agent.actions)
        self.register_buffer("action_low", low.to(device))
        self.register_buffer("action_high", high.to(device))
        robots = torch.Size(shape).numel()
        total = robots if all_robots is None else all_robots
        if not 0 <= first_robot <= total - robots:
            raise ValueError(
                f"first_robot is {first_robot}: with {robots} of {total} robots here, give a "
                f"number from 0 to {total - robots}"
            )
        position = torch.arange(first_robot, first_robot + robots) / max(total - 1, 1)
        exponents = (1.0 + spread * position).reshape(tuple(shape))
        self.register_buffer("exponents", exponents.to(device), persistent=False)
        self.register_buffer("epsilon", torch.zeros(tuple(shape), device=device))
        self.set_epsilon(epsilon)

    def set_epsilon(self, epsilon: Tensor | float) -> None:
        """Write the exploration of every robot.

        Args:
            epsilon: a float, or a tensor on the agent's device that broadcasts to `shape`; the
                spread over robots applies to it.

        Raises:
            ValueError: the tensor does not broadcast to `shape`.
        """
        if isinstance(epsilon, Tensor):
            try:
                epsilon = epsilon.expand(self.epsilon.shape)
            except RuntimeError as error:
                raise ValueError(
                    f"epsilon has shape {tuple(epsilon.shape)}, which does not broadcast to "
                    f"{tuple(self.epsilon.shape)}: give one value per robot, per world or for all"
                ) from error
        self.epsilon.copy_(torch.pow(epsilon, self.exponents))

    def act(self, observation: ObservationTensors, *, mean: bool = False) -> Tensor:
        """Act as deployed.

        Args:
            observation: leading dimensions `[...]`.
            mean: the mean action instead of a sample, for agents that sample.

        Returns:
            `[...]` int64 or `[..., A]`.
        """
        return self.agent.act(observation, mean=mean)

    @torch.no_grad()
    def explore(self, observation: ObservationTensors, instead: Tensor | None = None) -> Tensor:
        """Act while collecting: the agent's own exploration, noise, and epsilon-greedy on top.

        Args:
            observation: leading dimensions that broadcast with `shape`.
            instead: what is done with probability epsilon; None for random actions.

        Returns:
            `[...]` int64 or `[..., A]`.
        """
        action = self.agent.explore(observation)
        if self.action_noise > 0.0:
            deviation = 0.5 * self.action_noise * (self.action_high - self.action_low)
            action = action + deviation * torch.randn_like(action)
            action = torch.clamp(action, self.action_low, self.action_high)
        robots = observation[0].shape[:-1]
        chosen = torch.rand(robots, device=action.device) < self.epsilon  # [...]
        if not self.agent.discrete:
            chosen = chosen.unsqueeze(-1)
        other = self._random_like(action) if instead is None else instead
        return torch.where(chosen, other, action)

    def _random_like(self, action: Tensor) -> Tensor:
        """Return uniformly random actions within the bounds, shaped as `action`."""
        if self.agent.discrete:
            return torch.randint_like(action, self.agent.actions)
        share = torch.rand_like(action)
        return self.action_low + (self.action_high - self.action_low) * share

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Write the robots' `action` `[W, R]` or `[W, R, A]` into the TensorDict.

        Raises:
            KeyError: an entry of the observation is missing.
            ValueError: the observation's leading dimensions do not broadcast with `shape`, or it is
                not float32.
        """
        observation = tuple(tensordict[key] for key in self.in_keys)
        first, shape = observation[0], self.epsilon.shape
        lead = tuple(first.shape[:-1])
        known = lead[max(len(lead) - len(shape), 0) :] == shape[max(len(shape) - len(lead), 0) :]
        if first.dtype != torch.float32 or not known:
            raise ValueError(
                f"the observation {self.in_keys[0]} has shape {(*lead, first.shape[-1])} and dtype "
                f"{first.dtype}: give float32, and leading dimensions that end in {tuple(shape)}, "
                "the `shape` of this wrapper"
            )
        explores = exploration_type() in (ExplorationType.RANDOM, None)
        action = self.explore(observation) if explores else self.act(observation, mean=True)
        tensordict.set(self.out_keys[0], action)
        return tensordict
