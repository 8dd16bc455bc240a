"""Looking ahead: copies are the worlds, and their returns what would come; DPI learns from them."""

import dataclasses
from unittest import mock

import pytest
import torch

from marinenav_env import MarineNavEnv, make
from marinenav_env.config import EnvConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError
from marinenav_env.stepper import Stepper
from tests.train_RL_agents.short_runs import SMALL
from train_RL_agents.agents import lattice
from train_RL_agents.agents.lookahead_settings import LookaheadConfig
from train_RL_agents.config.files import load_config
from train_RL_agents.device.distributed import Processes
from train_RL_agents.training.lookahead import CHUNK_WORLDS, Lookahead, as_looked_ahead
from train_RL_agents.training.run_state import make_learner

WORLDS = 5
STAGES = [Stage(3, 1, 0, 30.0), Stage(4, 0, 4, 30.0)]
CONFIG = as_looked_ahead(
    dataclasses.replace(
        EnvConfig(), reward=dataclasses.replace(EnvConfig().reward, collision=-30.0, colregs=-1.0)
    )
)
AHEAD = LookaheadConfig(horizon_s=4.0, hold_s=1.0, speed_made_good=2.0, goal_share=0.6, others=0.0)


def to_goal(seen):
    """Turn toward the goal at half power, as the oldest frame has it: it minds nobody."""
    x, y = seen.ego[..., 0], seen.ego[..., 1]
    side = torch.atan2(y, x).clamp(-1.0, 1.0)
    ahead = 0.5 - seen.ego[..., -2:].mean(-1) / 1000.0
    return torch.stack([ahead + side, ahead - side], -1).clamp(-1.0, 1.0)


def under_way(decisions=12, seed=4, worlds=WORLDS, stages=STAGES, config=CONFIG, frames=1):
    env = MarineNavEnv(worlds, stages=stages, config=config, seed=seed, stack_k=frames)
    env.set_stage(torch.arange(worlds) % len(stages))
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    for _ in range(decisions):
        stepper.step(to_goal(stepper.now.obs))
        stepper.advance()
    return env, stepper


def played_alone(env, stepper, point, robots):
    """Return what [W, R] get in an environment of its own: 8 decisions, and what is left at 2 m/s.

    A metre left brings a metre's progress, and takes half a second, which is one decision; the goal
    brings 10, of which .6 count.
    """
    same = {"stages": env.stages, "config": env.config, "stack_k": env.stack_k}
    other = MarineNavEnv(env.worlds, seed=99, **same)
    other.load_state_dict(env.state_dict())
    loop = Stepper(other, restarts=False)
    for own, seen in zip(loop.now.frame_list, stepper.now.frame_list, strict=True):
        own.copy_(seen)
    total = torch.zeros(env.worlds, env.robots)
    for turn in range(8):
        action = to_goal(loop.now.obs)
        if point is not None and turn < 2:
            action[torch.arange(env.worlds), robots] = point
        total += loop.step(action).reward
        loop.advance()
    left = loop.now.obs.ego[..., :2].norm(dim=-1) - 2.0  # the goal is reached within 2 m
    to_come = 6.0 + left.clamp(min=0.0) * (1.0 + env.config.reward.timestep)
    return total + other.alive * to_come


@pytest.mark.parametrize(
    ("others", "decisions", "at_once", "frames"),
    [(0.0, 12, 1_000, 1), (0.5, 12, 7, 3), (0.0, 40, 1_000, 1)],
)
def test_returns_are_those_of_playing_each_action_alone(
    others, decisions, at_once, frames, monkeypatch
):
    monkeypatch.setitem(CHUNK_WORLDS, "cpu", at_once)
    env, stepper = under_way(decisions, frames=frames)
    ahead = Lookahead(env, to_goal, dataclasses.replace(AHEAD, others=others))
    robots = torch.tensor([0, 1, 2, 3, 1])
    before = env.state_dict()
    found = ahead.returns(stepper.now, to_goal(stepper.now.obs), robots)
    for name, tensor in env.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert (ahead.turns, ahead.held_turns) == (8, 2)
    for row, point in enumerate([None, *lattice.points(2)]):
        rewards = played_alone(env, stepper, point, robots)
        own = rewards[torch.arange(WORLDS), robots]
        expected = own + others * (rewards.sum(1) - own)
        torch.testing.assert_close(found[row], expected, rtol=1e-3, atol=2e-3)
    assert (found - found[0]).abs().max() > 1.0


