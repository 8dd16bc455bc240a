"""What the replay stores and returns: windows, who is sampled, resuming, refusals."""

import functools

import pytest
import torch
from scipy import stats
from torch import Tensor

from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from tests.host_reads import no_host_reads
from train_RL_agents.replay import layout
from train_RL_agents.replay.buffer import DeviceReplay, ReplayConfig, TransitionLayout
from train_RL_agents.replay.layout import required_bytes
from train_RL_agents.replay.sum_tree import LARGEST_WEIGHT, MOST_WEIGHTED_SLOTS

GAMMA = 0.5
CPU = torch.device("cpu")


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
    **config: object,
) -> DeviceReplay:
    layout = TransitionLayout(worlds, robots, Observation((2,), (2, 3), (2,)), (2,), torch.float32)
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


def store_history(replay: DeviceReplay, history: str) -> None:
    """Store one robot's decisions: ``.`` continues, ``T`` terminated, ``L`` limit, ``-`` inactive.

    Row k has the tag k and the reward 2^k.
    """
    for k, what in enumerate(history):
        acted, terminated, truncated = what != "-", what == "T", what == "L"
        flags = (torch.tensor([[flag]]) for flag in (acted, terminated, truncated))
        store_row(replay, float(k), torch.tensor([[2.0**k]]), *flags)


