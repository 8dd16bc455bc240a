"""A short run of every operator in its variants, for compute-sanitizer (see gpu_check.sh).

It leaves torch's own kernels out as far as it can, so that what is found is the simulator's.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from typing import Any

import torch

from marinenav_env.envs.classic import CLASSIC
from marinenav_env.envs.make import ENVIRONMENTS, VESSEL_TASKS
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.scenes import AnyStage, Scene, SceneStage
from marinenav_env.kernel import ops
from marinenav_env.kernel import plans as plans_of
from marinenav_env.stepper import Stepper
from train_RL_agents.replay.buffer import DeviceReplay
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout

WORLDS = 33  # no multiple of a warp
STAGES = (Stage(3, 0, 0, 30.0), Stage(5, 4, 4, 40.0), Stage(2, 0, 6, 20.0))
DECISIONS = 6
BATCH = 50


MET = SceneStage(
    "two scenes",
    (
        Scene(((-20.0, 0.0, 20.0, 0.0, 0.0, 1.0), (20.0, 1.0, -20.0, 1.0, 3.1, 1.0))),
        Scene(((0.0, 0.0, 9.0, 9.0, 0.5, 0.0),), ((5.0, 2.0, 1.0),), ((0.0, 9.0, 4.0),), 2.0, 0.2),
    ),
)
ROUGH = {
    "stream": {"speed": [0.2, 0.4]},
    "wind": {"speed": [2.0, 6.0], "gust_std": 1.0},
    "waves": {"height": 0.2},
    "perception": {
        **{"noise_factor": [0.5, 2.0], "range_factor": [0.5, 1.0]},
        **{"miss": 0.1, "dropout": 0.1, "delay": 1.0},
    },
    "variation": {"mass": [0.8, 1.2], "left_thrust": [0.7, 1.0]},
    "thrusters": {"lag": 0.3, "loss_probability": 0.3, "loss_time": [0.0, 2.0]},
}
"""Every disturbance and fault: other kernels than those of calm water."""


def exercise(
    kind: type[MarineNavEnv] = MarineNavEnv,
    stages: Sequence[AnyStage] = STAGES,
    *,
    device: str,
    dtype: torch.dtype = torch.float32,
    discrete: bool = False,
    frames: int = 1,
    **options: Any,
) -> None:
    """Place worlds of all stages, take decisions, reset some, observe."""
    env = kind(
        WORLDS,
        stages=stages,
        discrete=discrete,
        device=device,
        dtype=dtype,
        stack_k=frames,
        **options,
    )
    env.set_stage((torch.arange(WORLDS) % len(stages)).to(device))
    stepper = Stepper(env)
    stepper.reset()
    action = env.make_action().cpu()
    if discrete:
        action = torch.randint_like(action, -1, env.kernel_spec.discrete + 1)  # some unusable
    else:
        action = action.uniform_(-2.0, 2.0)
        action[0, 0, 0] = torch.nan
    action = action.to(device)
    some = (torch.arange(WORLDS) % 3 == 0).to(device)
    for decision in range(DECISIONS):
        stepper.step(action)
        stepper.advance(some if decision % 2 else None)
    env.observe_into(stepper.now, some)
    if kind is MarineNavEnv and not options and dtype == torch.float32 and frames == 1:
        store(stepper, action)
        ops.water(env.state, torch.rand(WORLDS, 3, 2, device=device))
        noise, bias = torch.randn(WORLDS, 7, device=device), torch.zeros(7, device=device)
        ops.noisy_output(noise, ops.noisy_input(noise, noise), noise, bias, bias)
        look_ahead(env, stepper, action)


def store(stepper: Stepper, action: torch.Tensor) -> None:
    """Write a few rows of a replay, past its end, and draw some of them."""
    now = stepper.now
    replay = DeviceReplay(
        ReplayConfig(capacity=3 * now.alive.numel(), n_step=2),
        TransitionLayout.of(now.obs, action),
        action.device,
    )
    for _ in range(4):
        ended = now.terminated, now.truncated
        replay.store(now.obs, action, now.reward, now.acted, *ended, now.obs)
    replay.sample(BATCH)


def look_ahead(env: MarineNavEnv, stepper: Stepper, action: torch.Tensor) -> None:
    """Plan for every vessel, as the shield and the baselines do."""
    sight = tuple(part.flatten(0, 1) for part in stepper.now.obs)
    held = action.flatten(0, 1).unsqueeze(0).contiguous()
    plans_of.plan_and_observe(
        plans_of.packed_params(env.config),
        sight,
        held,
        plans_of.Plans.like(sight, 1),
        torch.ones_like(sight[2], dtype=torch.bool),
        closer=0.5,
        first=0,
        decisions=2,
    )


def unroll(device: str, dtype: torch.dtype, frames: int) -> None:
    """Take several decisions of classic tasks in one launch, over ends and new starts."""
    short: dict[str, Any] = {"episode": {"max_steps": 3}}
    for kind in CLASSIC:
        config = kind.config_type(**short)
        env = kind(WORLDS, config=config, device=device, dtype=dtype, stack_k=frames)
        now = env.make_buffers()
        env.reset_into(now)
        action = env.make_action().unsqueeze(0).expand(DECISIONS, *env.make_action().shape)
        env.unroll_into(action.contiguous(), now, env.make_buffers(DECISIONS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cuda", help="run on this device"
    )
    device = parser.parse_args(arguments).device
    variants = itertools.product((torch.float32, torch.float64), (False, True), (1, 2))
    for dtype, discrete, frames in variants:
        exercise(device=device, dtype=dtype, discrete=discrete, frames=frames)
        if not discrete:
            unroll(device, dtype, frames)
    for name in VESSEL_TASKS:
        exercise(ENVIRONMENTS[name], device=device, frames=2)
    exercise(device=device, config=ROUGH)
    exercise(stages=(MET,), device=device)
    counter = torch.arange(4 * WORLDS).reshape(WORLDS, 4).to(device)
    ops.philox(counter, (1, 2))
    if device == "cuda":
        torch.cuda.synchronize()
    print("ran")


if __name__ == "__main__":
    main()
