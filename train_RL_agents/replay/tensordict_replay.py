"""The replay with TorchRL's buffer interface, to swap it with a ``TensorDictReplayBuffer``.

The trainer uses :class:`train_RL_agents.replay.buffer.DeviceReplay` itself; this face is for
programs that speak TensorDict: ``extend`` takes what ``env.rollout`` or a collector returns,
``sample`` gives what TorchRL's losses read. An item is one transition of one active robot, so
sampled tensordicts have the batch size [B] and no robot dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from marinenav_env.envs.spec import EntitySpec, ObservationTensors
from train_RL_agents.replay.buffer import DeviceReplay


class TensorDictReplay:
    """A :class:`DeviceReplay` that takes and gives tensordicts.

    Differences from a ``TensorDictReplayBuffer``: data is extended by whole decisions of all
    worlds, n-step returns are formed when sampling (no ``MultiStep`` transform), importance weights
    are normalised by the batch's maximum rather than the buffer's, and a repeated index takes its
    largest new priority rather than the last.

    Attributes:
        replay: the replay behind it.
    """

    def __init__(
        self,
        replay: DeviceReplay,
        *,
        batch_size: int | None = None,
        group: str = "robots",
        keys: Sequence[str] = EntitySpec.keys,
        priority_key: str = "td_error",
    ) -> None:
        """Wrap a replay.

        Args:
            replay: the replay that holds the data.
            batch_size: default of :meth:`sample`.
            group: key under which the environment keeps its robots.
            keys: names of an observation's tensors.
            priority_key: key that :meth:`update_tensordict_priority` reads.
        """
        self.replay = replay
        self.batch_size = batch_size
        self.group = group
        self.keys = keys
        self.priority_key = priority_key

    def extend(self, data: TensorDictBase) -> Tensor:
        """Store decisions of all worlds.

        A robot is truncated where its world is done and it has not ended by itself.

        Args:
            data: batch size [W], or [W, T] in order of time, with the keys of ``MarineNavEnv``:
                observation, ``alive`` and ``action`` of the group, and under ``next`` its
                observation, ``reward`` and ``robot_terminated``, and ``done`` of the world.

        Returns:
            The slots written, int64 [W, R] or [W, T, R].
        """
        if data.ndim == 1:
            return self._extend_row(data)
        return torch.stack([self._extend_row(row) for row in data.unbind(1)], 1)

    def sample(self, batch_size: int | None = None) -> TensorDict:
        """Draw transitions as a tensordict of batch size [B].

        It holds, for the group, observation and ``action``, under ``next`` the observation m
        decisions later, the n-step ``reward``, ``terminated``, ``truncated`` and ``done``
        ([B, 1] each); and at the root ``index``, ``priority_weight`` [B] and
        ``steps_to_next_obs`` m [B, 1], with which TorchRL's value estimators discount by gamma^m.

        Args:
            batch_size: number of draws; the constructor's when None.

        Raises:
            ValueError: no batch size was given here nor to the constructor.
        """
        batch_size = self.batch_size if batch_size is None else batch_size
        if batch_size is None:
            raise ValueError("batch_size is not set: give it to sample or to the constructor")
        batch = self.replay.sample(batch_size)
        window = self.replay.window(batch.index)
        terminated, truncated = self.replay.ends(window.last)
        following = self._fields(batch.next_obs) | {
            "reward": batch.reward.unsqueeze(1),
            "terminated": terminated.unsqueeze(1),
            "truncated": truncated.unsqueeze(1),
            "done": (terminated | truncated).unsqueeze(1),
        }
        return TensorDict(
            {
                self.group: self._fields(batch.obs) | {"action": batch.action},
                "next": {self.group: following},
                "index": batch.index,
                "priority_weight": batch.weight,
                "steps_to_next_obs": window.steps.unsqueeze(1),
            },
            batch_size=[batch_size],
            device=self.replay.device,
        )

    def update_tensordict_priority(self, data: TensorDictBase) -> None:
        """Set the priorities of sampled transitions from the priority key ([B] or [B, 1])."""
        index = data["index"]
        self.replay.update_priorities(index, data[self.priority_key].detach().reshape(index.shape))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the replay's :meth:`DeviceReplay.state_dict`."""
        return self.replay.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over a :meth:`state_dict`."""
        self.replay.load_state_dict(state)

    def __len__(self) -> int:
        """Return the number of stored active transitions. Reads the device."""
        return len(self.replay)

    def _extend_row(self, row: TensorDictBase) -> Tensor:
        layout = self.replay.layout
        grid = (layout.worlds, layout.robots)
        robots, following = row[self.group], row["next", self.group]
        terminated = following["robot_terminated"].reshape(grid)
        slots = torch.arange(layout.slots_per_row, device=self.replay.device).view(grid)
        index = self.replay.position * layout.slots_per_row + slots
        self.replay.store(
            tuple(robots[key] for key in self.keys),
            robots["action"],
            following["reward"].reshape(grid),
            robots["alive"].reshape(grid),
            terminated,
            ~terminated & row["next", "done"],
            tuple(following[key] for key in self.keys),
        )
        return index

    def _fields(self, observation: ObservationTensors) -> dict[str, Tensor]:
        return dict(zip(self.keys, observation, strict=True))
