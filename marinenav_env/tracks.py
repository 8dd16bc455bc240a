"""Tracks: what happened in one episode per world, as tensors on the simulator's device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.observation import Observation
from marinenav_env.envs.spec import tuple_like
from marinenav_env.envs.state import STATUS_ACTIVE
from marinenav_env.kernel.state import WORLD_RUNNING
from marinenav_env.stepper import Stepper

Policy = Callable[[Observation], Tensor]
"""Observations [W, R, ...] in, actions [W, R, 2] or [W, R] (indices) out."""

DISTURBANCES = ("stream", "wind", "waves", "losses")
"""What `Tracks` knows of them."""


@dataclass(frozen=True)
class Tracks:
    """One episode of W worlds with R robot slots over N decisions.

    What a robot does not take part in says nothing: rewards and flags are then zero, and rows of
    `robot` repeat the last one.

    Attributes:
        fields: names of the columns of `robot`; in the simulator's unit each.
        robot: [N+1, W, R, F], row 0 after the reset, row t after decision t.
        acted: [N, W, R] bool, robots that took part in the decision.
        action: [N, W, R, 2], or [N, W, R] indices, as given to the environment.
        reward: [N, W, R].
        terminated: [N, W, R] bool, robots that collided or reached their goal.
        truncated: [N, W, R] bool, robots whose world ended before they did.
        buoys: [W, B, 3], x, y, radius (m); zero in an empty slot.
        vortices: [W, V, 3], x, y (m), circulation (m^2/s); zero in an empty slot.
        decision_time: duration of a decision (s).
        hull_radius: collision radius of a robot (m).
        observation: of the rows of `robot`, with leading dimensions [N+1, W, R]; None if not kept.
        stream: [W, 2], the uniform current (m/s, world frame); None if unknown.
        wind: [W, 2], the mean wind (m/s, world frame); None if unknown.
        waves: [W, 2], significant height along the direction in which they run (m); None likewise.
        losses: [W, R, 2], when a thruster is lost (s), and -1 for the port one, 1 for the starboard
            one, 0 for none; None if unknown.
        own: [W, R] bool, robots that are judged, whose ends are their world's; None for all.
    """

    fields: tuple[str, ...]
    robot: Tensor
    acted: Tensor
    action: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    buoys: Tensor
    vortices: Tensor
    decision_time: float
    hull_radius: float
    observation: Observation | None = None
    stream: Tensor | None = None
    wind: Tensor | None = None
    waves: Tensor | None = None
    losses: Tensor | None = None
    own: Tensor | None = None

    def field(self, name: str) -> Tensor:
        """View [N+1, W, R] of a column of `robot`."""
        return self.robot[..., self.fields.index(name)]

    @property
    def placed(self) -> Tensor:
        """[W, R] bool, slots with a robot: it acts in the first decision, if there is one."""
        return self.acted[0] if len(self.acted) else torch.ones_like(self.collided)

    @property
    def present(self) -> Tensor:
        """[N+1, W, R] bool, rows that count: the start, and then the decisions it acted in."""
        return torch.cat((self.placed[None], self.acted))

    @property
    def collision(self) -> Tensor:
        """[N, W, R] bool, the decision ended in a collision of the robot."""
        return self.terminated & (self.field("contact")[1:] > 0)

    @property
    def collided(self) -> Tensor:
        """[W, R] bool."""
        return self.collision.any(0)

    @property
    def reached(self) -> Tensor:
        """[W, R] bool, reached its goal without a collision."""
        return (self.terminated & ~self.collision).any(0)

    @property
    def success(self) -> Tensor:
        """[W] bool, every robot of the world reached its goal, none collided."""
        return (self.reached | ~self.placed).all(-1) & self.placed.any(-1)

    @property
    def length(self) -> Tensor:
        """[W] int64, decisions until the world's last robot ended, N at most."""
        return self.acted.any(-1).sum(0)

    def worlds(self, index: Tensor | slice | list[int]) -> Tracks:
        """Tracks of some worlds.

        Args:
            index: whole numbers, or [W] bool.
        """
        by_time = ("robot", "acted", "action", "reward", "terminated", "truncated")
        parts: dict[str, Any] = {name: getattr(self, name)[:, index] for name in by_time}
        if self.observation is not None:
            chosen = (part[:, index] for part in self.observation)
            parts["observation"] = tuple_like(self.observation, chosen)
        for name in (*DISTURBANCES, "own"):
            part = getattr(self, name)
            parts[name] = part if part is None else part[index]
        return replace(self, buoys=self.buoys[index], vortices=self.vortices[index], **parts)


