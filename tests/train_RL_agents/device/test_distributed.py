"""Several processes: the same weights everywhere, one of them talking, and the death of one."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch

from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops
from tests.conftest import ROOT, run_python, wait_for
from tests.preloaded import ALONE
from tests.train_RL_agents.short_runs import ONE_STAGE, SCRIPT, assert_same
from tests.train_RL_agents.train_shortly import FAILING, NUMBERS, UNUSABLE
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.device.distributed import (
    GPU_LIMIT,
    HOST_LIMIT,
    Processes,
    ProcessLostError,
)
from train_RL_agents.device.placement import check_own_gpu, choose_device
from train_RL_agents.metrics.writer import read_metrics
from train_RL_agents.run import checkpoint

TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
SHORT = [
    "worlds=3",  # 12 robots in one process, 15 in the other
    "total_steps=480",
    *("updates.batch_size=16", "updates.samples_per_insert=2", "updates.warmup_transitions=50"),
    *("replay.capacity=3000", "log.interval_steps=120", "checkpoint.interval_steps=240"),
    *("evaluation.episodes=1", "evaluation.final_episodes=1", "env.episode.max_steps=40"),
    ONE_STAGE,
]
torchrun = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no distributed package"
)


def start(folder, *arguments, **variables):
    return run_two("--output", str(folder), *SHORT, *arguments, **variables)


def run_two(*arguments, **variables):
    return subprocess.Popen(
        [sys.executable, *TORCHRUN, SCRIPT, "--device", "cpu", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files}


def test_alone_everything_is_the_identity():
    tensor = torch.arange(3.0)
    alone = Processes()
    alone.sum(tensor)
    alone.broadcast([tensor])
    alone.wait()
    assert alone.tell(lambda: 3) == 3
    assert alone.gather("own") == ["own"]
    assert alone.any(True)
    assert not alone.any(False)
    assert tensor.tolist() == [0.0, 1.0, 2.0]


def test_processes_of_a_machine_share_its_cpu_but_no_gpu(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    processes = Processes(rank=5, size=8, local_rank=1)
    assert processes.sharing(torch.device("cpu")) == 4
    assert processes.sharing(torch.device("cuda", 1)) == 1
    assert Processes().sharing(torch.device("cpu")) == 1


def test_processes_that_cannot_find_each_other_are_told(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    message = (
        "WORLD_SIZE is 2: start with torchrun, which sets LOCAL_RANK, LOCAL_WORLD_SIZE, "
        "MASTER_ADDR, MASTER_PORT"
    )
    with pytest.raises(ConfigError, match=message):
        Processes.join()


@pytest.fixture
def gpus(monkeypatch):
    """Pretends that torch sees a number of GPUs, by their identifiers."""

    def see(*uuids, operators=True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(uuids))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(uuids))
        monkeypatch.setattr(ops, "has_cuda", lambda: operators)
        properties = [SimpleNamespace(uuid=uuid) for uuid in uuids]
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda device: properties[device.index]
        )

    return see


def test_a_process_without_a_gpu_of_its_own_is_told_so(gpus):
    gpus("one", "two")
    assert choose_device("auto", 1) == torch.device("cuda", 1)
    with pytest.raises(ConfigError, match=r"process 2 .* there are 2: start as many"):
        choose_device("auto", 2)


def test_a_launcher_may_show_each_process_one_gpu_alone(gpus):
    gpus("one")
    assert choose_device("cuda", 3) == torch.device("cuda", 0)


@torchrun
def test_a_gpu_waits_shortly_for_the_others(gpus, monkeypatch):
    """Their hosts wait longer, since one of them evaluates."""
    groups, own = [], []
    for name in ("init_process_group", "new_group"):
        made = lambda backend, timeout: groups.append((backend, timeout))  # noqa: E731
        monkeypatch.setattr(torch.distributed, name, made)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", own.append)
    announced = {"WORLD_SIZE": "6", "RANK": "4", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "3"}
    announced |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    for name, value in announced.items():
        monkeypatch.setenv(name, value)
    for uuids in (("one", "two", "three"), ("three",)):  # a launcher may show its own alone
        gpus(*uuids)
        Processes.join()
    assert own == [2, 0]
    assert groups[:2] == [("gloo", HOST_LIMIT), ("nccl", GPU_LIMIT)]
    assert GPU_LIMIT <= timedelta(minutes=2) < timedelta(hours=1) < HOST_LIMIT


class Pair(Processes):
    """One of two processes; the other one has what `other` says."""

    other = ""

    def gather(self, text):
        return [text, self.other]


def test_processes_that_share_a_gpu_are_told_so(gpus):
    gpus("one")
    device, pair = torch.device("cuda", 0), Pair(size=2)
    check_own_gpu(device, pair)
    Pair.other = f"{socket.gethostname()}, GPU one"
    with pytest.raises(ConfigError, match="2 processes have no GPU of their own"):
        check_own_gpu(device, pair)
    check_own_gpu(torch.device("cpu"), Processes())


def test_one_line_warns_of_a_gpu_that_stays_idle(gpus, capsys):
    gpus("one", operators=False)
    assert choose_device("auto") == torch.device("cpu")
    (line,) = capsys.readouterr().err.splitlines()
    assert "operators are built without CUDA" in line
    gpus()
    choose_device("auto")
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (RuntimeError("Connection closed by peer"), ProcessLostError),
        (torch.OutOfMemoryError("of this one"), torch.OutOfMemoryError),
        (torch.AcceleratorError("of this one"), torch.AcceleratorError),
    ],
)
def test_what_fails_in_a_transfer_is_told_apart(failure, raised, monkeypatch):
    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(torch.distributed, "all_reduce", fail)
    with pytest.raises(raised) as told:
        Processes(size=2).wait()
    assert str(failure) in str(told.value)


def test_who_fails_does_not_wait_for_the_others(monkeypatch):
    """To end NCCL in order takes all of them; the system closes the connections of one."""
    ended, destroyed = [], []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: destroyed.append(1))
    Processes().leave(1)
    Processes(size=2).leave(0)
    assert (ended, destroyed) == ([], [1])
    Processes(size=2).leave(3)
    assert ended == [3]


PAIR = """
import torch
from pathlib import Path
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.device.cuda_graphs import CapturedStep
from train_RL_agents.device.distributed import Processes
from train_RL_agents.device.distributed import GradientAverage
processes = Processes.join()
average = GradientAverage(processes, CapturedStep(lambda: None, torch.device("cpu")))
for more in (0.0, 1.0):
    own = [torch.full((2, 2), processes.rank + more), torch.tensor(10.0 * processes.rank)]
    average(own)
    assert own[0].tolist() == [[0.5 + more] * 2] * 2 and own[1].item() == 5.0, own
