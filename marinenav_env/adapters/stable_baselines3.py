"""Stable-Baselines3: a `GymVectorEnv` as its `VecEnv`. The library is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from marinenav_env.adapters.convert import ENDS
from marinenav_env.adapters.gymnasium import GymVectorEnv
from marinenav_env.config import VesselTaskConfig
from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.placement import place_trial_worlds
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import require


class SB3VecEnv(VecEnv):
    """All robots of many worlds, for instance ``PPO("MultiInputPolicy", SB3VecEnv(env))``.

    Args:
        env: the vector. Stable-Baselines3 cannot leave rows out, so no robot may wait.

    Raises:
        ConfigError: robots that have ended would wait for others, or slots are empty.
    """

    def __init__(self, env: GymVectorEnv) -> None:
        remedy = "Stable-Baselines3 learns from every row; give GymVectorEnv(ended='anew')"
        none_waits = env.env.config.episode.stop_on_end or env.env.robots == 1
        require(none_waits, "ended", "waits", remedy)
        counts = [stage.robots for stage in env.env.stages]
        remedy = "a slot without a robot is a row that never acts; give all the same number"
        require(min(counts) == max(counts), "stages.robots", counts, remedy)
        check_all_are_placed(env.env)
        self.env = env
        self.render_mode = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        """Begin an episode in every world; `seed` before it seeds them."""
        obs, _ = self.env.reset(seed=self._seeds[0])
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Take over the actions [N] or [N, n] of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one decision of every robot."""
        obs, reward, terminated, truncated, infos = self.env.step(self._actions)
        per_robot: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        final: Any = infos.get("final_obs")
        done = terminated | truncated
        for row in np.flatnonzero(done):
            last = (
                {key: part[row] for key, part in final.items()}
                if isinstance(final, dict)
                else final[row]
            )
            per_robot[row] = {
                "terminal_observation": last,
                "TimeLimit.truncated": bool(truncated[row] and not terminated[row]),
                **{name: bool(infos[name][row]) for name in ENDS if name in infos},
            }
        return obs, reward, done, per_robot

    def close(self) -> None:
        """Release nothing: the worlds go with the object."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector, once for each row."""
        return [getattr(self.env, attr_name)] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the vector, which all rows share."""
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the vector once; its result stands for each row."""
        result = getattr(self.env, method_name)(*method_args, **method_kwargs)
        return [result] * len(self._rows(indices))

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return that no row is wrapped."""
        return [False] * len(self._rows(indices))

    def _rows(self, indices: Any) -> Sequence[int]:
        return list(self._get_indices(indices))


def check_all_are_placed(env: KernelEnv) -> None:
    """Check that every episode finds room for all its robots.

    Raises:
        ConfigError: names a stage's number of robots.
    """
    config = env.config
    for stage in env.stages:
        if isinstance(config, VesselTaskConfig) and isinstance(stage, Stage):
            placed, *_ = place_trial_worlds(stage, config.scenario, config.current)
            share = (placed == stage.robots).mean()
            remedy = f"only {share:.0%} of trial worlds have room for all of them; give fewer"
            require(share == 1.0, "stages.robots", stage.robots, remedy)
