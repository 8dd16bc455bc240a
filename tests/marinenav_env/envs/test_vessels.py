"""Further vessels beside a NumPy model in matrices, and beside what their sources publish."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig, EpisodeConfig
from marinenav_env.envs.marine import MarineNavEnv, marine_spec
from marinenav_env.envs.scenarios import Stage
from marinenav_env.fields import ConfigError, build, plain
from marinenav_env.vessels import VESSELS, VesselConfig
from marinenav_env.water import StreamConfig
from tests.marinenav_env.rollouts import (
    actions,
    assert_same_worlds,
    decide,
    eventful,
    lone_vessel,
    quiet,
    record,
)

OTTER, CYBERSHIP2, HERON = (VESSELS[name] for name in ("otter", "cybership2", "heron"))
FURTHER = (OTTER, CYBERSHIP2, HERON)
MOTION = ("x", "y", "heading", "vx_water", "vy_water", "yaw_water")
START = {"vx_water": 0.6, "vy_water": -0.25, "yaw_water": 0.15, "heading": 0.7}


def mass(p: VesselConfig) -> np.ndarray:
    """M_RB + M_A (Fossen 2021, eqs. 6.46 and 6.48)."""
    rigid = np.diag([p.mass, p.mass, p.izz])
    rigid[1, 2] = rigid[2, 1] = p.mass * p.x_g
    added = np.array([[p.x_dot_u, 0, 0], [0, p.y_dot_v, p.y_dot_r], [0, p.n_dot_v, p.n_dot_r]])
    return rigid - added


def rotation(heading: float) -> np.ndarray:
    c, s = math.cos(heading), math.sin(heading)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def otter_by_its_source(nu: np.ndarray, left: float, right: float) -> np.ndarray:
    """Acceleration of the Otter, its numbers those of PythonVehicleSimulator c717e07, otter.py."""
    u, v, r = nu
    strips = [(x, v + x * r) for x in np.linspace(-1.0, 1.0, 21)]
    drag = [(x, 0.5 * 1026 * 0.19512 * 1.0042 * abs(w) * w * 0.1) for x, w in strips]
    surge = left + right + 80 * (v * r + 0.153125 * r * r) + 82.5 * v * r - 77.55443 * u
    sway = -80 * u * r - 5.5 * u * r - 162.5 * v - sum(force for _, force in drag)
    turn = 0.395 * (left - right) - 80 * 0.153125 * u * r - (82.5 - 5.5) * u * v
    turn += -42.65145 * r - 426.5145 * abs(r) * r - sum(x * force for x, force in drag)
    inertia = [[85.5, 0, 0], [0, 162.5, 12.25], [0, 12.25, 42.65145]]
    return np.linalg.solve(inertia, [surge, sway, turn])


def cybership2_by_its_source(nu: np.ndarray, left: float, right: float) -> np.ndarray:
    """Acceleration of CyberShip II, its numbers those of TUD_RL 92a34ba, CybershipII.py."""
    u, v, r = nu
    surge = left + right + 23.8 * (v * r + 0.046 * r * r) + 10 * v * r
    surge -= (0.72253 + 1.32742 * abs(u) + 5.86643 * u * u) * u
    sway = -23.8 * u * r - 2 * u * r - (0.88965 + 36.47287 * abs(v) + 0.805 * abs(r)) * v
    sway -= (7.25 + 0.845 * abs(v) + 3.45 * abs(r)) * r
    turn = 0.1 * (left - right) - 23.8 * 0.046 * u * r - (10 - 2) * u * v
    turn += (0.0313 + 3.95645 * abs(v) + 0.13 * abs(r)) * v
    turn -= (1.9 - 0.08 * abs(v) + 0.75 * abs(r)) * r
    inertia = [[25.8, 0, 0], [0, 33.8, 1.0948], [0, 1.0948, 2.76]]
    return np.linalg.solve(inertia, [surge, sway, turn])


def heron_by_its_source(nu: np.ndarray, left: float, right: float) -> np.ndarray:
    """Acceleration of the Heron, masses and damping those of RANS b3a6770, the rest an estimate."""
    u, v, r = nu
    surge = left + right + 35.96 * v * r - 17.2576 * abs(u) * u
    sway = -35.96 * u * r - (99.99 + 99.99 * abs(v)) * v
    turn = 0.375 * (left - right) - (0.83 + 17.336 * abs(r)) * r
    return np.array([surge, sway, turn]) / [35.96, 35.96, 35.96 * (1.3**2 + 1.0**2) / 12]


BY_THEIR_SOURCES = {
    OTTER: otter_by_its_source,
    CYBERSHIP2: cybership2_by_its_source,
    HERON: heron_by_its_source,
}


def stepped(p: VesselConfig, state: np.ndarray, acceleration: Callable) -> np.ndarray:
    state = state.copy()
    state[:3] += state[3:] * p.dt
    turned = rotation(state[2])
    nu = turned.T @ state[3:]
    kept = np.array([-nu[2] * nu[1], nu[2] * nu[0], 0])
    state[3:] += turned @ (acceleration(nu) + kept) * p.dt
    return state


def in_the_body_frame(acceleration: Callable, state: np.ndarray, time: float) -> np.ndarray:
    """As the sources integrate: Euler steps of nu and of eta, here of 1 ms; no velocity turned."""
    eta, nu = state[:3].copy(), rotation(state[2]).T @ state[3:]
    for _ in range(round(time / 1e-3)):
        eta += rotation(eta[2]) @ nu * 1e-3
        nu += acceleration(nu) * 1e-3
    return np.concatenate((eta, rotation(eta[2]) @ nu))


def motion_of(env: MarineNavEnv) -> np.ndarray:
    return np.array([env.state.robot_field(name)[0, 0].item() for name in MOTION])


def sail(vessel: VesselConfig, decisions: int, left: float, right: float, **start: float):
    """Return an environment whose vessel has had constant thrusts for decisions of a substep."""
    thrusts = {"left_thrust": left, "right_thrust": right}
    config = EnvConfig(vessel=vessel, episode=EpisodeConfig(max_steps=decisions + 1))
    env = lone_vessel(config, **(start | thrusts))
    still, out = torch.zeros(1, 1, 2, dtype=torch.float64), env.make_buffers()
    for _ in range(decisions):
        env.step_into(still, out, out)
    return env


@pytest.mark.parametrize("vessel", FURTHER, ids=lambda vessel: vessel.name)
def test_the_motion_is_that_of_the_sources_at_small_steps(vessel):
    """A turn of 5 s from a slant: what remains is the order of the Euler steps."""
    left, right = 0.8 * vessel.max_thrust, vessel.min_thrust
    fine = replace(vessel, dt=0.002)
    start = motion_of(lone_vessel(EnvConfig(vessel=fine), **START))
    by_source = BY_THEIR_SOURCES[vessel]
    exact = in_the_body_frame(lambda nu: by_source(nu, left, right), start, 5.0)
    reached = motion_of(sail(fine, 2500, left, right, **START))
    np.testing.assert_allclose(reached, exact, rtol=0, atol=4e-3)


@pytest.mark.parametrize("vessel", FURTHER, ids=lambda vessel: vessel.name)
def test_a_uniform_current_only_carries_a_vessel(vessel):
    """The motion through the water is the same: the terms of velocity are all through the water."""
    stream = StreamConfig(speed=(0.3, 0.3), direction=(1.0, 1.0))
    carried = lone_vessel(EnvConfig(vessel=vessel, stream=stream), **START)
    calm = lone_vessel(EnvConfig(vessel=vessel), **START)
    thrust = torch.tensor([[[1.0, -0.5]]], dtype=torch.float64)
    for env in (carried, calm):
        for _ in range(60):
            decide(env, thrust)
    drift = np.array([0.3 * math.cos(1.0), 0.3 * math.sin(1.0)]) * 60 * vessel.dt
    expected = motion_of(calm) + np.concatenate((drift, np.zeros(4)))
    np.testing.assert_allclose(motion_of(carried), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("turn", [0.15, -0.4])
@pytest.mark.parametrize("vessel", FURTHER, ids=lambda vessel: vessel.name)
def test_a_turning_step_is_that_of_the_sources_numbers(vessel, turn):
    """No number of the vessel's own is on the side of the expectation."""
    start = START | {"yaw_water": turn}
    left, right = 0.8 * vessel.max_thrust, 0.5 * vessel.min_thrust
    state = motion_of(lone_vessel(EnvConfig(vessel=vessel), **start))
    by_source = BY_THEIR_SOURCES[vessel]
    for decisions in range(1, 41):
        state = stepped(vessel, state, lambda nu: by_source(nu, left, right))
        if decisions in (1, 7, 40):
            reached = motion_of(sail(vessel, decisions, left, right, **start))
            np.testing.assert_allclose(reached, state, rtol=0, atol=1e-6 * decisions)


