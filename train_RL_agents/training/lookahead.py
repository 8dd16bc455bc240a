"""Looks ahead in copies of the worlds: what would robots gain by other actions now?

The rollouts of Tesauro and Galperin 1996, "On-line Policy Improvement using Monte-Carlo Search":
try an action, follow the policy from there on, and see what it brings. All robots of a world try at
once, each in an order of its own, as in the simultaneous perturbations of Spall 1992: what the
others try is noise, which the mean over many decisions takes away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from marinenav_env.config import MOST_DECISIONS, EnvConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.spec import tuple_like
from marinenav_env.fields import ConfigError
from marinenav_env.kernel.state import StepBuffers
from train_RL_agents.agents import lattice
from train_RL_agents.agents.lookahead_settings import LookaheadConfig
from train_RL_agents.training.traffic import Traffic

CHUNK_WORLDS = {"cpu": 1_024, "cuda": 1_048_576}
"""Worlds in one forward pass: on a CPU its activations fit the last cache, on a GPU the memory."""
OTHER_SEED = 2**31 - 1
"""Bits in which the seed of copies differs: they do not foresee what their worlds draw."""
FOCUSED = 1e8
"""Concentration with which a noise is next to its mean."""


class Lookahead:
    """Values actions by rollouts in copies of the worlds.

    Every robot does another thing in every copy of its world: in one it follows the policy, in each
    other one it first holds one of the points of the lattice for a while. The world is the true
    one: what robots do not see, such as the goals of others, plays its part. But its sensors show
    every object where it is, as large as on average, so that copies differ by nothing but the
    actions, and by what a fringe of hulls, faults and gusts draw. Nothing here reads the device.

    Args:
        env: whose worlds are copied; its rewards are what counts.
        act: the policy, from observations [worlds, R, ...] to actions [worlds, R, A].
        config: how far it looks.
        traffic: vessels that the policy does not steer, if any; nobody looks ahead for them.

    Raises:
        ConfigError: the task is another than `marine`, or the copies do not fit the memory.

    Attributes:
        copies: of each world, 1 + K.
        points: [K, A], the lattice.
    """

    def __init__(
        self,
        env: KernelEnv,
        act: Callable[[Any], Tensor],
        config: LookaheadConfig,
        traffic: Traffic | None = None,
    ) -> None:
        if not isinstance(env.config, EnvConfig):
            raise ConfigError(f"env is {env.kernel!r}: copies look ahead in the task 'marine' only")
        decision_s = env.config.vessel.dt * env.config.vessel.substeps
        self.turns = max(1, round(config.horizon_s / decision_s))
        self.held_turns = max(1, round(config.hold_s / decision_s))
        self._env, self._act = env, act
        reward = env.config.reward
        self._goal, self._goal_distance = config.goal_share * reward.goal, reward.goal_distance
        # Progress brings 1 a metre, and takes time.
        time = reward.timestep / (config.speed_made_good * decision_s)
        self._worth_of_a_metre = 1.0 + time
        points = lattice.points(env.kernel_spec.continuous)
        self.points = points.to(env.device, env.real_dtype)
        self.copies = len(points) + 1
        self._own = traffic.own if traffic else torch.ones_like(env.alive)  # [W, R]
        self._others, self._range = config.others, env.config.perception.range
        self._traffic = traffic.of_copies(self.copies) if traffic else None
        try:
            self._future = type(env)(
                self.copies * env.worlds,
                stages=env.stages,
                config=as_looked_ahead(env.config),
                discrete=False,
                device=env.device,
                dtype=env.real_dtype,
                seed=env.state.context.seed ^ OTHER_SEED,
                first_world=self.copies * env.state.context.first_world,
                info_mode="none",
                stack_k=env.stack_k,
                slots=getattr(env, "slots", None),
            )
        except ConfigError as error:
            raise ConfigError(
                f"worlds is {env.worlds}, of each of which {self.copies} copies are played ahead, "
                f"and these do not fit: lower worlds ({error})"
            ) from error
        self._buffers = (self._future.make_buffers(), self._future.make_buffers())
        self._chunk = CHUNK_WORLDS[env.device.type]

    @torch.no_grad()
    def value(self, now: StepBuffers, action: Tensor) -> Tensor:
        """Value the points of the lattice for every robot.

        Args:
            now: what the robots see; the worlds are as they stand.
            action: [W, R, A], the policy's.

        Returns:
            [W, R, K], advantages over the policy's own action; of a robot that has ended, or that
            the policy does not steer, they say nothing.
        """
        shape = (self.copies, *self._own.shape)
        tried = torch.rand(shape, device=self._own.device).argsort(0)  # [1 + K, W, R]
        returns = self.returns(now, action, tried)
        by_point = torch.empty_like(returns).scatter_(0, tried, returns)
        return (by_point[:-1] - by_point[-1]).permute(1, 2, 0)

    def returns(self, now: StepBuffers, action: Tensor, tried: Tensor) -> Tensor:
        """Play every copy to the horizon.

        Args:
            now: as in `value`.
            action: as in `value`.
            tried: [1 + K, W, R] int64, the point that each robot holds in each copy; K for none, so
                that it follows the policy.

        Returns:
            [1 + K, W, R], what it gets: its own return, and its share of those of others about it.
        """
        future, (before, after) = self._future, self._buffers
        shares = self._shares()
        future.copy_worlds_of(self._env, now, before)
        tried = tried.flatten(0, 1)  # [copies * W, R]
        held = self.points[tried.clamp(max=len(self.points) - 1)]  # [copies * W, R, A]
        holds = (tried < len(self.points)) & self._own.repeat(self.copies, 1)
        holds = holds.unsqueeze(-1)
        acting = action.repeat(self.copies, 1, 1)
        rewards = torch.zeros_like(before.reward)
        for turn in range(self.turns):
            acting = self._follow(before.obs, None if turn else acting)
            if turn < self.held_turns:
                acting = torch.where(holds, held, acting)
            future.step_into(acting, before, after)
            rewards += after.reward
            before, after = after, before
        distance = torch.linalg.vector_norm(before.obs.ego[..., :2], dim=-1)  # [copies * W, R]
        way_left = (distance - self._goal_distance).clamp(min=0.0)
        to_come = self._goal + self._worth_of_a_metre * way_left
        rewards += torch.where(future.alive, to_come, 0.0)
        of_copies = rewards.unflatten(0, (self.copies, -1)).unsqueeze(-1)  # [1 + K, W, R, 1]
        return (shares @ of_copies).squeeze(-1)

    def _shares(self) -> Tensor:
        """Return [W, R, R], how much the return of the second robot counts for the first one."""
        env = self._env
        x, y = (env.state.robot_field(name)[:, : env.worlds].T for name in ("x", "y"))
        apart = torch.hypot(x.unsqueeze(1) - x.unsqueeze(2), y.unsqueeze(1) - y.unsqueeze(2))
        about = (apart < self._range) & self._own.unsqueeze(1)
        shares = self._others * about.to(x.dtype)
        shares.diagonal(dim1=1, dim2=2).fill_(1.0)
        return shares

    def _follow(self, seen: Any, given: Tensor | None) -> Tensor:
        """Return what all do, [copies * W, R, A]: the traffic, and else the policy or as given."""
        parts = []
        for first in range(0, self._future.worlds, self._chunk):
            worlds = slice(first, first + self._chunk)
            part = tuple_like(seen, (field[worlds] for field in seen))
            action = self._act(part) if given is None else given[worlds]
            parts.append(self._traffic.steer(action, part, worlds) if self._traffic else action)
        return torch.cat(parts)


def as_looked_ahead(config: EnvConfig) -> EnvConfig:
    """Return the configuration of copies.

    Their sensors show objects where they are, as large as on average, and no limit of decisions
    and no end of another robot cuts a rollout short: what would come after it counts.
    """
    perception = dataclasses.replace(
        config.perception, position_std=0.0, velocity_std=0.0, radius_kappa=FOCUSED
    )
    episode = dataclasses.replace(
        config.episode, max_steps=MOST_DECISIONS, stop_on_end=False, stop_on_collision=False
    )
    return dataclasses.replace(config, perception=perception, episode=episode)
