"""PettingZoo: the robots of one world as a `ParallelEnv`. The library is an extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from pettingzoo import ParallelEnv

from marinenav_env.adapters.convert import (
    MOST_SEED,
    action_space,
    check_face,
    check_handed_out,
    check_one_stage,
    checked_action,
    ends_of,
    observation_space,
    observed,
    to_action,
    to_numpy,
    with_stage,
)
from marinenav_env.envs.make import VESSEL_TASKS, make
from marinenav_env.fields import ConfigError, require
from marinenav_env.stepper import Stepper


class MarineParallelEnv(ParallelEnv):
    """The robots of one world, ``robot_0`` and so on.

    A robot that has ended is no agent any more until the next reset, as PettingZoo has it: it gets
    its last observation and reward, and leaves ``agents``. Its infos say whether it has reached its
    goal (``is_success``) or touched something (``collision``). Others see it no more.

    Args:
        task: the environment.
        render_mode: None.
        options: of the environment's constructor; by default the last stage of its curriculum.

    Raises:
        ConfigError: an option is impossible, or there are several stages.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "marinenav_v0",
        "render_modes": [],
        "is_parallelizable": True,
    }

    def __init__(self, task: str = "marine", render_mode: None = None, **options: Any) -> None:
        require(task in VESSEL_TASKS, "task", task, f"choose one of {', '.join(VESSEL_TASKS)}")
        check_face(options, render_mode, "leave it out, one world is one environment")
        self.env = make(task, worlds=1, **with_stage(task, options))
        check_one_stage(self.env)
        self.render_mode = render_mode
        self._spec = self.env.description
        self.possible_agents = [f"robot_{i}" for i in range(self.env.robots)]
        # PettingZoo asks for the same object each time.
        agents = self.possible_agents
        self.observation_spaces = {agent: observation_space(self._spec) for agent in agents}
        self.action_spaces = {agent: action_space(self._spec) for agent in agents}
        self.agents: list[str] = []
        self._stepper = Stepper(self.env, restarts=False)
        self._random: np.random.Generator | None = None

    def observation_space(self, agent: str) -> spaces.Space:
        """Return the space of a robot's observation; ConfigError for a name that is none."""
        self._check_name(agent)
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Return the space of a robot's action; ConfigError for a name that is none."""
        self._check_name(agent)
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict | None = None
    ) -> tuple[dict[str, Any], dict[str, dict]]:
        """Begin an episode; a seed begins its sequence of episodes anew."""
        if seed is not None or self._random is None:
            self._random = np.random.default_rng(seed)
            self.env.set_seed(int(self._random.integers(MOST_SEED)))
        obs = observed(self._spec, self._stepper.reset().obs)
        check_handed_out(self.env, obs)
        placed = to_numpy(self.env.alive)
        self.agents = [self.possible_agents[row] for row in np.flatnonzero(placed)]
        return self._of_agents(obs), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        """Take one decision of every agent; robots without an action do nothing.

        Args:
            actions: by agent. When all have ended, there is none to give, and nothing comes back.

        Raises:
            ConfigError: actions are no dictionary or name nobody, or an observation or a reward is
                not finite.
            ResetNeeded: no episode has begun.
            ValueError: an action has another shape, or values that are none.
        """
        if self._random is None:
            raise ResetNeeded("no episode has begun: call reset() before step()")
        is_mapping = isinstance(actions, Mapping)
        require(is_mapping, "actions", actions, "give a dictionary, an action by agent")
        joint = to_numpy(self.env.make_action())
        for name, action in actions.items():
            if name not in self.possible_agents:
                raise ConfigError(f"actions name {name!r}: give names of `agents`, {self._names}")
            shape = joint.shape[1:]
            given = checked_action(self.env, action, shape, f"actions of {name}")
            joint[self.possible_agents.index(name)] = given.reshape(shape)
        following = self._stepper.step(to_action(self.env, joint))
        obs = observed(self._spec, following.obs)
        flags = following.reward, following.terminated, following.truncated
        reward, terminated, truncated = (to_numpy(flag) for flag in flags)
        how = ends_of(self.env, terminated & to_numpy(following.acted))
        self._stepper.advance()
        check_handed_out(self.env, obs, reward)
        rewards, terminations, truncations = (
            {name: flag[self.possible_agents.index(name)].item() for name in self.agents}
            for flag in (reward, terminated, truncated)
        )
        observations = self._of_agents(obs)
        ended = [n for n in self.agents if terminations[n] or truncations[n]]
        infos: dict[str, dict] = {name: {} for name in self.agents}
        for name in ended:
            row = self.possible_agents.index(name)
            infos[name] = {key: flag[row].item() for key, flag in how.items()}
        self.agents = [n for n in self.agents if not (terminations[n] or truncations[n])]
        return observations, rewards, terminations, truncations, infos

    def render(self) -> None:
        """Draw nothing: `scripts/episode.py plot` draws recorded episodes."""

    @property
    def _names(self) -> str:
        return f"{self.possible_agents[0]} to {self.possible_agents[-1]}"

    def _check_name(self, agent: str) -> None:
        known = agent in self.possible_agents
        require(known, "agent", agent, f"give one of {self._names}")

    def _of_agents(self, obs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the rows of an observation by agent."""
        rows = {name: self.possible_agents.index(name) for name in self.agents}
        return {name: {key: part[row] for key, part in obs.items()} for name, row in rows.items()}
