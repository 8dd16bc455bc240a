"""The simulator's torch operators: their fake kernels, and typed wrappers.

Most operators change their arguments in place and return nothing, so a fake kernel has nothing to
compute; the schemas in `csrc/ops.cpp` mark what is written. One operator serves every environment:
it takes lists of tensors and checks them against the specification of the one it is asked for.
The wrappers call the one overload that there is, since torch searches for it otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from marinenav_env.build_record import find_library
from marinenav_env.kernel.spec import KernelSpec

if TYPE_CHECKING:
    from marinenav_env.kernel.state import State, StepBuffers


torch.ops.load_library(str(find_library(torch.__version__)))
_ops = torch.ops.marinenav
for _name in (
    *("step", "unroll", "reset", "observe", "water", "write_row", "plan_actions", "plan_courses"),
):
    torch.library.register_fake(f"marinenav::{_name}", lambda *_: None)

ROW_ALIGNMENT: int = _ops.row_alignment()
ENVIRONMENTS: tuple[str, ...] = tuple(_ops.environments().split())


@functools.cache
def describe(env: str) -> KernelSpec:
    """Return the specification of an environment.

    Raises:
        RuntimeError: no environment has this name.
    """
    return KernelSpec.parse(env, _ops.describe(env))


def has_cuda() -> bool:
    """Whether the CUDA half of the operators is compiled in."""
    return torch._C._dispatch_has_kernel_for_dispatch_key("marinenav::step", "CUDA")


def philox(counter: Tensor, key: tuple[int, int]) -> Tensor:
    """Philox4x32-10 words of counters.

    Args:
        counter: [N, 4] int64, each entry a 32-bit word; higher bits are left out, since looking
            at them would read the device.
        key: two 32-bit words.

    Returns:
        [N, 4] int64, each entry a 32-bit word.

    Raises:
        RuntimeError: the counter's shape or dtype is another, or the key exceeds 32 bits.
    """
    return _ops.philox.default(counter, *key)


@torch.library.register_fake("marinenav::philox")
def _philox_fake(counter: Tensor, key0: int, key1: int) -> Tensor:
    return torch.empty_like(counter)


def step(
    state: State,
    action: Tensor,
    previous: StepBuffers,
    out: StepBuffers,
    *,
    unroll: bool = False,
) -> None:
    """Take one decision in every world: motion, observation, reward, ends.

    Args:
        state: changed in place.
        action: [W, R, continuous] real in [-1, 1], or [W, R] int64 indices.
        previous: holds the observation before the step (read for older frames only).
        out: written whole; `out.obs` is the true next observation.
        unroll: take a decision for each row of the action in one launch, finished worlds placed
            anew after each (see `KernelEnv.unroll_into`), where the environment offers it.

    Raises:
        RuntimeError: the environment does not offer it, or a tensor does not fit.
    """
    (_ops.unroll if unroll else _ops.step).default(
        state.env,
        state.changing,
        state.tables,
        action,
        previous.frame_list,
        out.frame_list,
        out.result_list,
        *state.context,
    )


def reset(state: State, only: Tensor | None, out: StepBuffers, *, skip_if_empty: bool) -> None:
    """Place worlds anew and observe them.

    Args:
        state: changed in place.
        only: [W] bool, the worlds to place; None for all. Other worlds' rows stay untouched.
        out: only the observation rows of the placed worlds and their rows of `alive` are written.
        skip_if_empty: look at `only` first and launch nothing if it is all False (CPU; on CUDA
            the host may not look, so the kernels always run and each thread leaves at once).
    """
    _ops.reset.default(
        state.env,
        state.changing,
        state.tables,
        only,
        out.frame_list,
        out.alive,
        *state.context,
        skip_if_empty,
    )


def observe(state: State, only: Tensor | None, out: StepBuffers) -> None:
    """Write the observation of worlds as they stand (arguments as in `reset`).

    Sensor noise depends on the world, episode, step and robot only, so this gives the numbers that
    the step before gave, but for two: robots that ended in that step are gone, and a robot whose
    neighbours are shown late (`perception.delay`) sees them where they are. Older frames repeat the
    present one.
    """
    _ops.observe.default(
        state.env, state.changing, state.tables, only, out.frame_list, *state.context
    )


def write_row(rings: Sequence[tuple[Tensor, Sequence[Tensor]]], position: Tensor) -> None:
    """Write a row of rings in one launch.

    Args:
        rings: each [rows, W, R, width] with the tensors [W, R, ...] that stand side by side in its
            row, of its type; their numbers add up to its width. A view of the same places of
            every robot is read where it lies; of one in other disorder a copy is made.
        position: int64 [1], the row to write; on the device, so that it may change between replays
            of a captured graph.

    Raises:
        RuntimeError: a tensor does not fit.
    """
    parts = [part for _, side_by_side in rings for part in side_by_side]
    counts = [len(side_by_side) for _, side_by_side in rings]
    _ops.write_row.default([ring for ring, _ in rings], parts, counts, position)


def find_slots(levels: Sequence[Tensor], running: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Find slots by running sums of their weights.

    Args:
        levels: int64, of slots' weights first; each next one holds the sums of blocks of 64.
        running: int64 [N], running sums of the last level.
        target: int64 [B], each less than the sum of all weights.

    Returns:
        the first slots with which the running sum of weights passes the targets, slot 0 for a
        negative one, and their weights, int64 [B] each.

    Raises:
        RuntimeError: a tensor does not fit.
    """
    return _ops.find_slots.default(levels, running, target.contiguous())


