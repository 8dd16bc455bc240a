"""Checkpoints: whole or absent, never half; damage is found and named."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from marinenav_env.files import write_atomically
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError, CheckpointFolder, load, newest, save

STATE = {"step": 7, "model": {"weight": torch.arange(5000.0)}, "config": {"a": [1, None, "x"]}}


def test_round_trip(tmp_path):
    save(tmp_path / "a.pt", STATE)
    state = load(tmp_path / "a.pt")
    assert torch.equal(state["model"]["weight"], STATE["model"]["weight"])
    assert state["config"] == STATE["config"]
    assert os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_tensors_are_mapped_from_the_file_and_outlive_it(tmp_path):
    save(tmp_path / "a.pt", STATE)
    state = load(tmp_path / "a.pt")
    assert str(tmp_path / "a.pt") in Path("/proc/self/maps").read_text()
    save(tmp_path / "a.pt", {"step": 8})
    (tmp_path / "a.pt").unlink()
    assert torch.equal(state["model"]["weight"], STATE["model"]["weight"])


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    save(path, STATE)

    def half(file):
        file.write(b"half of it")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        write_atomically(path, half)
    assert load(path)["step"] == 7
    assert os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.parametrize("where", [0.1, 0.5, 0.95])
def test_one_changed_byte_is_found(tmp_path, where):
    path = tmp_path / "a.pt"
    save(path, STATE)
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.pt is damaged"):
        load(path)


@pytest.mark.parametrize("length", [0, 10, 5000, -3])
def test_truncated_file_is_found(tmp_path, length):
    path = tmp_path / "a.pt"
    save(path, STATE)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match=r"a\.pt is damaged"):
        load(path)


def test_a_damaged_file_names_the_newest_intact_one(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2, 3, 4):
        save(folder.path(step), STATE)
    for step in (3, 4):
        folder.path(step).write_bytes(folder.path(step).read_bytes()[:-3])
    with pytest.raises(CheckpointError, match=rf"use '{folder.path(2)}', the newest intact one"):
        load(folder.path(4))
    save(folder.path(1, rank=1), STATE)
    folder.path(2, rank=1).write_bytes(b"half of it")
    for damaged in (folder.path(4), folder.path(2, rank=1)):
        with pytest.raises(CheckpointError, match=rf"use '{folder.path(1)}'"):
            load(damaged)
    for step in (1, 2, 3):
        folder.path(step).unlink()
    with pytest.raises(CheckpointError, match="there is no intact checkpoint beside it"):
        load(folder.path(4))


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint .*gone\.pt"):
        load(tmp_path / "gone.pt")
    (tmp_path / "ac_iqn").mkdir()
    with pytest.raises(CheckpointError, match=r"ac_iqm': did you mean '.*ac_iqn'\?"):
        load(tmp_path / "ac_iqm")
    torch.save({"weights": torch.ones(2)}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="format None"):
        load(tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="no checkpoint under"):
        newest(tmp_path / "nowhere")
    for seed in (4, 5):
        runs = tmp_path / "sweep" / f"seed_{seed}" / "checkpoints"
        CheckpointFolder(runs, keep=2, rank=0).save(10, STATE, wait=lambda: None)
    with pytest.raises(CheckpointError, match=r"holds the runs seed_4, seed_5: give one of them"):
        newest(tmp_path / "sweep")


def test_keeps_the_newest(tmp_path):
    other = CheckpointFolder(tmp_path, keep=2, rank=1)
    first = CheckpointFolder(tmp_path, keep=2, rank=0)
    for step in (10, 20, 30):
        other.save(step, STATE, wait=lambda: None)
        first.save(step, STATE, wait=lambda: None)
    assert first.steps() == [20, 30]
    assert not other.path(10, rank=1).exists()
    assert newest(tmp_path) == first.path(30)


def test_who_goes_back_to_a_checkpoint_keeps_it(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=3)
    for step in (10, 20, 30):
        folder.save(step, STATE, wait=lambda: None)
    (tmp_path / "half.tmp").touch()
    folder.drop_after(20)
    assert folder.steps() == [10, 20]
    assert not (tmp_path / "half.tmp").exists()


def test_a_checkpoint_counts_once_the_first_process_wrote_it(tmp_path):
    CheckpointFolder(tmp_path, rank=1).save(10, STATE, wait=lambda: None)
    assert CheckpointFolder(tmp_path).steps() == []


def test_the_best_policy_of_the_newest_checkpoint_outlives_a_better_one(tmp_path):
    """A kill may come between an evaluation and the checkpoint after it."""
    folder = CheckpointFolder(tmp_path)
    folder.save_best({"step": 10})
    folder.save(20, {"step": 20}, wait=lambda: None)
    folder.save_best({"step": 30})
    folder.save_best({"step": 40})
    assert load(tmp_path / "best.pt")["step"] == 40
    assert folder.restore_best(20)["step"] == 10
    assert load(tmp_path / "best.pt")["step"] == 10
    folder.save_best({"step": 30})
    folder.save(40, {"step": 40}, wait=lambda: None)
    assert folder.restore_best(40)["step"] == 30
    assert load(tmp_path / "best.pt")["step"] == 30
    assert not folder.restore_best(5)
    assert not (tmp_path / "best.pt").exists()


def test_the_best_policy_stays_until_a_better_one_is_whole(tmp_path, monkeypatch):
    folder = CheckpointFolder(tmp_path)
    folder.save_best({"step": 10})
    folder.save(20, {"step": 20}, wait=lambda: None)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", full)
        with pytest.raises(OSError, match="No space left"):
            folder.save_best({"step": 30})
    assert load(tmp_path / "best.pt")["step"] == 10


# Forks a writer for every folder that it reads, so that torch is imported once.
WRITERS = """
import os, sys, torch
from pathlib import Path
from train_RL_agents.run.checkpoint import CheckpointFolder
for name in iter(sys.stdin.readline, ""):
    process = os.fork()
    if process:
        os.waitpid(process, 0)
        print("ended", flush=True)
        continue
    print(os.getpid(), flush=True)
    folder = CheckpointFolder(Path(name.strip()), keep=2)
    for step in range(10**6):
        state = {"step": step, "model": torch.full((20_000,), float(step))}
        folder.save(step, state, wait=lambda: None)
        os.write(1, b"%d\\n" % step)  # whole: print writes twice, and a kill strikes between
"""


def test_kill_at_random_moments_never_damages(tmp_path):
    writers = subprocess.Popen(
        [sys.executable, "-c", WRITERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for kill in range(4):
        folder = tmp_path / str(kill)
        print(folder, file=writers.stdin, flush=True)
        process = int(writers.stdout.readline())
        printed = [writers.stdout.readline()]
        time.sleep(0.03 * (kill + 1) * 0.77)
        os.kill(process, signal.SIGKILL)
        printed += itertools.takewhile("ended\n".__ne__, writers.stdout)
        state = load(newest(folder))
        assert state["step"] >= int(printed[-1])
        assert torch.all(state["model"] == state["step"])
    writers.communicate()
