"""The benchmark's tables of kernels, from made-up records of the profiler."""

import pytest
import torch
from rich.console import Console

from scripts.bench import kernels
from scripts.bench.case import Case
from scripts.bench.kernels import Span, busy_share, costliest, measure_kernels
from scripts.bench.table import print_kernels

CPU = torch.device("cpu")


def spans(*times):
    return [Span(name, float(begin), float(end)) for name, begin, end in times]


def test_busy_share_counts_overlaps_once():
    found = spans(("a", 3, 6), ("b", 0, 4), ("a", 1, 2), ("c", 8, 10))
    assert busy_share(found) == pytest.approx(0.8)
    assert busy_share([]) is None


def test_the_costliest_come_first_and_are_counted_per_decision():
    found = spans(
        ("short", 0, 1), ("long", 1, 5), ("short", 5, 6), ("short", 9, 10), ("other", 20, 21)
    )
    first, second, _ = costliest(found, times=2)
    assert first == {"kernel": "long", "calls": 0.5, "us": 2.0, "share": 0.5}
    assert second == {"kernel": "short", "calls": 1.5, "us": 1.5, "share": 0.375}
    many = costliest(spans(*((f"k{i}", 0, i + 1) for i in range(30))), times=1)
    assert [row["kernel"] for row in many] == [f"k{i}" for i in range(29, 19, -1)]
    assert costliest([], times=1) == []


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        (Case("step", CPU, worlds=3, resets="natural"), ["decision"]),
        (
            Case("train", CPU, worlds=4, agent="DQN", samples_per_insert=1.0, batch_size=64),
            ["collect", "update"],
        ),
    ],
    ids=["step", "train"],
)
def test_each_part_of_a_case_has_a_table(case, parts, monkeypatch):
    def pretend(work, times=1):
        for _ in range(times):
            work()
        return spans((work.__name__, 0, 2 * times), ("idle", 3 * times, 4 * times))

    monkeypatch.setattr(kernels, "spans_of", pretend)
    measured = measure_kernels(case)
    assert 0.0 < measured["kernel_time_share"] < 1.0
    assert list(measured["kernels"]) == parts
    if case.mode == "train":
        names = [table[0]["kernel"] for table in measured["kernels"].values()]
        assert names == ["collect", "learn"]
        assert measured["kernels"]["update"][0]["us"] == 2.0


def test_tables_are_printed():
    row = {"mode": "train", "agent": "DQN", "worlds": 8}
    row["kernels"] = {"update": costliest(spans(("gemm", 0, 4), ("add", 4, 5)), times=1)}
    console = Console(record=True, width=160)
    print_kernels(console, [{"mode": "step", "agent": None, "worlds": 4}, row])
    text = console.export_text()
    assert "train, DQN, 8 worlds: update" in text
    assert "80%" in text
    assert text.index("gemm") < text.index("add")
