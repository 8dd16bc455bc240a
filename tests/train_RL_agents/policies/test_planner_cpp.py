"""Exports in C++: a planner with the LibTorch that torch ships acts as the checkpoint does.

Builds `docs/examples/planner_cpp`.
"""

import functools
import subprocess
from pathlib import Path

import pytest
import torch

from marinenav_env.envs.observation import Observation
from tests.conftest import ROOT, run_python
from tests.train_RL_agents.policy_samples import (
    OUTPUTS,
    export_policy,
    recorded_observation,
    save_policy,
)
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.seal import checksum
from train_RL_agents.policies.shield.acting import shield_agent

EXAMPLE = ROOT / "docs" / "examples" / "planner_cpp"
NO_SYMBOLS = ("-DCMAKE_CXX_FLAGS_DEBUG=-g0",)
"""Those of torch's headers would take longer than all else of the compilation."""


@pytest.fixture(scope="module")
def planner() -> Path:
    """The program, built by CMake as its CMakeLists.txt says; a second build compiles nothing."""
    folder = ROOT / "build" / f"planner_cpp-{torch.__version__}"
    prefix = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    for step in (
        ("-S", EXAMPLE, "-B", folder, prefix, "-DCMAKE_BUILD_TYPE=Debug", *NO_SYMBOLS),
        ("--build", folder),
    ):
        run_python(ROOT, "-m", "cmake", *step)
    return folder / "planner"


def run(program: Path, model: Path, lines: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(program), str(model)], input=lines, capture_output=True, text=True, timeout=120
    )


def lines_of(inputs: list[torch.Tensor]) -> list[str]:
    table = torch.cat([part.flatten(1) for part in inputs], dim=1)
    return [" ".join(map(repr, row)) for row in table.tolist()]


def planned(
    program: Path, model: Path, inputs: list[torch.Tensor], between: str = ""
) -> torch.Tensor:
    """Return the actions that the planner prints for rows of these inputs, float64.

    Args:
        program: the planner.
        model: the file.
        inputs: of the rows.
        between: lines of text after each row.
    """
    lines = "\n".join(line + between for line in lines_of(inputs))
    result = run(program, model, lines)
    assert result.returncode == 0, result.stderr
    actions = [[float(number) for number in line.split()] for line in result.stdout.splitlines()]
    return torch.tensor(actions, dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [*((name, {}) for name in OUTPUTS), ("IQN", {"cvar": 0.1, "adaptive_cvar": True})],
)
@torch.no_grad()
def test_actions_are_those_of_the_checkpoint(planner, tmp_path, name, algorithm, monkeypatch):
    path = save_policy(tmp_path / "policy.pt", name, algorithm=algorithm)
    file, (agent, _) = export_policy(path), load_policy(path)
    agent.double()
    observation = recorded_observation()
    rows = len(observation.ego)
    noise = torch.randn(rows, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    monkeypatch.setattr(torch, "randn_like", lambda mu: noise)
    expected = agent.act(observation)
    if agent.discrete:
        assert len(expected.unique()) > 1
    others = [value.expand(rows, -1) for value in agent.actor_inputs().values()]
    others += [noise] if agent.stochastic else []
    found = planned(planner, file, [*observation, *others])
    torch.testing.assert_close(found, expected.double().reshape(rows, -1), rtol=0.0, atol=1e-12)
    alone = planned(planner, file, [*observation])
    by_itself = agent.act(observation, mean=True).double().reshape(rows, -1)
    torch.testing.assert_close(alone, by_itself, rtol=0.0, atol=1e-12)


@torch.no_grad()
def test_it_remembers_the_lines_before(planner, tmp_path):
    """Up to two, of the first line all three are the same; an empty one makes it forget."""
    path = save_policy(tmp_path / "policy.pt", "DDPG", stack_k=3)
    file, (agent, _) = export_policy(path), load_policy(path)
    agent.double()
    rows = [part[:6] for part in recorded_observation()]

    def acted(now, one, two):
        frames = (torch.cat([part[now], part[one], part[two]], 1) for part in rows)
        return agent.act(Observation(*frames))

    step = torch.arange(6)
    expected = acted(step, (step - 1).clamp(min=0), (step - 2).clamp(min=0))
    torch.testing.assert_close(planned(planner, file, rows), expected, rtol=0.0, atol=1e-12)
    anew = planned(planner, file, rows, between="\n")
    torch.testing.assert_close(anew, acted(step, step, step), rtol=0.0, atol=1e-12)
    assert (anew - expected).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["AC-IQN", "IQN", "Rainbow"])
