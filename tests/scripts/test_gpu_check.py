"""scripts/gpu_check.sh: refuses a machine without a GPU, and reports what fails where there is one.

The GPU is played by an interpreter that answers for the parts that need one.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scripts import gpu_check_record, sanitizer_run
from train_RL_agents.agents.registry import AGENTS

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "gpu_check.sh"
AGENT_CHECKS = [f"train_{agent}" for agent in AGENTS]

PRETENDER = f"""#!/usr/bin/env bash
if [[ -n ${{FAIL:-}} && "$*" == *"$FAIL"* ]]; then echo "broken on purpose"; exit 7; fi
if [[ -n ${{HANG:-}} && "$*" == *"$HANG"* ]]; then sleep 60; fi
case "$*" in
  *"gpu_check_record ready") exit 0 ;;
  *"gpu_check_record architecture") echo 9.0 ;;
  *"gpu_check_record agents") echo "{" ".join(AGENTS)}" ;;
  *gpu_check_record*) exec {sys.executable} "$@" ;;
  *) echo "$@"; exit 0 ;;
esac
"""


def run(folder: Path, **variables: str) -> subprocess.CompletedProcess:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("CUDA")}
    return subprocess.run(
        ["bash", str(SCRIPT), str(folder / "out")],
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


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


def checks_of(tmp_path: Path) -> dict[str, str]:
    record = json.loads((tmp_path / "out" / "gpu_check.json").read_text())
    assert {"machine", "commit", "command", "versions"} <= record.keys()
    return {check["name"]: check["status"] for check in record["checks"]}


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_stops_at_once_without_a_gpu(tmp_path):
    result = run(tmp_path, PYTHON=sys.executable)
    assert result.returncode == 2
    assert "CUDA" in result.stderr
    assert "gpu_check: error: torch" in result.stderr
    assert "Traceback" not in result.stderr  # nothing was tried after that
    assert "install a CUDA build" in result.stderr or "NVIDIA GPU" in result.stderr
    assert result.stdout == ""  # no check has begun
    assert list((tmp_path / "out").iterdir()) == []


def test_names_an_interpreter_that_is_missing(tmp_path):
    result = run(tmp_path, PYTHON="/no/such/python")
    assert result.returncode == 2
    assert "/no/such/python not found" in result.stderr


def test_passes_and_says_what_the_device_does_not_allow(tmp_path, pretender):
    path = sanitizer_that(tmp_path, 'echo "Error: Device not supported"; exit 1')
    result = run(tmp_path, PYTHON=pretender, PATH=path)
    assert result.returncode == 0, result.stderr
    checks = checks_of(tmp_path)
    assert {"build", "operators", "bench", "bench_training", "tests", *AGENT_CHECKS} == {
        name for name, status in checks.items() if status == "passed"
    }
    assert checks["memcheck"] == checks["initcheck"] == "skipped"
    assert "not checked: " in result.stdout
    assert "FORCE_CUDA=1" in (tmp_path / "out" / "gpu_check.log").read_text()


@pytest.mark.skipif(
    shutil.which("compute-sanitizer") or Path("/usr/local/cuda/bin/compute-sanitizer").exists(),
    reason="needs a machine without compute-sanitizer",
)
def test_says_that_compute_sanitizer_is_absent(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender)
    assert result.returncode == 0, result.stderr
    assert "memcheck skipped (0 s): compute-sanitizer is not installed" in result.stdout


def test_stops_where_the_build_fails(tmp_path, pretender):
    result = run(tmp_path, PYTHON=pretender, FAIL="setup.py")
    assert result.returncode == 1
    assert checks_of(tmp_path) == {"build": "failed"}
    assert "broken on purpose" in result.stderr
    assert "failed: build" in result.stderr


def test_goes_on_after_other_failures_within_its_time(tmp_path, pretender):
    path = sanitizer_that(tmp_path, 'echo "========= Invalid __global__ read"; exit 99')
    result = run(
        tmp_path,
        PYTHON=pretender,
        PATH=path,
        FAIL="--modes train",
        HANG="-m pytest",
        GPU_CHECK_LIMIT_S="5",
    )
    assert result.returncode == 1
    checks = checks_of(tmp_path)
    failed = {name for name, status in checks.items() if status == "failed"}
    assert {"bench_training", "tests", "memcheck", "initcheck"} <= failed
    assert checks["bench"] == "passed"
    assert "tests failed" in result.stdout
    assert "not finished within" in result.stdout
    assert "exit status 99" in result.stdout
    assert "Invalid __global__ read" in result.stderr


def test_what_the_sanitizers_run_works(capsys):
    sanitizer_run.main(["--device", "cpu"])
    assert capsys.readouterr().out == "ran\n"


@pytest.mark.parametrize("missing", gpu_check_record.NEEDED)
def test_names_the_package_that_is_missing(missing, monkeypatch):
    find = gpu_check_record.importlib.import_module

    def without(name):
        if name == missing:
            raise ImportError(f"No module named '{name}'")
        return find(name)

    monkeypatch.setattr(gpu_check_record.importlib, "import_module", without)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert f"{missing} cannot be imported" in gpu_check_record.problem()
