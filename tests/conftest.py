"""Fixtures shared by all tests."""

import json
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]

SLOW = (
    "tests/marinenav_env/kernel/test_core.py",
    "tests/scripts/",
    "tests/test_build.py",
    "tests/test_cuda_objects.py",
    "tests/test_makefile.py",
    "tests/train_RL_agents/agents/test_adding_an_agent.py",
    "tests/train_RL_agents/agents/test_small_problems.py",
    "tests/train_RL_agents/device/",
    "tests/train_RL_agents/policies/test_export.py",
    "tests/train_RL_agents/policies/test_planner_node.py",
    "tests/train_RL_agents/run/test_resume.py",
    "tests/train_RL_agents/test_train.py",
    "tests/train_RL_agents/training/test_fake_gpu.py",
)
"""Tests that compile, train or start processes: `make check` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `SLOW` lists."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def available_devices() -> list[str]:
    """Devices that the built operators and this machine have."""
    build_info = ROOT / "marinenav_env" / "_build_info.json"
    built = build_info.exists() and json.loads(build_info.read_text())["cuda"]
    return ["cpu", "cuda"] if built and torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=available_devices())
def device(request: pytest.FixtureRequest) -> str:
    """Each available device in turn: "cpu", and "cuda" where there is one."""
    return request.param


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of the data recorded from the published simulator."""
    return Path(__file__).parent / "reference"
