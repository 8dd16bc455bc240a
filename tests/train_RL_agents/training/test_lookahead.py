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


def tried_by(env):
    """Draw what each robot tries in each copy, all of it once; the last is its policy's own."""
    torch.manual_seed(1)
    return torch.rand(10, env.worlds, env.robots).argsort(0)


def played_alone(env, stepper, tried):
    """Return what [W, R] get in an environment of its own: 8 decisions, and what is left at 2 m/s.

    A metre left brings a metre's progress, and takes half a second, which is one decision; the goal
    brings 10, of which .6 count. A robot holds the point [W, R] that it tries for 2 decisions.
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
        if turn < 2:
            own = torch.cat([lattice.points(2), torch.zeros(1, 2)])[tried]
            action = torch.where((tried < 9).unsqueeze(-1), own, action)
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
    tried, before = tried_by(env), env.state_dict()
    found = ahead.returns(stepper.now, to_goal(stepper.now.obs), tried)
    for name, tensor in env.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert (ahead.turns, ahead.held_turns) == (8, 2)
    place = torch.complex(*(env.state.robot_field(name)[:, :WORLDS].T for name in ("x", "y")))
    apart = (place.unsqueeze(1) - place.unsqueeze(2)).abs()  # [W, R, R]
    about = (apart < 20.0) & ~torch.eye(env.robots, dtype=torch.bool)
    assert about.any(), "some are within the range of the sensors"
    assert (apart > 20.0).any(), "some are not"
    for copy, points in enumerate(tried):
        rewards = played_alone(env, stepper, points)
        expected = rewards + others * (about * rewards.unsqueeze(1)).sum(-1)
        torch.testing.assert_close(found[copy], expected, rtol=1e-3, atol=2e-3)
    assert (found - found[0]).abs().max() > 1.0


def test_advantages_are_over_what_each_robot_gets_where_it_follows_the_policy():
    env, stepper = under_way()
    ahead = Lookahead(env, to_goal, dataclasses.replace(AHEAD, others=0.5))
    with mock.patch.object(ahead, "returns", wraps=ahead.returns) as played:
        advantages = ahead.value(stepper.now, to_goal(stepper.now.obs))
    tried = played.call_args.args[2]
    assert torch.equal(tried.sort(0).values[:, 0, 0], torch.arange(10))
    assert (tried != tried[:, :, :1]).any(0)[:, 1:].all(), "robots have orders of their own"
    returns = ahead.returns(*played.call_args.args)
    for world in range(WORLDS):
        for robot in range(env.robots):
            of_robot = dict(
                zip(tried[:, world, robot].tolist(), returns[:, world, robot], strict=True)
            )
            expected = torch.stack([of_robot[point] - of_robot[9] for point in range(9)])
            torch.testing.assert_close(advantages[world, robot], expected)


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
    far, tried = dataclasses.replace(AHEAD, horizon_s=20.0), tried_by(whole)
    found = [
        Lookahead(env, to_goal, far).returns(stepper.now, to_goal(stepper.now.obs), tried)
        for env in (whole, cut)
    ]
    assert torch.equal(*found)


def test_an_action_that_is_the_policys_own_gains_nothing():
    """So copies differ by nothing else, whatever noise the sensors have."""
    env, stepper = under_way(config=EnvConfig(), stages=[Stage(1, 0, 4, 30.0)])
    first = [True]

    def wary(seen):
        """Full ahead now; later by what is seen of the objects."""
        seen_sum = seen.objects.sum((-1, -2))
        full = torch.ones_like(seen_sum) if first else torch.sin(3.0 * seen_sum)
        first.clear()
        return torch.stack([full, full], -1)

    action = wary(stepper.now.obs)
    ahead = Lookahead(env, wary, dataclasses.replace(AHEAD, hold_s=0.5))
    advantages = ahead.value(stepper.now, action)
    torch.testing.assert_close(advantages[..., -1], torch.zeros(WORLDS, 1), rtol=0, atol=1e-3)
    assert advantages[..., 0].abs().min() > 0.01, "full astern is another one"


def test_only_who_has_not_ended_gains_by_what_it_tries():
    env, stepper = under_way(70, worlds=40)
    ended = ~env.alive
    assert ended.any(), "some robots have ended"
    assert ended.all(1).any(), "some worlds have"
    assert not ended.all(1).all(), "some have not"
    ahead = Lookahead(env, to_goal, LookaheadConfig(horizon_s=1.0, others=0.0))
    advantages = ahead.value(stepper.now, to_goal(stepper.now.obs))
    assert torch.equal(advantages.abs().amax(-1) > 0.0, env.alive)


def test_who_takes_the_best_of_what_was_tried_avoids_buoys_that_the_policy_hits():
    collided = {}
    for looks in (False, True):
        env, stepper = under_way(0, worlds=200, stages=[Stage(1, 0, 8, 40.0)])
        ahead = Lookahead(env, to_goal, LookaheadConfig(horizon_s=7.0, hold_s=1.0, others=0.0))
        for _ in range(60):
            action = to_goal(stepper.now.obs)
            if looks:
                most, best = ahead.value(stepper.now, action).max(-1)
                action = torch.where((most > 0.2).unsqueeze(-1), ahead.points[best], action)
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
def test_an_action_is_worth_the_main_effects_of_the_points(actions):
    """At the points that is the least squares' sum of functions of each coordinate."""
    torch.manual_seed(0)
    points = lattice.points(actions)
    assert len(set(map(tuple, points.tolist()))) == 3**actions
    values = torch.randn(len(points)).double()
    one_by_one = [
        points[:, i : i + 1] == torch.tensor(lattice.ENDS_AND_MIDDLE) for i in range(actions)
    ]
    indicators = torch.cat(one_by_one, 1).double()  # [3 ** A, 3 A]
    fitted = indicators @ (torch.linalg.pinv(indicators) @ values)
    at_points = lattice.interpolated(values.expand(len(points), -1), points.double())
    torch.testing.assert_close(at_points, fitted)
    low = torch.rand(50, actions).double() - 1.0  # in one cell, from -1 to 0
    slope, offset = torch.randn(actions).double(), 0.3
    plane = (points.double() @ slope + offset).expand(50, -1)
    torch.testing.assert_close(lattice.interpolated(plane, low), low @ slope + offset)


