"""A world has the same bits in any batch and with any number of threads; float32, float64."""

import pytest
import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from marinenav_env.stepper import Stepper
from tests.marinenav_env.rollouts import (
    CROWDED,
    SPARSE,
    actions,
    assert_same_worlds,
    eventful,
    record,
    rough,
    same_bits,
)

STEPS = 250


def make_env(worlds: int, first_world: int, **options) -> MarineNavEnv:
    """Worlds whose stage depends on their global index."""
    options = {"config": eventful(), "seed": 2**40 + 9, **options}
    env = MarineNavEnv(
        worlds, stages=(CROWDED, SPARSE, PUBLISHED_STAGES[5]), first_world=first_world, **options
    )
    env.set_stage((torch.arange(worlds, device=env.device) + first_world) % 3)
    return env


@pytest.fixture
def threads():
    """Leaves torch's number of threads as it was."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("config", [eventful(), rough(eventful())], ids=["calm", "rough"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_world_does_not_depend_on_its_batch(device, dtype, config):
    options = {"device": device, "dtype": dtype, "config": config}
    whole = record(make_env(53, 100, **options), STEPS)
    assert whole["terminated"].any()
    assert whole["truncated"].any()
    assert whole["done"].sum() > 53 * 5
    for start, stop in ((0, 53), (0, 1), (17, 18), (5, 37), (52, 53)):
        part = record(make_env(stop - start, 100 + start, **options), STEPS)
        assert_same_worlds(whole, part, start, stop)


def test_the_first_of_very_many_worlds_are_those_of_few(device):
    many, few, steps = 65_536 if device == "cuda" else 1_000, 200, 40
    ends = []
    envs = [make_env(worlds, 0, device=device) for worlds in (many, few)]
    steppers = [Stepper(env) for env in envs]
    for stepper in steppers:
        stepper.reset()
    for step in range(steps):
        large, small = (
            stepper.step(actions(env, step)) for env, stepper in zip(envs, steppers, strict=True)
        )
        for name in ("reward", "acted", "terminated", "truncated", "done"):
            assert same_bits(getattr(large, name)[:few], getattr(small, name)), (step, name)
        for a, b in zip(large.obs, small.obs, strict=True):
            assert same_bits(a[:few], b), step
        ends.append(small.done.sum())
        for stepper in steppers:
            stepper.advance()
    assert sum(ends) > few


def test_number_of_threads_changes_nothing(threads):
    torch.set_num_threads(1)
    whole = record(make_env(70, 0), 40)
    for count in (2, 3):
        torch.set_num_threads(count)
        assert_same_worlds(whole, record(make_env(70, 0), 40), 0, 70)


def test_seed_world_and_episode_make_the_numbers(device):
    first = record(make_env(8, 0, device=device), 60)
    start = "first.current.ego"
    assert not same_bits(record(make_env(8, 0, device=device, seed=1), 1)[start], first[start])
    assert not same_bits(record(make_env(8, 0, device=device, seed=9), 1)[start], first[start]), (
        "the seed's upper word counts too"
    )
    assert not same_bits(record(make_env(8, 3, device=device), 1)[start], first[start])
    again = first["current.ego"][first["done"][:, 0], 0]
    goals = torch.cat((first[start][:1], again))[:, 0, :2]
    assert len(goals) >= 3
    assert len(goals.unique(dim=0)) == len(goals), "every episode is placed anew"


def test_float32_steps_agree_with_float64(device):
    """One step from the same state, over whole episodes: 1e-4 * max(1, |x|), flags equal.

    The flags may differ only within rounding of a threshold, which no step here comes to.
    """
    single = make_env(64, 0, device=device)
    double = make_env(64, 0, device=device, dtype=torch.float64)
    steppers = Stepper(single), Stepper(double)
    for stepper in steppers:
        stepper.reset()
    assert same_bits(single.state.world, double.state.world)
    torch.testing.assert_close(
        single.state.robot.double(), double.state.robot, rtol=1e-6, atol=1e-5
    )
    for t in range(60):
        for tensor in (*double.kernel_spec.state, *double.kernel_spec.tables):
            getattr(double.state, tensor.name).copy_(getattr(single.state, tensor.name))
        action = actions(single, t)
        outs = [stepper.step(action.to(stepper.env.real_dtype)) for stepper in steppers]
        for name in ("acted", "terminated", "truncated", "done"):
            assert same_bits(getattr(outs[0], name), getattr(outs[1], name)), name
        assert same_bits(outs[0].obs.mask.double(), outs[1].obs.mask)
        pairs = [(outs[0].reward, outs[1].reward), (single.state.robot, double.state.robot)]
        pairs += [(outs[0].obs.ego, outs[1].obs.ego), (outs[0].obs.objects, outs[1].obs.objects)]
        for a, b in pairs:
            torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)
        for stepper in steppers:
            stepper.advance()
