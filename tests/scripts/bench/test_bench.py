"""The benchmark: its rows count what they should, its limits can fail."""

import json

import pytest
import torch

from marinenav_env.envs.make import TASKS
from scripts.bench import NO_MEMORY, main
from scripts.bench.case import Case
from scripts.bench.disturbances import DISTURBANCES
from scripts.bench.machine import Peaks
from scripts.bench.modes import measure_simulator
from scripts.bench.options import parse
from scripts.bench.simulation import Simulation
from train_RL_agents.config.schema import training_env

CPU = torch.device("cpu")
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
        shown, told = capsys.readouterr()
        assert "out of memory" in shown
        assert f"{NO_MEMORY}: mode step, task marine" in told

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

    def test_a_gpu_is_asked_again_and_kernels_are_listed_of_named_rows(self, monkeypatch):
        """After all rows: what looks at kernels slows the process."""
        did = []

        def measured(case, *_):
            did.append(case.agent or case.worlds)
            return {}

        def listed(case):
            did.append(f"kernels of {case.agent}")
            return {"kernels": {}}

        monkeypatch.setattr(main, "record_head", lambda device: {})
        monkeypatch.setattr(main, "matmul_flops_per_s", lambda device: {})
        monkeypatch.setattr(main, "measure_peaks", lambda device: None)
        monkeypatch.setattr(main, "measure_simulator", measured)
        monkeypatch.setattr(main, "measure_training", measured)
        monkeypatch.setattr(main, "measure_kernels", listed)
        monkeypatch.setattr(main, "gpu_state", lambda device: did.append("state") or {"now": 1})
        arguments = ["--modes", "step", "train", "--worlds", "8", "--resets", "none", "--vortices"]
        arguments += ["0", "--agents", "IQN", "DQN", "--kernels", "DQN", "--device", "cuda"]
        options = parse(arguments)
        options.arguments = arguments
        record = main.measure(options, torch.device("cuda"), lambda record: None)
        assert did == [8, "IQN", "DQN", "state", "kernels of DQN"]
        assert record["rows"] == [{}, {}, {"kernels": {}}]
        assert record["gpu_state_after"] == {"now": 1}
        assert record["skip_reset_if_empty"] == []
        assert parse(["--device", "cuda"]).kernels == ["step", "inference", "train"]

    def test_below_min_rate(self, refused):
        arguments = ["--quick", "--modes", "step", "--worlds", "1", "--resets", "none"]
        arguments += ["--cores", "0", "--min-rate", "1e15"]
        refused(main.main, arguments, "mode step reaches", "--min-rate 1,000,000,000,000,000")

    @pytest.mark.parametrize("task", TASKS)
    def test_every_task_is_measured_in_every_mode(self, task, monkeypatch, tmp_path):
        """In the water of its last stage, with the frames that its agents observe.

        Every row is compared with its bound, as on a GPU, whose peaks are made up here.
        """
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
        # Each does more than the one before.
        assert steps[0]["bound"] > inference["bound"] > training["bound"]

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
