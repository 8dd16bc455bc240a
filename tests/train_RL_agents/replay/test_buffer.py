"""What the replay gives back, its memory, its saved state, and what it refuses."""

import dataclasses
import functools

import pytest
import torch

from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from tests.host_reads import no_host_reads
from tests.train_RL_agents.replay.small_replays import (
    GAMMA,
    small_replay,
    store_random_activity,
    store_row,
    tagged_observation,
)
from train_RL_agents.replay import layout
from train_RL_agents.replay.buffer import DeviceReplay, ReplayConfig, TransitionLayout
from train_RL_agents.replay.layout import required_bytes
from train_RL_agents.replay.sum_tree import LARGEST_WEIGHT, MOST_WEIGHTED_SLOTS

CPU = torch.device("cpu")


@pytest.mark.parametrize("width", [8, 70_000], ids=["small", "beyond 31 bits"])
def test_a_ring_of_any_size_gives_back_what_it_holds(device, width):
    """The second has more numbers in a ring than an int32 counts."""
    worlds, robots, rows = 128, 4, 63
    elements = rows * worlds * robots * width
    assert (elements > 2**31) == (width > 8)
    if elements > 2**31 and (device == "cpu" or memory.free_bytes(torch.device(device)) < 2**35):
        pytest.skip("needs a GPU with 32 GiB")
    layout = TransitionLayout(
        worlds, robots, Observation((width,), (1, 1), (1,)), (1,), torch.float32
    )
    options = {"capacity": rows * worlds * robots, "gamma": GAMMA}
    replay = DeviceReplay(ReplayConfig(**options), layout, device)
    flags = torch.ones(worlds, robots, dtype=torch.bool, device=device)
    slots = torch.arange(worlds * robots, device=device).view(worlds, robots, 1).float()
    small = slots.unsqueeze(-1)
    for row in range(rows):
        ego = (slots + 1000.0 * row).expand(worlds, robots, width)
        seen = Observation(ego, small, slots)
        replay.store(seen, slots, slots[..., 0], flags, flags, ~flags, seen)
    index = torch.arange(replay.rows * worlds * robots, device=device)[:: worlds * robots - 1]
    batch = replay.gather(index, torch.ones_like(index))
    row, slot = index // (worlds * robots), index % (worlds * robots)
    assert torch.equal(batch.obs.ego[:, 0], (slot + 1000.0 * row).float())
    assert torch.equal(batch.obs.ego[:, -1], batch.next_obs.ego[:, 0])
    assert torch.equal(batch.reward, slot.float())


@pytest.mark.parametrize("prioritized", [False, True])
def test_the_device_is_not_read(prioritized: bool, device: str) -> None:
    replay = small_replay(2000, 4, 3, device=device, n_step=3, prioritized=prioritized)
    beta = torch.tensor(0.7, device=device)
    grid = torch.zeros(4, 3, device=device)
    flags = grid.bool()
    observation = tagged_observation(grid)
    action = torch.zeros(4, 3, 2, device=device)
    with no_host_reads():
        for _ in range(3):
            replay.store(observation, action, grid, ~flags, flags, flags, observation)
            replay.set_beta(beta)
            batch = replay.sample(16)
            replay.update_priorities(batch.index, batch.reward)


@pytest.mark.parametrize("rows", [6, 25])
def test_a_resumed_replay_samples_the_same(rows: int, tmp_path, device: str) -> None:
    options = {"n_step": 2, "prioritized": True, "device": device}
    replay = small_replay(15, 4, 3, **options)
    store_random_activity(replay, rows)
    replay.update_priorities(replay.sample(200).index, 9 * torch.rand(200, device=device))
    replay.set_beta(0.9)
    torch.save(replay.state_dict(), tmp_path / "replay.pt")

    resumed = small_replay(15, 4, 3, seed=5, **options)
    store_random_activity(resumed, 20, seed=9)  # must leave no trace
    resumed.load_state_dict(torch.load(tmp_path / "replay.pt", map_location="cpu"))
    states = replay.state_dict(), resumed.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert int(resumed.filled) == min(rows, 15)
    resumed.generator.set_state(replay.generator.get_state())
    for t in range(20):
        for one in (replay, resumed):
            store_row(one, 50.0 + t)
        expected, got = replay.sample(64), resumed.sample(64)
        flat = [(*batch.obs, *batch.next_obs, *batch[1:3], *batch[4:]) for batch in (expected, got)]
        for a, b in zip(*flat, strict=True):
            assert torch.equal(a, b)
        for one, batch in ((replay, expected), (resumed, got)):
            one.update_priorities(batch.index, batch.reward)


