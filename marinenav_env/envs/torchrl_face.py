"""The simulator as TorchRL knows it: specifications, steps and resets that give TensorDicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from marinenav_env.envs.checks import InfoMode
from marinenav_env.envs.spec import EnvSpec
from marinenav_env.fields import ConfigError
from marinenav_env.kernel.spec import KernelSpec
from marinenav_env.kernel.state import (
    WORLD_RUNNING,
    WORLD_TERMINATED,
    WORLD_TRUNCATED,
    State,
    StepBuffers,
)

ENDS = ("done", "terminated", "truncated")


class TorchRLFace(EnvBase):
    """`step` returns fresh tensors with the true next observation; batch size [W].

    A finished world stays as it is until it is reset. A subclass with a `group` holds its robots
    there, batch [W, R]; without one a world has one robot, and its entries stand at the root, batch
    [W]. ``done``, ``terminated`` and ``truncated`` [W, 1] belong to the world, those of the group
    [W, R, 1] to each robot: one that has ended stays so until its world is reset, and a slot
    without a robot is one that has terminated. What resets is the world, as TorchRL has it: flags
    of the root prevail.

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
            entries["alive"] = flag(*self._lead)
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
        ends: dict[str, Any] = {name: flag(self.worlds, 1) for name in ENDS}
        if self.group:
            own = {name: flag(*self._lead, 1) for name in ENDS}
            ends[self.group] = Composite(own, shape=self._lead, **place)
        self.done_spec = Composite(ends, shape=(self.worlds,), **place)

    @property
    def group_map(self) -> dict[str, list[str]]:
        """Robots by group, as TorchRL's multi-agent tools and BenchMARL ask for them."""
        names = [f"robot_{i}" for i in range(self.robots)]
        return {self.group: names} if self.group else {}

    @cached_property
    def _seen(self) -> StepBuffers:
        """Where older frames come from: what was shown last. A caller may change its copy."""
        return self._observed()

    def _observed(self) -> StepBuffers:
        """Return buffers with the worlds as they stand."""
        out = self.make_buffers()
        self.observe_into(out)
        return out

    @cached_property
    def _was_truncated(self) -> Tensor:
        """Robots [W, R] that their world's end has truncated."""
        return torch.zeros_like(self.alive)

    @property
    def _shows(self) -> bool:
        """Whether a step or reset was asked for here."""
        return "_was_truncated" in self.__dict__

    def _shown(self) -> dict[str, Tensor]:
        """Return what changes here, by name."""
        seen = self._seen.frame_list if self.stack_k > 1 else []
        frames = {f"seen_{i}": entry for i, entry in enumerate(seen)}
        return {**frames, "was_truncated": self._was_truncated}

    def _show_anew(self) -> None:
        """See the worlds as they stand, where nothing says what was seen before."""
        self.__dict__.pop("_seen", None)
        self.__dict__.pop("_was_truncated", None)

    def _face(self, out: StepBuffers, ends: dict[str, Tensor], **more: Tensor) -> TensorDict:
        """Return what a step or reset gives, and keep what the next one needs of it.

        Args:
            out: what it wrote.
            ends: flags [W, 1] of the worlds.
            **more: further entries of the robots [W, R, ...].
        """
        if self.stack_k > 1:
            for kept, shown in zip(self._seen.frame_list, out.frame_list, strict=True):
                kept.copy_(shown)
        named = out.obs._asdict()
        entries: dict[str, Any] = {
            key: self._own(named[name]) for name, key in self.entry_keys.items()
        }
        if self.info_mode == "full":
            fields = {n: self._state.robot_field(n)[:, : self.worlds].T for n in self.info_fields}
            # A copy: of one robot the transposed field is in order, and would be the state itself.
            info = {
                name: self._own(field.clone(memory_format=torch.contiguous_format))
                for name, field in fields.items()
            }
            entries["info"] = TensorDict(info, batch_size=self._lead)
        entries |= {name: self._own(tensor) for name, tensor in more.items()}
        result: dict[str, Any] = {**ends}
        if self.group:
            ended, truncated = ~self.alive, self._was_truncated.clone()
            flags = zip(ENDS, (ended, ended ^ truncated, truncated), strict=True)
            entries |= {name: flag.unsqueeze(-1) for name, flag in flags}
            entries["alive"] = self.alive.clone()
            result[self.group] = TensorDict(entries, batch_size=self._lead, device=self.device)
        else:
            result |= entries
        return TensorDict(result, batch_size=self.batch_size, device=self.device)

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        action = tensordict[self.description.key("action")]
        if action.is_floating_point() == self.discrete:
            kind = "indices (int64)" if self.discrete else f"numbers ({self.real_dtype})"
            raise ConfigError(
                f"the action's dtype is {action.dtype}, and this environment takes {kind} of shape "
                f"{tuple(self.action_spec.shape)}: give those, or make it with "
                f"discrete={not self.discrete}"
            )
        out = self.make_buffers()
        previous = self._seen if self.stack_k > 1 else out
        self.step_into(action if self.group else action.unsqueeze(1), previous, out)
        self._was_truncated.logical_or_(out.truncated)
        flags = (out.done, out.world_terminated, out.world_truncated)
        ends = {name: flag.unsqueeze(-1) for name, flag in zip(ENDS, flags, strict=True)}
        return self._face(out, ends, reward=out.reward.unsqueeze(-1))

    def _reset(
        self,
        tensordict: TensorDictBase | None = None,
        *,
        seed: int | None = None,
        **unknown: object,
    ) -> TensorDict:
        if unknown:
            raise TypeError(
                f"reset() got an unexpected keyword argument {next(iter(unknown))!r}: it takes "
                "`seed`; `set_stage` sets what the next episodes begin with"
            )
        if seed is not None:
            self._set_seed(seed)
        given: Any = {} if tensordict is None else tensordict
        mask, own = given.get("_reset", None), self.description.key("_reset")
        if mask is None and given.get(own, None) is not None:
            raise ConfigError(
                f"the TensorDict has {own} and no '_reset': worlds are reset, not single robots; "
                f"give '_reset' of shape {(self.worlds, 1)}"
            )
        if mask is None:
            out = self.make_buffers()
            self._was_truncated.zero_()
        else:
            mask = mask.flatten().contiguous()
            out = self._observed()
            if self.stack_k > 1:
                for entry, kept in zip(out.frame_list, self._seen.frame_list, strict=True):
                    entry.copy_(kept)
            self._was_truncated.masked_fill_(mask.unsqueeze(-1), False)
        self.reset_into(out, mask)
        end = self._state.world_field("end")[: self.worlds].unsqueeze(-1)
        flags = (end != WORLD_RUNNING, end == WORLD_TERMINATED, end == WORLD_TRUNCATED)
        return self._face(out, dict(zip(ENDS, flags, strict=True)))

    def to(self, device: torch.device | str | int) -> TorchRLFace:
        """Return itself, if it is there: a simulator stays on the device that it was made for.

        Raises:
            ConfigError: the device is another.
        """
        wanted = torch.device(device)
        if wanted.type == "cuda" and wanted.index is None and self.device.type == "cuda":
            wanted = self.device
        if wanted != self.device:
            raise ConfigError(
                f"the environment is on {self.device}, and does not move to {wanted}: make it "
                f"with device={str(wanted)!r}"
            )
        return self
