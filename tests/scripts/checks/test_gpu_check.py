"""scripts/gpu_check.sh: refuses a machine without a GPU, and reports what fails where there is one.

The GPU is played by an interpreter that answers for the parts that need one.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from scripts.bench import NO_MEMORY
from scripts.checks import gpu_check, gpu_plan
from tests.conftest import ROOT, run_python, wait_for
from train_RL_agents.agents.registry import AGENTS

SCRIPT = ROOT / "scripts" / "gpu_check.sh"
AGENT_CHECKS = [f"train_{agent}" for agent in AGENTS]

# Without torch, whose import would take most of the tests' time.
BEGIN = """
import os, sys
from scripts.checks import gpu_check
def describe():
    machine = {"gpus": int(os.environ.get("GPUS", "1"))}
    return {"machine": machine}, "9.0"
gpu_check.describe = describe
if "LEAST_S" in os.environ:
    def groups(agents, plan=gpu_check.groups, least=int(os.environ["LEAST_S"])):
        return [[check._replace(least_s=least) for check in group] for group in plan(agents)]
    gpu_check.groups = groups
sys.exit(gpu_check.main())
"""
PRETENDER = f"""#!/usr/bin/env bash
if [[ -n ${{FAIL:-}} && "$*" == *"$FAIL"* ]]; then echo "broken on purpose"; exit 7; fi
if [[ -n ${{HANG:-}} && "$*" == *"$HANG"* ]]; then sleep ${{HANG_S:-60}}; fi
case "$*" in
  */checks/gpu_check.py*) exec {sys.executable} -c '{BEGIN}' "${{@:2}}" ;;
  *) echo "$@"; command -v ninja; echo "PYTHONPATH $PYTHONPATH"; exit 0 ;;
esac
"""


def start(folder: Path, cwd: Path = ROOT, *before: str, **variables: str) -> subprocess.Popen:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("CUDA")}
    return subprocess.Popen(
        [*before, "bash", str(SCRIPT), str(folder / "out")],
        env={**environ, **variables},
        cwd=cwd,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # not nohup's of the tests
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    process = start(folder, cwd, **variables)
    output, errors = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.fixture
def pretender(tmp_path: Path) -> str:
    path = tmp_path / "python"
    path.write_text(PRETENDER)
    path.chmod(0o755)
    return str(path)


def sanitizer_that(tmp_path: Path, body: str) -> str:
    """Put a compute-sanitizer first on the path; return the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "compute-sanitizer"
    tool.write_text(f"#!/usr/bin/env bash\n{body}\n")
    tool.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def record_of(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "out" / "gpu_check.json").read_text())


def checks_of(tmp_path: Path) -> dict[str, str]:
    return {check["name"]: check["status"] for check in record_of(tmp_path)["checks"]}


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_stops_at_once_without_a_gpu(tmp_path):
    result = run(tmp_path, PYTHON=sys.executable)
    assert result.returncode == 2
    assert "CUDA" in result.stderr
    assert "gpu_check: error: torch" in result.stderr
    assert "Traceback" not in result.stderr  # nothing was tried after that
    assert "install a CUDA build" in result.stderr or "NVIDIA GPU" in result.stderr
    assert result.stdout == ""  # no check has begun
    assert not (tmp_path / "out").exists()


def test_another_folder_decides_nothing(tmp_path, pretender):
    """Paths are those of the caller, the checkout is the script's own."""
    other = tmp_path / "scripts" / "checks"
    other.mkdir(parents=True)
    (other / "gpu_check.py").write_text("raise SystemExit('of another checkout')")
    given = {"PYTHON": "./python", "PYTHONPATH": "site", "GPU_CHECK_ONLY": "train_DQN"}
    result = run(tmp_path, tmp_path, **given)
    assert result.returncode == 0, result.stderr
    assert checks_of(tmp_path)["train_DQN"] == "passed"
    assert f"PYTHONPATH {ROOT}:{tmp_path}/site" in (tmp_path / "out" / "gpu_check.log").read_text()


@pytest.mark.parametrize("limit", ["soon", "0", "-5"])
def test_a_limit_that_is_none_is_refused(limit, tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender, GPU_CHECK_LIMIT_S=limit)
    assert result.returncode == 2
    assert f"GPU_CHECK_LIMIT_S is '{limit}': give whole seconds" in result.stderr


