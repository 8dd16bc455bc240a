"""The benchmark: its rows count what they should, its limits can fail."""

import dataclasses
import json
import time

import pytest
import torch

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import ops
from marinenav_env.vessels import VESSELS
from scripts.bench import machine, main
from scripts.bench import options as command_line
from scripts.bench import training as bench_training
from scripts.bench.bounds import (
    OBSERVATION,
    Work,
    bound_of,
    products_of,
    work_of,
    work_of_robot_step,
)
from scripts.bench.disturbances import DISTURBANCES
from scripts.bench.machine import Laps, Memory, Peaks, timed
from scripts.bench.modes import RESETS, Case, Effort, Simulation, chooser_of, measure_simulator
from scripts.bench.training import Lap, Training, jitter, measure_training, training_config
from train_RL_agents.agents import base
from train_RL_agents.agents.registry import REPLAY_AGENTS
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config
from train_RL_agents.config.schema import training_env
from train_RL_agents.metrics.writer import read_metrics

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


class TestSettings:
    def test_they_are_in_force_in_every_row(self):
        command = ["--modes", *command_line.MODES, "env.vessel=otter", "--worlds", "4"]
        command += ["--agents", "DQN", "--device", "cpu", "env.episode.max_steps=200"]
        command += ["--vortices", "0", "--train-worlds", "4"]
        rows = list(main.cases(command_line.parse(command), CPU))
        assert {case.mode for case in rows} == set(command_line.MODES)
        for case in rows:
            assert case.settings == ("env.vessel=otter", "env.episode.max_steps=200")
            env = training_config(case).env if case.mode == "train" else Simulation(case).env.config
            assert env.vessel == VESSELS["otter"]
            assert (env.episode.max_steps == 200) == (case.resets != "none")

    def test_disturbances_come_on_top(self):
        settings = ("env.wind.speed=[9,9]", "env.wind.gust_time=7", "env.stream.speed=[1,1]")
        case = Case("step", CPU, 4, disturbances="wind", settings=settings)
        env = Simulation(case).env.config
        assert (env.wind.speed, env.wind.gust_time) == ((0.0, 6.0), 7.0)
        assert env.stream.speed == (1.0, 1.0)

    def test_episodes_without_resets_keep_how_they_end(self):
        settings = ("env.episode.stop_on_collision=true",)
        env = Simulation(Case("step", CPU, 4, resets="none", settings=settings)).env
        assert (env.config.episode.max_steps, env.config.episode.stop_on_collision) == (10**6, True)

    def test_what_a_training_in_a_task_needs_remains(self):
        case = Case("train", CPU, 4, 1, 0, min_distance_m=0.0, agent="DQN", task="mountain_car")
        case = dataclasses.replace(case, batch_size=64, samples_per_insert=1.0)
        usual = training_config(case).env
        changed = training_config(dataclasses.replace(case, settings=("env.episode.max_steps=99",)))
        assert usual.physics == changed.env.physics != training_env("mountain_car").physics
        assert changed.env.episode.max_steps == 99

    def test_a_fringe_is_no_second_one(self):
        """The benchmark trains without that of the curriculum in `configs/icra2024.yaml`."""
        case = Case("train", CPU, 4, 3, 0, 4, 30.0, agent="DQN", task="icra2024", batch_size=64)
        case = dataclasses.replace(case, samples_per_insert=1.0, settings=("env.reward.fringe=1",))
        assert training_config(case).collecting_env.reward.fringe == 1.0
        assert Simulation(dataclasses.replace(case, mode="inference")).env.config.reward.fringe == 1

    def test_the_record_and_the_table_say_them(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(main, "matmul_flops_per_s", lambda device: {"float32": 1e9})
        path = tmp_path / "record.json"
        few = ["--worlds", "2", "--repeats", "1", "--seconds", "0.001", "--device", "cpu"]
        acting = ["--modes", "inference", "--policies", "baseline:goal-straight"]
        assert main.main([*acting, "env.wind.speed=[3,5]", *few, "--json", str(path)]) == 0
        (found,) = json.loads(path.read_text())["rows"]
        assert found["settings"] == ["env.wind.speed=[3,5]"]
        assert "env.wind.speed=[3,5]" in capsys.readouterr().out
        assert main.main([*acting, *few, "--json", str(path)]) == 0
        (found,) = json.loads(path.read_text())["rows"]
        assert found["settings"] == []

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["env.wind.sped=3"], "unknown setting 'env.wind.sped'"),
            (["env.vessel=raft"], "env.vessel.name is 'raft': choose one of wamv16"),
            (["env.perception.rays=40"], "env.perception.rays is a setting of marine_sectors, and"),
            (["--task", "cartpole", "env.vessel=otter"], "and the task is cartpole: give another"),
            (
                ["env.vessel.x_u=-6000", "--disturbances", "off", "variation"],
                "the greatest dampings gives a vessel whose x_u is -7800.0: ",
            ),
        ],
    )
    def test_those_of_no_use_are_refused_before_any_row(
        self, arguments, message, refused, monkeypatch
    ):
        monkeypatch.setattr(main, "measure", lambda *_: pytest.fail("it has begun"))
        refused(main.main, [*arguments, "--device", "cpu"], message, status=2)

    def test_a_policy_acts_on_the_vessel_that_it_knows(self):
        otter = Case("inference", CPU, 2, agent="pretrained/sac", settings=("env.vessel=otter",))
        assert not chooser_of(otter).discrete
        heavy = ("env.vessel.mass=450",)
        dqn = dataclasses.replace(otter, agent="pretrained/dqn")
        assert chooser_of(dataclasses.replace(dqn, settings=heavy)).discrete
        with pytest.raises(ConfigError, match=r"pretrained/dqn': its discrete actions are not"):
            chooser_of(dqn)
        with pytest.raises(ConfigError, match="'orca' knows the motion of 'wamv16' only"):
            chooser_of(dataclasses.replace(otter, agent="baseline:orca"))

    def test_a_shield_plans_for_the_vessel_of_the_worlds(self):
        case = Case("inference", CPU, 2, agent="pretrained/sac", settings=("env.vessel=otter",))
        case = dataclasses.replace(case, shield=ShieldConfig())
        with pytest.raises(ConfigError, match=r"a vessel 'otter' looks as small as"):
            chooser_of(case)
        small = (*case.settings, "env.scenario.buoy_radius_min=0.5")
        small += ("env.scenario.buoy_radius_max=0.6",)
        assert chooser_of(dataclasses.replace(case, settings=small)).act.shield


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


