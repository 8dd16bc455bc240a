"""Device-resident experience replay: a ring of time rows; only what robots did is sampled.

Layout: ``[T time, W world, R robot]``. One :meth:`DeviceReplay.store` writes one time row; the ring
position is a device tensor, so storing, sampling and updating run inside a captured graph and read
nothing on the host. A slot belongs to one robot of one world for good, so n-step windows, which
follow a slot through the rows, cannot cross robots.

n-step returns are formed when sampling. The window of a transition is cut at the robot's
termination (discount 0), at its truncation (discount gamma^m, bootstrapping from the stored
terminal observation), in front of a row in which the slot is inactive, and at the newest row of the
ring, where the window is shorter and bootstraps from that row's next observation.

Next observations are stored whole. They equal the next row's observation except where a world was
reset or the ring ends, but a truncated robot needs its terminal observation, and there can be any
number of those in a row; to leave them out would cost a second lookup with two special cases. Who
learns without them (`TransitionLayout.keeps_next`) stores none.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.envs.spec import ObservationTensors, tuple_like
from marinenav_env.kernel import ops
from train_RL_agents.agents.batch import Batch
from train_RL_agents.replay.layout import ReplayConfig, TransitionLayout, check_memory, ring_rows
from train_RL_agents.replay.sum_tree import (
    LARGEST_WEIGHT,
    UNIT,
    SumTree,
    importance_weights,
    weight_of_priority,
)


class Window(NamedTuple):
    """The n-step windows of B transitions.

    Attributes:
        reward: sum_{k<m} gamma^k r_k over its m decisions, [B].
        last: slot of the last decision, int64 [B].
        discount: gamma^m, or 0 if the robot terminated in the last decision, [B].
    """

    reward: Tensor
    last: Tensor
    discount: Tensor


class DeviceReplay:
    """Ring replay with n-step windows, uniform or prioritised, on one device.

    Uniform and prioritised sampling are the same code: the tree of
    :mod:`train_RL_agents.replay.sum_tree` holds weight 0 for slots in which no robot acted and, for
    the others, a constant or (abs(priority) + eps)^alpha. A new transition gets the largest weight
    seen so far.

    Attributes:
        config: the configuration.
        layout: shapes and types of a transition.
        rows: number of time rows T.
        position: the row that is written next, int64 [1].
        filled: number of rows written so far, at most T, int64 [1].
        beta: importance-sampling exponent, float32 0-d; change it with :meth:`set_beta`.
        tree: weights of all slots.
    """

    def __init__(
        self,
        config: ReplayConfig,
        layout: TransitionLayout,
        device: torch.device | str,
        generator: torch.Generator | None = None,
    ) -> None:
        """Check the size against the free memory and allocate the ring.

        Args:
            config: the configuration.
            layout: shapes and types of a transition.
            device: where the replay lives; everything stored must be there.
            generator: random numbers for sampling; the device's default generator when None.

        Raises:
            ConfigError: replay.capacity is too small, or too large for the free memory.
        """
        self.config, self.layout, self.generator = config, layout, generator
        self.device = torch.device(device)
        check_memory(config, layout, self.device)
        self.rows = ring_rows(config, layout)
        slots = layout.slots_per_row
        grid = (self.rows, layout.worlds, layout.robots)
        real = functools.partial(torch.zeros, dtype=layout.dtype, device=self.device)
        flags = functools.partial(torch.zeros, dtype=torch.bool, device=self.device)
        width = sum(layout.widths)
        self._ring = {
            **{name: real(*grid, width) for name in layout.observations},
            "action": torch.zeros(
                *grid, *layout.action, dtype=layout.action_dtype, device=self.device
            ),
            "reward": real(grid),
            "flags": flags(*grid, 3),
        }
        self._wide = {name: ring.view(*grid, -1) for name, ring in self._ring.items()}
        drawn = (*layout.observations, "action")
        self._flat = {name: self._ring[name].flatten(0, 2) for name in drawn}
        powers = [config.gamma**k for k in range(config.n_step + 1)]
        self._discounts = torch.tensor(powers, dtype=layout.dtype, device=self.device)
        self.position = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.filled = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.beta = torch.tensor(config.beta, dtype=torch.float32, device=self.device)
        self._new_weight = torch.tensor(UNIT, device=self.device)
        self.tree = SumTree(self.rows * slots, self.device, span=slots)

    @torch.no_grad()
    def store(
        self,
        obs: ObservationTensors,
        action: Tensor,
        reward: Tensor,
        acted: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        next_obs: ObservationTensors,
    ) -> None:
        """Write one decision of every robot, replacing the oldest row of a full ring.

        Args:
            obs: observation acted on, fields [W, R, ...].
            action: [W, R, ...].
            reward: [W, R].
            acted: whether the robot acted in this decision, bool [W, R].
            terminated: whether it reached its goal or collided in it, bool [W, R].
            truncated: whether its episode was cut in it by a limit, bool [W, R].
            next_obs: the true next observation, before any reset, fields [W, R, ...]; unused where
                the layout keeps none.

        Raises:
            ValueError: a shape is not that of the layout.
            RuntimeError: a type or device is not.
        """
        self._check_shapes(
            {"obs": obs, "next_obs": next_obs},
            {"reward": reward, "acted": acted, "terminated": terminated, "truncated": truncated},
            action,
        )
        parts = {
            "obs": obs,
            "next_obs": next_obs,
            "action": (action,),
            "reward": (reward,),
            "flags": (acted, terminated, truncated),
        }
        ops.write_row([(ring, parts[name]) for name, ring in self._wide.items()], self.position)
        weight = acted.flatten() * self._new_weight
        self.tree.set_span(self.position * self.layout.slots_per_row, weight)
        self.position.add_(1).remainder_(self.rows)
        self.filled.add_(1).clamp_(max=self.rows)

    @torch.no_grad()
    def sample(self, batch_size: int) -> Batch:
        """Draw B transitions, independently and with replacement.

        The draws are independent, so a batch may be split into smaller ones. With nothing
        stored yet the batch repeats slot 0 with weight 0.
        """
        index, weight = self.tree.sample(batch_size, self.generator)
        return self.gather(index, weight)

    @torch.no_grad()
    def gather(self, index: Tensor, weight: Tensor) -> Batch:
        """Return the batch of given slots, int64 [B], with tree weights, int64 [B]."""
        window = self.window(index)
        return Batch(
            self._observation("obs", index),
            self._flat["action"].index_select(0, index),
            window.reward,
            self._observation("next_obs", window.last) if self.layout.keeps_next else (),
            window.discount,
            importance_weights(weight, self.beta),
            index,
        )

    @torch.no_grad()
    def window(self, index: Tensor) -> Window:
        """Return the n-step windows that start at the slots ``index``, int64 [B]."""
        flags, reward = self._ring["flags"], self._ring["reward"]
        terms, *rest = ops.windows(index, flags, reward, self.position, self._discounts)
        return Window(terms.sum(1), *rest)

    @torch.no_grad()
    def update_priorities(self, index: Tensor, priority: Tensor) -> None:
        """Set the priorities of slots, for instance their absolute temporal-difference errors.

        Of a repeated slot's priorities the largest counts. A slot that holds an inactive robot
        by now stays unreachable. Without effect where sampling is uniform.

        Args:
            index: int64 [B], from a batch.
            priority: [B]; the sign is ignored.
        """
        if not self.config.prioritized:
            return
        weight = weight_of_priority(priority, self.config.alpha)
        torch.maximum(self._new_weight, weight.max(), out=self._new_weight)
        occupied = self.tree.weights.index_select(0, index) > 0
        self.tree.set(index, weight * occupied)

    def set_beta(self, beta: float | Tensor) -> None:
        """Set the importance-sampling exponent for the batches that follow, captured ones too."""
        if isinstance(beta, Tensor):
            self.beta.copy_(beta)
        else:
            self.beta.fill_(beta)

    def __len__(self) -> int:
        """Return the number of stored transitions. Reads the device."""
        return int((self.tree.weights > 0).sum())

    @property
    def nbytes(self) -> int:
        """Bytes that the replay has allocated."""
        tensors = [*self._ring.values(), self._discounts, self.position]
        tensors += [self.filled, self.beta, self._new_weight]
        return sum(tensor.nbytes for tensor in tensors) + self.tree.nbytes

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that was stored, as a plain dictionary of tensors, to be saved at once.

        Only rows written so far are in it. On the CPU they are the replay's own memory, which the
        next :meth:`store` changes: a copy would need as much again. Reads the device. The random
        generator's state is the caller's to keep.
        """
        rows = int(self.filled)
        # By way of numpy a view's storage is no larger than the view, and torch.save writes that.
        state = {n: torch.from_numpy(ring[:rows].cpu().numpy()) for n, ring in self._ring.items()}
        state |= {name: getattr(self, name).clone() for name in ("position", "filled", "beta")}
        state |= {"new_weight": self._new_weight.clone(), "weights": self.tree.weights.clone()}
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over a :meth:`state_dict`, from any device; sampling then continues exactly.

        Raises:
            ValueError: it comes from a replay of another size or layout, or is damaged.
        """
        rows = state["reward"].shape[0]
        for name, ring in self._ring.items():
            if state[name].shape[1:] != ring.shape[1:]:
                raise ValueError(
                    f"the saved replay's {name} has the shape {list(state[name].shape[1:])} a row, "
                    f"not {list(ring.shape[1:])}: resume with the same worlds, robots and agent, "
                    "or with checkpoint.with_replay=false"
                )
        if state["weights"].shape != self.tree.weights.shape:
            raise ValueError(
                f"the saved replay has {state['weights'].shape[0]} slots, not "
                f"{self.tree.size}: resume with the same replay.capacity, or with "
                "checkpoint.with_replay=false"
            )
        self._check_ranges(state)
        for name, ring in self._ring.items():
            ring[:rows].copy_(state[name])
        for name in ("position", "filled", "beta"):
            getattr(self, name).copy_(state[name])
        self._new_weight.copy_(state["new_weight"])
        self.tree.load_weights(state["weights"])

    def _check_ranges(self, state: dict[str, Tensor]) -> None:
        """Check what is counted or indexed by. Reads the device.

        Raises:
            ValueError: a number is out of range.
        """
        most = {"position": self.rows - 1, "filled": self.rows, "flags": 1}
        most |= dict.fromkeys(("new_weight", "weights"), LARGEST_WEIGHT)
        if self.layout.choices is not None:
            most["action"] = self.layout.choices - 1
        for name, limit in most.items():
            values = state[name].view(torch.uint8) if name == "flags" else state[name]
            if not values.numel():
                continue
            low, high = int(values.min()), int(values.max())
            if low < 0 or high > limit:
                raise ValueError(
                    f"the saved replay's {name} has {low} to {high}, which is not within 0 to "
                    f"{limit}: the checkpoint is damaged, resume from another one, or with "
                    "checkpoint.with_replay=false"
                )

    def _observation(self, name: str, index: Tensor) -> ObservationTensors:
        packed = self._flat[name].index_select(0, index)
        parts = packed.split(self.layout.widths, 1)
        shapes = self.layout.observation
        shaped = (part.unflatten(1, shape) for part, shape in zip(parts, shapes, strict=True))
        return tuple_like(shapes, shaped)

    def _check_shapes(
        self,
        observations: dict[str, ObservationTensors],
        scalars: dict[str, Tensor],
        action: Tensor,
    ) -> None:
        grid = (self.layout.worlds, self.layout.robots)
        given = [("action", action, self.layout.action)]
        given += [(name, tensor, ()) for name, tensor in scalars.items()]
        for name, observation in observations.items():
            for field, shape in zip(observation, self.layout.observation, strict=True):
                given.append((name, field, shape))
        for name, tensor, shape in given:
            if tensor.shape != grid + shape:
                raise ValueError(
                    f"{name} has the shape {list(tensor.shape)}, not {list(grid + shape)}: give "
                    "one row [worlds, robots, ...] of the replay's layout"
                )