def test_rows_that_found_too_little_memory_are_told(tmp_path, pretender):
    said = f'echo "{NO_MEMORY}: mode train, agent Rainbow"'
    text = PRETENDER.replace('*) echo "$@"', f'*gpu_training.json*) {said} ;;\n  *) echo "$@"')
    Path(pretender).write_text(text)
    result = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="bench bench_training")
    assert result.returncode == 0, result.stderr
    texts = {check["name"]: check["text"] for check in record_of(tmp_path)["checks"]}
    assert texts["bench_training"] == "but for rows that found too little memory"
    assert texts["bench"] == ""


def test_names_an_interpreter_that_is_missing(tmp_path):
    result = run(tmp_path, PYTHON="/no/such/python")
    assert result.returncode == 2
    assert "/no/such/python not found" in result.stderr


def test_passes_and_says_what_the_device_does_not_allow(tmp_path, pretender):
    path = sanitizer_that(tmp_path, 'echo "Error: Device not supported"; exit 1')
    result = run(tmp_path, PYTHON=pretender, PATH=path)
    assert result.returncode == 0, result.stderr
    checks = checks_of(tmp_path)
    benches = {"bench", "bench_turns", "bench_training", "bench_replay"}
    lives = {"life", "learns"}
    compiled = {"build", "operators", "architectures"}
    assert {*compiled, *gpu_plan.CUDA_TESTS, *lives, *benches, *AGENT_CHECKS} == {
        name for name, status in checks.items() if status == "passed"
    }
    assert {checks[tool] for tool in (*gpu_plan.SANITIZERS, "two_ranks")} == {"skipped"}
    assert "two_ranks skipped (0 s): it needs two GPUs" in result.stdout
    assert "not checked: " in result.stdout
    record = record_of(tmp_path)
    assert record["complete"] is True
    assert record["command"] == f"scripts/gpu_check.sh {tmp_path / 'out'}"
    log = (tmp_path / "out" / "gpu_check.log").read_text()
    assert "FORCE_CUDA=1" in log
    assert all(" ".join(paths) in log for paths in gpu_plan.CUDA_TESTS.values())


def test_the_build_finds_ninja_beside_the_interpreter(tmp_path, pretender):
    ninja = Path(pretender).with_name("ninja")
    ninja.write_text("")
    ninja.chmod(0o755)
    run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="build")
    assert str(ninja) in (tmp_path / "out" / "gpu_check.log").read_text()


@pytest.mark.parametrize(("only", "limit"), [("", "30"), ("bench", "7")])
def test_a_check_has_all_the_time_that_others_leave(only, limit, tmp_path, pretender):
    """Those that are left out leave theirs."""
    slow = {"HANG": "gpu_bench.json", "HANG_S": "2", "LEAST_S": "1", "GPU_CHECK_LIMIT_S": limit}
    result = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY=only, **slow)
    assert result.returncode == 0, result.stderr
    assert checks_of(tmp_path)["bench"] == "passed"


def test_a_check_leaves_the_others_what_they_need(tmp_path, pretender):
    hangs = {"HANG": "gpu_bench.json", "LEAST_S": "2", "GPU_CHECK_LIMIT_S": "15"}
    result = run(tmp_path, PYTHON=pretender, **hangs)
    assert result.returncode == 1
    checks = checks_of(tmp_path)
    assert {name for name, status in checks.items() if status == "failed"} == {"bench"}
    assert checks["bench_replay"] == checks["learns"] == checks["architectures"] == "passed"