@torch.no_grad()
def test_the_shield_is_inside(planner, tmp_path, name):
    """The planner calls the file as any other, and acts as `evaluate.py --shield` does."""
    path = save_policy(tmp_path / "policy.pt", name)
    file = export_policy(path, "torchscript", "--shield", "margin_m=1")
    agent, config = load_policy(path)
    agent.double()
    observation = recorded_observation()
    expected = shield_agent(agent, config, ShieldConfig(margin_m=1.0), agent.act)(observation)
    changed = (expected != agent.act(observation)).reshape(len(expected), -1).any(-1)
    both = changed.nonzero()[:6, 0], (~changed).nonzero()[:6, 0]  # plans of quantiles take long
    chosen = torch.cat(both)
    assert len(chosen) == 12
    observation = Observation(*(part[chosen] for part in observation))
    expected, rows = expected[chosen], len(chosen)
    others = [value.expand(rows, -1) for value in agent.actor_inputs().values()]
    found = planned(planner, file, [*observation, *others])
    torch.testing.assert_close(found, expected.double().reshape(rows, -1), rtol=0.0, atol=1e-9)


def test_it_says_what_is_wrong(planner, tmp_path):
    missing = run(planner, tmp_path / "none.pt", "")
    assert missing.returncode == 1
    assert "none.pt: check the name" in missing.stderr
    path = save_policy(tmp_path / "policy.pt", "DQN")
    exported = export_policy(path)
    plan = functools.partial(run, planner, exported)
    said = plan("").stderr
    assert f"sha256 {checksum(exported.read_bytes())}" in said
    assert "DQN of commit" in said
    assert "a line is too short: 36 numbers" in plan("1 " * 36).stderr
    assert plan("1 " * 37).returncode == 0
    for line, message in (
        ("1 " * 38, "a line is too long"),
        ("1 " * 40, "a line is too long"),
        ("1 " * 36 + "0.5", "mask[4] is 0.5: give 1 for an object, 0 for none"),
        ("1 " * 37 + "knots", "'knots' is no finite number"),
        ("nan " * 37, "'nan' is no finite number"),
    ):
        refused = plan(line)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert message in refused.stderr
    other = export_policy(path, "onnx")
    said = run(planner, other, "").stderr.splitlines()
    remedy = "export with --format torchscript"
    assert said[1:] == [f"error: {other} is no TorchScript file: {remedy}"]
    content = exported.read_bytes()
    for place in (len(content) // 2, len(content) - 1):
        flipped = bytearray(content)
        flipped[place] ^= 1
        exported.write_bytes(flipped)
        refused = plan("1 " * 37)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "is damaged: export it again" in refused.stderr
    exported.write_bytes(content.replace(b"marinenav-sha256:", b"-" * 17))
    assert "carries no checksum" in plan("1 " * 37).stderr


def test_the_network_is_called_before_the_first_observation(planner, tmp_path):
    """To warm it; so a file that it cannot call ends the planner in the harbour."""
    other = export_policy(save_policy(tmp_path / "other.pt", "DQN", task="icra2024", env={}))
    refused = run(planner, other, "")
    assert (refused.returncode, "in the task icra2024" in refused.stderr) == (1, True)
    usual = export_policy(save_policy(tmp_path / "usual.pt", "DQN"))
    assert run(planner, usual, "").returncode == 0
