"""Faults of range finders: rays missed, empty and late scans, noise and range that vary."""

from dataclasses import replace

import pytest
import torch

from marinenav_env.envs.marine import SENSOR_ADDED
from marinenav_env.envs.ranging import BeamsEnv, SectorsEnv
from marinenav_env.envs.scenarios import Stage
from tests.marinenav_env.rollouts import CROWDED, actions, record, same_bits

PAIR = Stage(robots=2, vortices=0, buoys=1, min_distance_m=20.0)
WORLDS = 2048
AHEAD = 5  # of the beams
ENVIRONMENTS = (SectorsEnv, BeamsEnv)


def pair(kind, device, **values):
    """A buoy of 6 m, 9 m ahead, and a vessel 12 m astern that goes ahead at 2 m/s; float64.

    Beams at 0, 12, 24 and 36 degrees to either side meet the buoy, as arcsin(6 / 9) is 41.8.
    """
    config = kind.config_type()
    env = kind(
        WORLDS, stages=(PAIR,), device=device, dtype=torch.float64,
        config=replace(config, perception=replace(config.perception, **values)),
    )  # fmt: skip
    env.reset_into(env.make_buffers())
    state = env.state
    for name in ("x", "y", "heading", "vx", "vy", "vx_water", "vy_water", "yaw_water", "goal_y"):
        state.robot_field(name).zero_()
    state.robot_field("x")[1] = -12.0
    state.robot_field("goal_x").fill_(1000.0)  # so that nobody arrives
    for name in ("vx", "vx_water"):
        state.robot_field(name)[1] = 2.0
    state.buoy[:, 0] = torch.tensor([9.0, 0.0, 6.0], device=device, dtype=torch.float64)[:, None]
    return env


def seen(env, robot=0):
    """Rays and hits of a vessel in all worlds after a decision without thrust."""
    out = env.make_buffers()
    env.step_into(env.make_action(), out, out)
    return out.obs.rays[:, robot].cpu(), out.obs.hits[:, robot].cpu()


def test_without_faults_seven_beams_meet_the_buoy(device):
    rays, hits = seen(pair(BeamsEnv, device))
    assert torch.equal(hits[0], torch.tensor([0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0]).double())
    assert rays[0, AHEAD].tolist() == pytest.approx([3.0, 0.0])


def test_beams_are_missed_one_by_one(device):
    _, hits = seen(pair(BeamsEnv, device, miss=0.3))
    assert not hits[:, [0, 1, 9, 10]].any()
    found = hits[:, 2:9]
    assert found.mean(0).tolist() == pytest.approx([0.7] * 7, abs=0.04)
    correlation = torch.corrcoef(found.T) - torch.eye(7)
    assert correlation.abs().max() < 0.1


def test_misses_change_from_decision_to_decision(device):
    env = pair(BeamsEnv, device, miss=0.5)
    first, second = seen(env)[1][:, AHEAD], seen(env)[1][:, AHEAD]
    assert torch.corrcoef(torch.stack([first, second]))[0, 1].abs() < 0.1


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_a_dropout_empties_the_whole_scan(device, kind):
    usual = seen(pair(kind, device))
    rays, hits = seen(pair(kind, device, dropout=0.3))
    empty = (hits == 0.0).all(1)
    assert empty.double().mean().item() == pytest.approx(0.3, abs=0.04)
    assert not rays[empty].any()
    for found, expected in zip((rays, hits), usual, strict=True):
        assert torch.equal(found[~empty], expected[~empty])


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_missing_every_ray_is_a_dropout(device, kind):
    missed, dropped = seen(pair(kind, device, miss=1.0)), seen(pair(kind, device, dropout=1.0))
    for one, other in zip(missed, dropped, strict=True):
        assert not one.any()
        assert torch.equal(one, other)


@pytest.mark.parametrize("values", [{"miss": 1.0}, {"dropout": 1.0}, {"range_factor": (0.0, 0.0)}])
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_a_contact_that_is_not_seen_ends_the_vessel(device, kind, values):
    env = pair(kind, device, **values)
    env.state.buoy[0] = 8.0
    out = env.make_buffers()
    env.step_into(env.make_action(), out, out)
    assert not out.obs.hits[:, 0].any()
    assert (env.state.robot_field("contact")[0, :WORLDS] == 1.0).all()
    assert out.terminated[:, 0].all()


def test_a_late_scan_has_the_vessel_where_it_was(device):
    """Straight astern is the last sector. The velocity there is that of half a second ago, too."""
    env = pair(SectorsEnv, device, delay=0.5, pooling="nearest", closeness="linear")
    reach, radius = env.config.perception.range, env.config.vessel.radius

    def place():
        return tuple(env.state.robot_field(name)[1, 0].item() for name in ("x", "vx"))

    seen(env)
    (before, speed_before), (rays, _), (now, speed) = place(), seen(env), place()
    assert abs(speed - speed_before) > 1e-3
    gap = (1.0 - rays[:, 8, 0]) * reach
    late = (gap - (-before - radius)).abs() < 0.02
    assert late.double().mean().item() == pytest.approx(0.5, abs=0.04)
    assert ((gap - (-now - radius)).abs() < 0.02)[~late].all()
    assert (rays[late, 8, 1] - speed_before).abs().max() < 1e-9
    assert (rays[~late, 8, 1] - speed).abs().max() < 1e-9
    ahead = rays[:, 4]
    assert (ahead - ahead[0]).abs().max() < 1e-9, "the buoy stays where it is"