@torch.library.register_fake("marinenav::find_slots")
def _find_slots_fake(
    levels: Sequence[Tensor], running: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(target), torch.empty_like(target)


def windows(
    index: Tensor, flags: Tensor, reward: Tensor, position: Tensor, discounts: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Look ahead of transitions, as far as their episodes and the ring reach.

    Args:
        index: int64 [B], slots of all rows, from 0 to T W R - 1, which nobody checks.
        flags: bool [T, W, R, 3], whether the robot acted, terminated, was truncated.
        reward: [T, W, R].
        position: int64 [1], the row that is written next.
        discounts: [n + 1], of the reward's type, the powers of gamma.

    Returns:
        the discounted rewards [B, n], 0 behind the window; and the last decision's slot, int64,
        and the discount of what follows, 0 after a termination, [B] each.

    Raises:
        RuntimeError: a tensor does not fit.
    """
    return _ops.windows.default(index.contiguous(), flags, reward, position, discounts)


@torch.library.register_fake("marinenav::windows")
def _windows_fake(
    index: Tensor, flags: Tensor, reward: Tensor, position: Tensor, discounts: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    terms = reward.new_empty(index.shape[0], discounts.shape[0] - 1)
    return terms, torch.empty_like(index), reward.new_empty(index.shape)


def noisy_input(noise: Tensor, x: Tensor) -> Tensor:
    """Return f(noise) x, where f(e) = sign(e) sqrt(|e|), in one pass on a GPU.

    Neither this nor `noisy_output` has a gradient. Fortunato et al. 2018, "Noisy Networks for
    Exploration", eq. 10 and 11.

    Args:
        noise: [..., I], normal, float32.
        x: [..., I], float32 or bfloat16.

    Returns:
        [..., I], float32.

    Raises:
        RuntimeError: a tensor does not fit, or they are too large for one launch.
    """
    return _ops.noisy_input.default(noise, x)


def noisy_output(
    noise: Tensor, spread: Tensor, mean: Tensor, bias_spread: Tensor, bias: Tensor
) -> Tensor:
    """Return mean + f(noise) spread + bias + f(noise) bias_spread, in one pass on a GPU.

    Args:
        noise: [..., O], normal, float32.
        spread: [..., O], the product of the weights' noise, float32 or bfloat16.
        mean: [..., O], the product of the weights, likewise.
        bias_spread: [O], float32.
        bias: [O], float32.

    Returns:
        [..., O], float32.

    Raises:
        RuntimeError: as `noisy_input`.
    """
    return _ops.noisy_output.default(noise, spread, mean, bias_spread, bias)


@torch.library.register_fake("marinenav::noisy_input")
@torch.library.register_fake("marinenav::noisy_output")
def _noisy_fake(noise: Tensor, *others: Tensor) -> Tensor:
    return torch.empty_like(noise)


def water(state: State, position: Tensor) -> Tensor:
    """Return the velocity of the water.

    Args:
        state: of a marine environment.
        position: [W, N, 2], x and y in m.

    Returns:
        [W, N, 2] in m/s, world frame.

    Raises:
        RuntimeError: the environment has no water, or the positions another shape.
    """
    velocity = torch.empty_like(position)
    _ops.water.default(
        state.env, state.changing, state.tables, position, velocity, state.context.params
    )
    return velocity
