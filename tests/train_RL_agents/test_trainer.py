"""The trainer: resuming exactly, stopping on request and on nonsense, and keeping its books."""

import gc
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tqdm import tqdm

from train_RL_agents import checkpoint, evaluation, train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.analysis import read_metrics
from train_RL_agents.config_files import config_from_plain, load_config
from train_RL_agents.interruption import Interruption
from train_RL_agents.processes import Processes, ProcessLostError
from train_RL_agents.run_state import DivergedRunError, InterruptedRunError
from train_RL_agents.trainer import TorchRLTrainer

SCRIPT = Path(train.__file__)
SHORT = [
    "worlds=6",
    "total_steps=600",
    "updates.batch_size=16",
    "updates.replay_ratio=0.5",
    "updates.warmup_transitions=100",
    "replay.capacity=3000",
    "log.interval_steps=100",
    "checkpoint.interval_steps=200",
    "evaluation.interval_steps=400",
    "evaluation.episodes=1",
    "evaluation.final_episodes=1",
    "env.episode.max_steps=40",
]
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _short_evaluations(monkeypatch):
    monkeypatch.setattr(evaluation, "DECISION_LIMIT", 50)


def trainer(folder, *overrides, agent="AC-IQN"):
    config, _, _ = load_config(agent=agent, overrides=[*SHORT, *overrides])
    return TorchRLTrainer(config, folder, CPU)


def flat(state, prefix=""):
    """Yield (name, value) of nested dictionaries and lists."""
    entries = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in entries:
        if isinstance(value, dict | list):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def assert_same(first, second, ignored=("elapsed_s", "collecting_s", "files")):
    first, second = (
        {name: v for name, v in flat(state) if not any(part in name for part in ignored)}
        for state in (first, second)
    )
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value.nan_to_num(), second[name].nan_to_num()), name
        else:
            assert value == second[name], name


def timeless(folder):
    """Metrics without what depends on the clock."""
    records = read_metrics(folder / "metrics.jsonl")
    return [
        {k: v for k, v in record.items() if k != "elapsed_s" and not k.endswith("_per_s")}
        for record in records
    ]


class StopAt(Interruption):
    """Pretends that a signal came once a trainer has passed a step."""

    def __init__(self, runner, step):
        super().__init__()
        self._runner, self._step = runner, step

    @property
    def received(self):
        return signal.SIGTERM if self._runner.counters.step >= self._step else None

    @received.setter
    def received(self, value):
        pass


def stop_at(monkeypatch, runner, step):
    """Train until a signal comes once ``step`` is passed; return the step it stopped at."""
    with monkeypatch.context() as patch:
        patch.setattr("train_RL_agents.trainer.Interruption", lambda: StopAt(runner, step))
        with pytest.raises(InterruptedRunError) as raised:
            runner.train()
    stopped = re.search(r"stopped by SIGTERM at step (\d+); saved to", str(raised.value))
    return int(stopped[1])


# Between two logs; at a log; at a log with an evaluation and a checkpoint; at the end.
STOPS = (252, 300, 402, 600)


@pytest.mark.parametrize(
    ("agent", "step"),
    [*((agent, 252) for agent in AGENTS), *(("AC-IQN", step) for step in STOPS[1:])],
)
def test_resumed_run_is_the_run_never_stopped(tmp_path, monkeypatch, agent, step):
    whole = trainer(tmp_path / "whole", agent=agent)
    whole.train()

    stopped = trainer(tmp_path / "parts", agent=agent)
    assert stop_at(monkeypatch, stopped, step - 2) == step
    torch.manual_seed(12345)
    resumed = trainer(tmp_path / "parts", agent=agent)
    resumed.resume(checkpoint.newest(tmp_path / "parts"))
    resumed.train()

    last = "checkpoints/step_000000000600.pt"
    assert_same(
        checkpoint.load(tmp_path / "whole" / last), checkpoint.load(tmp_path / "parts" / last)
    )
    assert timeless(tmp_path / "whole") == timeless(tmp_path / "parts")
    tables = [(tmp_path / name / "evaluation.json").read_text() for name in ("whole", "parts")]
    assert tables[0] == tables[1]