def test_the_otter_is_the_published_one():
    """PythonVehicleSimulator c717e07, reduced to three degrees of freedom."""
    expected = [[85.5, 0, 0], [0, 162.5, 12.25], [0, 12.25, 42.65145]]
    np.testing.assert_allclose(mass(OTTER), expected, atol=1e-9)
    bollard = [0.02216 / 2 * 103.931**2, -0.01289 / 2 * 101.737**2]  # k n |n|
    np.testing.assert_allclose([OTTER.max_thrust, OTTER.min_thrust], bollard, atol=5e-3)
    table = np.interp(0.25 / (2 * 0.19512), [0.5585, 0.6464], [1.0836, 0.9986])  # Hoerner
    assert OTTER.cross_flow == pytest.approx(0.5 * 1026 * 0.19512 * table, rel=1e-4)
    speed = 6 * 0.5144  # m/s, its greatest
    assert OTTER.top_speed == pytest.approx(speed, rel=1e-3)
    ended = sail(OTTER, 400, OTTER.max_thrust, OTTER.max_thrust)
    assert motion_of(ended)[3] == pytest.approx(speed, rel=1e-3)


def test_cybership_2_holds_the_published_balance():
    """TUD_RL 92a34ba: the thrust that maintains 0.5 m/s, and Skjetne's mass matrix."""
    np.testing.assert_allclose(
        mass(CYBERSHIP2), [[25.8, 0, 0], [0, 33.8, 1.0948], [0, 1.0948, 2.76]], atol=1e-12
    )
    thrust = 0.5 * (0.72253 + 1.32742 * 0.5 + 5.86643 * 0.25)
    assert thrust == pytest.approx(1.42642375)
    held = motion_of(sail(CYBERSHIP2, 200, thrust / 2, thrust / 2, vx_water=0.5))
    assert held[3] == pytest.approx(0.5, abs=1e-12)
    most = (CYBERSHIP2.max_thrust - CYBERSHIP2.min_thrust) * CYBERSHIP2.thruster_spread
    assert (2 * CYBERSHIP2.max_thrust, most * CYBERSHIP2.width / 2) == pytest.approx((2.0, 0.15))