@pytest.mark.parametrize("rows", [0, 3, 1000])
def test_state_is_saved_without_a_copy_on_the_device(rows: int, tmp_path, device: str) -> None:
    replay = small_replay(1000, device=device)
    for t in range(rows):
        store_row(replay, float(t))
    state = replay.state_dict()
    for name, ring in replay._ring.items():
        assert state[name].shape == (rows, *ring.shape[1:])
        assert state[name].device.type == "cpu"
        if device == "cpu" and rows:
            assert state[name].data_ptr() == ring.data_ptr()
    torch.save(state, tmp_path / "replay.pt")  # torch.save writes a tensor's whole storage
    assert (tmp_path / "replay.pt").stat().st_size < 10_000 + 110 * rows + 8 * 1000
    loaded = torch.load(tmp_path / "replay.pt", map_location="cpu")
    assert all(torch.equal(loaded[name], tensor.cpu()) for name, tensor in state.items())


def test_required_bytes_are_those_allocated() -> None:
    ego, objects, mask = torch.zeros(8, 5, 7), torch.zeros(8, 5, 5, 5), torch.zeros(8, 5, 5)
    config = ReplayConfig(capacity=10_000, n_step=3)
    for action in (torch.zeros(8, 5, 2), torch.zeros(8, 5, dtype=torch.int64)):
        for keeps_next, least in ((True, 319), (False, 171)):
            layout = TransitionLayout.of(Observation(ego, objects, mask), action)
            layout = dataclasses.replace(layout, keeps_next=keeps_next)
            replay = DeviceReplay(config, layout, "cpu")
            assert required_bytes(config, layout) == replay.nbytes
            assert least <= replay.nbytes / 10_000 < least + 11


def test_what_followed_is_kept_for_those_alone_who_learn_from_it() -> None:
    whole, half = (small_replay(8, 4, 3, keeps_next=keeps_next) for keeps_next in (True, False))
    for row in range(3):
        store_row(whole, float(row))
        store_row(half, float(row))
    expected, got = whole.sample(50), half.sample(50)
    assert got.next_obs == ()
    assert half.nbytes == whole.nbytes - whole._ring["next_obs"].nbytes
    flat = [(*batch.obs, *batch[1:3], *batch[4:]) for batch in (expected, got)]
    for a, b in zip(*flat, strict=True):
        assert torch.equal(a, b)


def test_storing_allocates_nothing_that_stays() -> None:
    replay = small_replay(50, 4, 3, prioritized=True)
    before = (replay.nbytes, [tensor.data_ptr() for tensor in replay._ring.values()])
    store_random_activity(replay, 120)
    assert (replay.nbytes, [tensor.data_ptr() for tensor in replay._ring.values()]) == before


def test_discrete_actions_and_single_rows_survive() -> None:
    layout = TransitionLayout(2, 1, Observation((3,), (0, 5), (0,)), (), torch.int64)
    replay = DeviceReplay(ReplayConfig(capacity=20), layout, "cpu")
    none = Observation(torch.ones(2, 1, 3), torch.zeros(2, 1, 0, 5), torch.zeros(2, 1, 0))
    flags = torch.zeros(2, 1, dtype=torch.bool)
    action = torch.tensor([[24], [3]])
    replay.store(none, action, torch.zeros(2, 1), ~flags, flags, flags, none)
    batch = replay.sample(50)
    assert batch.action.dtype == torch.int64
    assert torch.equal(batch.action, action.flatten()[batch.index])
    assert batch.obs.objects.shape == (50, 0, 5)


def test_too_small_a_capacity_is_refused() -> None:
    assert small_replay(4, 10, 5, n_step=3).rows == 4
    with pytest.raises(ConfigError, match=r"replay\.capacity is 199.*at least 200.*raise"):
        small_replay(4, 10, 5, n_step=3, capacity=199)


