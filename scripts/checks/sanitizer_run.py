"""A short run of every operator in its variants, for compute-sanitizer (see gpu_check.sh).

It leaves torch's own kernels out as far as it can, so that what is found is the simulator's.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence

import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper

WORLDS = 33  # no multiple of a warp
STAGES = (Stage(3, 0, 0, 30.0), Stage(5, 4, 4, 40.0), Stage(2, 0, 6, 20.0))
DECISIONS = 6


def exercise(device: str, dtype: torch.dtype, discrete: bool, frames: int) -> None:
    """Place worlds of all stages, take decisions, reset some, observe."""
    env = MarineNavEnv(
        WORLDS,
        stages=STAGES,
        discrete=discrete,
        device=device,
        dtype=dtype,
        stack_k=frames,
    )
    env.set_stage((torch.arange(WORLDS) % len(STAGES)).to(device))
    stepper = Stepper(env)
    stepper.reset()
    shape = (WORLDS, env.robots) if discrete else (WORLDS, env.robots, 2)
    if discrete:
        action = torch.randint(-1, 26, shape).to(device)  # unusable ones among them
    else:
        action = torch.empty(shape, dtype=dtype).uniform_(-2.0, 2.0)
        action[0, 0, 0] = torch.nan
        action = action.to(device)
    some = (torch.arange(WORLDS) % 3 == 0).to(device)
    for decision in range(DECISIONS):
        stepper.step(action)
        stepper.advance(some if decision % 2 else None)
    env.observe_into(stepper.now, some)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    device = parser.parse_args(arguments).device
    variants = itertools.product((torch.float32, torch.float64), (False, True), (1, 2))
    for dtype, discrete, frames in variants:
        exercise(device, dtype, discrete, frames)
    counter = torch.arange(4 * WORLDS).reshape(WORLDS, 4).to(device)
    ops.philox(counter, (1, 2))
    if device == "cuda":
        torch.cuda.synchronize()
    print("ran")


if __name__ == "__main__":
    main()
