"""Fixtures and helpers shared by all tests."""

import contextlib
import gc
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from marinenav_env.build_record import BUILD_RECORD, read_record
from tests.preloaded import preloaded, waiting_process

ROOT = Path(__file__).resolve().parents[1]

SLOW_TESTS = {
    "test_cuda_host.py": "",
    "train_RL_agents/policies/shield/test_deployed.py": (
        "test_an_onnx test_evaluate_takes test_the_file"
    ),
    "train_RL_agents/agents/test_small_problems.py": "",
    "test_cuda_objects.py": "",
    "train_RL_agents/policies/test_planner_cpp.py": "",
    "marinenav_env/kernel/test_core.py": "",
    "train_RL_agents/training/test_fake_gpu.py": "",
    "train_RL_agents/device/test_distributed.py": (
        "test_a_dying test_a_signal test_averages test_two"
    ),
    "scripts/bench/test_bench.py": (
        "TestCommandLine::test_every_task TestCommandLine::test_record "
        "TestPolicies::test_what_cannot"
    ),
    "train_RL_agents/test_train_tensorboard.py": "test_a_resumed test_a_setting test_tensorboard",
    "train_RL_agents/test_train.py": "test_a_signal test_a_sweep test_command_line_from test_sweep",
    "train_RL_agents/test_on_one_gpu.py": "",
    "test_goldens.py": "test_trained",
    "train_RL_agents/run/test_resume.py": "",
    "train_RL_agents/policies/test_export.py": "test_the_published_planner",
    "scripts/checks/test_run_check.py": "test_a_training_is test_a_training_that test_a_program",
    "train_RL_agents/training/test_trainer.py": "test_learning_changes",
    "train_RL_agents/policies/shield/test_promises.py": "test_a_million",
    "train_RL_agents/agents/test_adding_an_agent.py": "",
    "scripts/checks/test_fuzz.py": "test_a_short_form test_every_way",
    "train_RL_agents/test_train_resume.py": "test_a_finished test_a_sweep",
    "scripts/checks/test_gpu_check.py": "test_what_no_time",
    "scripts/checks/test_gpu_plan.py": "test_what_is_needed",
    "scripts/checks/test_kill_check.py": "test_kills",
    "train_RL_agents/run/test_ending.py": "test_a_run_lives test_a_run_outlives test_an_evaluation",
    "marinenav_env/test_adding_to_the_core.py": "test_names test_the_punt test_the_tow",
    "scripts/test_make_pretrained.py": "test_the_risk_level",
    "train_RL_agents/training/test_stages.py": "test_a_run_among",
    "test_build.py": "",
    "train_RL_agents/test_vessels.py": "test_train",
    "train_RL_agents/test_icra2024.py": "test_train",
    "scripts/checks/test_mutants.py": "test_a_mutant_is",
    "train_RL_agents/evaluation/test_evaluation.py": "test_command_line",
    "scripts/bench/test_processes.py": "test_the_script",
    "train_RL_agents/evaluation/baselines/test_baselines.py": "test_success_is",
    "scripts/checks/test_icra2024_check.py": "test_a_policy_plays",
    "test_examples.py": "test_an_example",
    "train_RL_agents/run/test_checkpoint.py": "test_kill",
    "train_RL_agents/test_ranging.py": "test_train",
    "scripts/test_episode_plot.py": "test_what_a_policy",
    "train_RL_agents/evaluation/report/test_report.py": "test_six_policies",
    "train_RL_agents/training/test_captured.py": "test_several_updates",
    "test_planner.py": "test_a_file_with_a_shield",
    "test_makefile.py": "",
}
"""Files with tests that compile, train long or start processes, the longest files first, with
beginnings of the tests' names, none for all; `make check` leaves them out. Every room has tests
that remain."""
SLOW = tuple(
    f"tests/{file}::{name}" for file, names in SLOW_TESTS.items() for name in names.split() or [""]
)


def pytest_configure(config: pytest.Config) -> None:
    """Let Python programs begin as forks of a process with torch, for as long as tests run."""
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    stack = contextlib.ExitStack()
    config.add_cleanup(stack.close)
    stack.enter_context(preloaded() if runs_tests else waiting_process())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collections, which would find nothing for seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `SLOW` lists, and begin with it: a long file that comes last leaves a core idle."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    rank = {f"tests/{file}": place for place, file in enumerate(SLOW_TESTS)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))


def pytest_collection_finish() -> None:
    """Spare garbage collections what imports have made: it stays, and a walk of it takes long."""
    gc.collect()
    gc.freeze()


def available_devices() -> list[str]:
    """Devices that the built operators and this machine have."""
    built = read_record(ROOT / "marinenav_env" / BUILD_RECORD).get("cuda")
    return ["cpu", "cuda"] if built and torch.cuda.is_available() else ["cpu"]


def run_python(folder: Path, *arguments: str | Path, **variables: str) -> str:
    """Run Python in a folder with the packages, to its end, and return what it prints.

    What PYTHONPATH names stays: on a machine that is not ours it may hold what the packages need.
    """
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wait_for(condition: Callable[[], object], process: subprocess.Popen) -> None:
    """Wait until a condition holds; the process that brings it about must not end before."""
    while not condition():
        time.sleep(0.05)
        assert process.poll() is None, process.communicate()


def load_file(path: Path) -> ModuleType:
    """Import a file that lies in no package."""
    specification = importlib.util.spec_from_file_location(f"{path.stem}_of_the_project", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look there
    specification.loader.exec_module(module)
    return module


@pytest.fixture(params=available_devices())
def device(request: pytest.FixtureRequest) -> str:
    """Each available device in turn: "cpu", and "cuda" where there is one."""
    return request.param


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Check that a command ends with an error that holds the messages, and return its error."""

    def check(main: Callable, arguments: list[str], *messages: str, status: int = 1) -> str:
        capsys.readouterr()  # what was said before
        try:
            ended = main(arguments)
        except SystemExit as ending:
            ended = ending.code
        said = capsys.readouterr().err
        assert ended == status
        for message in messages:
            assert message in said
        return said

    return check


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of the data recorded from the published simulator."""
    return Path(__file__).parent / "reference"