def test_priorities_that_could_overflow_are_refused() -> None:
    largest = MOST_WEIGHTED_SLOTS
    assert largest * LARGEST_WEIGHT < 2**63 <= (largest + 1) * LARGEST_WEIGHT
    ReplayConfig(capacity=largest, prioritized=True)
    ReplayConfig(capacity=largest + 1)
    message = rf"replay\.capacity is {largest + 1}.*at most {largest}"
    with pytest.raises(ConfigError, match=message):
        ReplayConfig(capacity=largest + 1, prioritized=True)


def test_too_large_a_capacity_is_refused_before_it_is_allocated(monkeypatch) -> None:
    with pytest.raises(ConfigError, match=r"replay\.capacity is 1000.*give at most"):
        small_replay(1, capacity=10**15)
    needed = small_replay(100).nbytes
    monkeypatch.setattr(memory, "free_bytes", lambda device: needed)
    small_replay(100)
    monkeypatch.setattr(memory, "free_bytes", lambda device: needed - 1)
    with pytest.raises(ConfigError, match=r"replay\.capacity is 100: .*give at most 89"):
        small_replay(100)


def test_processes_share_the_free_memory_of_a_device(monkeypatch) -> None:
    replay = small_replay(100)
    size = replay.nbytes
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2 * size)
    check = functools.partial(layout.check_memory, replay.config, replay.layout, CPU)
    check(processes=2)
    with pytest.raises(ConfigError, match=r"for each of 3 processes; give at most 60"):
        check(processes=3)


@pytest.mark.parametrize("wrong", range(7))
def test_wrong_shapes_are_refused(wrong: int) -> None:
    replay = small_replay(5, 2, 3)
    grid = torch.zeros(2, 3)
    row = [tagged_observation(grid), torch.zeros(2, 3, 2), grid, *[grid.bool()] * 3]
    row.append(tagged_observation(grid))
    narrow = grid[:, :2]
    row[wrong] = tagged_observation(narrow) if wrong in (0, 6) else row[wrong][:, :2]
    with pytest.raises(ValueError, match=r"has the shape \[2, 2.*not \[2, 3"):
        replay.store(*row)


def test_a_state_of_another_replay_is_refused() -> None:
    state = small_replay(10, 2, 3).state_dict()
    with pytest.raises(ValueError, match=r"60 slots, not 66.*replay\.capacity"):
        small_replay(11, 2, 3).load_state_dict(state)
    with pytest.raises(ValueError, match="same worlds, robots"):
        small_replay(10, 3, 2).load_state_dict(state)


@pytest.mark.parametrize(
    ("name", "value"),
    [("position", 10), ("position", -1), ("filled", 11), ("new_weight", -1), ("weights", 2**62)],
)
def test_a_state_that_points_outside_the_replay_is_refused(name: str, value: int) -> None:
    state = small_replay(10, 2, 3).state_dict()
    state[name] = torch.full_like(state[name], value)
    with pytest.raises(ValueError, match=f"the saved replay's {name} has {value} to {value}"):
        small_replay(10, 2, 3).load_state_dict(state)


@pytest.mark.parametrize("value", [25, -1, 2**62])
def test_stored_actions_that_are_no_choice_are_refused(value: int) -> None:
    """The losses index by them."""
    shapes = Observation((2,), (2, 3), (2,))
    layout = TransitionLayout(2, 1, shapes, (), torch.int64, choices=25)
    replay = DeviceReplay(ReplayConfig(capacity=20), layout, "cpu")
    observation = Observation(*(torch.zeros(2, 1, *shape) for shape in shapes))
    flags = torch.zeros(2, 1, dtype=torch.bool)
    replay.store(
        observation, torch.tensor([[24], [0]]), flags.float(), ~flags, flags, flags, observation
    )
    state = replay.state_dict()
    replay.load_state_dict(state)
    state["action"] = torch.tensor([[[0], [value]]])
    with pytest.raises(
        ValueError, match=rf"action has .*{value}, which is not within 0 to 24|-1 to"
    ):
        replay.load_state_dict(state)


def test_flags_that_are_none_are_refused() -> None:
    replay = small_replay(10, 2, 3)
    store_random_activity(replay, 3)
    state = replay.state_dict()
    state["flags"] = state["flags"].clone()
    state["flags"].view(torch.uint8).flatten()[4] = 255
    with pytest.raises(ValueError, match="the saved replay's flags has 0 to 255"):
        replay.load_state_dict(state)
