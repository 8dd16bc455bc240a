"""Options of the benchmark: what they ask for, and which are refused."""

import time

import pytest
import torch

from marinenav_env.kernel import ops
from scripts.bench import main
from scripts.bench import options as command_line
from scripts.bench.case import RESETS, Case, Effort
from scripts.bench.disturbances import DISTURBANCES
from scripts.bench.simulation import Simulation
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.config.schema import training_env

CPU = torch.device("cpu")


def test_effort_can_be_chosen():
    assert command_line.efforts(command_line.parse(["--quick"])) == (
        command_line.QUICK,
        command_line.QUICK_TRAINING,
    )
    options = command_line.parse(["--repeats", "2", "--seconds", "0.5"])
    assert command_line.efforts(options) == (Effort(2, 0.5), Effort(2, 0.5))
    options = command_line.parse(["--repeats", "2"])
    assert command_line.efforts(options)[1] == Effort(2, command_line.FULL_TRAINING.seconds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "missing/folder/x.json"], "folder is missing"),
        (["--robots", "300"], "robots=300"),
        (["--min-distance", "100"], "min_distance_m is 100"),
        (["--turns", "4", "--resets", "natural"], "--turns go with classic tasks"),
        (["--turns", "4", "--task", "cartpole"], "--turns go with classic tasks"),
    ],
)
def test_bad_option(arguments, message, refused):
    refused(main.main, ["--quick", "--modes", "step", *arguments], message, status=2)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--samples-per-insert", "0", "0.0: give a number above 0"),
        ("--samples-per-insert", "nan", "nan: give a number above 0"),
        ("--worlds", "0", "0: give 1 or more"),
        ("--repeats", "0", "0: give 1 or more"),
        ("--seconds", "0", "0.0: give a number above 0"),
    ],
)
def test_number_out_of_range(option, value, message, refused):
    refused(command_line.parse, [option, value], f"argument {option}", message, status=2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_no_gpu(refused):
    begun = time.monotonic()
    refused(main.main, ["--device", "cuda"], "no CUDA device", status=2)
    assert time.monotonic() - begun < 5


def test_covers_all_that_is_asked_for():
    rows = list(main.cases(command_line.parse(["--device", "cpu"]), CPU))
    steps = {(c.worlds, c.resets, c.vortices) for c in rows if c.mode == "step"}
    assert steps == {(w, r, c) for w in command_line.WORLDS for r in RESETS for c in (0, 4)}
    assert {c.disturbances for c in rows} == {"off"}
    acting = [c for c in rows if c.mode == "inference"]
    assert {c.worlds for c in acting if c.agent == "AC-IQN"} == {*command_line.WORLDS, 64}
    assert {c.agent for c in acting} == set(REPLAY_AGENTS)
    assert [c.agent for c in rows if c.mode == "train"] == list(REPLAY_AGENTS)
    assert {c.samples_per_insert for c in rows if c.mode == "train"} == {5.1}


@pytest.mark.parametrize("task", ["marine_sectors", "marine_beams"])
def test_a_range_finder_has_all_disturbances(task):
    options = command_line.parse(["--task", task, "--disturbances", *DISTURBANCES])
    assert options.disturbances == list(DISTURBANCES)
    usual = training_env(task)
    for name in DISTURBANCES[1:]:
        changed = Simulation(Case("step", CPU, 4, task=task, disturbances=name)).env.config
        assert changed != usual, name
        assert (changed.perception.range_std > 0.0) == (name in ("sensor", "all"))


def test_tasks_without_water_have_no_disturbances(refused):
    for task in ("icra2024", "cartpole"):
        asked = ["--task", task, "--disturbances", "wind", "all"]
        message = f"--disturbances wind, all: {task} goes with off"
        refused(command_line.parse, asked, message, status=2)


@pytest.mark.parametrize(("operators", "taken"), [(True, "cuda"), (False, "cpu")])
def test_takes_the_gpu_if_its_operators_are_there(operators, taken, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(ops, "has_cuda", lambda: operators)
    assert command_line.parse([]).device == taken


def test_ratio_on_a_gpu():
    options = command_line.parse(["--device", "cuda", "--modes", "train"])
    assert {c.samples_per_insert for c in main.cases(options, CPU)} == {1 / 8}
