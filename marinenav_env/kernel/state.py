"""Tensors of an environment, allocated by its specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marinenav_env.kernel import ops

WORLD_RUNNING, WORLD_TERMINATED, WORLD_TRUNCATED = 0, 1, 2
"""How a world's episode stands (`csrc/kernel/worlds.h`)."""


class Context(NamedTuple):
    """What an operator needs besides tensors.

    Attributes:
        params: from `KernelSpec.pack`, on the host.
        seed: 64 random-number key bits as a signed integer.
        first_world: global index of world 0, so that ranks and batches draw different numbers.
    """

    params: Tensor
    seed: int
    first_world: int


class State:
    """All state of W worlds; rows [field, slot, world], padded (see `csrc/kernel/worlds.h`).

    Its tensors are attributes under their names in the specification, for instance `state.robot`.
    A new state is zeroed: no world has a robot, and every episode is over, until it is reset.

    Args:
        env: name of the environment in the core.
        sizes: extents that the specification leaves open, besides the worlds'.
        tables: values of the tensors that only the configuration changes, by name.
        context: parameters, seed and first world.
        worlds: W.
        statistics: whether finished episodes are summed.
        device: of all tensors.
        dtype: of the real ones.

    Attributes:
        changing: the tensors that operators write, in their order.
        tables: those that they only read.
    """

    def __init__(
        self,
        env: str,
        sizes: Mapping[str, int],
        tables: Mapping[str, Any],
        context: Context,
        *,
        worlds: int,
        statistics: bool,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.env, self.context, self.spec = env, context, ops.describe(env)
        stride = -(-worlds // ops.ROW_ALIGNMENT) * ops.ROW_ALIGNMENT
        sizes = {**sizes, "stride": stride}
        dtypes = {"real": dtype, "int": torch.int32, "bool": torch.bool}
        self._tensors = {
            t.name: torch.zeros(t.sized(sizes), device=device, dtype=dtypes[t.number])
            for t in self.spec.state
        }
        if not statistics:
            self._tensors["stats"] = torch.zeros(0, device=device, dtype=dtype)
        # A running world without a robot would end, and be booked, in its first step.
        self.world_field("end").fill_(WORLD_TERMINATED)
        self.changing = list(self._tensors.values())
        self.tables = [
            torch.as_tensor(tables[t.name], device=device, dtype=dtype) for t in self.spec.tables
        ]
        self._tensors |= {t.name: x for t, x in zip(self.spec.tables, self.tables, strict=True)}

    def __getattr__(self, name: str) -> Tensor:
        """Return the tensor of that name."""
        tensors = self.__dict__.get("_tensors", {})
        if name not in tensors:
            raise AttributeError(f"no state tensor is called {name!r}: there are {list(tensors)}")
        return tensors[name]

    def copy_worlds_of(self, source: State, worlds: int, copies: int) -> None:
        """Take over all worlds of another state of the task, so many times one after another.

        Statistics are left as they are.

        Args:
            source: whose robots, objects and stages are as many.
            worlds: how many it has.
            copies: of each; this state has room for all of them.
        """
        for name, taken in source.named().items():
            if name != "stats":
                own = self._tensors[name][..., : copies * worlds].unflatten(-1, (copies, worlds))
                own.copy_(taken[..., :worlds].unsqueeze(-2))

    def named(self) -> dict[str, Tensor]:
        """Return the tensors that change by name."""
        return {t.name: self._tensors[t.name] for t in self.spec.state}

    def field(self, tensor: str, name: str) -> Tensor:
        """View a field of a tensor: [..., stride]."""
        return self._tensors[tensor][self.spec.fields(tensor).index(name)]

    def robot_field(self, name: str) -> Tensor:
        """View [R, stride] of a robot field."""
        return self.field("robot", name)

    def world_field(self, name: str) -> Tensor:
        """View [stride] of a world field."""
        return self.field("world", name)


@dataclass(frozen=True)
class StepBuffers:
    """What a step writes; two of them serve a training loop in turn.

    `frames` holds the observation as [W, R, frames, ...]; `obs` views the same memory with the
    frames folded into what follows them. Both are of the environment's observation type. What
    several decisions in one launch write has a further extent in front, the turns.
    """

    frames: Any
    obs: Any
    frame_list: list[Tensor]  # entries of `frames` in the operators' order
    reward: Tensor  # [W, R] real, 0 where the robot did not act
    acted: Tensor  # [W, R] bool, robots that acted in this step
    terminated: Tensor  # [W, R] bool, ended in this step
    truncated: Tensor  # [W, R] bool, acted, did not terminate, but their world ended
    done: Tensor  # [W] bool, the world's episode is over
    world_terminated: Tensor  # [W] bool
    world_truncated: Tensor  # [W] bool
    alive: Tensor  # [W, R] bool, the environment's: robots that act in the coming decision
    result_list: list[Tensor]  # what a step writes besides the observation, in that order too

    @staticmethod
    def allocate(
        env: str,
        observation: Callable[..., Any],
        alive: Tensor,
        stack_k: int,
        *,
        dtype: torch.dtype,
    ) -> StepBuffers:
        """Return zeroed buffers.

        Args:
            env: name of the environment in the core.
            observation: makes an observation of its entries by name.
            alive: [W, R] or [turns, W, R] bool, kept; its device and turns are the buffers'.
            stack_k: observation frames.
            dtype: of real tensors.
        """
        *turns, worlds, robots = alive.shape
        device, spec = alive.device, ops.describe(env)
        sizes = {"worlds": worlds, "robots": robots, "frames": stack_k}
        dtypes = {"real": dtype, "bool": torch.bool}
        frames = {
            t.name: torch.zeros(*turns, *t.sized(sizes), device=device, dtype=dtype)
            for t in spec.observation
        }
        results = {
            t.name: torch.zeros(*turns, *t.sized(sizes), device=device, dtype=dtypes[t.number])
            for t in spec.results
        }
        results["alive"] = alive
        at = len(turns) + 2
        folded = {name: entry.flatten(at, at + 1) for name, entry in frames.items()}
        return StepBuffers(
            observation(**frames),
            observation(**folded),
            list(frames.values()),
            result_list=list(results.values()),
            **results,
        )
