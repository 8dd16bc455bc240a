"""What scripts/gpu_check.sh plans: its times, its tests, and what they need."""

import ast
import itertools
import re
import shlex
import tomllib
from pathlib import Path

import torch

from scripts.bench.main import cases
from scripts.bench.options import parse
from scripts.checks import gpu_check, gpu_plan, sanitizer_run
from tests.conftest import ROOT, load_file, run_python
from tests.preloaded import ALONE
from train_RL_agents.agents.registry import AGENTS, REPLAY_AGENTS
from train_RL_agents.commands.effect import check_effect
from train_RL_agents.config.files import load_config


def test_least_times_leave_some_of_the_time_for_everything():
    """The build, which all need, may take half as long again."""
    planned = gpu_plan.groups(AGENTS)
    assert sum(map(len, planned)) == 16 + len(AGENTS)
    longest = [max(check.least_s for check in group) for group in planned]
    assert sum(longest) + longest[0] // 2 <= gpu_check.LIMIT_S <= 540


def test_the_architectures_of_a_build_are_built():
    default = load_file(ROOT / "setup.py").DEFAULT_CUDA_ARCH_LIST
    ((build,), *_) = gpu_plan.groups(AGENTS)
    words = shlex.split(build.command.format(architecture="12.0", python="python"))
    assert f"TORCH_CUDA_ARCH_LIST=12.0;{default}" in words


def test_what_tells_most_comes_first():
    """Tests, then figures, which are measured alone, then trainings, at last the sanitizers."""
    names = [[check.name for check in group] for group in gpu_plan.groups(AGENTS)]
    assert names[:3] == [["build"], ["operators"], [*gpu_plan.CUDA_TESTS, "architectures"]]
    assert names[3:7] == [["bench"], ["bench_training"], ["bench_turns"], ["bench_replay"]]
    assert "learns" in names[7]
    assert names[8] == list(gpu_plan.SANITIZERS)
    assert len(names) == 9


def test_the_page_has_the_least_times():
    page = (ROOT / "docs" / "benchmarks" / "README.md").read_text()
    least = [max(check.least_s for check in group) for group in gpu_plan.groups(AGENTS)]
    assert f"They add up to {sum(least)} s" in page


def test_only_initcheck_looks_at_the_kernels_of_torch():
    """It has to see what they write."""
    *_, last = gpu_plan.groups(AGENTS)
    commands = {check.name: check.command for check in last}
    whole = [name for name in gpu_plan.SANITIZERS if "--kernel-name kns=" not in commands[name]]
    assert whole == ["initcheck"]


def test_trainings_side_by_side_take_one_thread_and_little_memory():
    *_, trainings, _ = gpu_plan.groups(AGENTS)
    assert all(check.command.startswith("env OMP_NUM_THREADS=1 ") for check in trainings)
    for agent in AGENTS:
        (command,) = (check.command for check in trainings if check.name == f"train_{agent}")
        settings = [word for word in command.split()[2:] if "=" in word]
        config, _, _ = load_config(agent=agent, overrides=settings)
        check_effect(settings, config)
        assert config.replay.capacity <= 200_000 or AGENTS[agent].learns_from == "rounds"


def test_benchmarks_of_the_plan_are_understood():
    """Kernels are listed of few rows."""
    listed = {}
    for group in gpu_plan.groups(AGENTS):
        for check in group:
            program, *arguments = check.command.split()[1:]
            if program == "scripts/bench.py":
                options = parse(arguments[: arguments.index("--json")])
                rows = list(cases(options, torch.device("cuda")))
                named = [{case.mode, case.agent} & set(options.kernels) for case in rows]
                listed[check.name] = len(rows), sum(map(bool, named))
    agents = len(REPLAY_AGENTS)  # of AC-IQN in three sizes
    assert listed == {
        "bench": (6 + 2 + agents, 6),
        "bench_training": (agents, 2),
        "bench_turns": (6, 0),
    }


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
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in names:
                marks = " ".join(map(ast.unparse, node.decorator_list))
                named = "cuda" in marks.replace("torch.cuda", "")  # by a parameter
                assert named or "not torch.cuda.is_available" not in marks, (path, node.name)
        relative = path.relative_to(ROOT)
        if names and path != Path(__file__):
            listed = {str(place) for place in (relative, *relative.parents)}
            assert listed & set(itertools.chain(*gpu_plan.CUDA_TESTS.values())), (relative, names)


MODULES = {"pyyaml": "yaml", "imageio-ffmpeg": "imageio_ffmpeg"}
COLLECT = """
import sys

sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))  # None: cannot be imported
import pytest

import scripts.bench.main
import scripts.checks.sanitizer_run
import train_RL_agents.train
from scripts.checks.gpu_plan import CUDA_TESTS

paths = [path for part in CUDA_TESTS.values() for path in part]
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *paths]))
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
