"""What other programs have recorded, on the page."""

import json
from pathlib import Path

import numpy as np
import pytest

from marinenav_env.fields import ConfigError
from train_RL_agents import evaluate
from train_RL_agents.evaluation.report import seeds, throughput
from train_RL_agents.evaluation.report.page import Records, _of_records, read_records
from train_RL_agents.run.provenance import EVALUATION

BENCHMARKS = Path(__file__).parents[4] / "docs" / "benchmarks"


def write_run(folder, success, robots=3):
    folder.mkdir(parents=True)
    rows = [
        {"robots": robots + i, "vortices": 0, "buoys": 0, "min_distance_m": 30.0, "success": share}
        for i, share in enumerate(success)
    ]
    (folder / "evaluation.json").write_text(json.dumps({"stages": rows}))
    records = [
        {"mode": f"evaluation, {i}", "step": step, "success": share * step / 2, "episodes": 10}
        for step in (1, 2)
        for i, share in enumerate(success)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.fixture
def sweeps(tmp_path):
    for seed, share in enumerate((0.2, 0.4, 0.6, 0.8)):
        write_run(tmp_path / "low" / f"seed_{seed}", [share, share])
        write_run(tmp_path / "high" / f"seed_{seed}", [share + 0.1, 1.0])
    return [str(tmp_path / "low"), str(tmp_path / "high")]


def test_scores_by_hand(sweeps):
    low, high = (seeds.read_training(Path(folder)) for folder in sweeps)
    assert seeds.interquartile_mean(low.success) == pytest.approx(0.5)  # of .4 .4 .6 .6
    assert seeds.interquartile_mean(high.success) == pytest.approx((0.7 + 0.9 + 1.0 + 1.0) / 4)
    # The first stage: .3 beats one, .5 two, .7 three, .9 four of four; the second: always.
    assert seeds.improvement(high.success, low.success) == pytest.approx((10 / 16 + 1.0) / 2)
    assert seeds.improvement(low.success, low.success) == 0.5
    # In 13 of 256 cases the worst seed is drawn three or four times, which is so in all stages.
    assert seeds.iqm_interval(low.success) == pytest.approx((0.2, 0.8))
    ten = np.linspace(0.0, 0.9, 10)[:, None]
    alone, in_three_stages = (seeds.iqm_interval(np.repeat(ten, n, axis=1)) for n in (1, 3))
    assert in_three_stages == pytest.approx(alone, abs=0.02)
    assert 0.15 < alone[0] < 0.3 < 0.6 < alone[1] < 0.75
    rows = seeds.rows_of([low, high])
    assert rows[0][:3] == ("low", "4", "0.500")
    assert rows[1][4] == "0.81"


def test_curves_and_profile(sweeps):
    training = seeds.read_training(Path(sweeps[0]))
    figure = seeds.curves([training])
    *_, course, profile = figure.data
    assert list(course.x) == [1, 2]
    assert list(course.y) == pytest.approx([0.25, 0.5], abs=0.03)  # whole successes of ten
    assert profile.y[np.searchsorted(profile.x, 0.5)] == 0.5
    assert profile.y[0] == 1.0


@pytest.mark.parametrize("text", ["", '{"mode": "train", "step": 1}\n'])
def test_seeds_under_way_do_not_count(sweeps, text):
    before = seeds.read_training(Path(sweeps[0]))
    begun = Path(sweeps[0]) / "seed_7"
    begun.mkdir()
    (begun / "metrics.jsonl").write_text(text)
    training = seeds.read_training(Path(sweeps[0]))
    assert training.run == before.run
    assert len(seeds.curves([training]).data[2].x) == 2


def test_other_stages_are_not_compared(sweeps, tmp_path):
    write_run(tmp_path / "other", [0.5, 0.5], robots=7)
    trainings = read_records([*sweeps[:1], str(tmp_path / "other")], []).trainings
    assert seeds.rows_of(trainings)[1][3:] == ("–", "–")  # noqa: RUF001
    write_run(tmp_path / "low" / "seed_9", [0.5, 0.5], robots=7)
    with pytest.raises(ConfigError, match=r"report-runs is .*low'.* 5 complete runs"):
        seeds.read_training(tmp_path / "low")


def test_throughput_of_records():
    record = throughput.read_benchmark(BENCHMARKS / "cpu_zen.json")
    lines = throughput.lines_of(record)
    assert {mode: name for mode, (name, _) in lines.items()} == {
        "step": "step",
        "inference": "+ AC-IQN",
    }
    assert dict(lines["step"][1])[4096] == pytest.approx(10_879_954, abs=1)
    worlds = [count for count, _ in lines["inference"][1]]
    assert worlds == [1, 16, 64, 256, 4096, 65536]
    figure = throughput.throughput([("zen", record)])
    assert [line.name for line in figure.data] == ["zen: step", "zen: + AC-IQN"]
    inference = [row for row in record["rows"] if row["mode"] == "inference"]
    figure = throughput.throughput([("zen", {**record, "rows": inference})])
    assert [line.line.dash for line in figure.data] == [throughput.DASHES["inference"]]


def test_sections(sweeps):
    figures = {}
    benchmark = throughput.read_benchmark(BENCHMARKS / "cpu_zen.json")
    more = Records(read_records(sweeps, []).trainings, [("zen", benchmark)])
    titles = dict(_of_records(more, figures))
    assert list(titles) == ["Across seeds", "Throughput"]
    assert set(figures) == {"seeds", "throughput"}
    assert "With fewer than 5 seeds" in titles["Across seeds"]
    assert benchmark["commit"] in titles["Throughput"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report-runs", "nowhere"], "report-runs is 'nowhere', which holds 0 complete runs"),
        (["--report-runs", "useless"], "no table of stages with their success"),
        (["--report-benchmarks", "nowhere"], "record 'nowhere' cannot be read"),
        (
            ["--report-benchmarks", str(BENCHMARKS / "kills.json")],
            "has no rows with mode, agent",
        ),
    ],
)
def test_what_is_refused_before_any_work(options, message, tmp_path, refused, monkeypatch):
    monkeypatch.setattr(evaluate, "evaluate", None)
    monkeypatch.chdir(tmp_path)
    useless = tmp_path / "useless" / EVALUATION
    useless.parent.mkdir()
    useless.write_text('{"stages": [{"robots": 3}]}')
    command = ["--checkpoint", "baseline:orca", "--report", str(tmp_path), *options]
    refused(evaluate.main, command, message)


def test_records_without_a_page_are_refused(refused):
    command = ["--checkpoint", "baseline:orca", "--report-runs", "runs/A"]
    refused(evaluate.parse, command, "goes with --report", status=2)
