"""TorchRL's MAPPO on the robots' group: three vessels that share a world.

python docs/examples/torchrl_mappo.py --iterations 100
"""

import argparse
import time

import torch
from tensordict.nn import NormalParamExtractor
from tensordict.nn import TensorDictModule as Module
from tensordict.nn import TensorDictSequential as Sequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.modules import MultiAgentMLP, ProbabilisticActor, TanhNormal
from torchrl.objectives import ClipPPOLoss

from marinenav_env import make
from marinenav_env.envs.scenarios import Stage

STAGE = Stage(robots=3, vortices=0, buoys=0, min_distance_m=30.0)
CONFIG = {"episode": {"max_steps": 300}}
SCALE = torch.tensor([20.0, 20.0, 1.0, 1.0, 0.5, 500.0, 500.0])


def joined(ego: torch.Tensor, objects: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return one vector a robot [..., R, 37], with entries of about 1."""
    return torch.cat([ego / SCALE, objects.flatten(-2) / 10.0, mask], -1)


def main() -> None:
    """Train; print speed and the success of training episodes in each tenth of the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("iterations", 100), ("worlds", 128), ("decisions", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.manual_seed(0)
    env = make("marine", worlds=options.worlds, stages=(STAGE,), config=CONFIG)
    (group,) = env.group_map
    seen, loc, scale, value, logp = ((group, n) for n in ("seen", "loc", "scale", "value", "logp"))
    features = Module(joined, [(group, n) for n in ("self", "objects", "mask")], [seen])
    sizes = {"share_params": True, "depth": 2, "num_cells": 128, "activation_class": nn.Tanh}
    head = MultiAgentMLP(37, 4, env.robots, centralized=False, **sizes)
    judge = MultiAgentMLP(37, 1, env.robots, centralized=True, **sizes)  # it sees all robots
    normal = Module(nn.Sequential(head, NormalParamExtractor()), [seen], [loc, scale])
    keys = {"in_keys": {"loc": loc, "scale": scale}, "out_keys": [env.action_key]}
    drawn = {"distribution_class": TanhNormal, "return_log_prob": True, "log_prob_key": logp}
    actor = ProbabilisticActor(Sequential(features, normal), **keys, **drawn)
    critic = Sequential(features, Module(judge, [seen], [value]))
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.0)
    own = {"sample_log_prob": logp, "done": (group, "done"), "terminated": (group, "terminated")}
    loss.set_keys(reward=env.reward_key, action=env.action_key, value=value, **own)
    loss.make_value_estimator(gamma=0.99, lmbda=0.95)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    frames = options.worlds * options.decisions
    begun = time.process_time()
    kinds = {"frames_per_batch": frames, "total_frames": frames * options.iterations}
    collected = Collector(env, actor, auto_register_policy_transforms=False, **kinds)
    for iteration, data in enumerate(collected, 1):
        with torch.no_grad():
            loss.value_estimator(data)
        for part in (part for _ in range(4) for part in data[torch.randperm(len(data))].split(32)):
            parts = loss(part)
            optimizer.zero_grad()
            (parts["loss_objective"] + parts["loss_critic"]).backward()
            optimizer.step()
        if iteration % max(options.iterations // 10, 1) == 0:
            rate = env.robots * frames * iteration / (time.process_time() - begun)
            sums = dict(zip(env.kernel_spec.fields("stats"), env.read_stats()[0], strict=True))
            done = f"{sums['successes']:.0f} of {sums['episodes']:.0f} episodes succeeded"
            print(f"{iteration}: {rate:,.0f} robot-steps per CPU second, {done}")
            env.clear_stats()


if __name__ == "__main__":
    main()
