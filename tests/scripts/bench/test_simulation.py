"""How the benchmark measures the simulator: its resets, its decisions and who acts."""

import pytest
import torch

from scripts.bench.case import RESETS, Case, Effort
from scripts.bench.modes import measure_simulator
from scripts.bench.simulation import Simulation

CPU = torch.device("cpu")
BRIEF = Effort(repeats=2, seconds=0.001)


@pytest.mark.parametrize("resets", RESETS)
def test_counts_active_robots(resets):
    case = Case("step", CPU, worlds=32, resets=resets)
    measured = measure_simulator(case, BRIEF)
    assert 0.3 < measured["active_fraction"] <= 1
    if resets == "every":
        assert measured["active_fraction"] == 1
    expected = 5 * measured["active_fraction"]
    ratio = measured["robot_steps_per_s"] / measured["world_steps_per_s"]
    assert ratio == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("resets", RESETS)
def test_resets(resets):
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


def test_several_decisions_a_launch_are_all_counted():
    torch.manual_seed(0)  # of the actions: one pole in a hundred does not fall
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


def test_acts_with_the_policy():
    simulation = Simulation(Case("inference", CPU, worlds=4, agent="DQN"))
    assert simulation.env.discrete
    simulation.place()
    simulation.run(simulation.cycle)
    assert simulation.env.bad_actions().sum() == 0


def test_passes_skip_reset_if_empty_on():
    for skip in (True, False):
        case = Case("step", CPU, worlds=4, skip_reset_if_empty=skip)
        assert Simulation(case).env.skip_reset_if_empty is skip
