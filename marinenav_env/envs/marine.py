"""MarineNavEnv: the simulator as a TorchRL environment and as a training loop's workhorse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torchrl.data import Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from marinenav_env.config import EnvConfig
from marinenav_env.envs.checks import (
    InfoMode,
    check_device,
    check_options,
    check_randomness,
    check_slots,
    check_stages,
)
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.scenarios import PUBLISHED_STAGES, Stage
from marinenav_env.envs.state import (
    OUTCOME_FIELDS,
    Context,
    SimulatorState,
    Slots,
    StepBuffers,
)
from marinenav_env.kernel import ops

CONFIGURATION = ("stage", "radius_noise")
"""Tensors of the state that hold parameters: the environment's own, never a checkpoint's."""
NAMES_BEFORE = {"core": "vortex", "live": "alive"}
"""Tensors of the state under the names of older checkpoints."""
INFO_FIELDS = ("phi", "step_energy", "progress", "contact")
DISCRETE_ACTIONS = 25
CONTINUOUS_ACTIONS = 2


class MarineNavEnv(EnvBase):
    """W worlds of several vessels among buoys and currents; batch size [W].

    TorchRL face: robots are the group ``"robots"`` with batch [W, R]: ``self`` [W, R, 7k],
    ``objects`` [W, R, 5k, 5], ``mask`` [W, R, 5k], ``alive`` and ``robot_terminated`` [W, R]
    (bool), ``action`` and ``reward`` [W, R, 1]; ``done``, ``terminated``, ``truncated`` [W, 1]
    belong to the world. `step` returns fresh tensors with the true next observation; a finished
    world stays as it is until it is reset.

    Training path: `make_buffers`, `reset_into` and `step_into` work in persistent buffers, read
    nothing on the host and allocate nothing.

    Args:
        worlds: W.
        stages: scenario settings; their maxima give the slots R, B and C.
        config: physical and task parameters.
        discrete: 25 thrust choices (int64 [W, R]) instead of thrust rates in [-1, 1] ([W, R, 2]).
        device: "cpu" or "cuda".
        dtype: float32 or float64.
        seed: of the counter-based random numbers.
        first_world: global index of world 0; ranks give each its own range.
        info_mode: "stats" sums finished episodes on the device; "full" also reports per robot
            (``("robots", "info", INFO_FIELDS)``); "none" neither.
        stack_k: observation frames, newest first.
        skip_reset_if_empty: see `ops.reset`.
        slots: more slots than the stages need (for scenarios loaded from files).

    Raises:
        ConfigError: a parameter is impossible; the message names it, its value and the remedy.
    """

    def __init__(
        self,
        worlds: int,
        *,
        stages: Sequence[Stage] = PUBLISHED_STAGES,
        config: EnvConfig | None = None,
        discrete: bool = False,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        first_world: int = 0,
        info_mode: InfoMode = "stats",
        stack_k: int = 1,
        skip_reset_if_empty: bool = True,
        slots: Slots | None = None,
    ) -> None:
        """See the class."""
        device = check_device(device)
        check_options(worlds, dtype, info_mode, stack_k)
        check_randomness(worlds, seed, first_world)
        self.config = config or EnvConfig()
        self.stages = check_stages(stages, self.config)
        super().__init__(device=device, batch_size=torch.Size([worlds]))
        self.slots = check_slots(slots, self.stages)
        self.worlds, self.robots = worlds, self.slots.robots
        self.discrete, self.real_dtype = discrete, dtype
        self.info_mode, self.stack_k = info_mode, stack_k
        self.skip_reset_if_empty = skip_reset_if_empty
        self._context = Context(self.config.flat(), seed, first_world)
        self._state = SimulatorState.allocate(
            worlds,
            self.slots,
            self.stages,
            self.config.perception.radius_kappa,
            statistics=info_mode != "none",
            device=device,
            dtype=dtype,
        )
        self.alive = torch.zeros(worlds, self.robots, dtype=torch.bool, device=device)
        self._make_specs()

    # ---- training path ------------------------------------------------------------------------

    @property
    def state(self) -> SimulatorState:
        """The simulator's tensors, for loading and recording scenarios."""
        return self._state

    def make_buffers(self) -> StepBuffers:
        """New zeroed step buffers of this environment's shapes."""
        return StepBuffers.allocate(
            self.worlds, self.robots, self.stack_k, device=self.device, dtype=self.real_dtype
        )

    def reset_into(self, out: StepBuffers, mask: Tensor | None = None) -> None:
        """Places all worlds, or those of mask [W] (bool); writes only their observation rows."""
        ops.reset(
            self._state,
            mask,
            out,
            self.alive,
            self._context,
            skip_if_empty=self.skip_reset_if_empty,
        )

    def step_into(self, action: Tensor, previous: StepBuffers, out: StepBuffers) -> None:
        """One decision; `out.obs` is the true next observation, before any reset."""
        ops.step(self._state, action, previous, out, self.alive, self._context)

    def observe_into(self, out: StepBuffers, mask: Tensor | None = None) -> None:
        """Writes the observation of worlds as they stand."""
        ops.observe(self._state, mask, out, self._context)

    def set_stage(self, stage: Tensor) -> None:
        """Sets each world's stage, in force from its next reset.

        Args:
            stage: [W] integers from 0. Reading them would stop a GPU, so one below 0 counts as
                the first stage and one past the last as the last.

        Raises:
            ValueError: the shape or the type is another.
        """
        whole = not (stage.is_floating_point() or stage.is_complex() or stage.dtype == torch.bool)
        if stage.shape != (self.worlds,) or not whole:
            raise ValueError(
                f"stage has shape {tuple(stage.shape)} and dtype {stage.dtype}: give whole numbers"
                f" [{self.worlds}], the index of a stage for every world"
            )
        self._state.world_field("next_stage")[: self.worlds].copy_(stage)

    def stage_of_worlds(self) -> Tensor:
        """View [W] int32: stage of each world's running episode."""
        return self._state.world_field("stage")[: self.worlds]

    def read_stats(self) -> Tensor:
        """[S, len(STATS)] sums over episodes finished since `clear_stats`, on the device."""
        return self._state.stats.sum(-1)

    def robot_steps(self) -> Tensor:
        """0-d int64 on the device: robot-steps since `clear_stats`."""
        return self._state.world_field("robot_steps").sum()

    def non_finite_robots(self) -> Tensor:
        """0-d int64 on the device: robots with a non-finite number in their present state."""
        return self._state.robot.isfinite().all(0).logical_not_().sum()

    def clear_stats(self) -> None:
        """Zeroes the statistics, the robot-step count and the bad-action count."""
        self._state.stats.zero_()
        self._state.world_field("robot_steps").zero_()
        self._state.bad.zero_()

    @property
    def outcome(self) -> dict[str, Tensor]:
        """Views [W] of each world's last finished episode (see OUTCOME_FIELDS)."""
        rows = self._state.outcome[:, : self.worlds]
        return dict(zip(OUTCOME_FIELDS, rows, strict=True))

    def bad_actions(self) -> Tensor:
        """View [W, R] int32: unusable actions since `clear_stats`."""
        return self._state.bad[:, : self.worlds].T

    def check_actions(self) -> None:
        """Raises if unusable actions were given; reads the device, so only between intervals.

        Raises:
            ValueError: says how many, in which world and robot first.
        """
        bad = self.bad_actions().cpu()
        if bad.any():
            world, robot = bad.nonzero()[0].tolist()
            valid = f"0..{DISCRETE_ACTIONS - 1}" if self.discrete else "finite numbers"
            raise ValueError(
                f"{int(bad.sum())} actions of {int((bad > 0).sum())} robots were not {valid} (first"
                f" in world {world}, robot {robot}) and were taken as no change of thrust: look"
                " for a diverged policy"
            )

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        """Everything that changes, as plain tensors; seed, stages and noise are configuration."""
        return {name: tensor.clone() for name, tensor in self._changing().items()}

    def _changing(self) -> dict[str, Tensor]:
        names = (f.name for f in fields(self._state) if f.name not in CONFIGURATION)
        return {**{name: getattr(self._state, name) for name in names}, "alive": self.alive}

    def load_state_dict(self, state: Mapping[str, Tensor], *_: object, **__: object) -> None:
        """Restores `state_dict`'s result, from any device.

        Raises:
            ValueError: an entry is missing or has another shape.
        """
        state = {NAMES_BEFORE.get(name, name): value for name, value in state.items()}
        for name, tensor in self._changing().items():
            if name not in state or state[name].shape != tensor.shape:
                found = tuple(state[name].shape) if name in state else "missing"
                raise ValueError(
                    f"simulator state '{name}' is {found}, expected shape {tuple(tensor.shape)}:"
                    " use the checkpoint with the worlds and stages it was made with"
                )
            tensor.copy_(state[name])

    # ---- TorchRL face -------------------------------------------------------------------------

    def _make_specs(self) -> None:
        w, r = self.worlds, self.robots
        place = {"device": self.device}

        def real(*shape: int) -> Unbounded:
            return Unbounded((w, r, *shape), dtype=self.real_dtype, **place)

        def flag(*shape: int) -> Categorical:
            return Categorical(2, shape=(w, *shape), dtype=torch.bool, **place)

        buffers = self.make_buffers()
        robots = {
            "self": real(*buffers.obs.ego.shape[2:]),
            "objects": real(*buffers.obs.objects.shape[2:]),
            "mask": real(*buffers.obs.mask.shape[2:]),
            "alive": flag(r),
            "robot_terminated": flag(r),
        }
        if self.info_mode == "full":
            info = {name: real() for name in INFO_FIELDS}
            robots["info"] = Composite(info, shape=(w, r), **place)
        if self.discrete:
            action = Categorical(DISCRETE_ACTIONS, shape=(w, r), dtype=torch.int64, **place)
        else:
            action = Bounded(
                -1.0, 1.0, shape=(w, r, CONTINUOUS_ACTIONS), dtype=self.real_dtype, **place
            )

        def group(entries: dict) -> Composite:
            return Composite(robots=Composite(entries, shape=(w, r), **place), shape=(w,), **place)

        self.observation_spec = group(robots)
        self.action_spec = group({"action": action})
        self.reward_spec = group({"reward": real(1)})
        self.done_spec = Composite(
            {name: flag(1) for name in ("done", "terminated", "truncated")}, shape=(w,), **place
        )

    def _robots(self, obs: Observation, terminated: Tensor) -> TensorDict:
        entries = {
            "self": obs.ego,
            "objects": obs.objects,
            "mask": obs.mask,
            "alive": self.alive.clone(),
            "robot_terminated": terminated,
        }
        if self.info_mode == "full":
            fields_ = {
                name: self._state.robot_field(name)[:, : self.worlds].T.contiguous()
                for name in INFO_FIELDS
            }
            entries["info"] = TensorDict(fields_, batch_size=(self.worlds, self.robots))
        return TensorDict(entries, batch_size=(self.worlds, self.robots), device=self.device)

    def _buffers_from(self, tensordict: TensorDictBase) -> StepBuffers:
        """Buffers holding a copy of the observation in a TensorDict."""
        out = self.make_buffers()
        robots = tensordict["robots"]
        for own, name in zip(out.obs, ("self", "objects", "mask"), strict=True):
            own.copy_(robots[name])
        return out

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        out = self.make_buffers()
        previous = self._buffers_from(tensordict) if self.stack_k > 1 else out
        self.step_into(tensordict["robots", "action"], previous, out)
        robots = self._robots(out.obs, out.terminated)
        robots["reward"] = out.reward.unsqueeze(-1)
        ends = {
            "done": out.done.unsqueeze(-1),
            "terminated": out.world_terminated.unsqueeze(-1),
            "truncated": out.world_truncated.unsqueeze(-1),
        }
        return TensorDict(
            {"robots": robots, **ends}, batch_size=self.batch_size, device=self.device
        )

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDict:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        terminated = torch.zeros_like(self.alive)
        if mask is None:
            out = self.make_buffers()
        elif ("robots", "self") in tensordict.keys(include_nested=True):
            out = self._buffers_from(tensordict)
            terminated = tensordict["robots", "robot_terminated"] & ~mask
        else:
            out = self.make_buffers()
            self.observe_into(out)
        self.reset_into(out, None if mask is None else mask.flatten().contiguous())
        ends = {name: torch.zeros_like(self.done_spec[name].zero()) for name in self.done_keys}
        if mask is not None:
            end = self._state.world_field("end")[: self.worlds].unsqueeze(-1)
            ends = {"done": end != 0, "terminated": end == 1, "truncated": end == 2}
        return TensorDict(
            {"robots": self._robots(out.obs, terminated), **ends},
            batch_size=self.batch_size,
            device=self.device,
        )

    def _set_seed(self, seed: int | None) -> None:
        """Starts the random numbers of `seed` from each world's first episode.

        Raises:
            ConfigError: the seed is out of range.
        """
        seed = 0 if seed is None else int(seed)
        check_randomness(self.worlds, seed, self._context.first_world)
        self._context = self._context._replace(seed=seed)
        self._state.world_field("episode").zero_()
