"""Faults of the sensor: misses, dropouts, delays and noise of varying strength."""

from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig, PerceptionConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from tests.marinenav_env.rollouts import decide

PAIR = Stage(robots=2, vortices=0, buoys=1, min_distance_m=20.0)
WORLDS = 2048


def pair(device: str, **values) -> MarineNavEnv:
    """Two vessels 10 m apart, the second passing at 2 m/s, and a buoy 5 m away; float64."""
    perception = replace(PerceptionConfig().noiseless(), **values)
    env = MarineNavEnv(
        WORLDS, stages=(PAIR,), config=replace(EnvConfig(), perception=perception),
        device=device, dtype=torch.float64,
    )  # fmt: skip
    env.reset_into(env.make_buffers())
    state = env.state
    for name in ("x", "y", "heading", "vx", "vy", "vx_water", "vy_water"):
        state.robot_field(name).zero_()
    state.robot_field("x")[1] = 10.0
    state.robot_field("goal_x").fill_(1000.0)  # so that nobody arrives
    for name in ("vy", "vy_water"):
        state.robot_field(name)[1] = 2.0
    state.buoy[:, 0] = torch.tensor([0.0, -5.0, 1.0], device=device)[:, None]
    return env


def seen(env: MarineNavEnv, decisions: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Objects and mask of the first vessels after some decisions without thrust."""
    action = torch.zeros(WORLDS, 2, 2, dtype=torch.float64, device=env.device)
    for _ in range(decisions):
        out = decide(env, action)
    return out.obs.objects[:, 0].cpu(), out.obs.mask[:, 0].cpu()


def test_objects_are_missed_one_by_one(device):
    _, mask = seen(pair(device, miss=0.3))
    count = mask.sum(1)
    shares = [(count == n).double().mean().item() for n in range(3)]
    assert shares == pytest.approx([0.09, 0.42, 0.49], abs=0.04)


def test_a_dropout_hides_everything(device):
    _, mask = seen(pair(device, dropout=0.3))
    count = mask.sum(1)
    assert (count == 0).double().mean().item() == pytest.approx(0.3, abs=0.04)
    assert ((count == 0) | (count == 2)).all()


@pytest.mark.parametrize("fault", [{"miss": 1.0}, {"range_factor": (0.0, 0.0)}], ids=str)
def test_a_contact_that_is_not_seen_still_counts(device, fault):
    env = pair(device, **fault)
    env.state.robot_field("x")[1] = 3.0
    _, mask = seen(env)
    assert not mask.any()
    assert (env.state.robot_field("contact")[0, :WORLDS] == 1.0).all()


def test_a_late_sensor_shows_the_decision_before(device):
    """The other vessel moves in each decision; half of the sensors have its place before."""
    env = pair(device, delay=0.5)
    before = None
    for _ in range(2):
        objects, _ = seen(env)
        now = env.state.robot_field("y")[1, 0].item()
        if before is not None:
            at = objects[:, 1, 1]
            late = (at - before).abs() < 1e-9
            assert late.double().mean().item() == pytest.approx(0.5, abs=0.04)
            assert (at[~late] - now).abs().max() < 1e-9
            assert (objects[:, 0, 1] + 5.0).abs().max() < 1e-9  # the buoy
        before = now


def test_noise_varies_between_worlds(device):
    """A factor of 2 doubles the deviation of a position; one of 0 leaves none."""
    objects, _ = seen(pair(device, position_std=0.05, noise_factor=(2.0, 2.0)))
    assert objects[:, 0, 1].std().item() == pytest.approx(0.1, rel=0.1)
    env = pair(device, position_std=0.05, noise_factor=(0.0, 4.0))
    objects, _ = seen(env)
    factor = env.state.sensor[0, :WORLDS].cpu()
    assert factor.mean().item() == pytest.approx(2.0, abs=0.1)
    error = (objects[:, 0, 1] + 5.0) / factor / 0.05
    assert error.std().item() == pytest.approx(1.0, rel=0.1)


def test_the_range_varies_between_worlds(device):
    """The vessel's hull is 7.2 m away, the buoy's 4 m: half of the ranges reach the former."""
    config = EnvConfig()
    nominal, gap = config.perception.range, 10.0 - config.vessel.radius
    reach = (gap - 1.0) / nominal, (gap + 1.0) / nominal
    env = pair(device, range_factor=reach)
    _, mask = seen(env)
    factor = env.state.reach[0, :WORLDS].cpu()
    assert factor.min() >= reach[0]
    assert factor.max() <= reach[1]
    x, y = (env.state.robot_field(name)[:, :WORLDS].cpu() for name in "xy")
    distance = torch.hypot(x[1] - x[0], y[1] - y[0])
    far = factor * nominal >= distance - config.vessel.radius
    assert 0.3 < far.double().mean() < 0.7
    assert torch.equal(mask.sum(1), 1.0 + far.double())


def test_a_shorter_range_ends_at_the_hull_as_it_looks(device):
    """8.5 m reach the hull of the vessel 10 m away, 2.8 m in radius, unless it looks small."""
    objects, mask = seen(pair(device, radius_mean_ratio=0.5, range_factor=(0.425, 0.425)))
    vessel = mask[:, 1] == 1.0
    assert 0.2 < vessel.double().mean() < 0.8
    gap = objects[:, 1, :2].norm(dim=1) - objects[:, 1, 4]
    assert gap[vessel].max() <= 8.5


def test_noise_and_range_of_a_world_have_nothing_to_do_with_each_other(device):
    state = pair(device, noise_factor=(0.0, 4.0), range_factor=(0.5, 1.0)).state
    factors = torch.stack([state.sensor[0, :WORLDS], state.reach[0, :WORLDS]]).cpu()
    assert torch.corrcoef(factors)[0, 1].abs() < 0.1


def test_worlds_of_an_older_checkpoint_see_and_sail_as_published(device):
    """It has none of the factors: they are 1 until the next episode draws its own."""
    env = pair(device, noise_factor=(0.5, 2.0), range_factor=(0.5, 1.0))
    factors = ("factor", "sensor", "reach")
    state = {name: tensor for name, tensor in env.state_dict().items() if name not in factors}
    assert (env.state.reach != 1.0).any()
    env.load_state_dict(state)
    for name in factors:
        assert (getattr(env.state, name) == 1.0).all()