def learner(*overrides):
    config = load_config(agent="DPI", overrides=[*SMALL, *overrides])[0]
    made = make_learner(config, torch.device("cpu"), Processes())
    made.start(torch.full((config.worlds,), 5))
    return made


def test_the_replay_keeps_the_policys_actions_and_what_others_are_worth():
    made = learner("algorithm.autocast=false")
    seen = made.stepper.now.obs
    action = made.agent.act(seen)
    with (
        mock.patch.object(made.replay, "store", wraps=made.replay.store) as store,
        mock.patch.object(made.lookahead, "value", wraps=made.lookahead.value) as value,
    ):
        made.collect()
    kept, acted = store.call_args.args[1], store.call_args.args[3]
    torch.testing.assert_close(value.call_args.args[1], action)
    torch.testing.assert_close(kept[..., :2], action)
    assert kept[acted][:, 2:].std(0).min() > 0.01
    assert torch.equal(acted, made.env.alive | acted)


def looks(made, decisions):
    """Return whether each of the decisions to come is looked ahead at; it is kept then."""
    looked = []
    for _ in range(decisions):
        with (
            mock.patch.object(made.stepper, "step", wraps=made.stepper.step) as step,
            mock.patch.object(made.lookahead, "value", wraps=made.lookahead.value) as value,
            mock.patch.object(made.replay, "store", wraps=made.replay.store) as store,
        ):
            action = made.agent.act(made.stepper.now.obs)
            made.collect()
        assert step.call_count == 1
        assert not torch.equal(step.call_args.args[0], action), "it explores"
        assert store.call_count == value.call_count
        looked.append(bool(value.called))
    return looked


def test_decisions_between_those_that_are_looked_ahead_at_are_not_kept():
    """Also of a run that goes on."""
    made, other = (learner("algorithm.look_every=3") for _ in range(2))
    assert looks(made, 8) == [True, False, False, True, False, False, True, False]
    other.load_state_dict(made.state_dict(with_replay=True))
    assert looks(other, 3) == looks(made, 3) == [False, True, False]
    other.load_state_dict(made.state_dict(with_replay=False))
    assert looks(other, 3) == [True, False, False], "a replay that is empty is filled first"


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


@pytest.mark.parametrize("seed", [0, 2**31 - 1, -1])
def test_copies_never_draw_what_their_worlds_draw(seed):
    """Nor what those of another process draw, whose worlds have other numbers."""
    env = MarineNavEnv(2, stages=STAGES, config=CONFIG, seed=seed, first_world=6)
    drawn = Lookahead(env, to_goal, AHEAD)._future.state.context
    assert drawn.seed != seed
    assert drawn.first_world == 60