def test_a_choice_of_checks(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="bench train_SAC")
    assert result.returncode == 0, result.stderr
    checks = checks_of(tmp_path)
    passed = {name for name, status in checks.items() if status == "passed"}
    assert passed == {"operators", "bench", "train_SAC"}
    assert checks["tests_training"] == checks["bench_training"] == checks["train_DQN"] == "skipped"
    assert "GPU_CHECK_ONLY leaves it out" in result.stdout
    before = record_of(tmp_path)
    again = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="bench")
    assert again.returncode == 2
    assert "name another folder" in again.stderr
    assert record_of(tmp_path) == before
    shutil.rmtree(tmp_path / "out")
    misspelled = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="bench train_sac")
    assert misspelled.returncode == 2
    assert "GPU_CHECK_ONLY names train_sac: give some of build tests_simulator" in misspelled.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(
    shutil.which("compute-sanitizer") or Path("/usr/local/cuda/bin/compute-sanitizer").exists(),
    reason="needs a machine without compute-sanitizer",
)
def test_says_that_compute_sanitizer_is_absent(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender)
    assert result.returncode == 0, result.stderr
    assert "memcheck skipped (0 s): compute-sanitizer is not installed" in result.stdout


def test_tests_that_are_all_skipped_are_no_pass(tmp_path, pretender):
    Path(pretender).write_text(
        PRETENDER.replace(
            '*) echo "$@"',
            '*test_cuda_objects*) echo "3 skipped in 0.1s"; exit 0 ;;\n  *) echo "$@"',
        )
    )
    result = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="architectures tests_training")
    assert result.returncode == 0, result.stderr
    checks = checks_of(tmp_path)
    assert (checks["architectures"], checks["tests_training"]) == ("skipped", "passed")