def test_a_signal_in_the_last_report_is_heard(tmp_path, monkeypatch):
    run = trainer(tmp_path)
    interruption, save = Interruption(), run.save

    def signalled():
        if run.counters.step == 600:
            interruption.received = signal.SIGTERM
        return save()

    monkeypatch.setattr(run, "save", signalled)
    with monkeypatch.context() as patch:
        patch.setattr("train_RL_agents.trainer.Interruption", lambda: interruption)
        with pytest.raises(InterruptedRunError, match="at step 600"):
            run.train()
    assert not (tmp_path / "evaluation.json").exists()
    resumed = trainer(tmp_path)
    resumed.resume(checkpoint.newest(tmp_path))
    resumed.train()
    assert (tmp_path / "evaluation.json").exists()
    records = [r["step"] for r in timeless(tmp_path) if r["mode"] == "train"]
    assert records == [102, 204, 300, 402, 504, 600]


def test_intervals_shorter_than_that_of_the_log_are_kept(tmp_path):
    overrides = ["log.interval_steps=600", "checkpoint.keep=9"]
    trainer(tmp_path, *overrides, "evaluation.interval_steps=150").train()
    records = read_metrics(tmp_path / "metrics.jsonl")
    evaluated = [record["step"] for record in records if record["mode"] == "evaluation"]
    assert evaluated == [150, 300, 450, 600]
    saved = checkpoint.CheckpointFolder(tmp_path / "checkpoints").steps()
    assert saved == [0, 204, 402, 600]


def test_a_run_that_dies_before_its_second_checkpoint_begins_the_same_again(tmp_path, monkeypatch):
    whole = trainer(tmp_path / "whole")
    whole.train()
    dies = trainer(tmp_path / "parts")
    calls = iter(range(3))
    collect = dies.learner.collect
    monkeypatch.setattr(dies.learner, "collect", lambda: (next(calls), collect()))
    with pytest.raises(StopIteration):
        dies.train()
    resumed = trainer(tmp_path / "parts")
    resumed.resume(checkpoint.newest(tmp_path / "parts"))
    assert resumed.counters.step == 0
    resumed.train()
    assert timeless(tmp_path / "whole") == timeless(tmp_path / "parts")
    last = [checkpoint.load(checkpoint.newest(tmp_path / name)) for name in ("whole", "parts")]
    assert_same(*last)


def test_learning_changes_the_weights_and_the_seed_decides_everything(tmp_path):
    states = []
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        trainer(tmp_path / name, f"seed={seed}").train()
        states.append(checkpoint.load(checkpoint.newest(tmp_path / name)))
    first, again, other = states
    assert_same(first, again)
    with pytest.raises(AssertionError):
        assert_same(first["model"], other["model"])
    untrained = trainer(tmp_path / "untrained", "seed=1").learner.agent.training_state()
    with pytest.raises(AssertionError):
        assert_same(first["model"]["networks"], untrained["networks"])


def test_steps_updates_and_replay_ratio(tmp_path):
    run = trainer(tmp_path, "updates.warmup_transitions=0")
    run.train()
    records = [r for r in read_metrics(tmp_path / "metrics.jsonl") if r["mode"] == "train"]
    assert [r["step"] for r in records] == [102, 204, 300, 402, 504, 600]
    robot_steps = sum(r["robot_steps"] for r in records)
    assert robot_steps == run.counters.robot_steps
    assert 600 <= robot_steps <= 600 * 5
    samples = 16 * run.counters.updates
    assert samples == pytest.approx(0.5 * robot_steps, rel=0.15)


