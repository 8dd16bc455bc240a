"""The command train.py: its folders, its sweeps, its signals, and errors before any work."""

import contextlib
import dataclasses
import gc
import json
import re
import shutil
import signal
import subprocess
import sys
import weakref
from datetime import datetime
from types import SimpleNamespace

import pytest
import torch

from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from marinenav_env.vessels import VESSELS, VesselConfig
from marinenav_env.water import WindConfig
from tests.conftest import ROOT, wait_for
from tests.preloaded import ALONE
from tests.train_RL_agents.short_runs import ONE_STAGE, SHORT, TINY, command, environment
from train_RL_agents import evaluate, train
from train_RL_agents.commands import one_run, training
from train_RL_agents.commands.effect import check_effect
from train_RL_agents.commands.vessel_notes import notes_on_vessel, notes_on_wind
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import ProcessLostError
from train_RL_agents.run import checkpoint
from train_RL_agents.training.counters import DivergedRunError
from train_RL_agents.training.interruption import Interruption
from train_RL_agents.training.trainer import TorchRLTrainer

pytestmark = pytest.mark.usefixtures("short_evaluations")


def test_command_line_from_another_folder(tmp_path):
    settings = ["--output", "run", "--agent", "AC-IQN", "--seed", "3", *TINY]
    done = subprocess.run(
        [sys.executable, train.__file__, *settings],
        cwd=tmp_path,
        env=environment() | {ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "95% CI" in done.stdout
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["seed"] == 3
    assert record["starts"][0]["versions"]["torch"] == torch.__version__
    rows = json.loads((tmp_path / "run" / "evaluation.json").read_text())["stages"]
    assert [row["robots"] for row in rows] == [2]
    assert "warning: the run ended without an update" in done.stderr
    assert train.main(["--output", str(tmp_path / "run"), *SHORT]) == 1


def test_the_guide_makes_one_table_of_several_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert train.main(["--output", "runs/margin_0.4", "--seed", "0", "1", *TINY]) == 0
    section = (ROOT / "docs" / "using.md").read_text().partition("### A setting and its seeds")[2]
    capsys.readouterr()
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], {})
    _, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:5] for row in rows] == [["0.4", "AC-IQN", seed, "12", "2"] for seed in "01"]


def test_a_signal_saves_and_leaves(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "total_steps=10_000_000"),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = tmp_path / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.stat().st_size, process)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT
    assert "stopped by SIGINT at step" in messages
    newest = checkpoint.newest(tmp_path)
    assert str(newest) in messages
    assert checkpoint.load(newest)["step"] > 0


def test_sweep_of_seeds_joins_their_curves(tmp_path, capsys):
    output = tmp_path / "sweep"
    arguments = ["--seed", "0", "1", "--output", str(output), *SHORT, "total_steps=200", ONE_STAGE]
    assert train.main(arguments) == 0
    assert (output / "seed_1" / "evaluation.json").exists()
    assert (output / "success.png").stat().st_size > 0
    before = (output / "seed_1" / "metrics.jsonl").read_text()
    assert train.main(["--resume", str(output)]) == 0
    assert (output / "seed_1" / "metrics.jsonl").read_text() == before


def test_an_interrupted_sweep_is_resumed_as_a_sweep(tmp_path, monkeypatch, capsys):
    stopped = Interruption()
    stopped.received = signal.SIGTERM
    monkeypatch.setattr("train_RL_agents.training.trainer.Interruption", lambda: stopped)
    assert train.main(["--output", str(tmp_path), "--seed", "4", "5", *TINY]) == 143
    assert capsys.readouterr().err.endswith(f"resume with: --resume {tmp_path}\n")