total = torch.tensor([1.0 + processes.rank])
processes.sum(total)
assert total.item() == 3.0
first = torch.tensor(float(processes.rank))
processes.broadcast([first])
assert first.item() == 0.0
assert processes.any(processes.rank == 1) and not processes.any(False)
assert processes.gather(str(processes.rank)) == ["0", "1"]
asked = []
assert processes.tell(lambda: asked.append(processes.rank) or Path("told")) == Path("told")
assert asked == [0][processes.rank:]
def missing():
    raise CheckpointError("no checkpoint")
try:
    processes.tell(missing)
except CheckpointError as error:
    asked.append(str(error))
assert asked[-1] == "no checkpoint"
processes.leave()
"""


@torchrun
def test_averages_sums_and_broadcasts_of_two(tmp_path):
    script = tmp_path / "pair.py"
    script.write_text(PAIR)
    run_python(ROOT, *TORCHRUN, script, **{ALONE: "1"})  # as a user starts it; the others are forks


def parts(folder, step):
    """Return what the two processes saved at a step; their networks must be the same."""
    files = checkpoint.CheckpointFolder(folder / "checkpoints")
    first, second = (checkpoint.load(files.path(step, rank)) for rank in (0, 1))
    assert_same(first["model"], second["model"])
    return first, second


OTHERS = """
import sys
import torch
from pathlib import Path
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation import episodes
from train_RL_agents.training.trainer import TorchRLTrainer
folder, agents, *settings = sys.argv[1:]
episodes.DECISION_LIMIT = 50
processes = Processes.join()
for agent in agents.split():
    own = ["algorithm.turns=6"] if AGENTS[agent].learns_from == "rounds" else []
    config, _, _ = load_config(agent=agent, overrides=[*settings, *own])
    TorchRLTrainer(config, Path(folder) / agent, torch.device("cpu"), processes).train()
processes.leave()
"""
AGENTS_BESIDE = [agent for agent in AGENTS if agent != "AC-IQN"]


@pytest.fixture(scope="module")
def trained_by_two(tmp_path_factory):
    """Return a folder with a run of every other agent, trained by the same two processes."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "others.py").write_text(OTHERS)
    settings = [*SHORT, "total_steps=180", "checkpoint.interval_steps=60"]
    settings += ["updates.warmup_transitions=20", "updates.samples_per_insert=3"]
    run_python(ROOT, *TORCHRUN, folder / "others.py", folder, " ".join(AGENTS_BESIDE), *settings)
    return folder


@torchrun
@pytest.mark.parametrize("agent", AGENTS_BESIDE)
def test_two_processes_learn_the_same_weights(trained_by_two, agent):
    steps = (120, 180)
    updates = [parts(trained_by_two / agent, step)[0]["counters"]["updates"] for step in steps]
    assert 5 < updates[0] < updates[1]


