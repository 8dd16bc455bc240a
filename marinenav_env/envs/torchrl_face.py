"""The simulator as TorchRL knows it: specifications, steps and resets that give TensorDicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from marinenav_env.envs.checks import InfoMode
from marinenav_env.envs.spec import EnvSpec
from marinenav_env.kernel.spec import KernelSpec
from marinenav_env.kernel.state import (
    WORLD_RUNNING,
    WORLD_TERMINATED,
    WORLD_TRUNCATED,
    State,
    StepBuffers,
)


class TorchRLFace(EnvBase):
    """`step` returns fresh tensors with the true next observation; batch size [W].

    A finished world stays as it is until it is reset. A subclass with a `group` holds its robots
    there, batch [W, R]; without one a world has one robot, and its entries stand at the root, batch
    [W]. ``done``, ``terminated`` and ``truncated`` [W, 1] belong to the world.

    A subclass simulates, and calls `_make_specs` once it can.
    """

    info_fields: ClassVar[tuple[str, ...]] = ()

    worlds: int
    robots: int
    discrete: bool
    real_dtype: torch.dtype
    info_mode: InfoMode
    stack_k: int
    alive: Tensor
    kernel_spec: KernelSpec
    description: EnvSpec
    _state: State
    # What the subclass does; `KernelEnv` describes it.
    make_buffers: Callable[[], StepBuffers]
    reset_into: Callable[..., None]
    step_into: Callable[..., None]
    observe_into: Callable[..., None]

    @property
    def group(self) -> str | None:
        """Key of the robots' entries; None puts them at the root."""
        return self.description.group

    @property
    def entry_keys(self) -> dict[str, str]:
        """Keys of the observation's entries, by their names in the core."""
        observation = self.description.observation
        return dict(zip(observation.shapes._fields, observation.keys, strict=True))

    @property
    def _lead(self) -> tuple[int, ...]:
        """Batch size of a robot's entries."""
        return (self.worlds, self.robots) if self.group else (self.worlds,)

    def _own(self, tensor: Tensor) -> Tensor:
        """Give a tensor [W, R, ...] the batch size of a robot's entries."""
        return tensor if self.group else tensor.squeeze(1)

    def _make_specs(self) -> None:
        place = {"device": self.device}

        def real(*shape: int) -> Unbounded:
            return Unbounded((*self._lead, *shape), dtype=self.real_dtype, **place)

        def flag(*shape: int) -> Categorical:
            return Categorical(2, shape=shape, dtype=torch.bool, **place)

        def nested(entries: dict[str, Any]) -> Composite:
            if self.group:
                entries = {self.group: Composite(entries, shape=self._lead, **place)}
            return Composite(entries, shape=(self.worlds,), **place)

        obs = self.make_buffers().obs._asdict()
        entries: dict[str, Any] = {
            key: real(*obs[name].shape[2:]) for name, key in self.entry_keys.items()
        }
        if self.group:
            entries |= {"alive": flag(*self._lead), "robot_terminated": flag(*self._lead)}
        if self.info_mode == "full":
            info = {name: real() for name in self.info_fields}
            entries["info"] = Composite(info, shape=self._lead, **place)
        action: Categorical | Bounded
        if self.discrete:
            action = Categorical(
                self.kernel_spec.discrete, shape=self._lead, dtype=torch.int64, **place
            )
        else:
            shape = (*self._lead, self.kernel_spec.continuous)
            action = Bounded(-1.0, 1.0, shape=shape, dtype=self.real_dtype, **place)
        self.observation_spec = nested(entries)
        self.action_spec = nested({"action": action})
        self.reward_spec = nested({"reward": real(1)})
        self.done_spec = Composite(
            {name: flag(self.worlds, 1) for name in ("done", "terminated", "truncated")},
            shape=(self.worlds,),
            **place,
        )

    @property
    def group_map(self) -> dict[str, list[str]]:
        """Robots by group, as TorchRL's multi-agent tools and BenchMARL ask for them."""
        names = [f"robot_{i}" for i in range(self.robots)]
        return {self.group: names} if self.group else {}

    def _face(self, obs: Any, terminated: Tensor, **more: Tensor) -> dict[str, Any]:
        """Return what a step or reset gives of the robots, [W, R, ...] tensors nested."""
        named = obs._asdict()
        entries: dict[str, Any] = {
            key: self._own(named[name]) for name, key in self.entry_keys.items()
        }
        if self.group:
            entries |= {"alive": self.alive.clone(), "robot_terminated": terminated}
        if self.info_mode == "full":
            info = {
                name: self._own(self._state.robot_field(name)[:, : self.worlds].T.contiguous())
                for name in self.info_fields
            }
            entries["info"] = TensorDict(info, batch_size=self._lead)
        entries |= {name: self._own(tensor) for name, tensor in more.items()}
        if not self.group:
            return entries
        return {self.group: TensorDict(entries, batch_size=self._lead, device=self.device)}

    def _buffers_from(self, tensordict: TensorDictBase) -> StepBuffers:
        """Return buffers holding a copy of the observation in a TensorDict."""
        out = self.make_buffers()
        for name, key in self.entry_keys.items():
            self._own(getattr(out.obs, name)).copy_(tensordict[self.description.key(key)])
        return out

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        out = self.make_buffers()
        previous = self._buffers_from(tensordict) if self.stack_k > 1 else out
        action = tensordict[self.description.key("action")]
        self.step_into(action if self.group else action.unsqueeze(1), previous, out)
        ends = {
            "done": out.done.unsqueeze(-1),
            "terminated": out.world_terminated.unsqueeze(-1),
            "truncated": out.world_truncated.unsqueeze(-1),
        }
        robots = self._face(out.obs, out.terminated, reward=out.reward.unsqueeze(-1))
        return TensorDict({**robots, **ends}, batch_size=self.batch_size, device=self.device)

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDict:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        terminated = torch.zeros_like(self.alive)
        first_entry = self.description.key(next(iter(self.entry_keys.values())))
        if tensordict is None or mask is None:
            out = self.make_buffers()
        elif first_entry in tensordict.keys(include_nested=True):
            out = self._buffers_from(tensordict)
            if self.group:
                terminated = tensordict[self.description.key("robot_terminated")] & ~mask
        else:
            out = self.make_buffers()
            self.observe_into(out)
        self.reset_into(out, None if mask is None else mask.flatten().contiguous())
        end = self._state.world_field("end")[: self.worlds].unsqueeze(-1)
        ends = {
            "done": end != WORLD_RUNNING,
            "terminated": end == WORLD_TERMINATED,
            "truncated": end == WORLD_TRUNCATED,
        }
        robots = self._face(out.obs, terminated)
        return TensorDict({**robots, **ends}, batch_size=self.batch_size, device=self.device)
