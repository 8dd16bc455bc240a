"""A controller of your own beside a policy, in the same episodes, and a figure of it.

python docs/examples/own_controller.py --policy pretrained/lookahead --output robots.png
"""

import argparse

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import Stage
from train_RL_agents import load_policy
from train_RL_agents.evaluation.against import compare
from train_RL_agents.evaluation.episodes import Evaluation


def careful(seen: Observation) -> Tensor:
    """Turn to the goal and drive, at half the speed where something is within 8 m ahead.

    Args:
        seen: of all robots, `[W, R, ...]`, in the body frame: x forward, y to starboard, metres.

    Returns:
        Thrust rates `[W, R, 2]` in [-1, 1], of the largest one, left and right.
    """
    goal_x, goal_y, u, _, yaw_rate, left, right = seen.ego.unbind(-1)
    ahead = (seen.mask > 0.5) & (seen.objects[..., 0] > 0.0)
    near = (ahead & (seen.objects[..., :2].norm(dim=-1) < 8.0)).any(-1)
    turn = 1.5 * torch.atan2(goal_y, goal_x) - 1.5 * yaw_rate
    wanted = torch.where(near, 1.25, 2.5) - u
    thrust = torch.stack((wanted + turn, wanted - turn), -1) * 500.0
    return ((thrust - torch.stack((left, right), -1)) / 500.0).clamp(-1.0, 1.0)


def main() -> None:
    """Print both, and the differences with their intervals; draw success by robots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="pretrained/lookahead", help="compare with this one")
    parser.add_argument("--robots", type=int, nargs="+", default=[2, 3, 4, 5], help="so many")
    parser.add_argument("--episodes", type=int, default=100, help="play so many of each")
    parser.add_argument("--output", default="robots.png", help="draw into this file")
    options = parser.parse_args()
    agent, config = load_policy(options.policy)
    if agent.discrete or config.stack_k > 1:
        parser.error(f"{options.policy} gives indices or sees several decisions: give another one")
    evaluation = Evaluation(
        [Stage(robots, 0, 0, 30.0) for robots in options.robots],
        [options.episodes] * len(options.robots),
        seed=1,
        config=config.env,
        discrete=False,
    )
    results = {"careful": evaluation.run(careful), options.policy: evaluation.run(agent.act)}
    for own, other in zip(*results.values(), strict=True):
        found = compare(own, other)  # paired: the same worlds
        gained = found["difference"]["success"]
        print(f"{own.label}: {own.success:.2f} and {other.success:.2f}, difference", end=" ")
        print(f"{gained['value']:.2f} {gained['ci95']}, McNemar's p {found['mcnemar_p']:.3f}")
    for name, rows in results.items():
        shares = [row.success for row in rows]
        bounds = [row.as_json()["success_ci95"] for row in rows]
        ends = [
            [p - low for p, (low, _) in zip(shares, bounds, strict=True)],
            [high - p for p, (_, high) in zip(shares, bounds, strict=True)],
        ]
        plt.errorbar(options.robots, shares, yerr=ends, marker="o", capsize=3, label=name)
    plt.xlabel("robots")
    plt.ylabel("success (95% interval)")
    plt.legend()
    plt.savefig(options.output, dpi=150)


if __name__ == "__main__":
    main()
