"""The command train.py: its folders, its sweeps, its signals, and errors before any work."""

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
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from marinenav_env.kernel import memory
from tests.conftest import wait_for
from tests.preloaded import ALONE
from tests.train_RL_agents.short_runs import (
    ONE_STAGE,
    SHORT,
    TINY,
    command,
    environment,
    every_decision,
)
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.commands import one_run, training
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import ProcessLostError
from train_RL_agents.run import checkpoint
from train_RL_agents.training.counters import DivergedRunError
from train_RL_agents.training.interruption import Interruption
from train_RL_agents.training.trainer import TorchRLTrainer

LEARNS = [*SHORT, "total_steps=60", "updates.warmup_transitions=16", "env.episode.max_steps=5"]
"""The shortest run in which episodes end and updates are done."""

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_leaves(tmp_path, number):
    process = subprocess.Popen(
        command(tmp_path, "total_steps=10_000_000"),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = tmp_path / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.stat().st_size, process)
    process.send_signal(number)
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert f"stopped by {signal.Signals(number).name} at step" in messages
    newest = checkpoint.newest(tmp_path)
    assert str(newest) in messages
    assert checkpoint.load(newest)["step"] > 0


@pytest.mark.parametrize("agent", AGENTS)
def test_tensorboard_shows_at_most_25_tags(tmp_path, agent):
    """With updates, the evaluations of six stages, and the texts and the figure of the run."""
    settings = [*LEARNS, *every_decision(agent)]
    assert train.main(["--output", str(tmp_path), "--agent", agent, *settings]) == 0
    events = EventAccumulator(str(tmp_path))
    tags = events.Reload().Tags()
    assert tags["images"] == ["trajectories"]
    assert sorted(tags["tensors"]) == ["command/text_summary", "configuration/text_summary"]
    losses = [tag for tag in tags["scalars"] if tag.endswith("_loss")]
    stages = [tag for tag in tags["scalars"] if re.match(r"evaluation_.*/success", tag)]
    assert losses
    assert len(stages) == 6
    assert {"train/success", "train/episode_return", "evaluation/success"} < set(tags["scalars"])
    assert sum(len(tags[kind]) for kind in ("scalars", "histograms", "images", "tensors")) <= 25
    (shown,) = events.Tensors("configuration/text_summary")[0].tensor_proto.string_val
    assert f"agent: {agent}".encode() in shown


def test_a_resumed_run_shows_its_figure_once(tmp_path):
    assert train.main(["--output", str(tmp_path), *LEARNS, ONE_STAGE]) == 0
    start = tmp_path / "checkpoints" / "step_000000000000.pt"
    assert train.main(["--resume", str(start)]) == 0
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [image.step for image in events.Images("trajectories")] == [60]
    assert [scalar.step for scalar in events.Scalars("train/epsilon")] == [60]


def test_tensorboard_shows_all_that_is_asked_for(tmp_path):
    assert train.main(["--output", str(tmp_path), *LEARNS, "log.tensorboard=all"]) == 0
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()
    assert len(tags["scalars"]) > 200
    assert "train/return_distribution/histogram" in tags["histograms"]


@pytest.mark.parametrize(
    "override", ["env.colregs.margin=2", "env.vessel.max_thrust_rate=500", "stack_k=2"]
)
def test_a_setting_that_episode_files_lack_has_its_figure(tmp_path, override):
    assert train.main(["--output", str(tmp_path), *TINY, override]) == 0
    assert (tmp_path / "trajectories.png").stat().st_size > 0


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


def test_a_folder_with_checkpoints_of_another_run_is_refused(tmp_path, finished, refused):
    shutil.copytree(finished / "checkpoints", tmp_path / "checkpoints")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    refused(train.main, ["--output", str(tmp_path), *TINY], "which holds a run")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


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


@pytest.mark.parametrize(
    "option",
    [["--seed", "9"], ["--output", "other"], ["--agent", "DQN"], ["worlds=5", "threads=1"]],
)
def test_resume_refuses_options_by_name(refused, option):
    refused(train.parse, ["--resume", "run", *option], f"--resume takes no {option[0]}:", status=2)


def test_resume_takes_the_threads_of_the_machine(tmp_path, finished, monkeypatch, refused):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(training, "train_one", lambda config, *_: taken.append(config))
    assert train.main(["--resume", str(folder), "threads=1"]) == 0
    assert (taken[0].threads, taken[0].worlds) == (1, 6)
    refused(train.main, ["--resume", str(folder), "threads=few"], "threads is 'few'")