# (history, first row, return, tag of the next observation, discount) for n = 3, gamma = 0.5, where
# the reward of row k is 2^k: each further decision adds 2^first to the return.
WINDOWS = {
    "whole": ("......", 1, 2 * 3, 3.5, 0.125),
    "termination in the first decision": ("..T...", 2, 4 * 1, 2.5, 0.0),
    "termination in the second": ("..T...", 1, 2 * 2, 2.5, 0.0),
    "termination in the last": ("..T...", 0, 1 * 3, 2.5, 0.0),
    "termination after the window": ("....T.", 1, 2 * 3, 3.5, 0.125),
    "truncation in the first decision": ("..L...", 2, 4 * 1, 2.5, 0.5),
    "truncation in the second": ("..L...", 1, 2 * 2, 2.5, 0.25),
    "truncation in the last": ("..L...", 0, 1 * 3, 2.5, 0.125),
    "ring's head, one decision": ("......", 5, 32 * 1, 5.5, 0.5),
    "ring's head, two decisions": ("......", 4, 16 * 2, 5.5, 0.25),
    "ring's head, whole": ("......", 3, 8 * 3, 5.5, 0.125),
    "termination in the newest row": (".....T", 4, 16 * 2, 5.5, 0.0),
    "slot inactive in the next row": ("..-...", 1, 2 * 1, 1.5, 0.5),
    "slot inactive, then another episode": (".T-...", 0, 1 * 2, 1.5, 0.0),
    "next episode right after a termination": (".TT...", 1, 2 * 1, 1.5, 0.0),
    "next episode right after a truncation": (".LT...", 0, 1 * 2, 1.5, 0.25),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_window_is_cut_where_the_episode_is(case: str, device: str) -> None:
    history, first, expected_return, next_tag, discount = WINDOWS[case]
    for start in (0, 3):  # in a fresh ring, and across its seam
        replay = small_replay(7, n_step=3, device=device)
        for _ in range(start):
            store_row(replay, 99.0)
        store_history(replay, history)
        index = torch.tensor([(start + first) % 7], device=device)
        batch = replay.gather(index, replay.tree.weights[index])
        assert batch.reward.tolist() == [expected_return]
        assert batch.discount.tolist() == [discount]
        for field in batch.next_obs:
            assert (field == next_tag).all()
        for field in (*batch.obs, batch.action):
            assert (field == first).all()


def reference_window(
    rows: list[dict[str, Tensor]], first: int, slot: int, n_step: int
) -> tuple[float, int, float]:
    """Return n-step return, last row and discount from all rows ever stored, as a plain loop."""
    total = 0.0
    for k in range(n_step):
        row = rows[first + k]
        total += GAMMA**k * float(row["reward"].flatten()[slot])
        if row["terminated"].flatten()[slot]:
            return total, first + k, 0.0
        over = row["truncated"].flatten()[slot] or first + k + 1 == len(rows)
        if over or k + 1 == n_step or not rows[first + k + 1]["acted"].flatten()[slot]:
            return total, first + k, GAMMA ** (k + 1)
    raise AssertionError("the loop returns in its last round")


@pytest.mark.parametrize("n_step", [1, 2, 5])
@pytest.mark.parametrize("stored", [8, 20, 53])
def test_random_episodes_match_a_plain_loop(n_step: int, stored: int, device: str) -> None:
    worlds, robots, ring = 3, 4, 20
    generator = torch.Generator().manual_seed(stored + n_step)
    replay = small_replay(ring, worlds, robots, device=device, n_step=n_step)
    live = torch.ones(worlds, robots, dtype=torch.bool)
    rows = []
    for t in range(stored):
        chance = torch.rand(worlds, robots, generator=generator)
        terminated = live & (chance < 0.15)
        cut = torch.rand(worlds, 1, generator=generator) < 0.1
        truncated = live & ~terminated & cut
        reward = torch.randn(worlds, robots, generator=generator)
        row = {"reward": reward, "acted": live}
        rows.append(row | {"terminated": terminated, "truncated": truncated})
        store_row(replay, float(t), reward, live, terminated, truncated)
        live = live & ~terminated
        over = cut | ~live.any(1, keepdim=True)
        live = live | over  # worlds that are over begin anew in the next row

    oldest = max(0, stored - ring)
    index, expected = [], []
    for t in range(oldest, stored):
        for slot in range(worlds * robots):
            if rows[t]["acted"].flatten()[slot]:
                index.append(t % ring * worlds * robots + slot)
                expected.append((*reference_window(rows, t, slot, n_step), t, slot))
    index = torch.tensor(index, device=device)
    assert len(replay) == len(index)
    batch = replay.gather(index, replay.tree.weights[index])
    returns, last, discounts, first, slots = torch.tensor(expected, device=device).unbind(1)
    torch.testing.assert_close(batch.reward, returns)
    torch.testing.assert_close(batch.discount, discounts)
    torch.testing.assert_close(batch.obs.ego[:, 0], first + slots / 100)
    torch.testing.assert_close(batch.next_obs.objects[:, 1, 2], last + slots / 100 + 0.5)


def store_random_activity(replay: DeviceReplay, rows: int, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    grid = (replay.layout.worlds, replay.layout.robots)
    for t in range(rows):
        store_row(replay, float(t), acted=torch.rand(grid, generator=generator) < 0.6)


@pytest.mark.parametrize("rows", [7, 20, 33])
def test_every_active_transition_is_equally_likely(rows: int, device: str) -> None:
    replay = small_replay(20, worlds=5, robots=3, device=device)
    store_random_activity(replay, rows)
    acted = replay._ring["flags"][..., 0].flatten().cpu()
    batch = replay.sample(200_000)
    counts = torch.bincount(batch.index.cpu(), minlength=len(acted))
    assert not counts[~acted].any()
    assert stats.chisquare(counts[acted]).pvalue > 1e-3
    assert (batch.weight == 1).all()
    assert len(replay) == int(acted.sum())


def test_draws_of_a_batch_are_independent() -> None:
    # A batch may be split: were draws stratified over the ring, its first half would be older.
    replay = small_replay(64)
    for t in range(64):
        store_row(replay, float(t))
    index = replay.sample(20_000).index.double()
    assert abs(index[:10_000].mean() - index[10_000:].mean()) < 4 * 18.5 * (2 / 10_000) ** 0.5
    assert abs(torch.corrcoef(torch.stack((index[:-1], index[1:])))[0, 1]) < 4 / 20_000**0.5


def test_nothing_stored_gives_weight_zero(device: str) -> None:
    batch = small_replay(5, n_step=2, device=device).sample(4)
    assert not batch.weight.any()
    assert torch.isfinite(batch.reward).all()


def test_prioritised_draws_follow_the_priorities(device: str) -> None:
    replay = small_replay(40, 5, 3, device=device, prioritized=True, alpha=0.6, beta=0.4)
    store_random_activity(replay, 55)
    acted = (replay.tree.weights > 0).nonzero().flatten()
    priority = torch.rand(len(acted), generator=torch.Generator().manual_seed(1)) * 5
    replay.update_priorities(acted, priority.to(device))
    batch = replay.sample(200_000)
    probability = (priority.double() + 1e-6) ** 0.6
    probability /= probability.sum()
    counts = torch.bincount(batch.index.cpu(), minlength=40 * 15)
    assert int(counts.sum()) == int(counts[acted.cpu()].sum())
    assert stats.chisquare(counts[acted.cpu()], 200_000 * probability).pvalue > 1e-3

    of_slot = torch.zeros(40 * 15, dtype=torch.float64)
    of_slot[acted.cpu()] = probability
    weights = (len(acted) * of_slot[batch.index.cpu()]) ** -0.4
    torch.testing.assert_close(
        batch.weight.cpu().double(), weights / weights.max(), rtol=1e-4, atol=0
    )


def test_a_new_transition_gets_the_largest_priority_so_far(device: str) -> None:
    replay = small_replay(10, device=device, prioritized=True, alpha=1.0)
    store_row(replay, 0.0)
    store_row(replay, 1.0)
    first, both = (torch.tensor(index, device=device) for index in ([0], [0, 1]))
    replay.update_priorities(both, torch.tensor([7.0, 0.5], device=device))
    replay.update_priorities(first, torch.tensor([2.0], device=device))
    store_row(replay, 2.0)
    weights = replay.tree.weights[:3] / replay.tree.weights[0]
    torch.testing.assert_close(weights.cpu(), torch.tensor([1.0, 0.25, 3.5]))


def test_an_overwritten_slot_of_an_inactive_robot_stays_unreachable(device: str) -> None:
    replay = small_replay(3, device=device, prioritized=True)
    for t in range(3):
        store_row(replay, float(t))
    batch = replay.sample(100)
    store_row(replay, 3.0, acted=torch.tensor([[False]]))
    replay.update_priorities(batch.index, torch.ones(100, device=device))
    assert set(replay.sample(1000).index.tolist()) == {1, 2}


def test_uniform_sampling_ignores_priorities() -> None:
    replay = small_replay(4)
    for t in range(4):
        store_row(replay, float(t))
    before = replay.tree.weights.clone()
    replay.update_priorities(torch.tensor([1]), torch.tensor([9.0]))
    assert torch.equal(replay.tree.weights, before)


def test_beta_can_be_changed_between_batches() -> None:
    replay = small_replay(2, prioritized=True, alpha=1.0, beta=1.0)
    for t in range(2):
        store_row(replay, float(t))
    index = torch.tensor([0, 1])
    replay.update_priorities(index, torch.tensor([1.0, 4.0]))
    for beta, smallest in ((0.5, 0.5), (torch.tensor(1.0), 0.25), (0.0, 1.0)):
        replay.set_beta(beta)
        weight = replay.gather(index, replay.tree.weights).weight
        torch.testing.assert_close(weight, torch.tensor([1.0, smallest]))


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
        layout = TransitionLayout.of(Observation(ego, objects, mask), action)
        replay = DeviceReplay(config, layout, "cpu")
        assert required_bytes(config, layout) == replay.nbytes
        assert 319 <= replay.nbytes / 10_000 < 330


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
