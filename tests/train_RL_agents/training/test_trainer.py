"""The trainer: its books, its intervals, and how it stops on nonsense."""

import json
import re

import pytest
import torch

from tests.host_reads import no_host_reads
from tests.train_RL_agents.short_runs import ONE_STAGE, StopAt, assert_same, every_decision, trainer
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.results import StageResult, Standing
from train_RL_agents.metrics.writer import AnalysisReceiver, read_metrics
from train_RL_agents.run import checkpoint
from train_RL_agents.run.source import source_commit
from train_RL_agents.training.counters import DivergedRunError, InterruptedRunError

pytestmark = pytest.mark.usefixtures("short_evaluations")


def test_intervals_shorter_than_that_of_the_log_are_kept(tmp_path):
    overrides = ["log.interval_steps=600", "checkpoint.keep=9"]
    trainer(tmp_path, *overrides, "evaluation.interval_steps=150").train()
    records = read_metrics(tmp_path / "metrics.jsonl")
    evaluated = [record["step"] for record in records if record["mode"] == "evaluation"]
    assert evaluated == [150, 300, 450, 600]
    saved = checkpoint.CheckpointFolder(tmp_path / "checkpoints").steps()
    assert saved == [0, 204, 402, 600]


def test_hosts_meet_before_a_gpu_waits_for_another_one(tmp_path, monkeypatch):
    """Each asks before it waits for its GPU, whose last transfer a dead one would hold up.

    They meet before the sums of a log, and after an evaluation, which only the first one does.
    """
    events = []
    run = trainer(tmp_path, "total_steps=12", "log.interval_steps=6")
    run.processes = Processes(size=2)
    for name in ("any", "wait", "sum"):
        noted = lambda *_, name=name: events.append(name)  # noqa: E731
        monkeypatch.setattr(Processes, name, noted)
    monkeypatch.setattr(Processes, "gather", lambda _, text: events.append("gather") or [text])
    monkeypatch.setattr(run, "wait_for_device", lambda: events.append("device"))
    monkeypatch.setattr(run, "evaluate", lambda _: events.append("evaluate"))
    monkeypatch.setattr(run, "save", lambda: None)  # it has a meeting of its own
    run.run_to_the_end()
    first = ["any", "device", "wait", "sum", "wait"]
    last = ["any", "device", "wait", "sum", "evaluate", "gather", "wait"]
    assert events == ["any", *first, *last, "any"]  # before the first iteration, and after all


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


def test_steps_updates_and_samples_per_insert(tmp_path):
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


@pytest.mark.parametrize("agent", AGENTS)
def test_the_loop_and_its_log_copy_to_the_host_once(tmp_path, monkeypatch, device, agent):
    """The trainer's own iterations: schedules, collecting, updates, and a log at the end."""
    copies = []

    def copy(entries):
        copies.append([entry.values for entry in entries])
        return iter([[0.0] * (0 if v is None else v.numel()) for v in copies[-1]])

    overrides = ["updates.warmup_transitions=0", "curriculum.mode=sequential", "compile=false"]
    overrides += ["updates.samples_per_insert=3"]
    overrides += every_decision(agent)
    run = trainer(tmp_path, *overrides, agent=agent, device=torch.device(device))
    run.receiver = AnalysisReceiver(tmp_path)
    run.learner.start(run.stages())
    for _ in range(12):
        run.iterate()
    begun = run.counters.updates
    monkeypatch.setattr("train_RL_agents.metrics.writer.transfer", copy)
    with no_host_reads():
        for _ in range(30):
            run.iterate()
        assert copies == []
        run.log()
    assert run.counters.updates > begun + 5
    assert len(copies) == 1
    copied = [values for values in copies[0] if values is not None]
    assert len(copied) > 20
    assert {values.device.type for values in copied} == {device}
    run.receiver.close()


