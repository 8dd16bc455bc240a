"""AnalysisReceiver: the numbers a reader can check by hand, in every file it writes."""

import json

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from train_RL_agents.metrics import writer
from train_RL_agents.metrics.reductions import Histogram, Mean
from train_RL_agents.metrics.writer import AnalysisReceiver, cut_back, read_metrics


def events(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0})
    accumulator.Reload()
    return accumulator


def test_one_record(tmp_path):
    receiver = AnalysisReceiver(tmp_path, headline=False)
    receiver.receive(
        mode="train",
        step=40,
        loss=torch.tensor(0.25),
        success=Mean(torch.tensor(3.0), torch.tensor(4)),
        nothing=Mean(torch.tensor(0.0), torch.tensor(0)),
        returns=np.array([[0.0, 1.0], [2.0, 5.0]], dtype=np.float32),
        action=Histogram(torch.tensor([1, 0, 0, 3]), -1.0, 1.0),
        rate=12.5,
    )
    summary = receiver.close()
    (record,) = read_metrics(tmp_path / "metrics.jsonl")
    assert (record["mode"], record["step"]) == ("train", 40)
    assert record["loss"] == 0.25
    assert record["success"] == 0.75
    assert "nothing" not in record
    assert record["rate"] == 12.5
    assert record["returns"]["mean"] == 2.0
    assert record["returns"]["max"] == 5.0
    assert record["returns"]["std"] == pytest.approx(np.std([0, 1, 2, 5]))
    assert sum(record["returns"]["histogram"]["counts"]) == 4
    assert record["action"]["mean"] == pytest.approx((-0.75 + 3 * 0.75) / 4)
    assert record["action"]["p50"] == pytest.approx(0.5 + 0.5 / 3)
    assert summary["modes"]["train"]["values"]["loss"]["last"] == 0.25
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    written = events(tmp_path)
    assert written.Scalars("train/loss")[0].value == 0.25
    assert written.Scalars("train/loss")[0].step == 40
    assert sum(written.Histograms("train/action/histogram")[0].histogram_value.bucket) == 4


def test_steps_count_records_when_none_is_given(tmp_path):
    receiver = AnalysisReceiver(tmp_path)
    for _ in range(3):
        receiver.receive(mode="stage 1", success=True)
    receiver.close()
    assert [record["step"] for record in read_metrics(tmp_path / "metrics.jsonl")] == [0, 1, 2]


def test_an_interval_is_one_transfer(tmp_path, monkeypatch):
    transfers = []
    original = writer.transfer
    monkeypatch.setattr(
        writer, "transfer", lambda entries: transfers.append(len(entries)) or original(entries)
    )
    receiver = AnalysisReceiver(tmp_path)
    with receiver.interval():
        receiver.receive(mode="train", step=1, loss=torch.tensor(1.0), q=torch.arange(4.0))
        receiver.receive(mode="stage 1", step=1, success=torch.tensor(0.5))
    receiver.close()
    assert transfers == [3]
    assert receiver.latest["stage 1"] == {"success": 0.5}


def test_non_finite_values_reach_the_caller_and_leave_valid_json(tmp_path):
    receiver = AnalysisReceiver(tmp_path)
    receiver.receive(mode="train", loss=torch.tensor(float("nan")), q=torch.tensor([1.0, np.inf]))
    receiver.close()
    assert np.isnan(receiver.latest["train"]["loss"])
    (record,) = read_metrics(tmp_path / "metrics.jsonl")
    assert record["loss"] is None


def test_cut_back_leaves_no_doubled_step(tmp_path):
    receiver = AnalysisReceiver(tmp_path)
    for step in (10, 20):
        receiver.receive(mode="train", step=step, q_loss=float(step))
    sizes = receiver.sync()
    receiver.receive(mode="train", step=30, q_loss=30.0)
    receiver.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"mode": "train", "st')
    (event_file,) = tmp_path.glob("events.out*")
    event_file.with_name(event_file.name + ".1").write_bytes(event_file.read_bytes()[:-3])
    cut_back(tmp_path, sizes)
    receiver = AnalysisReceiver(tmp_path)
    receiver.receive(mode="train", step=30, q_loss=-30.0)
    receiver.close()
    records = read_metrics(tmp_path / "metrics.jsonl")
    assert [(r["step"], r["q_loss"]) for r in records] == [(10, 10.0), (20, 20.0), (30, -30.0)]
    scalars = events(tmp_path).Scalars("train/q_loss")
    # Files of one second are read by the number in their names, as text: 10 comes before 9.
    assert sorted((s.step, s.value) for s in scalars) == [(10, 10.0), (20, 20.0), (30, -30.0)]


def test_a_number_has_one_tag_however_many_there_were(tmp_path):
    receiver = AnalysisReceiver(tmp_path, headline=False)
    for step, times in enumerate(([], [20.0], [20.0, 30.0])):
        receiver.receive(mode="evaluation, 3 robots", step=step, time_s=torch.tensor(times))
    receiver.close()
    scalars = events(tmp_path).Scalars("evaluation_3_robots/time_s")
    assert [(scalar.step, scalar.value) for scalar in scalars] == [(1, 20.0), (2, 25.0)]
    assert "evaluation_3_robots/time_s/std" in events(tmp_path).Tags()["scalars"]


def test_tensorboard_shows_the_headline_and_the_file_has_all(tmp_path):
    receiver = AnalysisReceiver(tmp_path)
    receiver.receive(mode="train", success=0.5, q_loss=torch.tensor([1.0, 3.0]), updates=4)
    receiver.receive(mode="stage 1", success=0.5)
    receiver.receive(mode="evaluation, 3 robots", success=0.5, energy=7.0)
    receiver.close()
    written = events(tmp_path)
    tags = ["evaluation_3_robots/success", "train/q_loss", "train/success"]
    assert sorted(written.Tags()["scalars"]) == tags
    assert written.Scalars("train/q_loss")[0].value == 2.0
    assert not written.Tags()["histograms"]
    records = read_metrics(tmp_path / "metrics.jsonl")
    assert [sorted(record) for record in records] == [
        ["mode", "q_loss", "step", "success", "updates"],
        ["mode", "step", "success"],
        ["energy", "mode", "step", "success"],
    ]


@pytest.mark.parametrize(
    "entry", ['"x"', "[1]", '{"mean": "x"}', "1" + "0" * 400, "1" + "0" * 9000]
)
def test_a_record_without_numbers_is_damaged(tmp_path, capsys, entry):
    lines = [
        '{"mode": "train", "step": 1, "loss": 2.0}',
        f'{{"mode": "train", "step": 2, "a": {entry}}}',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert [record["step"] for record in read_metrics(tmp_path / "metrics.jsonl")] == [1]
    assert "damaged lines are left out: 2" in capsys.readouterr().err