@torch.no_grad()
def record_tracks(
    env: MarineNavEnv,
    policy: Policy,
    decisions: int,
    *,
    reset: bool = True,
    observations: bool = False,
    look_interval: int | None = None,
    own: Tensor | None = None,
) -> Tracks:
    """Let a policy steer one episode in every world, and keep what happens.

    Nothing is allocated and nothing reads the device between two decisions, unless looks are asked
    for. Robots that collided or arrived leave; a finished world stays as it is.

    Args:
        env: the environment, of any dtype and either kind of action.
        policy: gives the actions.
        decisions: N, at least 1.
        reset: place all worlds anew; False takes them as they stand.
        observations: keep the observations too.
        look_interval: decisions between two looks whether all worlds are over, which then ends the
            recording, before a last look whether states are finite; None never looks.
        own: [W, R] bool, robots that are judged: a world is over when they have ended; None for
            all robots.

    Returns:
        The tracks of N decisions, or fewer if a look found all worlds over.

    Raises:
        ConfigError: the vessels, or what disturbs them, are beyond what can be stepped.
        ValueError: there is no decision to take, or an action has another shape.
    """
    if decisions < 1:
        raise ValueError(f"decisions is {decisions}: give 1 or more")
    stepper = Stepper(env, restarts=False)
    now = stepper.reset() if reset else stepper.observe()
    tracks = _allocate(env, decisions, observations)
    _write_row(tracks, 0, env, now.obs)
    for decision in range(decisions):
        if look_interval and decision % look_interval == 0:
            judged = env.alive if own is None else env.alive & own
            if not judged.any():
                tracks = _first(tracks, decision)
                break
        action = policy(now.obs)
        if action.shape != tracks.action.shape[1:]:
            raise ValueError(
                f"the policy's action has shape {tuple(action.shape)}: give"
                f" {tuple(tracks.action.shape[1:])}"
            )
        following = stepper.step(tracks.action[decision].copy_(action))
        for name in ("acted", "reward", "terminated", "truncated"):
            getattr(tracks, name)[decision].copy_(getattr(following, name))
        now = stepper.advance()
        _write_row(tracks, decision + 1, env, now.obs)
    if look_interval:
        env.check_finite()
    return tracks if own is None else _ended_with(tracks, own)


def _allocate(env: MarineNavEnv, decisions: int, observations: bool) -> Tracks:
    """Zeroed tracks with the environment's buoys and vortices as they stand."""
    worlds, robots, state, vessel = env.worlds, env.robots, env.state, env.config.vessel
    place = {"device": env.device}
    action = env.action_spec["robots", "action"]

    def flag() -> Tensor:
        return torch.zeros(decisions, worlds, robots, dtype=torch.bool, **place)

    def real(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=env.real_dtype, **place)

    def objects(rows: Tensor, count: str) -> Tensor:
        slots = torch.arange(rows.shape[1], **place)
        there = slots < state.world_field(count)[:worlds, None]
        return rows[..., :worlds].permute(2, 1, 0).where(there[..., None], 0.0).contiguous()

    disturbances: dict[str, Tensor] = {}
    if {"wind", "stream", "wave", "thruster"} <= state.named().keys():
        rows = {
            "stream": state.stream,
            "wind": state.field("wind", "speed") * state.wind[1:3],
            "waves": env.config.waves.height * state.wave[:2],
            "losses": torch.stack([state.field("thruster", name) for name in ("loss", "lost")]),
        }
        disturbances = {
            name: row[..., :worlds].movedim((-1, 0), (0, -1)).contiguous()
            for name, row in rows.items()
        }
    kept = None
    if observations:
        seen = env.make_buffers().obs
        kept = tuple_like(seen, (real(decisions + 1, *part.shape) for part in seen))
    fields = env.kernel_spec.fields("robot")
    return Tracks(
        fields=fields,
        robot=real(decisions + 1, worlds, robots, len(fields)),
        acted=flag(),
        action=torch.zeros((decisions, *action.shape), dtype=action.dtype, **place),
        reward=real(decisions, worlds, robots),
        terminated=flag(),
        truncated=flag(),
        buoys=objects(state.buoy, "buoys"),
        vortices=objects(state.vortex, "vortices"),
        decision_time=vessel.dt * vessel.substeps,
        hull_radius=vessel.radius,
        observation=kept,
        **disturbances,
    )