@pytest.mark.parametrize("sweep", [False, True])
def test_a_finished_run_is_trained_longer(tmp_path, sweep, capsys):
    """On request only, and once."""
    start = ["--output", str(tmp_path), *TINY, *(["--seed", "4", "5"] if sweep else [])]
    folders = [tmp_path / "seed_4", tmp_path / "seed_5"] if sweep else [tmp_path]

    def trained():
        files = [(folder / "metrics.jsonl", folder / "evaluation.json") for folder in folders]
        steps = {checkpoint.load(checkpoint.newest(folder))["step"] for folder in folders}
        return steps, [file.stat().st_mtime_ns for pair in files for file in pair]

    assert train.main(start) == 0
    steps, before = trained()
    assert steps == {12}
    assert train.main(["--resume", str(tmp_path)]) == 0
    assert trained() == ({12}, before)
    for _ in range(2):
        assert train.main(["--resume", str(tmp_path), "total_steps=36"]) == 0
    steps, after = trained()
    assert steps == {36}
    assert len({*before, *after}) == 4 * len(folders)
    assert train.main(["--resume", str(tmp_path), "total_steps=36"]) == 0
    assert trained() == ({36}, after)
    assert capsys.readouterr().out.count("complete already") == (0 if sweep else 3)


def test_a_sweep_keeps_the_length_that_it_was_given_last(tmp_path, monkeypatch):
    """Also where it is interrupted before a seed has saved at the new one."""
    assert train.main(["--output", str(tmp_path), *TINY, "--seed", "4", "5"]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(TorchRLTrainer, "train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train.main(["--resume", str(tmp_path), "total_steps=36", "threads=1"])
    assert train.main(["--resume", str(tmp_path)]) == 0
    steps = [checkpoint.load(checkpoint.newest(tmp_path / f"seed_{n}"))["step"] for n in (4, 5)]
    assert steps == [36, 36]


def test_a_longer_run_takes_the_stages_of_its_length(tmp_path, monkeypatch):
    start = ["--output", str(tmp_path), *TINY, "curriculum.mode=sequential"]
    assert train.main(start) == 0
    found = []
    monkeypatch.setattr(
        TorchRLTrainer,
        "train",
        lambda run, *_: found.append(run.learner.env.state.world_field("next_stage")[:6].unique()),
    )
    assert train.main(["--resume", str(tmp_path), "total_steps=72"]) == 0
    assert [stages.tolist() for stages in found] == [[1]]


def test_a_run_under_way_is_not_made_shorter_than_it_is(tmp_path, finished, capsys, refused):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "evaluation.json").unlink()
    command = ["--resume", str(folder), "total_steps=300"]
    refused(train.main, command, "total_steps is 300: the run has 600 already; give more")


@pytest.mark.parametrize("begun", [False, True])
def test_no_compile_turns_the_graphs_off(tmp_path, finished, monkeypatch, begun):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(training, "train_one", lambda config, *_: taken.append(config.compile))
    where = ["--resume", str(folder)] if begun else ["--output", str(tmp_path / "new")]
    assert train.main(where) == 0
    assert train.main([*where, "--no-compile"]) == 0
    assert taken == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "3", "4", "3"], r"seed is \(3, 4, 3\): .* each once"),
        (["--seed", "3", "-4"], "seed is -4"),
        (["worlds=5"], "curriculum.stages has 6 stages for 5 worlds: .*mode=sequential"),
        (["updates.batch=3"], "unknown setting 'updates.batch'.*'updates.batch_size'"),
        (["--resume", "nowhere"], "no folder 'nowhere'"),
        (["--device", "cuda"], "device is 'cuda'"),
        (["replay.capacity=1e12"], r"replay\.capacity is 1000000000000: .* GiB are free"),
        (["curriculum.stages=[[60,0,0,30]]"], r"60 robots do not fit"),
        (["evaluation.final_episodes=1e9"], r"evaluation\.final_episodes is 1000000000.* GiB"),
        (["stack_k=1e9"], "stack_k is 1000000000: give 1000 or less"),
        (["worlds=1e6", "total_steps=1e7", "updates.batch_size=99"], r"worlds is 1000000: .* GiB"),
    ],
)
def test_errors_come_before_work(tmp_path, monkeypatch, refused, arguments, message):
    if "cuda" in arguments and torch.cuda.is_available():
        arguments = ["--device", "cuda", "device=cpu", "agent=PPO"]
        message = "agent is 'PPO'"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**31)
    short = [] if "--resume" in arguments else SHORT
    assert re.search(message, refused(train.main, [*short, *arguments]))
    assert not list(tmp_path.rglob("*.pt"))
