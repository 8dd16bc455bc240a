"""Times drawing from and updating the replay at 1e5, 1e6 and 1e7 entries.

The device's sum tree stands beside a flat float64 running sum on the same device and a binary sum
tree in NumPy on the CPU, and the whole replay (drawing, n-step windows, gathering; priorities;
storing a row) beside them. All are timed in turn within each round, so that a busy machine slows
them alike; the figures are medians over the rounds, with the best round beside them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from marinenav_env.envs.observation import Observation
from marinenav_env.files import write_json
from scripts.bench.machine import record_head, release_memory, timed
from train_RL_agents.commands.console import open_console
from train_RL_agents.commands.parser import Parser, output_file
from train_RL_agents.replay.buffer import DeviceReplay, ReplayConfig, TransitionLayout
from train_RL_agents.replay.sum_tree import SumTree, weight_of_priority

ENTRIES = (100_000, 1_000_000, 10_000_000)
BATCHES = (256, 2048)
WORLDS, ROBOTS = 1024, 5
ALPHA = 0.6
BASE = "sum tree, prioritised"

Times = tuple[list[float], list[float]]
Works = dict[str, tuple[Callable[[], object], Callable[[], object] | None]]


class FlatSum:
    """What a few lines of torch do: a running sum over all entries for every batch."""

    def __init__(self, priorities: Tensor) -> None:
        """Take over priorities [N]."""
        self.weights = priorities.double() ** ALPHA

    def sample(self, batch_size: int) -> Tensor:
        """Draw entries in proportion to their weights."""
        sums = self.weights.cumsum(0)
        draws = torch.rand(batch_size, dtype=torch.float64, device=sums.device) * sums[-1]
        return torch.searchsorted(sums, draws, right=True)

    def update(self, index: Tensor, priority: Tensor) -> None:
        """Set priorities."""
        self.weights.index_copy_(0, index, priority.double() ** ALPHA)


class NumpySumTree:
    """The usual sum tree of prioritised replay: a binary heap on the CPU, here vectorised."""

    def __init__(self, priorities: Tensor) -> None:
        """Take over priorities [N]; batches go back to their device."""
        self.device = priorities.device
        self.leaves = 2 ** math.ceil(math.log2(len(priorities)))
        self.heap = np.zeros(2 * self.leaves)
        self.heap[self.leaves : self.leaves + len(priorities)] = priorities.cpu().numpy() ** ALPHA
        first = self.leaves
        while first > 1:
            pairs = self.heap[first : 2 * first].reshape(-1, 2)
            first //= 2
            self.heap[first : 2 * first] = pairs.sum(1)

    def sample(self, batch_size: int) -> Tensor:
        """Draw entries in proportion to their weights."""
        draws = np.random.uniform(0, self.heap[1], batch_size)
        node = np.ones(batch_size, dtype=np.int64)
        while node[0] < self.leaves:
            node *= 2
            left = self.heap[node]
            right = draws >= left
            draws -= left * right
            node += right
        return torch.from_numpy(node - self.leaves).to(self.device)

    def update(self, index: Tensor, priority: Tensor) -> None:
        """Set priorities and sum their ancestors again."""
        node = index.cpu().numpy() + self.leaves
        self.heap[node] = priority.cpu().numpy() ** ALPHA
        while node[0] > 1:
            node = np.unique(node // 2)
            self.heap[node] = self.heap[2 * node] + self.heap[2 * node + 1]


def filled_replay(entries: int, prioritized: bool, device: torch.device) -> DeviceReplay:
    """Return a full replay of the standard observation, 5 robots a world, 3-step returns."""
    grid = (WORLDS, ROBOTS)
    layout = TransitionLayout(*grid, ((7,), (5, 5), (5,)), (2,), torch.float32)
    config = ReplayConfig(capacity=entries, n_step=3, prioritized=prioritized)
    replay = DeviceReplay(config, layout, device)
    store = store_random_row(replay)
    for _ in range(replay.rows):
        store()
    return replay


def store_random_row(replay: DeviceReplay) -> Callable[[], None]:
    """Return what stores the same random row, four in five robots acted, again and again."""
    grid, device = (WORLDS, ROBOTS), replay.device
    obs, next_obs = (
        Observation(*(torch.rand(*grid, *shape, device=device) for shape in ((7,), (5, 5), (5,))))
        for _ in range(2)
    )
    action, reward = torch.rand(*grid, 2, device=device), torch.rand(grid, device=device)
    acted = torch.rand(grid, device=device) < 0.8
    ended = acted & (torch.rand(grid, device=device) < 0.01)
    flags = (acted, ended, torch.zeros_like(ended))
    return lambda: replay.store(obs, action, reward, *flags, next_obs)


def index_works(priorities: Tensor, batch: int) -> Works:
    """Return drawing and updating by each structure, without any data behind it."""
    entries, device = len(priorities), priorities.device
    uniform, tree = SumTree(entries, device), SumTree(entries, device)
    uniform.load_weights(torch.ones_like(priorities, dtype=torch.int64))
    tree.load_weights(weight_of_priority(priorities, ALPHA))
    flat, heap = FlatSum(priorities), NumpySumTree(priorities)
    index = torch.randint(0, entries, (batch,), device=device)
    fresh = torch.rand(batch, device=device)
    tree_works = (
        lambda: tree.sample(batch),
        lambda: tree.set(index, weight_of_priority(fresh, ALPHA)),
    )
    works: Works = {
        BASE: tree_works,
        "sum tree, uniform": (lambda: uniform.sample(batch), None),
        "flat float64 sum": (
            lambda: flat.sample(batch),
            lambda: flat.update(index, fresh),
        ),
        "NumPy tree on the CPU": (
            lambda: heap.sample(batch),
            lambda: heap.update(index, fresh),
        ),
    }
    if device.type == "cuda":
        sample, update = tree_works
        works["sum tree, captured"] = captured(sample), captured(update)
    return works


def replay_works(replay: DeviceReplay, batch: int) -> Works:
    """Return sampling whole batches and updating priorities, and storing a row (under sample)."""
    kind = "prioritised" if replay.config.prioritized else "uniform"
    index = replay.sample(batch).index
    fresh = torch.rand(batch, device=replay.device)
    update = (lambda: replay.update_priorities(index, fresh)) if kind == "prioritised" else None
    return {
        f"replay, {kind}": (lambda: replay.sample(batch), update),
        f"replay, store {WORLDS * ROBOTS}": (store_random_row(replay), None),
    }


def captured(work: Callable[[], object]) -> Callable[[], None]:
    """Return a replay of ``work`` captured in a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def measure(works: Works, rounds: int, device: torch.device) -> dict[str, Times]:
    """Return the seconds of drawing and of updating (0 where there is none), by name."""
    times: dict[str, Times] = {name: ([], []) for name in works}
    for _ in range(rounds + 2):  # two to warm up
        for name, pair in works.items():
            for work, seconds in zip(pair, times[name], strict=True):
                seconds.append(timed(device, work) if work else 0.0)
    return {name: (draw[2:], update[2:]) for name, (draw, update) in times.items()}