@torchrun
def test_two_processes_have_identical_weights_and_own_worlds(tmp_path):
    process = start(tmp_path)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    folder = checkpoint.CheckpointFolder(tmp_path / "checkpoints")
    parts(tmp_path, 240)
    first, second = whole = parts(tmp_path, 480)
    assert first["counters"]["updates"] > 10
    assert not torch.equal(first["learner"]["env"]["robot"], second["learner"]["env"]["robot"])
    assert not torch.equal(first["learner"]["random"]["cpu"], second["learner"]["random"]["cpu"])
    records = [r for r in read_metrics(tmp_path / "metrics.jsonl") if r["mode"] == "train"]
    assert [record["step"] for record in records] == [120, 240, 360, 480]
    assert sum(record["robot_steps"] for record in records) > 480 * 2
    assert json.loads((tmp_path / "run.json").read_text())["starts"][0]["processes"] == 2
    assert output.count("95% CI") == 1
    assert train.main(["--resume", str(folder.path(480))]) == 1

    # Going back takes nothing away before every process has its part.
    part = folder.path(240, rank=1)
    saved = part.read_bytes()
    part.write_bytes(saved[:-100])
    before = contents(tmp_path)
    resumed = run_two("--resume", str(folder.path(240)))
    output, _ = resumed.communicate(timeout=300)
    assert resumed.returncode != 0
    assert f"{part} is damaged" in output
    assert contents(tmp_path) == before

    # Gone on with, the run is the one that was never stopped.
    part.write_bytes(saved)
    resumed = run_two("--resume", str(folder.path(240)))
    output, _ = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, output
    for own, expected in zip(parts(tmp_path, 480), whole, strict=True):
        assert_same(own, expected)

    # A longer one that fails before its next checkpoint stays longer.
    longer = run_two("--resume", str(tmp_path), "total_steps=600", **{FAILING: "1"})
    output, _ = longer.communicate(timeout=300)
    assert "RuntimeError: it fails alone" in output
    assert folder.steps()[-1] == 480
    resumed = run_two("--resume", str(tmp_path))
    output, _ = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, output
    parts(tmp_path, 600)


@torchrun
def test_a_signal_to_several_processes_is_heard_between_logs(tmp_path):
    never = [f"{name}.interval_steps=10_000_000" for name in ("log", "checkpoint", "evaluation")]
    process = start(tmp_path, "total_steps=10_000_000", *never)
    wait_for((tmp_path / "checkpoints" / "step_000000000000.pt").exists, process)
    time.sleep(1.0)
    process.terminate()
    output, _ = process.communicate(timeout=120)
    assert "stopped by SIGTERM at step" in output
    assert checkpoint.load(checkpoint.newest(tmp_path))["step"] > 0


@torchrun
@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_fails_alone_ends_the_run(rank, tmp_path):
    """By an error that nobody foresaw, while the other one waits for it."""
    process = start(tmp_path, "total_steps=10_000_000", **{FAILING: str(rank)})
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "RuntimeError: it fails alone" in output
    assert "Traceback" in output


@torchrun
def test_a_sweep_goes_on_after_a_policy_that_cannot_be_evaluated(tmp_path):
    """Only the first process evaluates; the others have to hear of it."""
    sizes = ("total_steps=240", "evaluation.interval_steps=120")
    process = start(tmp_path, "--seed", "0", "1", *sizes, **{UNUSABLE: "0"})
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "seed 0: at step 120: 3 actions were no numbers" in output
    assert not (tmp_path / "seed_0" / "evaluation.json").exists()
    assert (tmp_path / "seed_1" / "evaluation.json").exists()


@torchrun
def test_a_dying_process_ends_the_run_which_can_be_resumed(tmp_path):
    """The first process, and then, once the run continues, the second."""
    numbers = tmp_path / "numbers"
    numbers.mkdir()
    process = start(tmp_path, "total_steps=960", **{NUMBERS: str(numbers)})
    metrics = tmp_path / "metrics.jsonl"
    for rank, logs in ((0, 3), (1, 5)):
        while not metrics.exists() or metrics.read_text().count('"train"') < logs:
            time.sleep(0.05)
            assert process.poll() is None, process.communicate()
        os.kill(int((numbers / str(rank)).read_text()), signal.SIGKILL)
        killed = time.monotonic()
        output, _ = process.communicate(timeout=120)
        assert time.monotonic() - killed < 30, output
        assert process.returncode != 0
        assert "lost contact with another one" in output
        assert f"--resume {tmp_path}" in output
        assert checkpoint.load(checkpoint.newest(tmp_path))["step"] >= 80 * logs
        process = run_two("--resume", str(tmp_path), **{NUMBERS: str(numbers)})
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    parts(tmp_path, 960)
    steps = [r["step"] for r in read_metrics(metrics) if r["mode"] == "train"]
    assert steps == list(range(120, 961, 120))