def test_noise_is_normal_and_each_ray_has_its_own(device):
    rays, hits = seen(pair(BeamsEnv, device, range_std=0.2))
    assert hits[:, 2:9].all()
    distance = rays[:, 2:9].norm(dim=-1)
    exact = seen(pair(BeamsEnv, device))[0][:, 2:9].norm(dim=-1)
    error = (distance - exact) / 0.2
    assert error.mean(0).abs().max() < 0.1
    assert error.std(0).tolist() == pytest.approx([1.0] * 7, abs=0.08)
    assert (error.abs() < 1.0).double().mean().item() == pytest.approx(0.683, abs=0.02)
    assert (torch.corrcoef(error.T) - torch.eye(7)).abs().max() < 0.1


def test_noise_varies_between_worlds(device):
    env = pair(BeamsEnv, device, range_std=0.05, noise_factor=(0.0, 4.0))
    rays, _ = seen(env)
    factor = env.state.sensor[0, :WORLDS].cpu()
    assert factor.mean().item() == pytest.approx(2.0, abs=0.1)
    assert ((rays[:, AHEAD, 0] - 3.0) / factor / 0.05).std().item() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_what_is_measured_stays_within_the_range(device, kind):
    """A ray that meets something is a hit wherever its noise puts that."""
    rays, hits = seen(pair(kind, device, range_std=30.0))
    assert torch.equal(hits, seen(pair(kind, device))[1])
    reach = kind.config_type().perception.range
    if kind is BeamsEnv:
        distance = rays[:, AHEAD].norm(dim=-1)
        for end in (0.0, reach):
            share = ((distance - end).abs() < 1e-9).double().mean().item()
            assert 0.3 < share < 0.5
        assert distance.max() < reach + 1e-9
    else:
        assert rays[..., 0].min() >= 0.0
        assert rays[..., 0].max() == 1.0


def test_the_range_varies_between_worlds(device):
    env = pair(BeamsEnv, device, range_factor=(0.2, 0.4))
    rays, hits = seen(env)
    reach = env.config.perception.range * env.state.reach[0, :WORLDS].cpu()
    near = reach >= 3.0  # the buoy straight ahead
    assert near.double().mean().item() == pytest.approx(0.5, abs=0.04)
    assert torch.equal(hits[:, AHEAD], near.double())
    assert (rays[near, AHEAD, 0] - 3.0).abs().max() < 1e-9
    assert not rays[~near, AHEAD].any()


def test_no_return_reads_as_the_whole_range(device):
    """Closeness is of the sensor's range, whatever it is in an episode.

    At 5 m rays reach the buoy up to arccos(7 / 9), 38.9 degrees: from sector 2 to 6.
    """
    env = pair(SectorsEnv, device, range_factor=(0.25, 0.25), closeness="linear", pooling="nearest")
    rays, hits = seen(env)
    assert rays[0, 4, 0].item() == pytest.approx(1.0 - 3.0 / 20.0)
    assert hits[0].tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0]
    assert not rays[0, hits[0] == 0.0].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_faults_that_never_happen_leave_the_bits_alone(device, kind, dtype):
    """The sensor is one with faults, since a factor is on noise that it has not."""
    config = kind.config_type()
    options = {"stages": (CROWDED,), "dtype": dtype, "device": device, "seed": 4}
    faulty = replace(config, perception=replace(config.perception, noise_factor=(2.0, 2.0)))
    calm, same = (record(kind(30, config=c, **options), 25) for c in (config, faulty))
    for name, rows in calm.items():
        assert same_bits(rows, same[name]), name


def test_worlds_of_an_older_checkpoint_see_without_faults(device):
    env = pair(BeamsEnv, device, range_factor=(0.1, 0.3), delay=0.5)
    state = {name: x for name, x in env.state_dict().items() if name not in SENSOR_ADDED}
    env.load_state_dict(state)
    for name, value in SENSOR_ADDED.items():
        assert (getattr(env.state, name) == value).all()


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_a_sensor_without_noise_has_no_faults_either(kind):
    perception = kind.config_type().perception
    values = {"miss": 0.1, "dropout": 0.1, "delay": 0.1, "range_factor": (0.5, 1.0)}
    faulty = replace(perception, range=7.0, range_std=0.1, noise_factor=(0.5, 2.0), **values)
    assert faulty.noisy
    assert faulty.noiseless() == replace(perception, range=7.0)
    assert not faulty.noiseless().noisy


def test_late_scans_of_a_new_episode_begin_with_it(device):
    """The first decision's late vessels are where they were placed, not where an old one ended."""
    env = pair(BeamsEnv, device, delay=1.0)
    out = env.make_buffers()
    env.step_into(actions(env, 0), out, out)
    env.reset_into(out)
    places = [env.state.robot_field(name) for name in ("x", "y", "vx", "vy")]
    assert torch.equal(env.state.past[..., :WORLDS], torch.stack(places)[..., :WORLDS])
