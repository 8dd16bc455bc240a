"""The simulator's torch operators: typed wrappers with their fake kernels side by side.

The operators change their arguments in place and return nothing, so a fake kernel has nothing to
compute; the schemas in `csrc/ops.cpp` mark what is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig

if TYPE_CHECKING:
    from marinenav_env.envs.state import Context, SimulatorState, StepBuffers


def _load_library() -> None:
    folder = Path(__file__).resolve().parents[1]
    libraries = sorted(folder.glob("_ops*.so"))
    if not libraries:
        raise ImportError(
            f"marinenav's operators are not built (no _ops*.so in {folder}): run `make` in the"
            " project's folder, or `pip install --no-build-isolation -e .`"
        )
    torch.ops.load_library(str(libraries[0]))


_load_library()
_ops = torch.ops.marinenav


PARAM_NAMES: tuple[str, ...] = tuple(_ops.param_names().split())
"""Parameters in the order in which the operators take them."""


def pack_params(named: Iterable[tuple[str, float]]) -> list[float]:
    """Return parameters as the operators take them.

    Args:
        named: name and value of every parameter of `PARAM_NAMES`, in any order.

    Raises:
        ImportError: the operators know other parameters.
    """
    values = dict(named)
    strange = sorted(set(values).symmetric_difference(PARAM_NAMES))
    if strange:
        raise ImportError(
            "marinenav's operators were built from another version of the parameters (only one side"
            f" knows {strange[:3]}): run `make` to rebuild them"
        )
    return [values[name] for name in PARAM_NAMES]


pack_params(EnvConfig().named_numbers())  # fails at import, not at the first environment

ROW_ALIGNMENT: int = _ops.row_alignment()
NOISE_TABLE_SIZE: int = _ops.noise_table_size()


def field_names(of: str) -> tuple[str, ...]:
    """Names of the fields of the state tensor `of`: robot, world, outcome, stats or stage."""
    return tuple(_ops.field_names(of).split())


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
    return _ops.philox(counter, *key)


@torch.library.register_fake("marinenav::philox")
def _philox_fake(counter: Tensor, key0: int, key1: int) -> Tensor:
    return torch.empty_like(counter)


def step(
    state: SimulatorState,
    action: Tensor,
    previous: StepBuffers,
    out: StepBuffers,
    alive: Tensor,
    context: Context,
) -> None:
    """One decision of every world: motion, observation, reward, ends.

    Args:
        state: changed in place.
        action: [W, R, 2] real in [-1, 1], or [W, R] int64 in 0..24.
        previous: holds the observation before the step (read for older frames only).
        out: written whole; `out.obs` is the true next observation.
        alive: [W, R] bool, written: robots that act in the coming decision.
        context: parameters, seed and first world.
    """
    _ops.step(
        *state.tensors(),
        action,
        *previous.frames,
        *out.frames,
        out.reward,
        out.acted,
        out.terminated,
        out.truncated,
        alive,
        out.done,
        out.world_terminated,
        out.world_truncated,
        context.params,
        context.seed,
        context.first_world,
    )


@torch.library.register_fake("marinenav::step")
def _step_fake(*_: object) -> None:
    return None


def reset(
    state: SimulatorState,
    only: Tensor | None,
    out: StepBuffers,
    alive: Tensor,
    context: Context,
    *,
    skip_if_empty: bool,
) -> None:
    """Places worlds anew and observes them.

    Args:
        state: changed in place.
        only: [W] bool, the worlds to place; None for all. Other worlds' rows stay untouched.
        out: only the observation rows of the placed worlds are written.
        alive: [W, R] bool, rows of the placed worlds written.
        context: parameters, seed and first world.
        skip_if_empty: look at `only` first and launch nothing if it is all False (CPU; on CUDA
            the host may not look, so the kernels always run and each thread leaves at once).
    """
    _ops.reset(
        *state.tensors(),
        only,
        *out.frames,
        alive,
        context.params,
        context.seed,
        context.first_world,
        skip_if_empty,
    )


@torch.library.register_fake("marinenav::reset")
def _reset_fake(*_: object) -> None:
    return None


def observe(state: SimulatorState, only: Tensor | None, out: StepBuffers, context: Context) -> None:
    """Writes the observation of worlds as they stand (arguments as in `reset`).

    Sensor noise depends on the world, episode, step and robot only, so this gives the numbers
    that the step before gave; older frames repeat the present one.
    """
    _ops.observe(
        *state.tensors(),
        only,
        *out.frames,
        context.params,
        context.seed,
        context.first_world,
    )


@torch.library.register_fake("marinenav::observe")
def _observe_fake(*_: object) -> None:
    return None