class TestTraining:
    @pytest.mark.parametrize("agent", REPLAY_AGENTS)
    def test_settings(self, agent):
        ratio, batch = 0.125, 64
        case = Case(
            "train", CPU, 8, vortices=2, agent=agent, samples_per_insert=ratio, batch_size=batch
        )
        config = training_config(case)
        assert config.agent == agent
        assert (config.updates.samples_per_insert, config.updates.batch_size) == (ratio, batch)
        assert config.curriculum.stages == (case.stage,)
        assert config.env == training_env()
        # The trainer corrects over the shortest interval: that must be the log's.
        intervals = (config.log, config.evaluation, config.checkpoint)
        assert min(part.interval_steps for part in intervals) == 8 * bench_training.LOG_EVERY
        assert config.log.interval_steps == 8 * bench_training.LOG_EVERY

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_the_peak_is_that_of_the_agents_format(self, dtype, monkeypatch):
        monkeypatch.setattr(base, "multiplies_bfloat16", lambda device: dtype == "bfloat16")
        case = Case("train", CPU, 4, agent="DQN", samples_per_insert=1.0, batch_size=64)
        rates = {"float32": 1e9, "bfloat16": 5e9}
        measured = measure_training(case, BRIEF, rates)
        assert measured["product_dtype"] == dtype
        rate = measured["flops_per_update"] / measured["update_s"]
        assert measured["update_share_of_peak"] == pytest.approx(rate / rates[dtype])

    def test_begins_with_a_full_replay_and_writes_its_log(self):
        case = Case("train", CPU, 4, agent="DQN", samples_per_insert=1.0, batch_size=64)
        with Training.running(case) as training:
            replay = training.trainer.learner.replay
            assert int(replay.filled) == replay.rows
            before, whole = training.robot_steps(), training.repeat(150)[0]
            assert training.robot_steps() - before == whole.robot_steps
            metrics = read_metrics(training.trainer.output_dir / "metrics.jsonl")
            records = [record for record in metrics if record["mode"] == "train"]
            assert len(records) == training.trainer.counters.iteration // bench_training.LOG_EVERY

    def test_jitter(self):
        figures = jitter([Lap(s, 1) for s in [1.0] * 198 + [3.0, 5.0]])
        assert figures["median_iteration_s"] == 1.0
        assert figures["slowest_percent_over_median"] == 4.0
        assert jitter([Lap(s, 1) for s in (1.0, 2.0, 3.0)])["slowest_percent_over_median"] == 1.5
        # An iteration with more updates is slower without being late.
        laps = [Lap(1.0, 1)] * 60 + [Lap(2.0, 2)] * 40
        assert jitter(laps)["slowest_percent_over_median"] == 2.0
        assert jitter(laps)["slowest_percent_over_median_of_equal"] == 1.0
        late = jitter([*laps, Lap(3.0, 2)])
        assert late["slowest_percent_over_median_of_equal"] == 1.5


