"""Stable-Baselines3's PPO on one vessel among four buoys, many worlds at once.

python docs/examples/sb3_ppo.py --steps 4000000
"""

import argparse
import time

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from marinenav_env.adapters.convert import ALONE
from marinenav_env.adapters.gymnasium import GymVectorEnv
from marinenav_env.adapters.stable_baselines3 import SB3VecEnv

TRAINING = {"stages": ALONE, "ended": "anew", "config": {"episode": {"max_steps": 300}}}


def success(model: PPO, scaled: VecNormalize, worlds: int) -> float:
    """Return the share of first episodes in which the vessel reaches its goal without contact."""
    env = GymVectorEnv(worlds, **TRAINING)
    obs, _ = env.reset(seed=1_000_000)
    running, reached = np.ones(worlds, dtype=bool), np.zeros(worlds, dtype=bool)
    while running.any():
        action, _ = model.predict(scaled.normalize_obs(obs), deterministic=True)
        obs, _, terminated, truncated, _ = env.step(action)
        over = terminated | truncated
        goal = env.env.outcome["success"].numpy() > 0  # of each world's last finished episode
        reached |= running & over & goal
        running &= ~over
    return float(reached.mean())


def main() -> None:
    """Train, evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400_000, help="take so many decisions in all")
    parser.add_argument("--worlds", type=int, default=64, help="collect in this many worlds")
    parser.add_argument("--episodes", type=int, default=200, help="evaluate in this many episodes")
    options = parser.parse_args()
    env = VecMonitor(SB3VecEnv(GymVectorEnv(options.worlds, **TRAINING)))
    env = VecNormalize(env, norm_obs_keys=["self", "objects"])
    model = PPO(
        "MultiInputPolicy",
        env,
        n_steps=128,
        batch_size=1024,
        n_epochs=5,
        learning_rate=lambda left: 1e-3 * left,  # of the run
        ent_coef=0.001,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    begun = time.process_time()
    model.learn(options.steps)
    rate = model.num_timesteps / (time.process_time() - begun)
    print(f"{model.num_timesteps:,} steps, {rate:,.0f} steps per CPU second with learning")
    print(f"success {success(model, env, options.episodes):.2f} in {options.episodes} episodes")


if __name__ == "__main__":
    main()
