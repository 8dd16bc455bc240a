"""MAPPO of BenchMARL on three vessels that share a world; it asks for torchrl<0.12.

python docs/examples/benchmarl_mappo.py --iterations 30
"""
# ruff: noqa: D102  what the methods are for, BenchMARL's own class says

import argparse
import tempfile
import time

from benchmarl.algorithms import MappoConfig
from benchmarl.environments.common import TaskClass
from benchmarl.experiment import Callback, Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from torchrl.data import Composite
from torchrl.envs import CatTensors, FlattenObservation

from marinenav_env import make
from marinenav_env.envs.scenarios import Stage

OPTIONS = {"stages": (Stage(3, 0, 0, 30.0),), "config": {"episode": {"max_steps": 300}}}


class Vessels(TaskClass):
    """What BenchMARL asks about an environment."""

    def get_env_fun(self, num_envs, continuous_actions, seed, device):
        chosen = {"discrete": not continuous_actions, "seed": seed or 0, "device": device}
        return lambda: make("marine", worlds=num_envs, **OPTIONS, **chosen)

    def get_env_transforms(self, env):  # its networks take one vector a robot
        parts = [("robots", name) for name in ("self", "objects", "mask")]
        join = CatTensors(parts, ("robots", "observation"), dim=-1)
        return [FlattenObservation(-2, -1, in_keys=parts[1:2]), join]

    def observation_spec(self, env):
        seen = env.full_observation_spec_unbatched["robots", "observation"]
        return Composite(robots=Composite(observation=seen, shape=seen.shape[:1]))

    def group_map(self, env):
        return env.group_map

    def action_spec(self, env):
        return env.full_action_spec_unbatched

    def max_steps(self, env):
        return env.config.episode.max_steps

    supports_continuous_actions = supports_discrete_actions = lambda self: True
    has_render = info_spec = state_spec = action_mask_spec = lambda self, env: None
    env_name = staticmethod(lambda: "marinenav")


class Report(Callback):
    """Prints speed, and the success of the episodes that an evaluation has finished."""

    def on_evaluation_end(self, rollouts):
        env, frames = self.experiment.test_env.base_env, self.experiment.total_frames
        sums = dict(zip(env.kernel_spec.fields("stats"), env.read_stats()[0], strict=True))
        env.clear_stats()
        rate = f"{env.robots * frames / time.process_time():,.0f} robot-steps per CPU second"
        print(f"{frames:,} decisions, {rate}, success {sums['successes'] / sums['episodes']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"iterations": 30, "worlds": 128, "decisions": 64}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    config, frames = ExperimentConfig.get_from_yaml(), options.worlds * options.decisions
    config.on_policy_n_envs_per_worker, config.on_policy_n_minibatch_iters = options.worlds, 4
    config.on_policy_collected_frames_per_batch = frames
    config.on_policy_minibatch_size, config.lr, config.loggers = frames // 4, 1e-3, []
    config.max_n_iters, config.max_n_frames = options.iterations, None
    config.evaluation_episodes = 50
    config.evaluation_interval = frames * max(options.iterations // 5, 1)
    given = Vessels("three", {}), MappoConfig.get_from_yaml(), MlpConfig.get_from_yaml()
    with tempfile.TemporaryDirectory() as config.save_folder:
        Experiment(*given, seed=0, config=config, callbacks=[Report()]).run()