def _write_row(tracks: Tracks, row: int, env: MarineNavEnv, seen: Observation) -> None:
    tracks.robot[row].copy_(env.state.robot[..., : env.worlds].permute(2, 1, 0))
    if tracks.observation is not None:
        for kept, part in zip(tracks.observation, seen, strict=True):
            kept[row].copy_(part)


def _first(tracks: Tracks, decisions: int) -> Tracks:
    """View the first decisions."""
    by_decision = ("acted", "action", "reward", "terminated", "truncated")
    parts: dict[str, Any] = {name: getattr(tracks, name)[:decisions] for name in by_decision}
    if tracks.observation is not None:
        first = (part[: decisions + 1] for part in tracks.observation)
        parts["observation"] = tuple_like(tracks.observation, first)
    return replace(tracks, robot=tracks.robot[: decisions + 1], **parts)


def _ended_with(tracks: Tracks, own: Tensor) -> Tracks:
    """Return tracks whose worlds end in the last decision of one of the robots ``own`` [W, R]."""
    length = (tracks.acted & own).any(-1).sum(0)
    steps = torch.arange(len(tracks.robot), device=own.device)
    rows = torch.minimum(steps.unsqueeze(1), length), torch.arange(len(own), device=own.device)
    during = (steps[:-1, None] < length).unsqueeze(-1)
    stopped = (steps[1:, None] == length).unsqueeze(-1) & tracks.acted & ~tracks.terminated
    parts: dict[str, Any] = {
        name: getattr(tracks, name) & during for name in ("acted", "terminated", "truncated")
    }
    parts["truncated"] |= stopped
    if tracks.observation is not None:
        seen = (part[rows] for part in tracks.observation)
        parts["observation"] = tuple_like(tracks.observation, seen)
    reward = tracks.reward.where(during, 0.0)
    return replace(tracks, own=own, robot=tracks.robot[rows], reward=reward, **parts)


def place_worlds(
    env: MarineNavEnv,
    robot: Tensor,
    alive: Tensor,
    buoys: Tensor,
    vortices: Tensor,
) -> None:
    """Set all worlds of an environment to given states, each at the start of its episode.

    Args:
        env: of W worlds with R, B and V slots.
        robot: [W, R, F], columns as in `Tracks.robot`; of any dtype, as all that follow.
        alive: [W, R] bool, robots under way; the others are gone.
        buoys: [W, B, 3], x, y, radius (m).
        vortices: [W, V, 3], x, y (m), circulation (m^2/s).
    """
    state, worlds = env.state, env.worlds
    for rows, given in ((state.robot, robot), (state.buoy, buoys), (state.vortex, vortices)):
        rows[..., :worlds].copy_(given.permute(2, 1, 0))
    state.status[:, :worlds].copy_(alive.T * STATUS_ACTIVE)
    env.alive.copy_(alive)
    slot = torch.arange(1, env.robots + 1, device=alive.device)
    counts: dict[str, Tensor | int] = {
        "robots": (alive * slot).amax(1),
        "buoys": (buoys[..., 2] > 0).sum(1),
        "vortices": (vortices[..., 2] != 0).sum(1),
        "step": 0,
        "end": WORLD_RUNNING,
    }
    for name, count in counts.items():
        state.world_field(name)[:worlds] = count
