"""What scripts/gpu_check.sh plans: its times, its tests, and what they need."""

import ast
import re
import tomllib
from pathlib import Path

from scripts.checks import gpu_check, gpu_plan, sanitizer_run
from tests.conftest import ROOT, run_python
from tests.preloaded import ALONE
from train_RL_agents.agents.registry import AGENTS


def test_limits_add_up_to_the_time_for_everything():
    planned = gpu_plan.groups(AGENTS)
    assert sum(map(len, planned)) == 15 + len(AGENTS)
    longest = [max(check.limit_s for check in group) for group in planned]
    assert sum(longest) == gpu_check.LIMIT_S <= 540


def test_paths_of_the_cuda_tests_hold_all_of_them():
    """A test for CUDA has it in its name, or takes the device as a fixture."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        names = [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith("test_")
            and ("cuda" in node.name or "device" in {argument.arg for argument in node.args.args})
        ]
        relative = path.relative_to(ROOT)
        if names and path != Path(__file__):
            listed = {str(place) for place in (relative, *relative.parents)}
            assert listed & set(gpu_plan.CUDA_TESTS), (str(relative), names)


MODULES = {"pyyaml": "yaml", "imageio-ffmpeg": "imageio_ffmpeg"}
COLLECT = """
import sys

sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))  # None: cannot be imported
import pytest

import scripts.bench.main
import scripts.checks.sanitizer_run
import train_RL_agents.train
from scripts.checks.gpu_plan import CUDA_TESTS

sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *CUDA_TESTS]))
"""


def test_what_is_needed_is_enough():
    """Without the project's other packages the checks import and the CUDA tests are collected."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in named]
    absent = {MODULES.get(name, name) for name in names} - set(gpu_plan.NEEDED)
    assert "onnx" in absent
    no_plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # those of what is absent
    run_python(ROOT, "-c", COLLECT, ",".join(absent), **no_plugins, **{ALONE: "1"})


def test_what_the_sanitizers_run_works(capsys):
    sanitizer_run.main(["--device", "cpu"])
    assert capsys.readouterr().out == "ran\n"
