"""Whatever ends a run: it is saved where it can be, one message says so, and nothing is lost."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch

from marinenav_env.files import write_atomically
from tests.conftest import ROOT, run_python
from tests.preloaded import ALONE
from tests.train_RL_agents.short_runs import SHORT, command, environment, trainer
from train_RL_agents import train
from train_RL_agents.commands.parser import tells
from train_RL_agents.run import checkpoint
from train_RL_agents.run.ending import output_may_close
from train_RL_agents.training.counters import InterruptedRunError
from train_RL_agents.training.interruption import Interruption
from train_RL_agents.training.trainer import TorchRLTrainer

ONE_STAGE = "evaluation.stages=[[1,0,0,30]]"
EVALUATED = ["--checkpoint", "baseline:goal-straight", "--stage", "1", "--episodes", "1"]
EVALUATED += ["--json", "table.json"]
pytestmark = pytest.mark.usefixtures("short_evaluations")


def ended_by(monkeypatch, folder, error):
    """Run until the second report ends with an error."""
    log, calls = TorchRLTrainer.log, iter(range(1))

    def fail(self):
        if next(calls, None) is None:
            raise error
        return log(self)

    with monkeypatch.context() as patch:
        patch.setattr(TorchRLTrainer, "log", fail)
        return train.main(["--output", str(folder), *SHORT])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full .*: make room, .*replay"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (MemoryError(), "the memory is full .*: lower worlds"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "the memory is full .CUDA out of"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you"), "the memory is full"),
    ],
)
def test_what_the_machine_lacks_is_told(tmp_path, monkeypatch, capsys, error, message):
    assert ended_by(monkeypatch, tmp_path, error) == 1
    told = capsys.readouterr().err
    assert told.count("error: ") == 1
    assert re.search(message, told)
    assert f"saved up to step 0; resume with: --resume {tmp_path}" in told


def test_a_fault_of_ours_is_not_hidden(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="a fault"):
        ended_by(monkeypatch, tmp_path, RuntimeError("a fault"))


LIMITED = """
import resource, sys
from pathlib import Path
import torch
from train_RL_agents.commands.parser import tells
from train_RL_agents.run import checkpoint
from train_RL_agents.run.ending import output_may_close
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.save(Path(sys.argv[1]), {"model": torch.zeros(1_000_000)})
except OSError as error:
    print(error.errno)
"""


def test_what_the_disk_refuses_torch_is_said_as_the_disks(tmp_path):
    path = tmp_path / "a.pt"
    checkpoint.save(path, {"step": 7})
    assert run_python(ROOT, "-c", LIMITED, path) == f"{errno.EFBIG}\n"
    assert checkpoint.load(path)["step"] == 7
    assert os.listdir(tmp_path) == ["a.pt"]


def test_a_temporary_file_follows_no_link(tmp_path):
    other = tmp_path / "other"
    other.write_text("theirs")
    (tmp_path / f".a.pt.{os.getpid()}.tmp").symlink_to(other)
    write_atomically(tmp_path / "a.pt", lambda file: file.write(b"ours"))
    assert (other.read_text(), (tmp_path / "a.pt").read_bytes()) == ("theirs", b"ours")


def test_a_run_outlives_the_readers_of_its_output(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "total_steps=12", "curriculum.stages=[[2,0,0,30]]", ONE_STAGE),
        env=environment() | {ALONE: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=120) == 0
    assert (tmp_path / "evaluation.json").exists()
    assert (tmp_path / "trajectories.png").exists()


def test_an_evaluation_outlives_the_reader_of_its_output(tmp_path):
    process = subprocess.Popen(
        [sys.executable, ROOT / "train_RL_agents" / "evaluate.py", *EVALUATED],
        cwd=tmp_path,
        env=environment() | {ALONE: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, b"")
    assert os.listdir(tmp_path) == ["table.json"]


def test_a_full_disk_behind_the_output_is_no_reader_that_went_away():
    """But a training goes on: its results are in its folder."""
    write, full = tells(ValueError)(lambda: print("a table") or 0), Path("/dev/full")
    with pytest.raises(OSError, match="No space"), full.open("w") as out, redirect_stdout(out):
        write()
    with full.open("w") as out, redirect_stdout(out), output_may_close():
        print("a table")


@pytest.mark.usefixtures("heard_hang_ups")
def test_a_hang_up_is_a_signal_unless_it_is_ignored():
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGHUP)
    assert interruption.received == signal.SIGHUP
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGHUP)
    assert interruption.received is None


def damage(path):
    path.write_text('{"starts": [')


def test_a_run_lives_without_its_records(tmp_path, monkeypatch, finished, capsys):
    """Damage to `run.json`, `best.pt` and `metrics.jsonl` stops neither a resume nor its end."""
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "evaluation.json").unlink()
    damage(folder / "run.json")
    damage(folder / "checkpoints" / "best.pt")
    metrics = folder / "metrics.jsonl"
    content = metrics.read_bytes()
    metrics.write_bytes(b"\xff" + content[1:])
    assert train.main(["--resume", str(folder)]) == 0
    told = capsys.readouterr().err
    for name in ("run.json", "checkpoints/best.pt"):
        assert f"it is now {folder / name}.damaged" in told
        assert (folder / f"{name}.damaged").exists()
    assert f"{metrics}: damaged lines are left out: 1" in told
    assert (folder / "evaluation.json").exists()
    assert len(json.loads((folder / "run.json").read_text())["starts"]) == 1


def test_a_damaged_record_of_a_sweep_names_the_way_out(tmp_path, refused):
    damage(tmp_path / "sweep.json")
    told = (f"'{tmp_path}/sweep.json' is damaged", f"--resume each folder {tmp_path}/seed_*")
    refused(train.main, ["--resume", str(tmp_path)], *told)
    (tmp_path / "sweep.json").write_text('{"seeds": [], "config": {}}')
    refused(train.main, ["--resume", str(tmp_path)], "no seeds")


def test_what_a_signal_did_is_told_in_spite_of_records_that_cannot_be_written(
    tmp_path, monkeypatch
):
    run, interruption = trainer(tmp_path), Interruption()
    interruption.received = signal.SIGTERM

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("train_RL_agents.metrics.writer.summarise", full)
    monkeypatch.setattr("train_RL_agents.training.trainer.Interruption", lambda: interruption)
    with pytest.raises(InterruptedRunError, match="saved to"):
        run.train()
