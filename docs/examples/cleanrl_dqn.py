"""A DQN in one file, in CleanRL's manner, on Gymnasium's vector face: CartPole.

python docs/examples/cleanrl_dqn.py --steps 60000
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from torch import nn

import marinenav_env.adapters.gymnasium  # noqa: F401 - registers the ids


def network() -> nn.Sequential:
    """Return a network of action values."""
    hidden = nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()
    return nn.Sequential(*hidden, nn.Linear(128, 2))


def main() -> None:
    """Train, then print the mean return of the last episodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60_000, help="take so many decisions in all")
    parser.add_argument("--worlds", type=int, default=16, help="collect in this many worlds")
    options = parser.parse_args()
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    envs = gymnasium.make_vec("marinenav/CartPole-v1", num_envs=options.worlds)
    q, target = network(), network()
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    rows = options.steps // options.worlds
    shapes = {"obs": (4,), "next": (4,), "action": (), "reward": (), "terminated": ()}
    replay = {name: torch.zeros(rows, options.worlds, *shape) for name, shape in shapes.items()}
    obs, _ = envs.reset(seed=0)
    returns, finished, begun = np.zeros(options.worlds), [], time.process_time()
    for row in range(rows):
        epsilon = max(0.05, 1.0 - 5.0 * row / rows)
        with torch.no_grad():
            greedy = q(torch.as_tensor(obs)).argmax(-1).numpy()
        chance = random.random(options.worlds) < epsilon
        action = np.where(chance, random.integers(2, size=options.worlds), greedy)
        following, reward, terminated, truncated, infos = envs.step(action)
        done = terminated | truncated
        last = following.copy()  # the true next observation, also where a world began anew
        if done.any():
            last[done] = infos["final_obs"][done]
        parts = {"obs": obs, "next": last, "action": action, "reward": reward}
        for name, part in {**parts, "terminated": terminated}.items():
            replay[name][row] = torch.as_tensor(part, dtype=torch.float32)
        returns += reward
        finished += returns[done].tolist()
        returns[done] = 0.0
        obs = following
        if row < 60:
            continue
        for _ in range(4):
            index = torch.randint(row + 1, (64,)), torch.randint(options.worlds, (64,))
            batch = {name: part[index] for name, part in replay.items()}
            with torch.no_grad():
                best = target(batch["next"]).max(-1).values
                goal = batch["reward"] + 0.99 * (1.0 - batch["terminated"]) * best
            value = q(batch["obs"]).gather(-1, batch["action"].long().unsqueeze(-1)).squeeze(-1)
            optimizer.zero_grad()
            nn.functional.smooth_l1_loss(value, goal).backward()
            optimizer.step()
            with torch.no_grad():
                torch._foreach_lerp_([*target.parameters()], [*q.parameters()], 0.02)
    rate = rows * options.worlds / (time.process_time() - begun)
    print(f"{rows * options.worlds:,} steps, {rate:,.0f} steps per CPU second with learning")
    print(f"mean return of the last 20 episodes, exploring: {np.mean(finished[-20:]):.0f}")


if __name__ == "__main__":
    main()
