"""How robots and worlds end, and what is booked: outcomes and statistics."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from marinenav_env.config import EnvConfig
from marinenav_env.envs.make import make
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import OUTCOME_FIELDS, STATS
from marinenav_env.kernel.state import StepBuffers
from marinenav_env.stepper import Stepper
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful, record, roll

TWO = Stage(robots=2, vortices=0, buoys=0, min_distance_m=30.0)
ALONE = Stage(robots=1, vortices=0, buoys=0, min_distance_m=9.5)
WORLDS = 3


class Staged:
    """Three worlds of two vessels each, which a test puts where it wants them."""

    def __init__(self, device: str, **episode: object) -> None:
        config = EnvConfig(episode=replace(EnvConfig().episode, **episode))
        self.env = MarineNavEnv(WORLDS, stages=(TWO,), config=config, device=device, seed=4)
        self.stepper = Stepper(self.env, restarts=False)
        self.stepper.reset()
        self.still = torch.zeros(WORLDS, 2, 2, device=device)

    def place(self, world: int, robot: int, x: float, y: float) -> None:
        """Moves a vessel."""
        self.env.state.robot_field("x")[robot, world] = x
        self.env.state.robot_field("y")[robot, world] = y

    def to_goal(self, world: int, robot: int) -> None:
        """Moves a vessel to 1 m from its goal."""
        goal = [self.env.state.robot_field(f"goal_{axis}")[robot, world] for axis in "xy"]
        self.place(world, robot, float(goal[0]) + 1.0, float(goal[1]))

    def to_each_other(self, world: int) -> None:
        """Lets the two vessels of a world touch, far from their goals."""
        self.place(world, 0, 500.0, 500.0)
        self.place(world, 1, 503.0, 500.0)

    def step(self) -> StepBuffers:
        """One decision without thrust, nothing reset."""
        self.stepper.step(self.still)
        return self.stepper.advance()

    def outcome(self, name: str) -> list[float]:
        """An outcome field of every world."""
        return self.env.outcome[name].tolist()


def test_goal_ends_a_robot_and_the_last_one_the_world(device):
    worlds = Staged(device)
    worlds.to_goal(0, 0)
    worlds.to_goal(1, 0)
    worlds.to_goal(1, 1)
    out = worlds.step()
    assert out.acted.all()
    assert out.terminated.tolist() == [[True, False], [True, True], [False, False]]
    assert not out.truncated.any()
    assert out.done.tolist() == out.world_terminated.tolist() == [False, True, False]
    assert not out.world_truncated.any()
    assert worlds.env.alive.tolist() == [[False, True], [False, False], [True, True]]
    assert (out.reward[0, 0] > 9.0) & (out.reward[1] > 9.0).all() & (out.reward[2] < 0.0).all()
    assert worlds.outcome("success")[1] == 1.0
    assert worlds.outcome("length")[1] == 1.0
    after = worlds.step()
    assert after.acted.tolist() == [[False, True], [False, False], [True, True]]
    assert after.done.tolist() == [False, True, False], "a finished world stays finished"
    assert (after.reward[~after.acted] == 0).all()
    assert (after.obs.ego[~after.acted] == 0).all()
    assert not after.terminated.any()


def test_robot_that_ends_is_seen_in_that_step_and_gone_from_the_next(device):
    worlds = Staged(device)
    for world in (0, 1):
        worlds.to_goal(world, 0)
        goal = [worlds.env.state.robot_field(f"goal_{axis}")[0, world] for axis in "xy"]
        worlds.place(world, 1, float(goal[0]) + 10.0, float(goal[1]))
    out = worlds.step()
    assert out.terminated[:2, 0].all()
    assert out.obs.mask[:2, 1].sum().item() == 2.0
    assert worlds.step().obs.mask[:2, 1].sum().item() == 0.0


def test_collision_ends_both_and_wins_over_the_goal(device):
    worlds = Staged(device)
    worlds.to_goal(0, 0)
    here = [float(worlds.env.state.robot_field(axis)[0, 0]) for axis in "xy"]
    worlds.place(0, 1, here[0] + 2.0, here[1])
    out = worlds.step()
    assert out.terminated.tolist() == [[True, True], [False, False], [False, False]]
    progress = worlds.env.state.robot_field("progress")[:, 0]
    torch.testing.assert_close(out.reward[0], progress - 0.1 - 5.0)
    assert worlds.outcome("success")[0] == 0.0
    assert worlds.outcome("collision")[0] == 1.0
    assert worlds.outcome("timeout")[0] == 0.0


def test_a_world_lives_on_after_a_collision_unless_told_otherwise(device):
    for stop in (False, True):
        worlds = Staged(device, stop_on_collision=stop)
        stage = Stage(robots=3, vortices=0, buoys=0, min_distance_m=30.0)
        worlds.env = MarineNavEnv(WORLDS, stages=(stage,), config=worlds.env.config, device=device)
        worlds.stepper = Stepper(worlds.env, restarts=False)
        worlds.stepper.reset()
        worlds.still = torch.zeros(WORLDS, 3, 2, device=device)
        worlds.to_each_other(0)
        out = worlds.step()
        assert out.terminated.tolist()[0] == [True, True, False]
        assert out.done.tolist() == out.world_terminated.tolist() == [stop, False, False]
        assert worlds.env.alive.sum(-1).tolist() == [0 if stop else 1, 3, 3]
        assert worlds.outcome("collision")[0] == (1.0 if stop else 0.0)


def test_a_world_ends_with_its_first_robot_if_told(device):
    worlds = Staged(device, stop_on_end=True)
    worlds.to_goal(0, 0)
    out = worlds.step()
    assert out.terminated.tolist() == [[True, False], [False, False], [False, False]]
    assert out.truncated.tolist() == [[False, True], [False, False], [False, False]]
    assert out.done.tolist() == out.world_terminated.tolist() == [True, False, False]
    assert worlds.env.alive.sum(-1).tolist() == [0, 2, 2]
    for outcome in ("success", "collision", "timeout"):
        assert worlds.outcome(outcome)[0] == 0.0
    worlds.to_each_other(1)
    assert worlds.step().terminated.tolist() == [[False, False], [True, True], [False, False]]
    assert worlds.outcome("collision")[1] == 1.0


def test_time_limit_truncates(device):
    worlds = Staged(device, max_steps=3)
    worlds.to_goal(0, 0)
    for step in range(3):
        out = worlds.step()
        assert out.done.tolist() == [step == 2] * WORLDS
    assert out.truncated.tolist() == [[False, True], [True, True], [True, True]]
    assert not out.terminated.any()
    assert out.world_truncated.all()
    assert not out.world_terminated.any()
    assert worlds.outcome("timeout") == [1.0, 1.0, 1.0]
    assert worlds.outcome("length") == [3.0, 3.0, 3.0]


def test_end_in_the_last_decision_is_terminated_not_truncated(device):
    worlds = Staged(device, max_steps=2)
    worlds.step()
    worlds.to_goal(0, 0)
    worlds.to_goal(0, 1)
    worlds.to_goal(1, 0)
    worlds.to_each_other(2)
    out = worlds.step()
    assert out.done.all()
    assert out.terminated.tolist() == [[True, True], [True, False], [True, True]]
    assert out.truncated.tolist() == [[False, False], [False, True], [False, False]]
    assert out.world_terminated.tolist() == [True, False, True]
    assert out.world_truncated.tolist() == [False, True, False]
    assert worlds.outcome("success") == [1.0, 0.0, 0.0]
    assert worlds.outcome("timeout") == [0.0, 1.0, 0.0]
    assert worlds.outcome("collision") == [0.0, 0.0, 1.0]


def test_outcome_times_and_energies(device):
    """A robot's time and energy stop where it ends; the outcome averages over robots."""
    worlds = Staged(device, max_steps=3)
    worlds.still[:, :, 0] = 1.0  # the left thrust grows by 500 N a decision, up to 1000 N
    worlds.to_goal(0, 0)
    for _ in range(3):
        worlds.step()
    assert worlds.outcome("mean_time_s")[:2] == pytest.approx([(0.5 + 1.5) / 2, 1.5])
    whole = 0.5 * (500.0 + 1000.0 + 1000.0)
    expected = [(0.5 * 500.0 + whole) / 2, whole]
    assert worlds.outcome("mean_energy")[:2] == pytest.approx(expected)


