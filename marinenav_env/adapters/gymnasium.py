"""Gymnasium: one robot in a world of its own, and all robots of many worlds as a vector.

Importing this module registers the ids of `marinenav_env.adapters`::

    import gymnasium
    import marinenav_env.adapters.gymnasium

    gymnasium.make("marinenav/Marine-v0")
    gymnasium.make_vec("marinenav/CartPole-v1", num_envs=4096)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from marinenav_env.adapters import register
from marinenav_env.adapters.convert import (
    ALONE,
    MOST_SEED,
    action_space,
    check_face,
    check_handed_out,
    check_one_stage,
    ends_of,
    observation_space,
    observed,
    to_action,
    to_numpy,
    with_stage,
)
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.checks import require_whole
from marinenav_env.envs.make import VESSEL_TASKS, make
from marinenav_env.fields import ConfigError, require
from marinenav_env.stepper import Stepper

register()

ENDED = ("anew", "waits")


class GymEnv(gymnasium.Env):
    """A robot in a world of its own.

    Args:
        task: the environment, a key of `marinenav_env.envs.make.ENVIRONMENTS`.
        render_mode: None: this face does not draw; `scripts/episode.py plot` draws vessels.
        options: of the environment's constructor. Vessels have four buoys and nobody else, unless
            ``stages`` says otherwise.

    Raises:
        ConfigError: an option is impossible, or there are several stages or robots.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - so declared by its base

    def __init__(self, task: str = "marine", render_mode: None = None, **options: Any) -> None:
        remedy = "leave it out, this is one world; gymnasium.make_vec makes several"
        check_face(options, render_mode, remedy)
        if task in VESSEL_TASKS:
            options.setdefault("stages", ALONE)
        self.env = make(task, worlds=1, **options)
        remedy = "one robot is one environment: give stages with one, or make_vec"
        require(self.env.robots == 1, "stages.robots", self.env.robots, remedy)
        check_one_stage(self.env)
        self.render_mode = render_mode
        self._spec = self.env.description
        self.observation_space = observation_space(self._spec)
        self.action_space = action_space(self._spec)
        self._stepper = Stepper(self.env, restarts=False)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; a seed begins its sequence of episodes anew."""
        fresh = self._np_random is None or seed is not None
        super().reset(seed=seed)
        if fresh:
            self.env.set_seed(int(self.np_random.integers(MOST_SEED)))
        obs = observed(self._spec, self._stepper.reset().obs)
        check_handed_out(self.env, obs)
        return self._first(obs), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one decision.

        At an episode's end the infos say whether the robot has reached its goal (``is_success``) or
        touched something (``collision``), in tasks that have goals; neither is a time-out.

        Raises:
            ConfigError: the observation or the reward is not finite.
            ValueError: the action has another shape, or values that are none.
        """
        following = self._stepper.step(to_action(self.env, action, self.action_space.shape))
        obs, reward = observed(self._spec, following.obs), to_numpy(following.reward)
        ends = following.terminated, following.truncated
        terminated, truncated = (bool(end.item()) for end in ends)
        ended = np.full(1, terminated)
        how = ends_of(self.env, ended) if terminated or truncated else {}
        self._stepper.advance()
        check_handed_out(self.env, obs, reward)
        infos = {name: flag.item() for name, flag in how.items()}
        return self._first(obs), reward.item(), terminated, truncated, infos

    def _first(self, obs: Any) -> Any:
        if isinstance(obs, dict):
            return {key: part[0] for key, part in obs.items()}
        return obs[0]