def test_a_sweep_goes_on_after_a_seed_that_diverged(tmp_path, monkeypatch, capsys):
    train_one = one_run.train_one

    def diverge(config, *arguments, **options):
        if config.seed == 4:
            raise DivergedRunError("at step 6: critic_loss not finite")
        train_one(config, *arguments, **options)

    monkeypatch.setattr(training, "train_one", diverge)
    assert train.main(["--output", str(tmp_path), "--seed", "4", "5", *TINY]) == 1
    assert "error: seed 4: at step 6: critic_loss not finite" in capsys.readouterr().err
    assert (tmp_path / "seed_5" / "evaluation.json").exists()
    assert (tmp_path / "success.png").exists()


def test_an_error_that_nobody_foresaw_keeps_its_place(tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("expected sequence of length 3")

    monkeypatch.setattr(TorchRLTrainer, "iterate", fail)
    with pytest.raises(ValueError, match="sequence of length 3"):
        train.main(["--output", str(tmp_path), *TINY])


def test_a_sweep_frees_each_run_before_the_next(tmp_path, monkeypatch):
    earlier = []

    def build(*arguments):
        assert not any(replay() for replay in earlier)
        made = TorchRLTrainer(*arguments)
        earlier.append(weakref.ref(made.learner.replay))
        return made

    monkeypatch.setattr(one_run, "TorchRLTrainer", build)
    gc.disable()  # what frees it must not be chance
    try:
        assert train.main(["--output", str(tmp_path), "--seed", "4", "5", *TINY]) == 0
    finally:
        gc.enable()
    assert len(earlier) == 2


def test_published_training_file_makes_a_folder_for_every_run(tmp_path, monkeypatch):
    stage = {"num_robots": [3], "num_cores": [0], "num_obstacles": [0], "min_start_goal_dis": [30]}
    settings = {"seed": 9, "total_timesteps": 60, "eval_freq": 60, "agent_type": "DQN"}
    settings["save_dir"] = str(tmp_path / "training_data")
    settings["training_schedule"] = {"timesteps": [0], **stage}
    settings["eval_schedule"] = {"num_episodes": [1], **stage}
    path = tmp_path / "training.json"
    path.write_text(json.dumps(settings))
    short = ["worlds=6", "evaluation.final_episodes=1", "replay.capacity=3000"]
    short.append("updates.warmup_transitions=100")
    moments = iter((datetime(2026, 1, 1), datetime(2026, 1, 2)))
    monkeypatch.setattr(training, "datetime", SimpleNamespace(now=lambda: next(moments)))
    for _ in range(2):
        assert train.main(["--config", str(path), *short]) == 0
    made = sorted(folder.name for folder in (tmp_path / "training_data").iterdir())
    assert made == ["DQN-20260101-000000", "DQN-20260102-000000"]
    record = json.loads((tmp_path / "training_data" / made[0] / "run.json").read_text())
    assert (record["seed"], record["config"]["total_steps"]) == (9, 60)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, refused):
    (tmp_path / "file").write_text("")
    message = "is no folder to write to: give another one with --output"
    refused(train.main, ["--output", str(tmp_path / "file" / "run"), *SHORT], message)


def test_records_without_a_checkpoint_are_kept(tmp_path, refused):
    (tmp_path / "run.json").write_text('{"config": {}, "starts": []}')
    (tmp_path / "metrics.jsonl").write_text('{"mode": "train", "step": 6}\n')
    refused(train.main, ["--output", str(tmp_path), *TINY], "holds a run")
    refused(train.main, ["--resume", str(tmp_path)], "no checkpoint under")
    assert (tmp_path / "metrics.jsonl").stat().st_size > 0


def test_a_process_lost_before_the_first_checkpoint(tmp_path, monkeypatch, capsys):
    def lost(*_):
        raise ProcessLostError("process 0 of 2 lost contact")

    monkeypatch.setattr(TorchRLTrainer, "train", lost)
    assert train.main(["--output", str(tmp_path), *TINY]) == 1
    assert f"nothing is saved yet; begin again with: --resume {tmp_path}" in capsys.readouterr().err