def recomputed_stats(rows: dict[str, Tensor], robots: Tensor, stages: int) -> Tensor:
    """The statistics, from what every step reported: [S, len(STATS)] float64.

    Args:
        rows: a record.
        robots: [S] robots of each stage.
        stages: S.
    """
    sums = torch.zeros(stages, len(STATS), dtype=torch.float64)
    rows = {name: row.cpu() for name, row in rows.items()}
    for world in range(rows["done"].shape[1]):
        begin = 0
        for end in rows["done"][:, world].nonzero().flatten().tolist():
            part = {k: v[begin : end + 1, world] for k, v in rows.items() if "first" not in k}
            begin = end + 1
            stage = int(part["stage"][0])
            n = int(robots[stage])
            ended = part["terminated"][:, :n]
            hit = (ended & (part["info.contact"][:, :n] > 0)).sum().item()
            reached = ended.sum().item() - hit
            success = float(reached == n)
            energy = (part["info.step_energy"] * part["acted"])[:, :n].double().sum() / n
            time = 0.5 * part["acted"][:, :n].sum() / n
            episode = {
                "episodes": 1.0,
                "successes": success,
                "collisions": float(hit > 0),
                "timeouts": float(part["world_truncated"][-1] and hit == 0),
                "return_sum": part["reward"].double().sum() / n,
                "length_sum": float(len(ended)),
                "success_time_sum": success * time,
                "success_energy_sum": success * energy,
                "robots": n,
                "robots_reached": reached,
                "robots_collided": hit,
            }
            sums[stage] += torch.tensor([float(episode[name]) for name in STATS]).double()
    return sums


