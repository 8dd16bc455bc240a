"""The benchmark: its rows count what they should, its limits can fail."""

import json
import time

import pytest
import torch

from marinenav_env.envs.make import TASKS
from marinenav_env.kernel import ops
from scripts.bench import main
from scripts.bench import options as command_line
from scripts.bench.disturbances import DISTURBANCES
from scripts.bench.machine import Peaks
from scripts.bench.modes import RESETS, Case, Effort, Simulation, measure_simulator
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.config.schema import training_env

CPU = torch.device("cpu")
BRIEF = Effort(repeats=2, seconds=0.001)
NEEDED = (
    *("mode", "device", "worlds", "robots", "buoys", "vortices", "resets", "robot_steps_per_s"),
    *("world_steps_per_s", "samples_per_insert", "memory_bytes", "memory_growth_bytes"),
)


def row(**changes):
    values = dict.fromkeys(NEEDED, 0) | {"mode": "step", "agent": None, "resets": "none"}
    return values | changes


class TestPolicies:
    def test_a_baseline_with_a_shield_is_measured(self, tmp_path):
        path = tmp_path / "record.json"
        few = ["--worlds", "2", "--robots", "2", "--repeats", "1", "--seconds", "0.001"]
        guarded = ["--policies", "baseline:goal-straight", "--shield", "horizon_s=1"]
        assert main.main(["--modes", "inference", *guarded, *few, "--json", str(path)]) == 0
        (found,) = json.loads(path.read_text())["rows"]
        assert found["agent"] == "baseline:goal-straight"
        assert found["robot_steps_per_s"] > 0
        assert found["shield"]["horizon_s"] == 1.0

    def test_a_policy_of_several_frames_is_measured_in_its_water(self, tmp_path):
        path = tmp_path / "record.json"
        chosen = ["--task", "icra2024", "--policies", "pretrained/icra2024_dqn"]
        few = ["--worlds", "2", "--repeats", "1", "--seconds", "0.001", "--device", "cpu"]
        assert main.main(["--modes", "inference", *chosen, *few, "--json", str(path)]) == 0
        (found,) = json.loads(path.read_text())["rows"]
        assert found["robot_steps_per_s"] > 0
        assert found["vortices"] == 8

    def test_what_cannot_be_measured_is_named(self, refused):
        acting = ["--modes", "inference", "--policies"]
        refused(main.main, [*acting, "baseline:none"], "baseline is 'none'", status=2)
        refused(main.main, [*acting, "nowhere"], "nowhere", status=2)
        refused(main.main, [*acting, "pretrained/icra2024_dqn"], "of the task 'icra2024'", status=2)
        refused(main.main, ["--shield"], "--shield guards --policies", status=2)