class GymVectorEnv(VectorEnv):
    """All robots of W worlds as environments of their own, N = W * R; no loop over them.

    A finished world begins anew within the step (``AutoresetMode.SAME_STEP``): what is returned is
    the observation to act on, and the true last one stands in ``infos["final_obs"]``, arrays
    [N, ...] whose rows count where ``infos["_final_obs"]`` [N] is true. ``infos["acted"]`` [N] says
    who took part in the decision; ``infos["is_success"]`` and ``infos["collision"]`` [N] who has
    reached its goal or touched something in it, in tasks that have goals.

    A robot that has ended while others of its world have not:

    * ``ended="anew"``: its world begins anew at once, and the others' episodes are truncated. Every
      row is then an episode as Gymnasium means it, of at most ``episode.max_steps`` decisions. It
      sets ``episode.stop_on_end``, whatever the configuration says. A world of several robots
      hardly ever succeeds then, since success asks that all of them arrive.
    * ``ended="waits"``: its observation and reward are zero until its world begins anew, and
      ``infos["acted"]`` is false: leave such rows out. This is the published task. What takes every
      row for an episode, as ``RecordEpisodeStatistics`` does, counts the waiting too. With
      ``episode.stop_on_end`` nobody waits here either.

    Where a world has one robot both are the same.

    Args:
        num_envs: N, a multiple of the robots of a world.
        task: the environment.
        ended: see above.
        render_mode: None.
        options: of the environment's constructor, for instance ``device`` or ``stages``: by default
            the last stage of its curriculum. Worlds take several in turn; a stage with fewer robots
            than another leaves slots empty, whose rows never act.

    Raises:
        ConfigError: an option is impossible, or N is no multiple.
    """

    def __init__(
        self,
        num_envs: int = 1,
        task: str = "marine",
        ended: str = "anew",
        render_mode: None = None,
        **options: Any,
    ) -> None:
        require(ended in ENDED, "ended", ended, f"choose one of {', '.join(ENDED)}")
        check_face(options, render_mode, "give num_envs, the worlds times their robots")
        require_whole(num_envs=num_envs)
        options = with_stage(task, options)
        one = make(task, worlds=1, **options)
        if ended == "anew":
            episode = dataclasses.replace(one.config.episode, stop_on_end=True)
            options["config"] = dataclasses.replace(one.config, episode=episode)
        robots = one.robots
        remedy = f"{robots} robots share a world; give a multiple of {robots}"
        require(num_envs >= 1 and num_envs % robots == 0, "num_envs", num_envs, remedy)
        self.env: KernelEnv = make(task, worlds=num_envs // robots, **options)
        self.env.set_stage(torch.arange(self.env.worlds) % len(self.env.stages))
        self.num_envs, self.render_mode = num_envs, render_mode
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}
        self._spec = self.env.description
        self.single_observation_space = observation_space(self._spec)
        self.single_action_space = action_space(self._spec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._stepper = Stepper(self.env)
        self._begun = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every world.

        Args:
            seed: begins the sequence of episodes anew; the first reset without one draws it.
            options: none are known.

        Raises:
            ConfigError: the seeds are several, there are options, or an observation is not finite.
        """
        if seed is not None and not isinstance(seed, int | np.integer):
            raise ConfigError(f"seed is {seed!r}: give one number, from which all worlds draw")
        require(not options, "options", options, "leave them out, worlds begin anew by themselves")
        super().reset(seed=seed)
        if seed is not None or not self._begun:
            self.env.set_seed(int(self.np_random.integers(MOST_SEED)))
        self._begun = True
        obs = observed(self._spec, self._stepper.reset().obs)
        check_handed_out(self.env, obs)
        return obs, {"acted": to_numpy(self.env.alive)}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one decision of every robot.

        Args:
            actions: [N] or [N, n].

        Returns:
            Observations [N, ...], rewards, terminated and truncated [N], infos.

        Raises:
            ConfigError: an observation or a reward is not finite.
            ResetNeeded: no episode has begun.
            ValueError: the actions have another shape, or values that are none.
        """
        if not self._begun:
            raise gymnasium.error.ResetNeeded("no episode has begun: call reset() before step()")
        following = self._stepper.step(to_action(self.env, actions))
        done, truncated = following.done, following.truncated
        infos = {"acted": to_numpy(following.acted)}
        result = (to_numpy(each) for each in (following.reward, following.terminated, truncated))
        reward, terminated, cut = result
        infos |= ends_of(self.env, terminated & infos["acted"])
        if bool(done.any()):
            infos["final_obs"] = observed(self._spec, following.obs)
            infos["_final_obs"] = to_numpy(done.unsqueeze(1).expand_as(truncated))
        obs = observed(self._spec, self._stepper.advance().obs)
        check_handed_out(self.env, obs, reward, infos.get("final_obs", {}))
        return obs, reward, terminated, cut, infos
