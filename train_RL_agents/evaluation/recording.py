"""Recording of evaluated episodes as Tracks, while they are played."""

from __future__ import annotations

import torch
from torch import Tensor

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.state import NEAREST_OBJECTS
from marinenav_env.kernel.state import StepBuffers
from marinenav_env.tracks import Tracks

FIELDS = ("x", "y", "heading", "vx", "vy", "goal_x", "goal_y", "contact")
"""Robot fields of the simulator that a recording keeps."""
BY_DECISION = ("acted", "action", "reward", "terminated", "truncated")

Row = dict[str, Tensor]


class Recording:
    """Keeps what happens in the worlds of an evaluation, which may be several batches.

    It takes about 200 bytes of the device for each robot slot and decision.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[list[int], BatchRecording]] = []

    def batch(self, worlds: list[int]) -> BatchRecording:
        """Return the empty recording of a batch, whose worlds are these ones of the evaluation."""
        part = BatchRecording()
        self._parts.append((worlds, part))
        return part

    def tracks(self, world: int) -> Tracks:
        """Return the tracks of one world of the evaluation, see `BatchRecording.tracks`."""
        worlds, part = next(pair for pair in self._parts if world in pair[0])
        return part.tracks(worlds.index(world))


class BatchRecording:
    """Keeps what happens in an environment's worlds; `Batch.play` begins and fills it."""

    def begin(self, env: MarineNavEnv, now: StepBuffers, own: Tensor | None = None) -> None:
        """Start anew.

        Args:
            env: the environment, after its reset.
            now: what its robots see.
            own: [W, R] bool, the robots that are judged, with whom an episode ends; None for all.
        """
        self._env, self._own = env, own
        decided = {name: getattr(now, name) for name in BY_DECISION if name != "action"}
        self._decided = decided | {"action": env.make_action()}  # of these the shapes
        self._worlds = torch.arange(env.worlds, device=env.device)
        self._start = self._state(now)
        self._blocks: list[tuple[Tensor, list[Row]]] = [(self._worlds, [])]

    def follow(self, worlds: Tensor) -> None:
        """Follow only these worlds [N] from now on, in ascending order."""
        self._worlds = worlds
        self._blocks.append((worlds, []))

    def note(self, following: StepBuffers, action: Tensor) -> None:
        """Note what a decision has brought."""
        row = {name: getattr(following, name) for name in BY_DECISION if name != "action"}
        row["action"] = action
        row = {name: part.index_select(0, self._worlds) for name, part in row.items()}
        self._blocks[-1][1].append(self._state(following) | row)

    def _state(self, seen: StepBuffers) -> Row:
        fields = (self._env.state.robot_field(name) for name in FIELDS)
        robot = torch.stack([field.index_select(1, self._worlds).T for field in fields], -1)
        now = {"objects": seen.obs.objects, "mask": seen.obs.mask}
        kept = {
            name: part.index_select(0, self._worlds)[:, :, :NEAREST_OBJECTS]
            for name, part in now.items()
        }
        return {"robot": robot, **kept}

    def tracks(self, world: int) -> Tracks:
        """Return the tracks of one world, on the host.

        Of its observations the present objects are kept, without `ego`.
        """
        rows = [
            {name: part[column] for name, part in row.items()}
            for worlds, block in self._blocks
            for column in (worlds == world).nonzero().flatten().tolist()
            for row in block
        ]
        heads = {name: start[world][None] for name, start in self._start.items()}
        heads |= {name: part[world][None][:0] for name, part in self._decided.items()}
        parts = {
            name: torch.cat((head, *(row[name][None] for row in rows))).cpu()
            for name, head in heads.items()
        }
        own = None if self._own is None else self._own[world].cpu()
        judged = parts["acted"] if own is None else parts["acted"] & own
        decisions = int(judged.any(-1).sum())
        lengths = {name: decisions + (name not in BY_DECISION) for name in parts}
        parts = {name: part[: lengths[name]].unsqueeze(1) for name, part in parts.items()}
        objects, mask = parts.pop("objects"), parts.pop("mask")
        state, vessel = self._env.state, self._env.config.vessel
        buoys, vortices = (
            field[..., world].T[: int(state.world_field(name)[world])].cpu().unsqueeze(0)
            for field, name in ((state.buoy, "buoys"), (state.vortex, "vortices"))
        )
        return Tracks(
            fields=FIELDS,
            **parts,
            buoys=buoys,
            vortices=vortices,
            decision_time=vessel.dt * vessel.substeps,
            hull_radius=vessel.radius,
            observation=Observation(objects.new_zeros(*mask.shape[:-1], 0), objects, mask),
            own=None if own is None else own[None],
        )