def test_the_heron_balances_its_quadratic_drag():
    ended = motion_of(sail(HERON, 1200, 24.0, 24.0))
    assert ended[3] == pytest.approx(math.sqrt(48.0 / 17.2576), rel=1e-6)


def test_the_wam_v_keeps_the_published_turning_of_the_frame():
    """A mass without damping that turns keeps its course if the frame's turning is counted once."""
    free = replace(VesselConfig(), x_u=0.0, x_uu=0.0, y_v=0.0, y_vv=0.0, n_r=0.0, n_rr=0.0)
    free = replace(free, x_dot_u=0.0, n_dot_r=0.0)
    start = {"vx_water": 1.0, "yaw_water": 0.5}
    once = motion_of(sail(replace(free, transport_term=True), 100, 0.0, 0.0, **start))
    np.testing.assert_allclose(once[3:], [1.0, 0.0, 0.5], atol=1e-12)
    twice = motion_of(sail(free, 100, 0.0, 0.0, **start))
    assert math.atan2(twice[4], twice[3]) == pytest.approx(-2.5, abs=0.1)  # of a heading of 2.5


@pytest.mark.parametrize("vessel", FURTHER, ids=lambda vessel: vessel.name)
def test_lanes_and_batches_leave_the_bits_alone(vessel):
    config = replace(eventful(), vessel=replace(vessel, radius=1.0))
    stages = (Stage(robots=4, vortices=2, buoys=2, min_distance_m=12.0),)
    many = record(MarineNavEnv(19, stages=stages, config=config, seed=4), 12)
    one = record(MarineNavEnv(1, stages=stages, config=config, seed=4, first_world=17), 12)
    assert_same_worlds(many, one, 17, 18)