def test_a_run_with_one_evaluation_says_so():
    long, short = (
        load_config(overrides=[f"total_steps={steps}", "evaluation.interval_steps=600"])[0]
        for steps in (601, 600)
    )
    assert one_run.note_on_curve(long) is None
    assert "evaluation.interval_steps is 600, so this run of 600" in one_run.note_on_curve(short)


@pytest.mark.parametrize("starts", ["[0,0,100]", "[0,50,600]"])
def test_every_stage_of_a_sequence_is_trained(starts, tmp_path, refused):
    stages = "curriculum.stages=[[2,0,0,30],[3,0,0,30],[4,0,0,30]]"
    command = [*SHORT, "curriculum.mode=sequential", stages, f"curriculum.starts={starts}"]
    refused(train.main, ["--output", str(tmp_path / "run"), *command], "curriculum.starts is (0, ")
    load_config(overrides=command)  # older runs may have it


def test_who_trains_with_the_settings_of_another_is_told(tmp_path, capsys):
    command = ["--output", str(tmp_path), "--preset", "rules", *TINY, "worlds=20", "total_steps=40"]
    assert train.main([*command, "--agent", "DQN"]) == 0
    assert "note: preset rules is made for SAC, and DQN trains" in capsys.readouterr().err
    shutil.rmtree(tmp_path)
    assert train.main([*command, "--agent", "SAC"]) == 0
    assert "made for" not in capsys.readouterr().err


def test_a_vessel_half_changed_is_told(tmp_path, capsys):
    assert not any(map(notes_on_vessel, VESSELS.values()))
    own = ["env.vessel.length=4", "env.vessel.width=2", "env.vessel.max_thrust_rate=350"]
    assert train.main(["--output", str(tmp_path), *TINY, *own]) == 0
    told = capsys.readouterr().err
    assert "env.vessel.radius is 2.79" in told
    assert "by width has 2.236 m" in told
    assert "env.vessel.max_thrust_rate is 350.0 N/s, and" in told
    assert "reach 1000.0: agents" in told
    assert "env.vessel.length is 4.0 and that of 'wamv16' 5.0 m, and its damping is still" in told
    assert "note: env.vessel makes 3.33 m/s full ahead" in told
    thrusts = ["env.vessel.min_thrust=-0.4", "env.vessel.max_thrust=0.8", "env.vessel.radius=0.01"]
    small = ["--episodes", "1", "--stage", "2,0,0,30"]
    assert evaluate.main(["--checkpoint", str(tmp_path), *small, *thrusts]) == 0
    told = capsys.readouterr().err
    assert "env.vessel.radius is 0.01 m" in told
    assert "a decision may change a thrust by 175 N, and" in told