@pytest.mark.parametrize(("final", "kept"), [(0.3, 402), (0.9, 600)])
def test_the_best_evaluation_is_kept_or_the_last_one_as_good(final, kept, tmp_path, monkeypatch):
    results = iter((Standing(0.5), Standing(0.9), Standing(0.3), Standing(final)))
    monkeypatch.setattr(StageResult, "standing", staticmethod(lambda _: next(results)))
    run = trainer(tmp_path, "evaluation.interval_steps=200")
    run.train()
    assert list(results) == []
    best = checkpoint.load(tmp_path / "checkpoints" / "best.pt")
    assert best["step"] == kept
    tabulated = json.loads((tmp_path / "evaluation.json").read_text())
    own = {"agent": "AC-IQN", "task": "marine", "seed": 0, "step": 600}
    assert tabulated.pop("run") == {**own, "commit": source_commit()}
    assert (best["evaluation"] == tabulated) == (kept == 600)
    assert run.counters.best_success == 0.9


def test_the_end_is_compared_in_the_stages_of_the_periodic_evaluation(tmp_path, monkeypatch):
    stages = []
    whole = StageResult.standing
    monkeypatch.setattr(
        StageResult,
        "standing",
        staticmethod(lambda rows: stages.append([r.stage.robots for r in rows]) or whole(rows)),
    )
    run = trainer(
        tmp_path,
        "evaluation.stages=[[1,0,0,30],[2,0,0,30]]",
        "evaluation.episodes=[2,0]",
        "evaluation.interval_steps=600",
    )
    run.train()
    assert stages == [[1], [1]]
    assert len(json.loads((tmp_path / "evaluation.json").read_text())["stages"]) == 2


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


def test_a_signal_saves_no_weights_that_are_not_finite(tmp_path, monkeypatch):
    run = trainer(tmp_path, "checkpoint.keep=1", "log.interval_steps=600")
    learn = run.learner.learn

    def learn_then_break(updates):
        done = learn(updates)
        with torch.no_grad():
            next(iter(run.learner.agent.critic.parameters())).fill_(float("nan"))
        return done

    run.learner.learn = learn_then_break
    monkeypatch.setattr("train_RL_agents.training.trainer.Interruption", lambda: StopAt(run, 150))
    with pytest.raises(InterruptedRunError, match="weights not finite") as raised:
        run.train()
    assert "stopped by SIGTERM at step 150" in str(raised.value)
    assert run.counters.updates > 0
    assert run.saved.checkpoints.steps() == [0]


def test_non_finite_state_stops_the_run(tmp_path):
    run = trainer(tmp_path)
    collect = run.learner.collect

    def collect_then_break():
        collect()
        if run.counters.step == 96:
            run.learner.env.state.robot_field("x")[1, 2] = float("inf")

    run.learner.collect = collect_then_break
    with pytest.raises(DivergedRunError) as raised:
        run.train()
    assert re.match(r"at step 102: the state of 1 robots not finite\.", str(raised.value))
    assert "a setting below env" in str(raised.value)
    assert "learning_rate" not in str(raised.value)


@pytest.mark.parametrize("name", ["periodic", "final"])
def test_a_policy_that_cannot_be_evaluated_stops_the_run(name, tmp_path, monkeypatch):
    run = trainer(tmp_path, ONE_STAGE)
    evaluate = getattr(run.evaluation, name)

    @torch.no_grad()
    def broken(*arguments):
        next(iter(run.learner.agent.actor.parameters())).fill_(float("nan"))
        return evaluate(*arguments)

    monkeypatch.setattr(run.evaluation, name, broken)
    with pytest.raises(DivergedRunError, match=r"\d+ actions of \d+ robots were not finite"):
        run.train()


def test_unusable_actions_stop_the_run(tmp_path):
    run = trainer(tmp_path, "exploration.epsilon_start=0", "exploration.epsilon_end=0")
    with torch.no_grad():
        next(iter(run.learner.agent.policy_network.parameters())).fill_(float("nan"))
    with pytest.raises(DivergedRunError, match=r"\d+ actions of \d+ robots .* world 0, robot 0"):
        run.train()