def rows_of(times: dict[str, Times], entries: int, batch: int) -> list[dict[str, object]]:
    """Return records, with the ratio of each total to the prioritised tree's."""
    base = sum(statistics.median(part) for part in times[BASE])
    rows = []
    for name, parts in times.items():
        draw, update = (statistics.median(part) for part in parts)
        row = {"method": name, "entries": entries, "batch": batch, "sample_us": 1e6 * draw}
        row |= {"update_us": 1e6 * update, "total_us": 1e6 * (draw + update)}
        row |= {"best_us": 1e6 * sum(map(min, parts)), "ratio": (draw + update) / base}
        rows.append(row)
    return rows


def run(
    sizes: tuple[int, ...],
    rounds: int,
    device: torch.device,
    keep: Callable[[list[dict[str, object]]], None] = lambda rows: None,
) -> list[dict[str, object]]:
    """Return the records of all sizes and batches; `keep` gets those that there are, after each."""
    rows: list[dict[str, object]] = []
    for entries in sizes:
        priorities = torch.rand(entries, device=device) + 1e-3
        replays = [filled_replay(entries, prioritized, device) for prioritized in (False, True)]
        for batch in BATCHES:
            works = index_works(priorities, batch)
            for replay in replays:
                works |= replay_works(replay, batch)
            rows += rows_of(measure(works, rounds, device), entries, batch)
            keep(rows)
        del replays, works, replay
        release_memory(device)
    return rows


def show(rows: list[dict[str, Any]], device: torch.device) -> None:
    """Print the records as a table, times in microseconds."""
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    table = Table(title=f"Replay on {device}{threads}: medians in microseconds")
    for heading in ("entries", "batch", "method", "sample", "update", "total", "best", "ratio"):
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    keys = ("sample_us", "update_us", "total_us", "best_us")
    before = None
    for row in rows:
        group = (row["entries"], row["batch"])
        if before not in (None, group):
            table.add_section()
        before = group
        figures = (f"{row[key]:,.0f}" for key in keys)
        table.add_row(
            f"{row['entries']:,}", str(row["batch"]), row["method"], *figures, f"{row['ratio']:.2f}"
        )
    open_console().print(table)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--json", type=output_file(), help="write machine, versions and rows to this file"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="measure rings of 1e5 and 1e6 entries alone, in fewer rounds",
    )
    parser.add_argument(
        "--device",
        default="cuda" if torch.cuda.is_available() else "cpu",
        help="keep the replay on this device (default %(default)s)",
    )
    options = parser.parse_args()
    device = torch.device(options.device)
    head = {**record_head(device), "device": str(device)} if options.json else {}

    def keep(rows: list[dict[str, object]]) -> None:
        if options.json:
            write_json(options.json, {**head, "rows": rows})

    sizes, rounds = (ENTRIES[:2], 15) if options.quick else (ENTRIES, 31)
    show(run(sizes, rounds, device, keep), device)


if __name__ == "__main__":
    main()
