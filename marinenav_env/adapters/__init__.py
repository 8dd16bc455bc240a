"""The environments as other libraries know them: Gymnasium, PettingZoo, Stable-Baselines3.

`register` gives them to Gymnasium by name, as importing `marinenav_env.adapters.gymnasium` does.
"""

from __future__ import annotations

IDS = {
    "marinenav/Marine-v0": "marine",
    "marinenav/Icra2024-v0": "icra2024",
    "marinenav/MarineSectors-v0": "marine_sectors",
    "marinenav/MarineBeams-v0": "marine_beams",
    "marinenav/CartPole-v1": "cartpole",
    "marinenav/Pendulum-v1": "pendulum",
    "marinenav/MountainCar-v0": "mountain_car",
    "marinenav/MountainCarContinuous-v0": "mountain_car_continuous",
}
"""Gymnasium's ids, and the environments that they stand for."""

THRESHOLDS = {
    "marinenav/CartPole-v1": 475.0,
    "marinenav/MountainCar-v0": -110.0,
    "marinenav/MountainCarContinuous-v0": 90.0,
}
"""Returns from which on Gymnasium calls a task solved; of the others it names none."""


def register() -> None:
    """Register every id, for `gymnasium.make` and `gymnasium.make_vec`; imports no torch."""
    import gymnasium

    module = "marinenav_env.adapters.gymnasium"
    for name, task in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=f"{module}:GymEnv",
                vector_entry_point=f"{module}:GymVectorEnv",
                kwargs={"task": task},
                reward_threshold=THRESHOLDS.get(name),
                disable_env_checker=True,
            )