def test_advantages_are_over_the_policy_for_the_robot_looked_at():
    env, stepper = under_way()
    action = to_goal(stepper.now.obs)
    ahead = Lookahead(env, to_goal, AHEAD)
    advantages, looked_at = ahead.value(stepper.now, action)
    returns = ahead.returns(stepper.now, action, looked_at.long().argmax(1))
    torch.testing.assert_close(advantages, (returns[1:] - returns[0]).T)


@pytest.mark.parametrize(
    "truncating", [{"max_steps": 14}, {"stop_on_end": True}, {"stop_on_collision": True}]
)
def test_a_truncation_cuts_no_rollout_short(truncating):
    """What would come after it counts, also where the end of another robot truncates."""
    whole, stepper = under_way(worlds=20)
    episode = dataclasses.replace(EnvConfig().episode, **truncating)
    config = dataclasses.replace(CONFIG, episode=episode)
    cut = MarineNavEnv(20, stages=whole.stages, config=config, seed=4)
    cut.load_state_dict(whole.state_dict())
    far, robots = dataclasses.replace(AHEAD, horizon_s=20.0), torch.arange(20) % 3
    found = [
        Lookahead(env, to_goal, far).returns(stepper.now, to_goal(stepper.now.obs), robots)
        for env in (whole, cut)
    ]
    assert torch.equal(*found)


def test_an_action_that_is_the_policys_own_gains_nothing():
    """So copies differ by nothing else, whatever noise the sensors have."""
    env, stepper = under_way(config=EnvConfig())
    first = [True]

    def wary(seen):
        """Full ahead now; later by what is seen of the objects."""
        seen_sum = seen.objects.sum((-1, -2))
        full = torch.ones_like(seen_sum) if first else torch.sin(3.0 * seen_sum)
        first.clear()
        return torch.stack([full, full], -1)

    action = wary(stepper.now.obs)
    ahead = Lookahead(env, wary, dataclasses.replace(AHEAD, hold_s=0.5))
    advantages, _ = ahead.value(stepper.now, action)
    torch.testing.assert_close(advantages[:, -1], torch.zeros(WORLDS), rtol=0, atol=1e-3)
    assert advantages[:, 0].abs().min() > 0.01, "full astern is another one"


def test_one_robot_that_acts_is_looked_at_in_every_world_that_runs():
    env, stepper = under_way(70, worlds=40)
    ended = ~env.alive
    assert ended.any(), "some robots have ended"
    assert ended.all(1).any(), "some worlds have"
    assert not ended.all(1).all(), "some have not"
    ahead = Lookahead(env, to_goal, LookaheadConfig(horizon_s=1.0))
    drawn = torch.zeros_like(env.alive)
    for _ in range(60):
        advantages, looked_at = ahead.value(stepper.now, to_goal(stepper.now.obs))
        assert torch.equal(looked_at.sum(1), env.alive.any(1).long())
        assert advantages[~env.alive.any(1)].eq(0).all()
        drawn |= looked_at
    assert torch.equal(drawn, env.alive)


def test_who_takes_the_best_of_what_was_tried_avoids_buoys_that_the_policy_hits():
    collided = {}
    for looks in (False, True):
        env, stepper = under_way(0, worlds=200, stages=[Stage(1, 0, 8, 40.0)])
        ahead = Lookahead(env, to_goal, LookaheadConfig(horizon_s=7.0, hold_s=1.0, others=0.0))
        for _ in range(60):
            action = to_goal(stepper.now.obs)
            if looks:
                most, best = ahead.value(stepper.now, action).advantages.max(1)
                gains = (most > 0.2).view(-1, 1, 1)
                action = torch.where(gains, ahead.points[best].unsqueeze(1), action)
            stepper.step(action)
            stepper.advance()
        collided[looks] = env.outcome["collision"].mean().item()
    assert collided[False] > 0.2
    assert collided[True] < 0.2 * collided[False]


def test_copies_see_no_noise_and_objects_as_large_as_on_average():
    config = as_looked_ahead(EnvConfig())
    env = MarineNavEnv(2_000, stages=[Stage(1, 0, 8, 30.0)], config=config, seed=3)
    stepper = Stepper(env)
    seen = stepper.reset().obs
    again = stepper.observe().obs
    torch.testing.assert_close(seen.objects, again.objects, rtol=0, atol=1e-3)
    radius = seen.objects[..., 4][seen.mask.bool()]
    mean = config.scenario.buoy_radius_max * config.perception.radius_mean_ratio
    torch.testing.assert_close(radius, torch.full_like(radius, mean), rtol=2e-3, atol=0)