class TestCommandLine:
    @pytest.mark.parametrize("in_capture", [False, True])
    def test_a_row_that_does_not_fit_the_memory_is_noted(
        self, in_capture, tmp_path, capsys, monkeypatch
    ):
        def measure(case, *_):
            if case.worlds == 16:
                try:
                    raise torch.OutOfMemoryError("CUDA out of memory.\nMore")
                finally:
                    if in_capture:
                        raise torch.AcceleratorError("capture invalidated")
            return original(case, *_)

        original = measure_simulator
        monkeypatch.setattr(main, "measure_simulator", measure)
        path = tmp_path / "bench.json"
        arguments = ["--modes", "step", "--worlds", "16", "4", "--resets", "none", "--vortices"]
        arguments += ["0", "--quick", "--device", "cpu", "--json", str(path)]
        assert main.main(arguments) == 0
        record = json.loads(path.read_text())
        assert [row["worlds"] for row in record["rows"]] == [4]
        (noted,) = record["out_of_memory"]
        assert (noted["worlds"], noted["message"]) == (16, "CUDA out of memory.")
        assert "out of memory" in capsys.readouterr().out

    def test_another_error_ends_the_benchmark(self, monkeypatch):
        def fail(*_):
            raise RuntimeError("a mistake")

        monkeypatch.setattr(main, "measure_simulator", fail)
        with pytest.raises(RuntimeError, match="a mistake"):
            main.main(["--modes", "step", "--quick", "--device", "cpu"])

    def test_record_and_table(self, tmp_path, capsys, monkeypatch):
        kept = []
        monkeypatch.setattr(main, "keep_freed_memory", lambda: kept.append(True))
        path = tmp_path / "bench.json"
        arguments = ["--quick", "--modes", "step", "inference", "train", "--worlds", "16"]
        arguments += ["--resets", "natural", "--cores", "0", "--train-worlds", "4"]
        arguments += ["--batch-size", "64", "--threads", "1", "--device", "cpu"]
        arguments += ["--json", str(path)]
        assert main.main(arguments) == 0
        assert kept
        record = json.loads(path.read_text())
        assert {"machine", "commit", "versions", "rows"} <= record.keys()
        assert record["complete"] is True
        modes = [entry["mode"] for entry in record["rows"]]
        assert modes == ["step", "inference", "inference", "train"]
        for entry in record["rows"]:
            assert set(NEEDED) <= entry.keys()
            assert entry["robot_steps_per_s"] > 0
            assert entry["robot_steps_per_s"] <= 5 * entry["world_steps_per_s"] * (1 + 1e-9)
            assert entry["robot_steps_per_cpu_s"] > 0
        # 5.1 is asked for; four worlds for an instant may be far from their mean number of robots.
        assert 2.0 < record["rows"][-1]["samples_per_insert"] < 13.0
        assert record["skip_reset_if_empty"][0]["worlds"] == 16
        assert "robot-steps/s" in capsys.readouterr().out

    def test_every_row_is_kept_at_once(self, tmp_path, monkeypatch):
        """What is stopped at its time limit has lost the row that it was at, no more."""
        rows = iter([row(active_fraction=1.0, robot_steps_per_cpu_s=1.0, device="cpu")])

        def until_stopped(*_):
            for measured in rows:
                return measured
            raise KeyboardInterrupt

        monkeypatch.setattr(main, "measure_simulator", until_stopped)
        path = tmp_path / "bench.json"
        path.write_text("old")
        with pytest.raises(KeyboardInterrupt):
            main.main(["--quick", "--device", "cpu", "--modes", "step", "--json", str(path)])
        record = json.loads(path.read_text())
        assert len(record["rows"]) == 1
        assert record["complete"] is False
        assert list(tmp_path.iterdir()) == [path]

    def test_effort_can_be_chosen(self):
        assert command_line.efforts(command_line.parse(["--quick"])) == (
            command_line.QUICK,
            command_line.QUICK_TRAINING,
        )
        options = command_line.parse(["--repeats", "2", "--seconds", "0.5"])
        assert command_line.efforts(options) == (Effort(2, 0.5), Effort(2, 0.5))
        options = command_line.parse(["--repeats", "2"])
        assert command_line.efforts(options)[1] == Effort(2, command_line.FULL_TRAINING.seconds)

    def test_below_min_rate(self, refused):
        arguments = ["--quick", "--modes", "step", "--worlds", "1", "--resets", "none"]
        arguments += ["--cores", "0", "--min-rate", "1e15"]
        refused(main.main, arguments, "mode step reaches", "--min-rate 1,000,000,000,000,000")

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
    def test_bad_option(self, arguments, message, refused):
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
    def test_number_out_of_range(self, option, value, message, refused):
        refused(command_line.parse, [option, value], f"argument {option}", message, status=2)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
    def test_no_gpu(self, refused):
        begun = time.monotonic()
        refused(main.main, ["--device", "cuda"], "no CUDA device", status=2)
        assert time.monotonic() - begun < 5

    def test_covers_all_that_is_asked_for(self):
        rows = list(main.cases(command_line.parse(["--device", "cpu"]), CPU))
        steps = {(c.worlds, c.resets, c.vortices) for c in rows if c.mode == "step"}
        assert steps == {(w, r, c) for w in command_line.WORLDS for r in RESETS for c in (0, 4)}
        assert {c.disturbances for c in rows} == {"off"}
        acting = [c for c in rows if c.mode == "inference"]
        assert {c.worlds for c in acting if c.agent == "AC-IQN"} == {*command_line.WORLDS, 64}
        assert {c.agent for c in acting} == set(REPLAY_AGENTS)
        assert [c.agent for c in rows if c.mode == "train"] == list(REPLAY_AGENTS)
        assert {c.samples_per_insert for c in rows if c.mode == "train"} == {5.1}

    def test_every_row_is_compared_with_its_bound(self, monkeypatch, tmp_path):
        """As on a GPU, whose peaks are made up here."""
        monkeypatch.setattr(main, "measure_peaks", lambda device: Peaks(1e12, 1e13))
        arguments = ["--task", "cartpole", "--device", "cpu", "--worlds", "16", "--agents", "DQN"]
        arguments += ["--resets", "natural", "--repeats", "1", "--seconds", "0.01"]
        arguments += ["--train-worlds", "16", "--batch-size", "16"]
        path = tmp_path / "bench.json"
        assert main.main([*arguments, "--json", str(path)]) == 0
        rows = json.loads(path.read_text())["rows"]
        assert [row["mode"] for row in rows] == ["step", "inference", "train"]
        bounds = [row["bound"] for row in rows]
        assert bounds == sorted(bounds, reverse=True)  # each does more than the one before
        assert len(set(bounds)) == 3
        for row in rows:
            assert 0.0 < row["fraction_of_bound"] < 1.0

    @pytest.mark.parametrize("task", TASKS)
    def test_every_task_is_measured_in_every_mode(self, task, monkeypatch, tmp_path):
        """In the water of its last stage, with the frames that its agents observe."""
        monkeypatch.setattr(main, "measure_peaks", lambda device: Peaks(1e12, 1e13))
        path = tmp_path / "bench.json"
        arguments = ["--task", task, "--quick", "--device", "cpu", "--worlds", "2"]
        arguments += ["--resets", "natural", "--repeats", "1", "--seconds", "0.001"]
        arguments += ["--train-worlds", "2", "--batch-size", "16", "--json", str(path)]
        assert main.main(arguments) == 0
        *steps, inference, training = json.loads(path.read_text())["rows"]
        rows = [*steps, inference, training]
        assert [row["mode"] for row in rows] == ["step"] * len(steps) + ["inference", "train"]
        vortices = TASKS[task].default_stages[-1].vortices
        assert all(row["vortices"] == vortices for row in (steps[0], inference, training))
        assert all(0.0 < row["fraction_of_bound"] < 1.0 for row in rows)

    def test_disturbances_are_in_force_and_noted(self, capsys, tmp_path):
        path = tmp_path / "bench.json"
        arguments = ["--modes", "step", "--worlds", "4", "--resets", "none", "--vortices", "0"]
        arguments += ["--repeats", "1", "--seconds", "0.01", "--device", "cpu"]
        arguments += ["--disturbances", *DISTURBANCES]
        assert main.main([*arguments, "--json", str(path)]) == 0
        rows = json.loads(path.read_text())["rows"]
        assert [row["disturbances"] for row in rows] == list(DISTURBANCES)
        assert {"disturbances:", "waves"} <= set(capsys.readouterr().out.split())  # a cell may wrap
        for name in DISTURBANCES[1:]:
            changed = Simulation(Case("step", CPU, 4, disturbances=name)).env.config
            assert changed != training_env(), name

    @pytest.mark.parametrize("task", ["marine_sectors", "marine_beams"])
    def test_a_range_finder_has_all_disturbances(self, task):
        options = command_line.parse(["--task", task, "--disturbances", *DISTURBANCES])
        assert options.disturbances == list(DISTURBANCES)
        usual = training_env(task)
        for name in DISTURBANCES[1:]:
            changed = Simulation(Case("step", CPU, 4, task=task, disturbances=name)).env.config
            assert changed != usual, name
            assert (changed.perception.range_std > 0.0) == (name in ("sensor", "all"))

    def test_tasks_without_water_have_no_disturbances(self, refused):
        for task in ("icra2024", "cartpole"):
            asked = ["--task", task, "--disturbances", "wind", "all"]
            message = f"--disturbances wind, all: {task} goes with off"
            refused(command_line.parse, asked, message, status=2)

    @pytest.mark.parametrize(("operators", "taken"), [(True, "cuda"), (False, "cpu")])
    def test_takes_the_gpu_if_its_operators_are_there(self, operators, taken, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(ops, "has_cuda", lambda: operators)
        assert command_line.parse([]).device == taken

    def test_ratio_on_a_gpu(self):
        options = command_line.parse(["--device", "cuda", "--modes", "train"])
        assert {c.samples_per_insert for c in main.cases(options, CPU)} == {1 / 8}


class TestComplaints:
    def test_memory_growth(self):
        rows = [row(memory_growth_bytes=100), row(memory_growth_bytes=101, worlds=7)]
        (complaint,) = main.complaints(rows, 100, None)
        assert "grew by 101 bytes" in complaint
        assert "7 worlds" in complaint
        assert main.complaints(rows, 101, None) == []
        assert main.complaints(rows, None, None) == []

    def test_rate_of_the_fastest_row_of_each_mode(self):
        rows = [
            row(robot_steps_per_s=10.0),
            row(robot_steps_per_s=30.0),
            row(mode="train", robot_steps_per_s=20.0),
        ]
        assert main.complaints(rows, None, 20.0) == []
        (complaint,) = main.complaints(rows, None, 25.0)
        assert "mode train reaches 20" in complaint


class TestSimulation:
    @pytest.mark.parametrize("resets", RESETS)
    def test_counts_active_robots(self, resets):
        case = Case("step", CPU, worlds=32, resets=resets)
        measured = measure_simulator(case, BRIEF)
        assert 0.3 < measured["active_fraction"] <= 1
        if resets == "every":
            assert measured["active_fraction"] == 1
        expected = 5 * measured["active_fraction"]
        ratio = measured["robot_steps_per_s"] / measured["world_steps_per_s"]
        assert ratio == pytest.approx(expected, rel=0.2)

    @pytest.mark.parametrize("resets", RESETS)
    def test_resets(self, resets):
        case = Case("step", CPU, worlds=16, resets=resets)
        simulation = Simulation(case)
        simulation.place()
        episode = simulation.env.state.world_field("episode")
        first = episode.clone()
        simulation.run(400)
        started = (episode - first)[:16]
        if resets == "none":
            assert (started == 0).all()
        elif resets == "every":
            assert (started == 400).all()
        else:  # at most 300 decisions an episode, begun at different times
            assert (started >= 1).all()
            assert (started < 400).all()
            assert started.unique().numel() > 1

    def test_several_decisions_a_launch_are_all_counted(self):
        case = Case("step", CPU, 8, 1, 0, min_distance_m=0.0, task="cartpole", turns=16)
        simulation = Simulation(case)
        simulation.place()
        assert simulation.cycle == 32
        measured = simulation.repeat(64)
        assert measured.robot_steps == 8 * 64
        episodes = simulation.env.state.world_field("episode")[:8]
        assert (episodes >= 2).all()  # a pole pushed at random falls within 64
        row = measure_simulator(case, BRIEF)
        assert (row["turns"], row["active_fraction"]) == (16, 1.0)
        assert row["decisions_per_repeat"] % 32 == 0

    def test_acts_with_the_policy(self):
        simulation = Simulation(Case("inference", CPU, worlds=4, agent="DQN"))
        assert simulation.env.discrete
        simulation.place()
        simulation.run(simulation.cycle)
        assert simulation.env.bad_actions().sum() == 0

    def test_passes_skip_reset_if_empty_on(self):
        for skip in (True, False):
            case = Case("step", CPU, worlds=4, skip_reset_if_empty=skip)
            assert Simulation(case).env.skip_reset_if_empty is skip
