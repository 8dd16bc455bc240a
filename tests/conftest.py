"""Fixtures shared by all tests."""

import json
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]


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
