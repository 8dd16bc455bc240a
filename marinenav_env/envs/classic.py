"""Classic control tasks, to compare with other simulators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import torch

from marinenav_env.envs.base import KernelEnv
from marinenav_env.envs.checks import InfoMode
from marinenav_env.envs.spec import FlatObservation


@dataclass(frozen=True)
class CartPoleConfig:
    """Parameters of CartPole-v1 (Gymnasium's values, after Barto, Sutton and Anderson 1983)."""

    gravity: float = 9.8  # m/s^2
    cart_mass: float = 1.0  # kg
    pole_mass: float = 0.1  # kg
    half_length: float = 0.5  # m, half the pole's
    force: float = 10.0  # N
    dt: float = 0.02  # s, one step of Euler's method
    most_angle: float = 12 * 2 * math.pi / 360  # rad, beyond which the pole has fallen
    most_position: float = 2.4  # m, beyond which the cart has left the track
    start: float = 0.05  # m, m/s, rad, rad/s: every state begins within it

    def named_numbers(self, max_steps: int) -> Iterator[tuple[str, float]]:
        """Yield name and value of every parameter that the operators take."""
        yield from ((f"cartpole.{name}", float(value)) for name, value in asdict(self).items())
        yield from (("episode.max_steps", float(max_steps)), ("episode.stop_on_collision", 0.0))


class CartPoleEnv(KernelEnv):
    """W carts with a pole; batch size [W].

    TorchRL face: ``observation`` [W, 4k] (x, x_dot, theta, theta_dot), ``action`` [W] (int64, 1
    pushes to the right), ``reward`` [W, 1]. In float64 its states are Gymnasium's to the bit.
    See `KernelEnv`.

    Args:
        worlds: W.
        config: the physics.
        max_steps: decisions until truncation.
        device: "cpu" or "cuda".
        dtype: float32 or float64.
        seed: of the counter-based random numbers.
        first_world: global index of world 0.
        info_mode: "stats" sums finished episodes on the device; "none" does not.
        stack_k: observation frames, newest first.
        skip_reset_if_empty: see `ops.reset`.

    Raises:
        ConfigError: an option is impossible.
    """

    kernel = "cartpole"
    observation_type = FlatObservation
    entry_keys: ClassVar = {"state": "observation"}

    def __init__(
        self,
        worlds: int,
        *,
        config: CartPoleConfig | None = None,
        max_steps: int = 500,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        first_world: int = 0,
        info_mode: InfoMode = "stats",
        stack_k: int = 1,
        skip_reset_if_empty: bool = True,
    ) -> None:
        """See the class."""
        super().__init__(
            worlds,
            robots=1,
            params=(config or CartPoleConfig()).named_numbers(max_steps),
            sizes={"stages": 1},
            tables={"stage": [[1.0]]},
            discrete=True,
            device=device,
            dtype=dtype,
            seed=seed,
            first_world=first_world,
            info_mode=info_mode,
            stack_k=stack_k,
            skip_reset_if_empty=skip_reset_if_empty,
        )
