"""The training path reads nothing on the host, and its state can be saved and restored."""

from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.stepper import Stepper
from tests.host_reads import HostReadError, no_host_reads
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful, same_bits, snapshot

WORLDS = 20


def make_env(device: str, **options) -> MarineNavEnv:
    """Short episodes of two stages."""
    return MarineNavEnv(
        WORLDS, stages=(CROWDED, SPARSE), config=eventful(8), device=device, seed=1, **options
    )


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("options", [{}, {"stack_k": 3}, {"info_mode": "none"}])
def test_training_path_reads_nothing(discrete, options, device):
    env = make_env(device, discrete=discrete, **options)
    buffers = [env.make_buffers(), env.make_buffers()]
    choices = torch.stack([actions(env, t) for t in range(20)])
    stages = torch.arange(WORLDS, device=device) % 2
    finished = torch.zeros((), device=device, dtype=torch.int64)
    with no_host_reads():
        env.reset_into(buffers[1])
        for t in range(20):
            buffers.reverse()
            env.step_into(choices[t], *buffers)
            finished += buffers[1].done.sum()
            env.set_stage((stages + finished) % 2)
            env.reset_into(buffers[1], buffers[1].done)
        env.observe_into(buffers[1])
        statistics, robot_steps = env.read_stats(), env.robot_steps()
        bad, length = env.bad_actions().sum(), env.outcome["length"].sum()
        env.clear_stats()
    assert finished.item() == 2 * WORLDS
    assert statistics.sum().item() > 0 or options == {"info_mode": "none"}
    assert robot_steps.item() > 0
    assert bad.item() == 0
    assert length.item() > 0


def test_guard_sees_the_simulators_host_reads(device):
    """Checking for bad actions reads the device, which is why it is left to the log interval."""
    env = make_env(device)
    with pytest.raises(HostReadError), no_host_reads():
        env.check_actions()


def test_restored_state_goes_on_as_before(device):
    """Saved in the middle of episodes, loaded into a new simulator: the same bits from there."""
    env, other = make_env(device), make_env(device)
    stepper, fresh = Stepper(env), Stepper(other)
    stepper.reset()

    def rows(stepper: Stepper, decisions: range) -> list[dict[str, torch.Tensor]]:
        found = []
        for t in decisions:
            found.append(snapshot(stepper.step(actions(stepper.env, t))))
            stepper.advance()
        return found

    rows(stepper, range(5))
    saved = env.state_dict()
    expected = rows(stepper, range(5, 25))
    other.load_state_dict(saved)
    fresh.observe()
    for a, b in zip(expected, rows(fresh, range(5, 25)), strict=True):
        for name in a:
            assert same_bits(a[name], b[name]), name
    assert torch.equal(env.read_stats(), other.read_stats())


def test_state_of_other_worlds_is_refused():
    env = MarineNavEnv(4)
    saved = env.state_dict()
    with pytest.raises(ValueError, match=r"simulator state 'robot' is .* expected shape .*worlds"):
        MarineNavEnv(40).load_state_dict(saved)
    del saved["bad"]
    with pytest.raises(ValueError, match="simulator state 'bad' is missing"):
        env.load_state_dict(saved)


def test_state_holds_no_configuration(device):
    """A loaded state continues under the stages and the noise of the environment it meets."""
    kappa = replace(EnvConfig().perception, radius_kappa=3.0)
    other = MarineNavEnv(
        4,
        stages=(Stage(3, 0, 0, 20.0),),
        config=replace(EnvConfig(), perception=kappa),
        device=device,
    )
    env = MarineNavEnv(4, stages=(Stage(3, 0, 0, 30.0),), device=device)
    kept = env.state.stage.clone(), env.state.radius_noise.clone()
    foreign = {"stage": other.state.stage, "radius_noise": other.state.radius_noise}
    env.load_state_dict(other.state_dict() | foreign)
    assert torch.equal(env.state.stage, kept[0])
    assert torch.equal(env.state.radius_noise, kept[1])
    assert not foreign.keys() & env.state_dict().keys()