def test_no_update_before_the_warm_up(tmp_path):
    run = trainer(tmp_path, "updates.warmup_transitions=3000")
    run.train()
    assert run.counters.updates == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_final_evaluation_leaves_at_once(tmp_path, monkeypatch, number):
    run = trainer(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(run.evaluation, "final", lambda *_: signal.raise_signal(number))
        name = signal.Signals(number).name
        with pytest.raises(InterruptedRunError, match=f"{name} in the final evaluation") as raised:
            run.train()
    assert raised.value.received == number
    newest = checkpoint.newest(tmp_path)
    assert str(newest) in str(raised.value)
    assert (tmp_path / "summary.json").exists()
    resumed = trainer(tmp_path)
    resumed.resume(newest)
    assert len(resumed.train()) == 6
    assert (tmp_path / "evaluation.json").exists()


def test_the_best_evaluation_is_kept(tmp_path, monkeypatch):
    results = iter((0.5, 0.9, 0.3))
    monkeypatch.setattr("train_RL_agents.trainer.mean_success", lambda _: success[0])
    run = trainer(tmp_path, "evaluation.interval_steps=200")
    success = [0.0]
    evaluate = run.evaluate

    def evaluate_next(evaluation):
        success[0] = next(results)
        evaluate(evaluation)

    run.evaluate = evaluate_next
    run.train()
    assert list(results) == []
    best = checkpoint.load(tmp_path / "checkpoints" / "best.pt")
    assert best["step"] == 402
    assert run.counters.best_success == 0.9


def test_resume_without_replay_warms_up_again(tmp_path):
    run = trainer(tmp_path, "checkpoint.with_replay=false")
    run.train()
    resumed = trainer(tmp_path, "checkpoint.with_replay=false")
    resumed.resume(checkpoint.newest(tmp_path))
    assert resumed.counters.updates == run.counters.updates
    assert resumed.counters.stored == 0.0


def test_non_finite_loss_stops_with_quantity_step_and_dump(tmp_path):
    run = trainer(tmp_path, "algorithm.max_grad_norm=null")
    with torch.no_grad():
        next(iter(run.learner.agent.critic.parameters())).fill_(float("nan"))
    with pytest.raises(DivergedRunError, match=r"at step 102: .*critic_loss") as raised:
        run.train()
    assert "not finite" in str(raised.value)
    (dump,) = tmp_path.glob("diverged_102_0.pt")
    assert str(dump) in str(raised.value)
    assert checkpoint.load(dump)["step"] == 102
    assert (tmp_path / "summary.json").exists()


def test_non_finite_state_stops_the_run(tmp_path):
    run = trainer(tmp_path)
    collect = run.learner.collect

    def collect_then_break():
        collect()
        if run.counters.step == 96:
            run.learner.env.state.robot_field("x")[1, 2] = float("inf")

    run.learner.collect = collect_then_break
    with pytest.raises(DivergedRunError, match=r"at step 102: .*state of 1 robots not finite"):
        run.train()


def test_unusable_actions_stop_the_run(tmp_path):
    run = trainer(tmp_path, "exploration.epsilon_start=0", "exploration.epsilon_end=0")
    with torch.no_grad():
        next(iter(run.learner.agent.policy_network.parameters())).fill_(float("nan"))
    with pytest.raises(DivergedRunError, match=r"\d+ actions of \d+ robots .* world 0, robot 0"):
        run.train()


def command(folder, *arguments):
    return [sys.executable, str(SCRIPT), "--output", str(folder), *SHORT, *arguments]


def environment():
    return {"PYTHONPATH": str(SCRIPT.parent.parent), "OMP_NUM_THREADS": "1", "PATH": ""}


def test_command_line_from_another_folder(tmp_path):
    done = subprocess.run(
        command("run", "--agent", "AC-IQN", "--seed", "3"),
        cwd=tmp_path,
        env=environment(),
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
    assert [row["robots"] for row in rows] == [3, 4, 5, 5, 5, 5]
    assert train.main(["--output", str(tmp_path / "run"), *SHORT]) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_leaves(tmp_path, number):
    process = subprocess.Popen(
        command(tmp_path, "total_steps=10_000_000"),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "metrics.jsonl").exists() or not (
        (tmp_path / "metrics.jsonl").stat().st_size
    ):
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(number)
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert f"stopped by {signal.Signals(number).name} at step" in messages
    newest = checkpoint.newest(tmp_path)
    assert str(newest) in messages
    assert checkpoint.load(newest)["step"] > 0


def test_kill_loses_at_most_one_interval_and_no_record_is_doubled(tmp_path, monkeypatch):
    process = subprocess.Popen(
        command(tmp_path, "total_steps=10_000_000", "checkpoint.interval_steps=100"),
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    metrics = tmp_path / "metrics.jsonl"
    while not metrics.exists() or metrics.read_text().count('"train"') < 3:
        time.sleep(0.02)
        assert process.poll() is None
    time.sleep(random.random())
    process.kill()
    process.wait()
    logged = [record["step"] for record in read_metrics(metrics)][-1]
    newest = checkpoint.newest(tmp_path)
    config = config_from_plain(checkpoint.load(newest)["config"])
    resumed = TorchRLTrainer(config, tmp_path, CPU)
    resumed.resume(newest)
    assert 0 <= logged - resumed.counters.step <= 102
    stop = StopAt(resumed, resumed.counters.step + 300)
    monkeypatch.setattr("train_RL_agents.trainer.Interruption", lambda: stop)
    with pytest.raises(InterruptedRunError):
        resumed.train()
    steps = [r["step"] for r in read_metrics(metrics) if r["mode"] == "train"]
    assert steps == sorted(set(steps))
    assert max(steps) > logged
    events = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0})
    events.Reload()
    # Sorted: files begun within one second are read in any order.
    assert sorted(event.step for event in events.Scalars("train/updates")) == steps


def test_sweep_of_seeds_joins_their_curves(tmp_path, capsys):
    output = tmp_path / "sweep"
    arguments = ["--seed", "0", "1", "--output", str(output), *SHORT, "total_steps=200"]
    assert train.main(arguments) == 0
    assert (output / "seed_1" / "evaluation.json").exists()
    assert (output / "success.png").stat().st_size > 0
    before = (output / "seed_1" / "metrics.jsonl").read_text()
    assert train.main(["--resume", str(output)]) == 0
    assert (output / "seed_1" / "metrics.jsonl").read_text() == before


TINY = [*SHORT, "total_steps=12"]


@pytest.mark.parametrize("way", ["start", "resume", "sweep"])
def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path, monkeypatch, way):
    run = tmp_path / "run"
    start = ["--output", str(run), *TINY, *(["--seed", "0", "1"] if way == "sweep" else [])]

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TorchRLTrainer, "save", killed)
        assert train.main(start) == 128 + signal.SIGINT
    folder = run / "seed_0" if way == "sweep" else run
    assert (folder / "run.json").exists()
    assert train.main(start if way == "start" else ["--resume", str(run)]) == 0
    assert (folder / "evaluation.json").exists()
    assert len(list(folder.glob("events*"))) == 1
    assert len(json.loads((folder / "run.json").read_text())["starts"]) == 1


