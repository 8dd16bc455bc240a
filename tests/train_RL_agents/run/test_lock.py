"""Two programs never work in one run's folder."""

import fcntl
import os
import subprocess
import sys
from datetime import datetime

import pytest

from marinenav_env.fields import ConfigError
from tests.conftest import wait_for
from tests.train_RL_agents.short_runs import TINY, command, environment
from train_RL_agents import train
from train_RL_agents.commands import training
from train_RL_agents.device.distributed import Processes
from train_RL_agents.run import checkpoint
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.lock import LOCK, sole_use

HOLDER = """
import sys, time
from pathlib import Path
from train_RL_agents.device.distributed import Processes
from train_RL_agents.run.lock import sole_use
with sole_use(Path(sys.argv[1]), Processes()):
    print("in", flush=True)
    time.sleep(1000)
"""


def test_the_holder_is_named_until_it_dies(tmp_path):
    folder = tmp_path / "run"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], env=environment(), stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"in\n"
    for arguments in (["--output", str(folder), *TINY], ["--resume", str(folder)]):
        with pytest.raises(ConfigError, match=f"is in use by process {holder.pid} on "):
            (train.resume if "--resume" in arguments else train.start)(
                train.parse(arguments), Processes()
            )
    assert os.listdir(folder) == [LOCK]
    holder.kill()
    holder.wait()
    with sole_use(folder, Processes()):
        assert f"process {os.getpid()} " in (folder / LOCK).read_text()
    assert os.listdir(folder) == []


@pytest.mark.parametrize("seeds", [["0"], ["0", "1"]])
def test_no_empty_folder_is_left(tmp_path, seeds):
    """Of a run, or a sweep, that cannot begin; a folder that was there stays."""
    made, found = tmp_path / "made", tmp_path / "found"
    found.mkdir()
    for folder in (made, found):
        given = ["--output", str(folder), *TINY, "algorithm.start=nowhere", "--seed", *seeds]
        arguments = train.parse(given)
        with pytest.raises(CheckpointError, match=r"algorithm.start is 'nowhere'"):
            train.start(arguments, Processes())
    assert os.listdir(tmp_path) == ["found"]
    assert os.listdir(found) == []


def test_programs_that_see_no_locks_of_others_get_folders_of_their_own(tmp_path, monkeypatch):
    """As jobs of several hosts that begin in the same second; empty ones are removed again."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    wanted = tmp_path / "runs" / "DQN-20260101-000000"
    with (
        sole_use(wanted, Processes(), new=True) as first,
        sole_use(wanted, Processes(), new=True) as second,
        sole_use(wanted, Processes(), new=True) as third,
    ):
        names = [folder.name for folder in (first, second, third)]
        assert names == [wanted.name, f"{wanted.name}-2", f"{wanted.name}-3"]
        (second / "kept").touch()
    assert os.listdir(tmp_path / "runs") == [second.name]


@pytest.mark.parametrize("new", [True, False])
def test_a_folder_on_a_disk_that_is_not_there_is_told(tmp_path, new):
    (tmp_path / "runs").symlink_to(tmp_path / "scratch" / "not mounted")
    wanted = sole_use(tmp_path / "runs" / "DQN", Processes(), new=new)
    with pytest.raises(ConfigError, match="it is no folder to write to"), wanted:
        pass


def test_runs_that_begin_in_the_same_second_do_not_meet(tmp_path, monkeypatch):
    class Fixed(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr(training, "datetime", Fixed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "train_one", lambda _, folder, __: (folder / "run.json").touch())
    for _ in range(2):
        train.start(train.parse(["--agent", "DQN", *TINY]), Processes())
    found = sorted(os.listdir(tmp_path / "runs"))
    assert found == ["DQN-20260101-000000", "DQN-20260101-000000-2"]


def test_a_lock_removed_between_opening_and_locking_is_not_taken(tmp_path, monkeypatch):
    flock, left = fcntl.flock, iter((True, False))

    def late(file, how):
        if next(left):
            (tmp_path / LOCK).unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with sole_use(tmp_path, Processes()):
        assert f"process {os.getpid()} " in (tmp_path / LOCK).read_text()


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch, capsys):
    def without(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", without)
    with sole_use(tmp_path, Processes()):
        pass
    assert "cannot be locked ([Errno 95]" in capsys.readouterr().err


def test_resume_of_a_running_run_is_refused(tmp_path, refused):
    running = subprocess.Popen(
        command(tmp_path, "total_steps=10_000_000"), env=environment(), stderr=subprocess.DEVNULL
    )
    try:
        metrics, saved = tmp_path / "metrics.jsonl", tmp_path / "checkpoints"
        wait_for(lambda: metrics.exists() and checkpoint.saved_steps(saved), running)
        newest = checkpoint.newest(tmp_path)
        for place in (tmp_path, tmp_path / "checkpoints", newest):
            refused(train.main, ["--resume", str(place)], f"is in use by process {running.pid}")
    finally:
        running.kill()
        running.wait()