@pytest.mark.parametrize(
    ("session", "then"),
    [("", "wait"), ("setsid ", "wait"), ("setsid ", "while ! [ -e $NOTE ]; do sleep 0.02; done")],
    ids=["of its leader", "of its own", "left alone"],
)
def test_what_outlives_a_stopped_check_is_killed(session, then, tmp_path):
    """Its leader ends at once, or has ended; what it has started does not hear the signal."""
    note = tmp_path / "pid"
    deaf = r"trap '' TERM; echo \$\$ > $NOTE.new; mv $NOTE.new $NOTE; while :; do sleep 0.1; done"

    async def stop() -> int:
        environment = {**os.environ, "NOTE": str(note), gpu_check.MARK: "this"}
        child = await asyncio.create_subprocess_exec(
            *("bash", "-c", f'{session}bash -c "{deaf}" & {then}'),
            process_group=0,
            env=environment,
        )
        while not note.exists():
            await asyncio.sleep(0.02)
        if then != "wait":
            await child.wait()
        await gpu_check.end(child, "this")
        return int(note.read_text())

    beside = subprocess.Popen(["sleep", "30"], env={**os.environ, gpu_check.MARK: "this one not"})
    number = asyncio.run(stop())
    time.sleep(0.2)
    status = Path(f"/proc/{number}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"
    assert beside.poll() is None, "what has another mark goes on"
    beside.kill()
    beside.wait()


def test_two_gpus_train_together(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender, GPU_CHECK_ONLY="two_ranks", GPUS="2")
    assert checks_of(tmp_path)["two_ranks"] == "passed", result.stderr
    log = (tmp_path / "out" / "gpu_check.log").read_text()
    assert "--nproc-per-node=2 train_RL_agents/train.py --agent DQN --device cuda" in log


def test_stops_where_the_build_fails(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender, FAIL="setup.py")
    assert result.returncode == 1
    checks = checks_of(tmp_path)
    assert checks.pop("build") == "failed"
    assert set(checks.values()) == {"skipped"}
    assert checks.keys() > {"operators", "bench", "learns", *AGENT_CHECKS}
    assert "memcheck skipped (0 s): it needs build" in result.stdout
    assert "broken on purpose" in result.stderr
    assert "failed: build" in result.stderr


def test_goes_on_after_other_failures_within_its_time(tmp_path, pretender):
    path = sanitizer_that(tmp_path, 'echo "========= Invalid __global__ read"; exit 99')
    result = run(
        tmp_path,
        PYTHON=pretender,
        PATH=path,
        FAIL="--agent DDPG",
    )
    assert result.returncode == 1
    checks = checks_of(tmp_path)
    failed = {name for name, status in checks.items() if status == "failed"}
    assert failed == {"train_DDPG", *gpu_plan.SANITIZERS}
    assert "exit status 99" in result.stdout
    assert "Invalid __global__ read" in result.stderr


def test_what_no_time_is_left_for_is_skipped(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender, HANG="-m pytest", GPU_CHECK_LIMIT_S="4")
    assert result.returncode == 1
    checks = checks_of(tmp_path)
    assert checks.pop("build") == checks.pop("operators") == "passed"
    tests = (*gpu_plan.CUDA_TESTS, "architectures")
    assert {checks.pop(name) for name in tests} == {"failed"}
    assert {"bench", "bench_training", "bench_replay", *AGENT_CHECKS} <= checks.keys()
    assert set(checks.values()) == {"skipped"}
    assert "tests_training failed" in result.stdout
    assert "not finished within" in result.stdout
    assert "bench skipped (0 s): no time was left of 4 s" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_loses_nothing_that_was_checked(number, tmp_path, pretender):
    out = tmp_path / "out"
    process = start(tmp_path, PYTHON=pretender, HANG="gpu_bench.json", TMPDIR=str(tmp_path))
    record = out / "gpu_check.json"
    wait_for(lambda: record.exists() and "tests_training" in checks_of(tmp_path), process)
    assert record_of(tmp_path)["complete"] is False  # written while the rest continues
    assert "== build" in (out / "gpu_check.log").read_text()
    wait_for(lambda: list(tmp_path.glob("gpu_check.*/bench.log")), process)
    sent = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - sent < 20
    assert process.returncode == 1
    assert "stopped by a signal" in errors
    checks = checks_of(tmp_path)
    assert checks["build"] == checks["operators"] == checks["tests_training"] == "passed"
    assert checks["bench"] == "failed"
    assert "bench_training" not in checks
    assert record_of(tmp_path)["complete"] is False
    assert not list(tmp_path.glob("gpu_check.*"))


def test_nohup_keeps_it_from_a_hang_up(tmp_path, pretender):
    slow = {"HANG": "gpu_bench.json", "HANG_S": "2", "TMPDIR": str(tmp_path)}
    only = {"GPU_CHECK_ONLY": "bench train_DQN"}
    process = start(tmp_path, ROOT, "nohup", PYTHON=pretender, **slow, **only)
    wait_for(lambda: list(tmp_path.glob("gpu_check.*/bench.log")), process)
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert checks_of(tmp_path)["train_DQN"] == "passed"


def test_record_begins_with_the_machine(monkeypatch):
    machine = {"machine": "this one"}
    monkeypatch.setattr(gpu_check, "problem", lambda: None)
    monkeypatch.setattr("scripts.bench.machine.describe_machine", lambda device: machine)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    head, architecture = gpu_check.describe()
    assert {"machine", "commit", "versions"} <= head.keys()
    assert architecture == "9.0"


NOT_BUILT = """
import sys
import torch
from scripts.checks import gpu_check, gpu_plan

sys.modules["marinenav_env.kernel.ops"] = None
gpu_check.problem = lambda: None
torch.cuda.get_device_capability = lambda: (9, 0)
torch.device = lambda name: torch.empty(0).device
print(gpu_check.describe()[1], *gpu_plan.agents())
"""


def test_describes_a_machine_before_the_operators_are_built():
    """It builds them, and once ended here on a clean machine with a GPU."""
    assert run_python(ROOT, "-c", NOT_BUILT).split() == ["9.0", *sorted(AGENTS)]


def test_results_of_an_earlier_run_go_first(tmp_path, pretender):
    out = tmp_path / "out"
    out.mkdir()
    records = ("gpu_bench.json", "gpu_training.json", "gpu_replay.json", "gpu_check.json")
    for name in (*records, "gpu_check.log"):
        (out / name).write_text("old")
    run(tmp_path, PYTHON=pretender, FAIL="setup.py")
    assert sorted(path.name for path in out.iterdir()) == ["gpu_check.json", "gpu_check.log"]
    assert checks_of(tmp_path)["build"] == "failed"


@pytest.mark.parametrize("missing", gpu_plan.NEEDED)
def test_names_the_package_that_is_missing(missing, monkeypatch):
    find = gpu_check.importlib.import_module

    def without(name, package=None):
        if name == missing:
            raise ImportError(f"No module named '{name}'")
        return find(name, package)

    monkeypatch.setattr(gpu_check.importlib, "import_module", without)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert f"{missing} cannot be imported" in gpu_check.problem()