def test_what_belongs_to_the_size_of_another_vessel_is_told():
    boat = {"mass": 180.0, "min_thrust": -120.0, "max_thrust": 240.0, "max_thrust_rate": 240.0}
    boat |= dict.fromkeys(("left_thrust_rates", "right_thrust_rates"), (0, -120, -240, 120, 240))
    size = "note: env.vessel.mass is 180.0 and that of 'wamv16' 400.0 kg, and"
    damping = f"{size} its damping is still of that one: give it (x_u, x_uu, y_v, y_vv, n_r, n_rr)"
    added = f"{size} its added mass is still of that one: give it (x_dot_u, n_dot_r)"
    assert notes_on_vessel(VesselConfig(**boat)) == [damping, added]
    assert notes_on_vessel(VesselConfig(**boat, x_u=-30.0, y_dot_v=-60.0)) == []
    assert notes_on_vessel(dataclasses.replace(VESSELS["otter"], x_dot_u=-5.0)) == []
    assert notes_on_vessel(VesselConfig(mass=450.0)) == []  # a payload
    wind = WindConfig(speed=(0.0, 3.0))
    (told,) = notes_on_wind(VesselConfig(**boat), wind)
    assert told.endswith("give it (env.wind.surge, env.wind.sway, env.wind.yaw)")
    (told,) = notes_on_wind(VESSELS["otter"], dataclasses.replace(wind, model="fossen"))
    assert told.endswith("give it (env.wind.front_area, env.wind.side_area)")
    for calm in (WindConfig(), dataclasses.replace(wind, sway=0.2)):
        assert notes_on_wind(VesselConfig(**boat), calm) == []
    assert notes_on_wind(VesselConfig(), wind) == []


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["traffic={steer: orca}"], "traffic.share is 0.0: traffic.steer has no effect then"),
        (["agent=DQN", "replay.alpha=0.9"], "algorithm.prioritized is False: replay.alpha has"),
        (["agent=PPO", "replay.capacity=7"], "agent is 'PPO': replay.capacity has no effect with"),
        (["agent=PPO", "exploration={spread: 5}"], "agent is 'PPO': exploration.spread has no"),
        (["agent=DPI", "algorithm.gamma=0.9"], "agent is 'DPI': algorithm.gamma has no effect"),
        (["agent=IQN", "exploration.action_noise=0.1"], "agent is 'IQN': exploration.action_noise"),
        (["agent=SAC", "exploration.action_noise=0.1"], None),
        (["agent=Rainbow", "replay.alpha=0.9", "algorithm.gamma=0.9"], None),
        (["agent=PPO", "updates={batch_size: 64}", "algorithm.gamma=0.9"], None),
    ],
)
def test_settings_without_effect_are_refused(overrides, message):
    config, _, _ = load_config(overrides=overrides)
    told = pytest.raises(ConfigError, match=message) if message else contextlib.nullcontext()
    with told:
        check_effect(overrides, config)


def test_scenarios_get_the_share_that_is_said_anywhere(tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(training, "train_one", lambda config, *_: taken.append(config))
    file = tmp_path / "own.yaml"
    file.write_text("scenarios: {share: 0.4, set: singles}\n")
    for given in ([], ["--config", str(file)], ["scenarios.share=0.1"]):
        command = ["--output", str(tmp_path / "run"), "--scenario", "imazu", *SHORT, *given]
        assert train.main(command) == 0
    told = [(config.scenarios.share, config.scenarios.set) for config in taken]
    assert told == [(0.25, "imazu"), (0.4, "imazu"), (0.1, "imazu")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "3", "4", "3"], r"seed is \(3, 4, 3\): .* each once"),
        (["--seed", "3", "-4"], r"(?<!\.)seed is -4: give 0 or more"),
        (["worlds=5"], "curriculum.stages has 6 stages for 5 worlds: .*mode=sequential"),
        (["updates.batch=3"], "unknown setting 'updates.batch'.*'updates.batch_size'"),
        (["--resume", "nowhere"], "no folder 'nowhere'"),
        (["--device", "cuda"], "device is 'cuda'"),
        (["replay.capacity=1e12"], r"replay\.capacity is 1000000000000: .* GiB are free"),
        (["curriculum.stages=[[60,0,0,30]]"], r"60 robots do not fit"),
        (["evaluation.final_episodes=1e9"], r"evaluation\.final_episodes is 1000000000.* GiB"),
        (["scenarios.set=singles"], r"scenarios\.share is 0.*scenarios\.set has no effect then"),
        (["--scenario", "imazu", "scenarios.share=0"], r"scenarios\.share is 0"),
        (["traffic.steer=orca"], r"traffic\.share is 0.*give traffic\.share too"),
        (["stack_k=1e9"], "stack_k is 1000000000: give 1000 or less"),
        (["worlds=1e6", "total_steps=1e7", "updates.batch_size=99"], r"worlds is 1000000: .* GiB"),
    ],
)
def test_errors_come_before_work(tmp_path, monkeypatch, refused, arguments, message):
    if "cuda" in arguments and torch.cuda.is_available():
        arguments = ["--device", "cuda", "device=cpu", "agent=TRPO"]
        message = "agent is 'TRPO'"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**31)
    short = [] if "--resume" in arguments else SHORT
    assert re.search(message, refused(train.main, [*short, *arguments]))
    assert not list(tmp_path.rglob("*.pt"))