@pytest.mark.parametrize("stop", ["", "stop_on_collision", "stop_on_end"])
def test_statistics_are_the_sums_over_finished_episodes(stop, device):
    config = eventful(25)
    config = replace(config, episode=replace(config.episode, **{stop: True} if stop else {}))
    stages = (CROWDED, SPARSE, ALONE)
    env = MarineNavEnv(60, stages=stages, config=config, device=device, seed=1)
    env.set_stage(torch.arange(60, device=device) % 3)
    rows = record(env, 120)
    expected = recomputed_stats(rows, torch.tensor([stage.robots for stage in stages]), 3)
    got = env.read_stats().double().cpu()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-2)
    assert (got.abs().sum(0) > 0).all(), "every kind of end happened"
    assert got[0, STATS.index("robots_collided")] > 20
    assert got[2, STATS.index("successes")] > 5
    assert env.robot_steps().item() == rows["acted"].sum().item()
    env.clear_stats()
    assert (env.read_stats() == 0).all()
    assert env.robot_steps().item() == 0


def test_every_outcome_is_of_the_last_finished_episode(device):
    """Outcome fields against the statistics of the worlds' first episodes."""
    env = MarineNavEnv(40, stages=(CROWDED,), config=eventful(25), device=device, seed=5)
    *_, out = roll(env, 25)
    assert out.done.all()
    sums = dict(zip(STATS, env.read_stats()[0].tolist(), strict=True))
    outcome = {name: env.outcome[name].sum().item() for name in OUTCOME_FIELDS}
    assert sums["episodes"] == 40
    assert sums["collisions"] == outcome["collision"] > 0
    assert sums["timeouts"] == outcome["timeout"] > 0
    assert sums["successes"] == outcome["success"]
    assert sums["length_sum"] == outcome["length"]
    assert math.isclose(sums["return_sum"], outcome["mean_return"], rel_tol=1e-5)


def test_untouched_statistics_outlive_resets(device):
    env = MarineNavEnv(8, stages=(SPARSE,), config=eventful(5), device=device)
    record(env, 12)
    before = env.read_stats()
    env.reset_into(env.make_buffers())
    assert torch.equal(env.read_stats(), before)
    assert before[0, STATS.index("episodes")] == 16


def test_a_step_before_the_first_reset_books_nothing(device):
    """Worlds are made with their episodes over, so a loop may also begin by resetting the done."""
    env = MarineNavEnv(5, stages=(SPARSE,), device=device)
    before, out = env.make_buffers(), env.make_buffers()
    env.step_into(actions(env, 0), before, out)
    assert out.done.all()
    assert not out.acted.any()
    assert (env.read_stats() == 0).all()
    assert (env.outcome["length"] == 0).all()
    env.reset_into(out, out.done)
    assert env.alive.all()
    env.step_into(actions(env, 1), out, before)
    assert not before.done.any()


@pytest.mark.parametrize("task", ["marine", "icra2024", "marine_sectors"])
@pytest.mark.parametrize("share", [0.25, 0.75])
def test_a_robot_in_the_fringe_collides_by_chance(device, task, share):
    """The more likely the closer it is, and anew in every decision."""
    env = make(task, worlds=4096, stages=(TWO,), device=device, seed=4)
    fringe, hulls = 2.0, 2.0 * env.config.vessel.radius
    env = make(
        task,
        worlds=4096,
        stages=(TWO,),
        config=replace(env.config, reward=replace(env.config.reward, fringe=fringe)),
        device=device,
        seed=4,
    )
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    for name in ("x", "y", "speed" if task == "icra2024" else "vx", "vy"):
        env.state.robot_field(name)[:2] = 0.0
    env.state.robot_field("x")[1] = hulls + share * fringe
    still = torch.zeros_like(env.rand_action()["robots", "action"])
    for _ in range(2):
        out = stepper.step(still)
        hit = out.terminated[out.acted.all(dim=1)].double().mean().item()
        assert hit == pytest.approx(1.0 - share, abs=0.04)
        stepper.advance()