@pytest.mark.parametrize("actions", [1, 2, 3])
def test_between_the_points_values_are_linear_in_each_coordinate(actions):
    torch.manual_seed(0)
    points = lattice.points(actions)
    values = torch.randn(len(points)).double()
    at_points = lattice.interpolated(values.expand(len(points), -1), points.double())
    torch.testing.assert_close(at_points, values)
    assert len(set(map(tuple, points.tolist()))) == 3**actions
    low = torch.rand(50, actions).double() - 1.0  # in one cell, from -1 to 0
    slope, offset = torch.randn(actions).double(), 0.3
    plane = (points.double() @ slope + offset).expand(50, -1)
    torch.testing.assert_close(lattice.interpolated(plane, low), low @ slope + offset)


def learner(*overrides):
    config = load_config(agent="DPI", overrides=[*SMALL, *overrides])[0]
    made = make_learner(config, torch.device("cpu"), Processes())
    made.start(torch.full((config.worlds,), 5))
    return made


def test_only_who_was_looked_at_is_learned_from():
    made = learner("algorithm.autocast=false")
    seen = made.stepper.now.obs
    action = made.agent.act(seen)
    with (
        mock.patch.object(made.replay, "store", wraps=made.replay.store) as store,
        mock.patch.object(made.lookahead, "value", wraps=made.lookahead.value) as value,
    ):
        made.collect()
    kept, acted = store.call_args.args[1], store.call_args.args[3]
    assert acted.sum(1).tolist() == [1] * made.config.worlds
    torch.testing.assert_close(value.call_args.args[1], action)
    torch.testing.assert_close(kept[..., :2], action)
    assert kept[..., 2:].std() > 0.01


def batch_of(kept, made):
    """Return a batch of what was kept, all of one observation."""
    batch = made.replay.sample(len(kept))
    first = type(batch.obs)(*(part[:1].expand_as(part) for part in batch.obs))
    return batch._replace(obs=first, action=kept)


@pytest.mark.parametrize("better", [(-1.0, 1.0), (1.0, -1.0), None])
def test_it_learns_to_do_what_pays_and_else_stays(better):
    made = learner("algorithm.autocast=false", "algorithm.learning_rate=3e-3")
    made.collect()
    own = made.agent.act(made.replay.sample(1).obs)[0]
    points = lattice.points(2)
    worse = 0.1 * points.sum(-1) - 1.0  # full ahead is the best of it, and worse than its own
    advantages = worse if better is None else points @ torch.tensor(better)
    batch = batch_of(torch.cat([own, advantages]).repeat(64, 1), made)
    for _ in range(150):
        made.agent.update(batch)
    expected = own if better is None else torch.tensor(better)
    assert (made.agent.policy(batch.obs)[0] - expected).norm() < 0.3


def test_what_a_robot_does_not_see_is_averaged_over():
    """One observation, after which either end is best, one in two thirds of the cases."""
    made = learner("algorithm.autocast=false", "algorithm.learning_rate=3e-3")
    made.collect()
    own = made.agent.act(made.replay.sample(1).obs)[0]
    kept = torch.cat([own, torch.zeros(9)]).repeat(60, 1)
    kept[:40, 2], kept[40:, 2] = 1.0, -3.0  # full astern pays in two of three cases, not on average
    kept[:, 10] = 0.5  # full ahead always pays a little
    batch = batch_of(kept, made)
    for _ in range(150):
        made.agent.update(batch)
    assert (made.agent.policy(batch.obs)[0] - 1.0).norm() < 0.3


def test_it_is_of_vessels_only():
    with pytest.raises(ConfigError, match="env is 'pendulum': copies look ahead in the task 'mar"):
        Lookahead(make("pendulum", worlds=2), to_goal, AHEAD)
    with pytest.raises(ConfigError, match="looks ahead in the task 'marine', and not in 'marine_s"):
        load_config(agent="DPI", task="marine_sectors")


def test_copies_that_do_not_fit_are_told_as_such(monkeypatch):
    env, _ = under_way(0)
    monkeypatch.setattr("marinenav_env.kernel.memory.free_bytes", lambda device: 10_000.0)
    with pytest.raises(ConfigError, match="worlds is 5, of each of which 10 copies are played"):
        Lookahead(env, to_goal, AHEAD)


def test_only_worlds_of_a_kind_are_copied():
    source, stepper = under_way(0)
    for worlds, stages in ((2 * WORLDS + 1, STAGES), (2 * WORLDS, STAGES[:1])):
        env = MarineNavEnv(worlds, stages=stages)
        with pytest.raises(ValueError, match="give a multiple of its worlds, and the same stages"):
            env.copy_worlds_of(source, stepper.now, env.make_buffers())


def test_what_is_held_cannot_outlast_what_is_played():
    with pytest.raises(ConfigError, match="hold_s"):
        LookaheadConfig(horizon_s=1.0, hold_s=2.0)