class TestMachine:
    def test_rates_of_matrix_products(self, monkeypatch):
        monkeypatch.setitem(machine.MATRIX, "cpu", 128)  # bfloat16 without units takes a minute
        for has_units, formats in ((False, ["float32"]), (True, ["float32", "bfloat16"])):
            monkeypatch.setattr(machine, "multiplies_bfloat16", lambda device, has=has_units: has)
            rates = machine.matmul_flops_per_s(CPU)
            assert list(rates) == formats
            assert all(rate > 1e8 for rate in rates.values())

    def test_laps(self):
        laps = Laps(CPU)
        laps.mark()
        time.sleep(0.02)
        laps.mark()
        laps.mark()
        first, second = laps.seconds()
        assert 0.02 <= first < 1
        assert second < first
        assert timed(CPU, lambda: time.sleep(0.01)) >= 0.01

    def test_memory_sees_growth(self):
        before = Memory.now(CPU)
        kept = torch.ones(2**25)
        assert Memory.now(CPU).growth_since(before) >= 0.5 * kept.nbytes
        assert before.growth_since(Memory.now(CPU)) < 0


class TestBounds:
    def test_work_matches_the_layout(self):
        """Per robot: 20 + 20 + 37 + 1 numbers, an action, 4 flags; per world 7 + 12 and 3 flags."""
        work = work_of_robot_step(robots=5, buoys=4, vortices=0)
        assert work.bytes == pytest.approx(4 * 78 + 8 + 4 + (4 * 19 + 3) / 5)
        with_vortices = work_of_robot_step(robots=5, buoys=4, vortices=4)
        assert with_vortices.bytes - work.bytes == pytest.approx(4 * 3 * 4 / 5)
        assert with_vortices.operations > work.operations

    def test_observation_is_the_simulators(self):
        obs = MarineNavEnv(1).make_buffers().obs
        assert sum(field[0, 0].numel() for field in obs) == OBSERVATION

    def test_bound_is_the_tighter_one(self):
        work = Work(bytes=100.0, operations=1000.0)
        bound = bound_of(work, Peaks(bytes_per_s=1e6, operations_per_s=1e6))
        assert (bound["bound_by_memory"], bound["bound_by_arithmetic"]) == (1e4, 1e3)
        assert bound["bound"] == 1e3
        assert bound_of(work, Peaks(1e6, None))["bound"] == 1e4
        assert bound_of(Work(100.0, None), Peaks(1e6, 1.0))["bound"] == 1e4
        with_products = bound_of(work, Peaks(1e6, 1e6), products=2000.0, product_rate=1e6)
        assert with_products["bound"] == pytest.approx(1 / (1e-3 + 2e-3))

    def test_tensors_of_another_task_are_counted(self):
        """Robot 6 numbers, status, bad, world 6: both ways; action, observation, 1 + 7 results."""
        case = Case("step", CPU, 4096, 1, 0, min_distance_m=0.0, task="cartpole", turns=16)
        state, others = 2 * 4 * (6 + 1 + 1 + 6), 8 + 4 * 4 + 4 + 7
        assert work_of(case) == Work(state / 16 + others, None)
        assert work_of(dataclasses.replace(case, turns=1)) == Work(state + others, None)

    def test_the_frames_that_a_policy_observes_are_counted(self):
        case = Case("inference", CPU, 64, 7, 10, 8, agent="DQN", task="icra2024")
        one_frame = work_of(dataclasses.replace(case, mode="step", agent=None))
        later_frames = 4 * 7 * (4 + 5 * 3 + 5 * 4)  # bytes
        assert work_of(case).bytes == pytest.approx(one_frame.bytes + later_frames)

    def test_products_of_a_policy_and_its_updates(self):
        case = Case("inference", CPU, 64, 1, 0, min_distance_m=0.0, agent="DQN", task="cartpole")
        config = load_config(task="cartpole", agent="DQN")[0]
        network = build_agent(config, CPU).policy_network
        products = 2 * sum(p.numel() for p in network.parameters() if p.dim() == 2)
        assert products_of(case, {}) == products > 0
        assert products_of(dataclasses.replace(case, agent=None), {}) == 0.0
        trained = dataclasses.replace(case, mode="train", batch_size=10)
        row = {"flops_per_update": 500.0, "samples_per_insert": 0.5}
        assert products_of(trained, row) == products + 25.0
