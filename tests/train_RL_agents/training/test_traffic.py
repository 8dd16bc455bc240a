"""Trainings among vessels that the policy does not steer."""

import dataclasses

import pytest
import torch

from tests.train_RL_agents.short_runs import (
    CPU,
    ONE_STAGE,
    SHORT,
    SMALL,
    Silent,
    assert_same,
    every_decision,
    trainer,
)
from tests.train_RL_agents.training.test_lookahead import AHEAD, to_goal, tried_by, under_way
from train_RL_agents import train
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.evaluation.baselines.registry import Baseline
from train_RL_agents.evaluation.steering import traffic_robots
from train_RL_agents.metrics.writer import METRICS, read_metrics
from train_RL_agents.run import checkpoint
from train_RL_agents.training.lookahead import CHUNK_WORLDS, Lookahead
from train_RL_agents.training.run_state import make_learner
from train_RL_agents.training.traffic import Traffic

goal_straight = Baseline("goal-straight").act
HALF = ["traffic.share=0.5"]
TEACHER = {"DAgger": ["algorithm.teacher=baseline:orca", "algorithm.guarded=false"]}


def learner_of(agent, *overrides):
    settings = [*SMALL, *every_decision(agent), *TEACHER.get(agent, []), *overrides]
    config, _, _ = load_config(agent=agent, overrides=settings)
    learner = make_learner(config, CPU, Processes.join())
    learner.start(torch.zeros(config.worlds, dtype=torch.int64))
    return learner


def learned_from(learner):
    """Return [W, R] bool, the robots whose decisions the learner has kept."""
    if AGENTS[learner.config.agent].learns_from == "rounds":
        return learner.rollout.acted.any(0)
    size = learner.env.alive.numel()
    weights = learner.replay.tree.weights
    slots = weights[: len(learner.replay._ring["reward"]) * size]
    return (slots > 0).view(-1, *learner.env.alive.shape).any(0)


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_the_controller_steers_its_vessels_and_nobody_learns_from_them(agent):
    learner = learner_of(agent, *HALF, "curriculum.stages=[[4,0,0,30]]")
    robots = traffic_robots(0.5, 6, 4)
    assert torch.equal(learner.traffic.robots, robots)
    taken, step = [], learner.stepper.step
    learner.stepper.step = lambda action: taken.append(action.clone()) or step(action)
    for _ in range(2):  # DPI looks ahead in one of them
        asked = learner.traffic._policy(learner.stepper.now.obs)
        learner.collect()
        assert torch.equal(taken[-1][robots], asked[robots].to(taken[-1].dtype))
        assert not torch.equal(taken[-1][~robots], asked[~robots].to(taken[-1].dtype))
    for _ in range(8):
        learner.collect()
    kept = learned_from(learner)
    assert not (kept & robots).any()
    assert (kept & ~robots).sum() >= (~robots).sum() - 2


@pytest.mark.parametrize("agent", ["SAC", "PPO"])
def test_the_samples_per_insert_count_what_is_learned_from(agent, tmp_path):
    """Of two robots of each world one is the traffic's."""
    sizes = ["total_steps=1600", "worlds=8", "log.interval_steps=400"]
    stages = ["curriculum.stages=[[2,0,0,30]]", ONE_STAGE, "traffic.share=1"]
    run = trainer(tmp_path, *sizes, *stages, agent=agent)
    assert run.counters.robot_rate == 8
    run.train()
    records = [r for r in read_metrics(tmp_path / METRICS) if "stored_transitions" in r]
    stored = sum(record["stored_transitions"] for record in records)
    samples = run.counters.updates * run.config.updates.batch_size
    assert stored == run.counters.stored_transitions == 1600
    assert samples / stored == pytest.approx(run.config.updates.samples_per_insert, rel=0.2)
    before, last = records[-2:]
    learned = (last["updates"] - before["updates"]) * run.config.updates.batch_size
    assert last["samples_per_insert"] == pytest.approx(learned / last["stored_transitions"])


def test_the_actions_of_the_traffic_are_not_the_policys():
    learner = learner_of("SAC", "traffic.share=1", "curriculum.stages=[[2,0,0,30]]")
    learner.collect()
    record = learner.statistics.gather(Processes(), updates=0).train()
    assert record["action_0"].counts.sum() == learner.config.worlds


@pytest.mark.parametrize("at_once", [1_000, 7])
def test_copies_have_the_traffic_of_their_worlds(at_once, monkeypatch):
    """Steered by the policy itself, and trying nothing, it changes nothing; else it does."""
    monkeypatch.setitem(CHUNK_WORLDS, "cpu", at_once)
    env, stepper = under_way()
    robots = traffic_robots(1.0, env.worlds, env.robots)
    action, tried = to_goal(stepper.now.obs), tried_by(env)
    nothing_of_theirs = tried.masked_fill(robots, len(tried) - 1)
    alone = Lookahead(env, to_goal, AHEAD).returns(stepper.now, action, nothing_of_theirs)

    def among(policy):
        ahead = Lookahead(env, to_goal, AHEAD, Traffic(robots, policy))
        return ahead.returns(stepper.now, action, tried)

    torch.testing.assert_close(among(to_goal), alone, rtol=1e-5, atol=1e-4)
    assert not torch.allclose(among(goal_straight), alone, atol=1e-2)


def test_returns_of_the_traffic_do_not_count():
    env, stepper = under_way()
    robots = torch.zeros_like(env.alive)
    robots[:, 1:] = True  # all others
    action, tried = to_goal(stepper.now.obs), tried_by(env)
    found = [
        Lookahead(
            env, to_goal, dataclasses.replace(AHEAD, others=others), Traffic(robots, to_goal)
        ).returns(stepper.now, action, tried)[..., 0]
        for others in (0.0, 0.5)
    ]
    assert torch.equal(*found)


@pytest.mark.parametrize("agent", ["SAC", "PPO"])
def test_a_run_goes_on_as_if_never_stopped(agent, tmp_path):
    whole = trainer(tmp_path, *HALF, "worlds=8", agent=agent)
    whole.train()
    path = whole.saved.checkpoints.path
    known = checkpoint.load(path(600))
    again = trainer(tmp_path, *HALF, "worlds=8", agent=agent)
    again.resume(path(400))
    again.train()
    assert_same(known, checkpoint.load(path(600)))


def test_processes_share_the_worlds_out():
    config, _, _ = load_config(agent="SAC", overrides=[*SMALL, *HALF])
    parts = [make_learner(config, CPU, Silent(rank, 2)).traffic.robots for rank in range(2)]
    assert torch.equal(torch.cat(parts), traffic_robots(0.5, 12, 5))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["traffic.steer=nobody"], "traffic is 'nobody': choose one of straight, goal-straight"),
        (
            ["curriculum.stages=[[4,0,0,30],[1,0,2,30]]"],
            "traffic.share is 0.5: in '1 robot, 2 buoys'",
        ),
        (["traffic.share=0.05"], "traffic.share is 0.05: it is less than one of 6 worlds"),
        (
            ["env.vessel={x_u: 0, x_uu: 0}"],
            "traffic is 'goal-straight': env.vessel has no top speed",
        ),
        (["--task", "icra2024", "--agent", "DQN"], "it steers vessels of the task 'marine' only"),
        (["traffic.share=1.5"], "traffic.share is 1.5: give 1.0 or less"),
        (["traffic.shore=1"], "unknown setting 'traffic.shore'"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(overrides, message, tmp_path, refused):
    output = tmp_path / "run"
    command = ["--output", str(output), *SHORT, *HALF, *overrides]
    refused(train.main, command, message)
    assert not (output / "checkpoints").exists()
