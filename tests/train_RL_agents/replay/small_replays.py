"""Small replays whose rows carry tags, for the tests of the replay."""

import torch
from torch import Tensor

from marinenav_env.envs.observation import Observation
from train_RL_agents.replay.buffer import DeviceReplay, ReplayConfig, TransitionLayout

GAMMA = 0.5


def tagged_observation(tag: Tensor) -> Observation:
    """Return a small observation [W, R] that carries ``tag`` [W, R] in every number."""
    tag = tag.float()
    ego = tag.unsqueeze(-1).expand(*tag.shape, 2)
    objects = tag[..., None, None].expand(*tag.shape, 2, 3)
    return Observation(ego, objects, tag.unsqueeze(-1).expand(*tag.shape, 2))


def small_replay(
    rows: int,
    worlds: int = 1,
    robots: int = 1,
    device: str = "cpu",
    seed: int = 0,
    keeps_next: bool = True,
    **config: object,
) -> DeviceReplay:
    shapes = Observation((2,), (2, 3), (2,))
    layout = TransitionLayout(worlds, robots, shapes, (2,), torch.float32, keeps_next=keeps_next)
    options = {"capacity": rows * worlds * robots, "gamma": GAMMA} | config
    generator = torch.Generator(device).manual_seed(seed)
    return DeviceReplay(ReplayConfig(**options), layout, device, generator)


def store_row(
    replay: DeviceReplay,
    tag: float,
    reward: Tensor | None = None,
    acted: Tensor | None = None,
    terminated: Tensor | None = None,
    truncated: Tensor | None = None,
) -> None:
    """Store a row whose slot s holds tag + s / 100, and tag + s / 100 + 0.5 as next observation."""
    grid = (replay.layout.worlds, replay.layout.robots)
    device = replay.device
    tags = tag + torch.arange(grid[0] * grid[1], device=device).view(grid) / 100
    nothing = torch.zeros(grid, dtype=torch.bool, device=device)
    replay.store(
        tagged_observation(tags),
        tags.unsqueeze(-1).expand(*grid, 2),
        tags if reward is None else reward.to(device),
        ~nothing if acted is None else acted.to(device),
        nothing if terminated is None else terminated.to(device),
        nothing if truncated is None else truncated.to(device),
        tagged_observation(tags + 0.5),
    )


def store_random_activity(replay: DeviceReplay, rows: int, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    grid = (replay.layout.worlds, replay.layout.robots)
    for t in range(rows):
        store_row(replay, float(t), acted=torch.rand(grid, generator=generator) < 0.6)
