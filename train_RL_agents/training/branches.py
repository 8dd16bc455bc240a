"""Branches: what each of several first actions of a robot would lead to, found out by trying.

The simulator is copied as it stands, once for every robot and every action to try. In its copy the
robot takes that action for a moment, then all robots follow the policy (Tesauro and Galperin 1996,
"On-line Policy Improvement using Monte-Carlo Search").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import TaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.spec import tuple_like
from marinenav_env.kernel.state import StepBuffers
from marinenav_env.stepper import Stepper

Policy = Callable[[Any], Tensor]


class Branches:
    """W * R * K copies of the worlds of an environment of W worlds with R robots.

    Args:
        env: whose worlds are copied; its actions are continuous.
        config: of the copies, such as that of `env` without noise.
        tried: number of actions K that are tried for each robot.
        hold: decisions for which a robot keeps the action that it tries.
        horizon: decisions that a branch has at most, the first ones included.

    Attributes:
        asks_all: whether the policy is asked for every robot, in shapes that never change, or only
            for those that count. On a CPU the policy takes most of the time.
    """

    def __init__(
        self, env: KernelEnv, config: TaskConfig, *, tried: int, hold: int, horizon: int
    ) -> None:
        worlds, robots, device = env.worlds, env.robots, env.device
        self.source, self.tried, self.hold, self.horizon = env, tried, hold, horizon
        kind: Any = type(env)  # a subclass of `KernelEnv`, which takes a configuration
        self.env: KernelEnv = kind(
            worlds * robots * tried,
            stages=env.stages,
            config=config,
            discrete=False,
            device=device,
            info_mode="none",
            stack_k=env.stack_k,
        )
        self.asks_all = device.type == "cuda"
        self._stepper = Stepper(self.env, restarts=False)
        self._action = self.env.make_action()  # [W R K, R, A]
        robot = torch.arange(robots, device=device).view(1, robots, 1)
        self._robot = robot.expand(worlds, robots, tried).reshape(-1, 1)  # [W R K, 1]
        world = torch.arange(worlds, device=device).view(worlds, 1, 1)
        self._world = world.expand(worlds, robots, tried).flatten()  # [W R K]

    @torch.no_grad()
    def returns(self, now: StepBuffers, policy: Policy, own: Tensor, actions: Tensor) -> Tensor:
        """Try actions.

        Args:
            now: what the environment's robots observe.
            policy: what robots do after their first actions, for observations `[..., ...]`.
            own: `[W, R, A]`, what it does now.
            actions: `[W, R, K, A]`, to try.

        Returns:
            `[W, R, K]`: the sum of the robot's rewards in each branch, not discounted; 0 for robots
            that do not act.
        """
        self.env.state.take(self.source.state, self._world)
        self.env.alive.copy_(self.source.alive.index_select(0, self._world))
        stepper = self._stepper
        stepper.parity = 0  # a captured graph always begins with the same one of the two buffers
        for copied, frames in zip(stepper.now.frames, now.frames, strict=True):
            copied.copy_(frames.index_select(0, self._world))
        first = actions.reshape(-1, 1, actions.shape[-1])  # [W R K, 1, A]
        ego = self._robot.unsqueeze(-1).expand_as(first)
        self._action.copy_(own.index_select(0, self._world))
        returns = first.new_zeros(len(first))
        for decision in range(self.horizon):
            if decision:
                self._follow(policy)
            if decision < self.hold:
                self._action.scatter_(1, ego, first)
            following = stepper.step(self._action)
            returns += following.reward.gather(1, self._robot).squeeze(1)
            stepper.advance()
        return returns.view(actions.shape[:-1])

    def _follow(self, policy: Policy) -> None:
        """Let all robots do as the policy does, in branches whose own robot is under way."""
        seen = self._stepper.now.obs
        if self.asks_all:
            self._action.copy_(policy(seen))
            return
        counts = self.env.alive & self.env.alive.gather(1, self._robot)
        world, robot = counts.nonzero(as_tuple=True)
        if len(world):
            chosen = tuple_like(seen, (part[world, robot] for part in seen))
            self._action[world, robot] = policy(chosen)