def test_single_precision_follows_double_precision():
    config = quiet(EnvConfig(vessel=OTTER))
    ends = []
    for dtype in (torch.float32, torch.float64):
        env = MarineNavEnv(16, config=config, dtype=dtype, seed=1)
        env.reset_into(env.make_buffers())
        ends.append(decide(env, actions(env, 0)).obs.ego.double())
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-4)


def test_a_name_stands_for_a_vessel_and_for_what_is_left_out():
    assert build(EnvConfig, {"vessel": "otter"}).vessel == OTTER
    changed = build(EnvConfig, {"vessel": {"name": "otter", "max_thrust": 80.0}})
    assert changed.vessel == replace(OTTER, max_thrust=80.0)
    assert build(EnvConfig, {"vessel": {"mass": 390.0}}).vessel == VesselConfig(mass=390.0)
    for vessel in VESSELS.values():
        config = EnvConfig(vessel=vessel)
        assert build(EnvConfig, plain(config)) == config
        again = build(EnvConfig, {"vessel": {"dt": 0.04}}, base=config).vessel
        assert again == replace(vessel, dt=0.04)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("oter", r"vessel\.name is 'oter': choose one of wamv16, otter, cybership2, heron"),
        ({"name": "canoe"}, r"vessel\.name is 'canoe': choose one of"),
        ({"name": 3}, r"vessel\.name is 3"),
        ({"x_g": 3.0}, r"x_g is 3\.0: \(mass \* x_g\)\^2 = 1\.44e\+06 must be well below"),
        ({"x_g": -1e300}, r"x_g is -1e\+300: \(mass \* x_g\)\^2 = inf must be well below"),
        ({"x_uuu": 1.0}, r"x_uuu is 1\.0: give 0\.0 or less"),
        ({"cross_flow": -1.0}, r"cross_flow is -1\.0: give 0\.0 or more"),
        ({"thruster_spread": 0.0}, r"thruster_spread is 0\.0: give more than 0\.0"),
        ({"transport_term": 1}, r"transport_term is 1 \(int\): give true or false"),
    ],
)
def test_bad_vessels_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        build(EnvConfig, {"vessel": values})


def test_a_vessel_of_no_sensible_length_turns_at_some_rate():
    assert VesselConfig(length=1e100, cross_flow=1.0).top_yaw_rate == pytest.approx(0.0, abs=1e-9)
    assert VesselConfig(length=1e100).top_yaw_rate == VesselConfig().top_yaw_rate


def test_a_name_alone_makes_no_other_vessel():
    with pytest.raises(ConfigError, match=r"name is 'otter': .* take VESSELS\['otter'\]"):
        VesselConfig(name="otter")


def test_what_depends_on_a_vessel_follows_it():
    of = {name: marine_spec(EnvConfig(vessel=v), discrete=True) for name, v in VESSELS.items()}
    magnitudes = {name: spec.observation.ego.magnitudes[2:] for name, spec in of.items()}
    assert magnitudes["wamv16"] == (1.0, 1.0, 0.5, 500.0, 500.0)
    assert magnitudes["otter"] == pytest.approx((0.9, 0.9, 0.2, 59.84, 59.84))
    assert magnitudes["cybership2"] == (0.2, 0.2, 0.04, 0.5, 0.5)
    assert of["heron"].observation.own_radius == HERON.radius
    assert of["heron"].action.meaning["left_thrust_rates_n_per_s"] == (
        0.0,
        -10.0,
        -20.0,
        10.0,
        20.0,
    )
