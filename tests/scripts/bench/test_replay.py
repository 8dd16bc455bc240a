"""The replay's benchmark: its comparisons must be right to be worth timing."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from scripts.bench import replay as bench


@pytest.mark.parametrize("structure", ["FlatSum", "NumpySumTree"])
def test_the_structures_compared_draw_in_proportion(structure: str) -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    priorities = torch.rand(1000) + 1e-3
    one = getattr(bench, structure)(priorities)
    index, fresh = torch.randperm(1000)[:300], 9 * torch.rand(300)
    one.update(index, fresh)
    priorities[index] = fresh
    expected = priorities.double() ** bench.ALPHA
    counts = torch.bincount(one.sample(200_000), minlength=1000)
    assert stats.chisquare(counts, 200_000 * expected / expected.sum()).pvalue > 1e-3


def test_records_name_every_method_and_its_ratio() -> None:
    kept: list[int] = []
    cpu = torch.device("cpu")
    rows = bench.run((25_000,), 1, cpu, lambda rows: kept.append(len(rows)))
    assert kept == [7 * (i + 1) for i in range(len(bench.BATCHES))]
    assert len(rows) == kept[-1]
    for row in rows:
        assert row["total_us"] == pytest.approx(row["sample_us"] + row["update_us"])
        base = next(
            one for one in rows if one["batch"] == row["batch"] and one["method"] == bench.BASE
        )
        assert row["ratio"] == pytest.approx(row["total_us"] / base["total_us"])


def test_the_script_writes_json(monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    monkeypatch.setattr(bench, "ENTRIES", (25_000,))
    options = ["--quick", "--device", "cpu", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", ["bench_replay.py", *options])
    bench.main()
    record = json.loads(path.read_text())
    assert {"machine", "commit", "versions", "device", "rows"} <= record.keys()
    assert {row["entries"] for row in record["rows"]} == {25_000}
