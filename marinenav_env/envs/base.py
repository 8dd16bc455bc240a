"""KernelEnv: an environment of the core, as a training loop knows it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from marinenav_env.config import EpisodeConfig, TaskConfig
from marinenav_env.envs.checks import (
    InfoMode,
    UnusableError,
    check_device,
    check_finite,
    check_options,
    check_randomness,
    check_state,
)
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.scenes import AnyStage
from marinenav_env.envs.spec import EnvSpec
from marinenav_env.envs.state import Layout, Slots
from marinenav_env.envs.torchrl_face import TorchRLFace
from marinenav_env.fields import build
from marinenav_env.kernel import ops
from marinenav_env.kernel.memory import check_memory
from marinenav_env.kernel.state import Context, State, StepBuffers

SEED = "seed"
"""Of the random numbers, in a `state_dict`; those of older checkpoints lack it."""


class KernelEnv(TorchRLFace):
    """W worlds of an environment of the core; batch size [W].

    Training path: `make_buffers`, `reset_into` and `step_into` work in persistent buffers, read
    nothing on the host and allocate nothing.

    TorchRL's methods are those of `TorchRLFace`.

    A subclass names its type in the core and its observation, and checks its own arguments.

    Args:
        worlds: W.
        stages: what episodes begin with; None takes the task's own.
        config: parameters, of the class's `config_type`; None takes the published ones.
        discrete: whole numbers (int64 [W, R]) instead of numbers in [-1, 1] ([W, R, n]); None
            takes what the task has, numbers if it has both.
        device: "cpu" or "cuda".
        dtype: float32 or float64.
        seed: of the counter-based random numbers.
        first_world: global index of world 0; ranks give each its own range.
        info_mode: "stats" sums finished episodes on the device; "full" also reports per robot
            (entry ``info`` with `info_fields`); "none" neither.
        stack_k: observation frames, newest first.
        skip_reset_if_empty: see `ops.reset`.
        slots: of a task with stages, more than they need (for scenarios loaded from files).

    Raises:
        ConfigError: an option is impossible; the message names it, its value and the remedy.
    """

    kernel: ClassVar[str]
    names_before: ClassVar[Mapping[str, str]] = {}
    """Tensors of the state under the names of older checkpoints."""
    names_added: ClassVar[Mapping[str, float]] = {}
    """Tensors of the state that older checkpoints lack, with the value that disturbs nothing."""
    config_type: ClassVar[type[TaskConfig]]
    default_stages: ClassVar[tuple[Stage, ...]]
    """Of a training."""
    evaluation_stages: ClassVar[tuple[Stage, ...]]
    evaluation_episode: ClassVar[EpisodeConfig]
    """How an evaluation ends its episodes."""
    training_changes: ClassVar[Mapping[str, Any]] = {}
    """Groups of the configuration in which a training differs from the published task."""
    return_range: ClassVar[tuple[float, float]] = (-100.0, 60.0)
    """Within which the returns of most episodes lie: ends of their histogram."""
    value_range: ClassVar[tuple[float, float]] = (-30.0, 60.0)
    """Within which the returns lie that matter to a learner, discounted by .99 a decision."""
    describe: ClassVar[Callable[..., EnvSpec]]
    """Describes the environment: a configuration, ``discrete`` and ``stack_k`` go in."""
    labels_of: ClassVar[Callable[..., list[str]]]
    """Names stages."""

    config: Any
    stages: tuple[AnyStage, ...]

    def __init__(
        self,
        worlds: int,
        *,
        stages: Sequence[AnyStage] | None = None,
        config: Any = None,
        discrete: bool | None = None,
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
        kind = self.config_type
        config = kind() if config is None else build(kind, config, where="config")
        device = check_device(device)
        check_options(worlds, dtype, info_mode, stack_k)
        check_randomness(worlds, seed, first_world)
        super().__init__(device=device, batch_size=torch.Size([worlds]))
        self.config, self.kernel_spec = config, ops.describe(self.kernel)
        layout = self.lay_out(self.default_stages if stages is None else stages, slots, discrete)
        self.stages, self.discrete, self._sizes = layout.stages, layout.discrete, layout.sizes
        self.description = self.describe(config, discrete=self.discrete, stack_k=stack_k)
        self.worlds, self.robots, self.real_dtype = worlds, self._sizes["robots"], dtype
        self.info_mode, self.stack_k = info_mode, stack_k
        self.skip_reset_if_empty = skip_reset_if_empty
        check_memory(self.kernel_spec, self._sizes, worlds, stack_k, device, dtype)
        self._state = State(
            self.kernel,
            self._sizes,
            layout.tables,
            Context(self.kernel_spec.pack(self.config.named_numbers()), seed, first_world),
            worlds=worlds,
            statistics=info_mode != "none",
            device=device,
            dtype=dtype,
        )
        self.alive = torch.zeros(worlds, self.robots, dtype=torch.bool, device=device)
        self._make_specs()

    @abc.abstractmethod
    def lay_out(
        self, stages: Sequence[AnyStage], slots: Slots | None, discrete: bool | None
    ) -> Layout:
        """Check what was asked for, and return what it comes to."""

    # ---- training path ------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The simulator's tensors, for loading and recording scenarios."""
        return self._state

    def make_buffers(self, turns: int | None = None) -> StepBuffers:
        """Return new zeroed step buffers of this environment's shapes.

        Args:
            turns: decisions that `unroll_into` is to take at once; None for those of `step_into`.
        """
        alive = self.alive if turns is None else self.alive.new_zeros(turns, *self.alive.shape)
        return StepBuffers.allocate(
            self.kernel,
            type(self.description.observation.shapes),
            alive,
            self.stack_k,
            dtype=self.real_dtype,
        )

    def make_action(self) -> Tensor:
        """Return a zeroed action [W, R] (int64), or [W, R, n]."""
        shape = (
            self.alive.shape if self.discrete else (*self.alive.shape, self.kernel_spec.continuous)
        )
        dtype = torch.int64 if self.discrete else self.real_dtype
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def reset_into(self, out: StepBuffers, mask: Tensor | None = None) -> None:
        """Place all worlds, or those of mask [W] (bool); write only their observation rows."""
        ops.reset(self._state, mask, out, skip_if_empty=self.skip_reset_if_empty)

    def step_into(self, action: Tensor, previous: StepBuffers, out: StepBuffers) -> None:
        """Take one decision; `out.obs` is the true next observation, before any reset."""
        ops.step(self._state, action, previous, out)

    def unroll_into(self, actions: Tensor, previous: StepBuffers, out: StepBuffers) -> None:
        """Take a decision for each row of `actions` in one launch.

        Finished worlds begin anew after each, as with `step_into` and then `reset_into`. Classic
        tasks offer it: it serves to compare, and rollouts of actions known beforehand.

        Args:
            actions: [turns, W, R] or [turns, W, R, n].
            previous: holds the observation before the first decision.
            out: from `make_buffers(turns)`. Row k of its observation is what decision k + 1 acts
                on, in a finished world the new episode's; all else is what decision k brought,
                and `alive` says which robots act next.

        Raises:
            RuntimeError: the task does not offer it, or a tensor does not fit.
        """
        ops.step(self._state, actions, previous, out, unroll=True)
        self.alive.copy_(out.alive[-1])

    def observe_into(self, out: StepBuffers, mask: Tensor | None = None) -> None:
        """Write the observation of worlds as they stand."""
        ops.observe(self._state, mask, out)

    def copy_worlds_of(self, source: KernelEnv, now: StepBuffers, out: StepBuffers) -> None:
        """Take over the worlds of another environment, as they stand, once for each copy.

        World w of copy c is world c * W + w here. Copies draw other random numbers than the worlds
        that they are copies of. Reads nothing on the host.

        Args:
            source: of the same task, stages and frames, with W worlds, of which this one has a
                multiple.
            now: what is observed in its worlds.
            out: gets these observations, for each copy.

        Raises:
            ValueError: the worlds are no multiple, or they have other robots or frames.
        """
        copies, rest = divmod(self.worlds, source.worlds)
        if rest or (source.robots, source.stack_k) != (self.robots, self.stack_k):
            raise ValueError(
                f"the source has {source.worlds} worlds, {source.robots} robots and stack_k "
                f"{source.stack_k}, this environment {self.worlds}, {self.robots} and "
                f"{self.stack_k}: give a multiple of its worlds, and the same stages and stack_k"
            )
        self._state.copy_worlds_of(source.state, source.worlds, copies)
        self.alive.unflatten(0, (copies, -1)).copy_(source.alive)
        for own, taken in zip(out.frame_list, now.frame_list, strict=True):
            own.unflatten(0, (copies, -1)).copy_(taken)

    def set_stage(self, stage: Tensor) -> None:
        """Set each world's stage, in force from its next reset.

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

    # ---- statistics ---------------------------------------------------------------------------

    def read_stats(self) -> Tensor:
        """Return [S, fields of `stats`] sums over episodes since `clear_stats`, on the device."""
        return self._state.stats.sum(-1)

    def robot_steps(self) -> Tensor:
        """Return robot-steps since `clear_stats`: 0-d int64 on the device."""
        return self._state.world_field("robot_steps").sum()

    def non_finite_robots(self) -> Tensor:
        """Return the number of robots with a non-finite number in their state: 0-d int64."""
        return self._state.robot.isfinite().all(0).logical_not_().sum()

    def check_finite(self) -> None:
        """Raise if a robot's state is not finite; reads the device, so only between intervals.

        Raises:
            ConfigError: says how many, in which world and robot first.
        """
        check_finite("state", self._state.robot.isfinite().all(0).T)

    def clear_stats(self) -> None:
        """Zero the statistics, the robot-step count and the bad-action count."""
        self._state.stats.zero_()
        self._state.world_field("robot_steps").zero_()
        self._state.bad.zero_()

    @property
    def outcome(self) -> dict[str, Tensor]:
        """Views [W] of each world's last finished episode, by the fields of `outcome`."""
        rows = self._state.outcome[:, : self.worlds]
        return dict(zip(self.kernel_spec.fields("outcome"), rows, strict=True))

    def bad_actions(self) -> Tensor:
        """View [W, R] int32: unusable actions since `clear_stats`."""
        return self._state.bad[:, : self.worlds].T

    def check_actions(self) -> None:
        """Raise if unusable actions were given; reads the device, so only between intervals.

        Raises:
            UnusableError: says how many, in which world and robot first.
        """
        bad = self.bad_actions().cpu()
        if bad.any():
            world, robot = bad.nonzero()[0].tolist()
            valid = f"0..{self.kernel_spec.discrete - 1}" if self.discrete else "finite numbers"
            raise UnusableError(
                f"{int(bad.sum())} actions of {int((bad > 0).sum())} robots were not {valid} (first"
                f" in world {world}, robot {robot}) and were taken as no action: look for a"
                " diverged policy"
            )

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        """Return everything that changes, and the seed; stages and noise are configuration."""
        return {
            **{name: tensor.clone() for name, tensor in self._changing(self._shows).items()},
            SEED: torch.tensor(self._state.context.seed),
        }

    def _changing(self, shown: bool) -> dict[str, Tensor]:
        """Return the tensors that change by name, with what `TorchRLFace` has shown or without."""
        more = self._shown() if shown else {}
        return {**self._state.named(), "alive": self.alive, **more}

    def load_state_dict(
        self, state: Mapping[str, Tensor], strict: bool = True, assign: bool = False
    ) -> None:
        """Restore `state_dict`'s result, from any device.

        Args:
            state: what changes.
            strict: False leaves what is missing as it is; TorchRL's `EnvCreator` asks for it.
            assign: without effect; the tensors of the environment stay where they are.

        Raises:
            ValueError: an entry is missing, has another shape, or a number that is out of range.
        """
        shown = "was_truncated" in state
        changing = self._changing(shown)
        if not strict:
            state = {**changing, **state}
        added = {n: torch.full_like(changing[n], x) for n, x in self.names_added.items()}
        state = added | {self.names_before.get(name, name): t for name, t in state.items()}
        for name, tensor in changing.items():
            if name not in state or state[name].shape != tensor.shape:
                found = tuple(state[name].shape) if name in state else "missing"
                raise ValueError(
                    f"simulator state '{name}' is {found}, expected shape {tuple(tensor.shape)}:"
                    " use the checkpoint with the worlds and stages, and the fields in csrc, that "
                    "it was made with"
                )
        seed = state.get(SEED, torch.tensor(self._state.context.seed))
        if seed.shape != () or seed.dtype != torch.int64:
            raise ValueError(f"simulator state '{SEED}' is {seed}: use a whole checkpoint")
        check_state(state, self.kernel_spec, self._sizes)
        for name, tensor in changing.items():
            tensor.copy_(state[name])
        self._state.context = self._state.context._replace(seed=int(seed))
        if not shown:
            self._show_anew()

    def _set_seed(self, seed: int | None) -> None:
        """Start the random numbers of `seed` from each world's first episode.

        Raises:
            ConfigError: the seed is out of range.
        """
        seed = 0 if seed is None else int(seed)
        check_randomness(self.worlds, seed, self._state.context.first_world)
        self._state.context = self._state.context._replace(seed=seed)
        self._state.world_field("episode").zero_()
