"""`docs/adding_an_agent.md`, followed to the letter in a copy of the project."""

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_python
from tests.guides import apply_diff, copy_folders, follow
from tests.train_RL_agents.short_runs import SHORT
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.metrics.writer import read_metrics


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the project with the seventh agent; the simulator is the same one."""
    if "QR-DQN" in AGENTS:
        pytest.skip("it has been followed here")
    folder = tmp_path_factory.mktemp("project")
    copy_folders(folder, "train_RL_agents", "configs", "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "marinenav_env").symlink_to(ROOT / "marinenav_env")
    assert follow(folder, "adding_an_agent.md") == {
        "configs/qr_dqn.yaml",
        "train_RL_agents/agents/qr_dqn.py",
        "train_RL_agents/agents/registry.py",
    }
    return folder


def test_the_trainer_trains_it_and_evaluation_loads_it(project):
    program = (
        "import sys; from train_RL_agents import evaluate, train; a = sys.argv; i = a.index('--')\n"
        "sys.exit(train.main(a[1:i]) or evaluate.main(a[i + 1 :]))"
    )
    training = ["--agent", "QR-DQN", "--device", "cpu", "--output", "run"]
    training += [*SHORT, "total_steps=300"]
    evaluation = ["--checkpoint", "run", "--episodes", "1", "--device", "cpu"]
    tables = run_python(project, "-c", program, *training, "--", *evaluation)
    assert tables.count("QR-DQN, seed 0, 300 steps") == 1
    assert tables.count("QR-DQN, episodes of seed") == 1
    records = [r for r in read_metrics(project / "run" / "metrics.jsonl") if r["mode"] == "train"]
    assert records[-1]["step"] == 300
    assert records[-1]["updates"] > 0
    assert records[-1]["critic_loss"] > 0


def test_the_registrys_tests_cover_it(project):
    output = run_python(
        project,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
        "tests/train_RL_agents/agents/test_agents.py",
        "tests/train_RL_agents/agents/test_bfloat16.py",
        "tests/train_RL_agents/agents/test_descent.py",
        "tests/train_RL_agents/policies/test_export.py",
        "tests/train_RL_agents/policies/test_start.py",
        "tests/train_RL_agents/training/test_captured.py",
        "tests/train_RL_agents/training/test_fake_gpu.py",
        "tests/test_goldens.py",
        *("-k", "QR-DQN"),
    )
    assert int(re.search(r"(\d+) passed", output)[1]) >= 10


def test_it_learns_a_small_problem(project):
    """As `test_small_problems.py` sets it up, but not to the end; random actions return 22."""
    program = (
        "import torch\n"
        "from tests.train_RL_agents.small_problems import Plan, learn\n"
        "from tests.train_RL_agents.agents.test_small_problems import with_its_problem\n"
        "torch.manual_seed(0)\n"
        "agent, problem = with_its_problem('QR-DQN')\n"
        "plan = Plan(worlds=16, steps=250, updates=4, epsilon=0.1, check=50)\n"
        "print(learn(problem, agent, plan, 100.0))"
    )
    assert float(run_python(project, "-c", program)) > 60.0


def test_a_diff_that_does_not_fit_is_noticed():
    with pytest.raises(AssertionError, match="does not fit"):
        apply_diff("a\nb\n", " a\n-c\n+d\n")
    assert apply_diff("a\nb\nc\n", " a\n-b\n+x\n@@\n-c\n+y\n") == "a\nx\ny\n"