def test_records_without_a_checkpoint_are_kept(tmp_path, capsys):
    (tmp_path / "run.json").write_text('{"config": {}, "starts": []}')
    (tmp_path / "metrics.jsonl").write_text('{"mode": "train", "step": 6}\n')
    assert train.main(["--output", str(tmp_path), *TINY]) == 1
    assert "holds a run" in capsys.readouterr().err
    assert train.main(["--resume", str(tmp_path)]) == 1
    assert "no checkpoint under" in capsys.readouterr().err
    assert (tmp_path / "metrics.jsonl").stat().st_size > 0


def test_a_process_lost_before_the_first_checkpoint(tmp_path, monkeypatch, capsys):
    def lost(*_):
        raise ProcessLostError("process 0 of 2 lost contact")

    monkeypatch.setattr(TorchRLTrainer, "train", lost)
    assert train.main(["--output", str(tmp_path), *TINY]) == 1
    assert f"nothing is saved yet; begin again with: --resume {tmp_path}" in capsys.readouterr().err


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a complete run with checkpoints of several steps."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "DECISION_LIMIT", 50)
        trainer(folder, "checkpoint.keep=9", "evaluation.interval_steps=600").train()
    return folder


NEWEST = "checkpoints/step_000000000600.pt"


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        ({NEWEST: "a/b/step_000000000600.pt"}, "lies in no folder 'checkpoints' of a run"),
        ({NEWEST: "a/diverged_600_0.pt"}, "is no checkpoint to go on from"),
        ({"checkpoints/best.pt": "a/checkpoints/best.pt"}, "is no checkpoint to go on from"),
        ({NEWEST: f"{NEWEST[:-3]}.rank1.pt"}, "is no checkpoint to go on from"),
        ({NEWEST: f"a/{NEWEST}"}, r"metrics\.jsonl is missing or shorter"),
        ({NEWEST: f"a/{NEWEST}", "metrics.jsonl": "a/metrics.jsonl"}, r"events.* is missing"),
    ],
)
def test_a_checkpoint_outside_its_run_is_refused(tmp_path, finished, capsys, moved, message):
    kept = [tmp_path / "metrics.jsonl", tmp_path / "a" / "events.out.tfevents.1"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("another's records")
    for name, target in moved.items():
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(finished / name, tmp_path / target)
    given = tmp_path / next(iter(moved.values()))
    assert train.main(["--resume", str(given)]) == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert "--resume" in error
    assert all(path.exists() for path in kept)


def test_a_best_policy_of_a_discarded_future_is_dropped(tmp_path, finished):
    folder = shutil.copytree(finished, tmp_path / "run")
    assert checkpoint.load(folder / "checkpoints" / "best.pt")["step"] == 600
    for step, best in ((600, True), (402, False)):
        resumed = trainer(folder)
        resumed.resume(folder / "checkpoints" / f"step_{step:012d}.pt")
        assert (folder / "checkpoints" / "best.pt").exists() == best
        assert (resumed.counters.best_success >= 0.0) == best


@pytest.mark.parametrize(
    "option",
    [["--seed", "9"], ["--output", "other"], ["--agent", "DQN"], ["worlds=5", "threads=1"]],
)
def test_resume_refuses_options_by_name(capsys, option):
    with pytest.raises(SystemExit):
        train.parse(["--resume", "run", *option])
    assert f"--resume takes no {option[0]}:" in capsys.readouterr().err


def test_resume_takes_the_threads_of_the_machine(tmp_path, finished, monkeypatch, capsys):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(train, "train_one", lambda config, *_: taken.append(config))
    assert train.main(["--resume", str(folder), "threads=1"]) == 0
    assert (taken[0].threads, taken[0].worlds) == (1, 6)
    assert train.main(["--resume", str(folder), "threads=few"]) == 1
    assert "threads is 'few'" in capsys.readouterr().err


def test_the_bar_of_a_resumed_run_begins_where_it_stopped(tmp_path, finished, monkeypatch):
    folder, bars = shutil.copytree(finished, tmp_path / "run"), []

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            bars.append(self)

    monkeypatch.setattr("train_RL_agents.progress.tqdm", Bar)
    resumed = trainer(folder)
    resumed.resume(folder / "checkpoints" / "step_000000000402.pt")
    resumed.train()
    # The rate is that of the steps from `initial` on.
    assert (bars[0].initial, bars[0].n) == (402, 600)


def test_an_interrupted_sweep_is_resumed_as_a_sweep(tmp_path, monkeypatch, capsys):
    stopped = Interruption()
    stopped.received = signal.SIGTERM
    monkeypatch.setattr("train_RL_agents.trainer.Interruption", lambda: stopped)
    assert train.main(["--output", str(tmp_path), "--seed", "4", "5", *TINY]) == 143
    assert capsys.readouterr().err.endswith(f"go on with: --resume {tmp_path}\n")


def test_a_sweep_frees_each_run_before_the_next(tmp_path, monkeypatch):
    earlier = []

    def build(*arguments):
        assert not any(replay() for replay in earlier)
        made = TorchRLTrainer(*arguments)
        earlier.append(weakref.ref(made.learner.replay))
        return made

    monkeypatch.setattr(train, "TorchRLTrainer", build)
    gc.disable()  # what frees it must not be chance
    try:
        assert train.main(["--output", str(tmp_path), "--seed", "4", "5", *TINY]) == 0
    finally:
        gc.enable()
    assert len(earlier) == 2


def test_published_training_file_makes_a_folder_for_every_run(tmp_path, monkeypatch):
    stage = {"num_robots": [3], "num_cores": [0], "num_obstacles": [0], "min_start_goal_dis": [30]}
    path = tmp_path / "training.json"
    path.write_text(
        json.dumps(
            {
                "seed": 9,
                "total_timesteps": 60,
                "eval_freq": 60,
                "save_dir": str(tmp_path / "training_data"),
                "training_schedule": {"timesteps": [0], **stage},
                "eval_schedule": {"num_episodes": [1], **stage},
                "agent_type": "DQN",
            }
        )
    )
    short = ["worlds=6", "evaluation.final_episodes=1", "replay.capacity=3000"]
    short.append("updates.warmup_transitions=100")
    moments = iter(("first", "second"))
    monkeypatch.setattr(Processes, "agree", lambda *_: next(moments))
    for _ in range(2):
        assert train.main(["--config", str(path), *short]) == 0
    made = sorted(folder.name for folder in (tmp_path / "training_data").iterdir())
    assert made == ["DQN-first", "DQN-second"]
    record = json.loads((tmp_path / "training_data" / "DQN-first" / "run.json").read_text())
    assert (record["seed"], record["config"]["total_steps"]) == (9, 60)


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert train.main(["--output", str(tmp_path / "file" / "run"), *SHORT]) == 1
    error = capsys.readouterr().err
    assert "is no folder to write to: give another one with --output" in error


@pytest.mark.parametrize("begun", [False, True])
def test_no_compile_turns_the_graphs_off(tmp_path, finished, monkeypatch, begun):
    folder, taken = shutil.copytree(finished, tmp_path / "run"), []
    (folder / "evaluation.json").unlink()
    monkeypatch.setattr(train, "train_one", lambda config, *_: taken.append(config.compile))
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
        (["--resume", "nowhere"], "no checkpoint under 'nowhere'"),
        (["--device", "cuda"], "device = 'cuda'"),
        (["replay.capacity=1e12"], r"replay\.capacity is 1000000000000: .* GiB are free"),
        (["curriculum.stages=[[60,0,0,30]]"], r"60 robots do not fit"),
    ],
)
def test_errors_come_before_work(tmp_path, monkeypatch, capsys, arguments, message):
    if "cuda" in arguments and torch.cuda.is_available():
        arguments = ["--device", "cuda", "device=cpu", "agent=PPO"]
        message = "agent is 'PPO'"
    monkeypatch.chdir(tmp_path)
    assert train.main([*([] if "--resume" in arguments else SHORT), *arguments]) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.rglob("*.pt"))
