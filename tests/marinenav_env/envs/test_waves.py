"""Waves: their force against the equations of docs/physics.md, their spectrum and their phases."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.water import WavesConfig
from tests.marinenav_env.rollouts import SPARSE, lone_vessel, motion_after_a_decision, roll

HEIGHT, PERIOD, DRAUGHT, LENGTH, MASS, GRAVITY, DT = 0.3, 3.0, 0.16, 5.0, 400.0, 9.81, 0.05
INERTIA = np.array([380.0, 400.0, 1430.0])
PHASES = np.array([0.3, 1.1, 2.9, 4.0, 5.5])

SHARES = (np.arange(5) + 0.5) / 5
FREQUENCY = 2.0 * math.pi / PERIOD * (-1.25 / np.log(SHARES)) ** 0.25
NUMBER = FREQUENCY**2 / GRAVITY
AMPLITUDE = HEIGHT / 4.0 * math.sqrt(2.0 / 5.0)


def wavy(direction: float = 0.0, height: float = HEIGHT) -> EnvConfig:
    """A configuration with waves that run in one direction."""
    waves = WavesConfig(height=height, period=PERIOD, direction=(direction, direction))
    return replace(EnvConfig(), waves=waves)


def force(relative_heading: float, phase: np.ndarray) -> np.ndarray:
    """Surge, sway and yaw [N, N, N m] on a slender hull, by the integral over its length."""
    ahead, abeam = math.cos(relative_heading), math.sin(relative_heading)
    slope = MASS * GRAVITY * AMPLITUDE * NUMBER * np.exp(-NUMBER * DRAUGHT / 2.0)
    points = (np.arange(2000) + 0.5) / 2000 * LENGTH - LENGTH / 2.0
    along = np.sin(phase + np.outer(points, NUMBER) * ahead).mean(0)
    # The moment is of first order in the wave number, as the equation says.
    moment = NUMBER * ahead * LENGTH**2 / 12.0 * np.cos(phase)
    return np.array([ahead * slope @ along, abeam * slope @ along, abeam * slope @ moment])


@pytest.mark.parametrize("direction", [0.0, math.pi, 0.5 * math.pi, 0.7, 4.0])
def test_force_is_the_integral_over_the_hull(direction):
    env = lone_vessel(wavy(direction), x=7.0, y=-3.0)
    env.state.wave[2:, 0] = torch.as_tensor(PHASES)
    place = 7.0 * math.cos(direction) - 3.0 * math.sin(direction)
    expected = force(direction, PHASES + NUMBER * place - FREQUENCY * DT) / INERTIA * DT
    assert motion_after_a_decision(env) == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_a_single_wave_has_the_size_of_a_hand_calculation():
    """The middle one: 0.0474 m at 2.427 rad/s, so k = 0.6005 /m and 107 N at most."""
    assert FREQUENCY[2] == pytest.approx(2.427, abs=5e-4)
    assert NUMBER[2] == pytest.approx(0.6005, abs=5e-5)
    alone = np.full(5, 0.0)
    alone[2] = 0.5 * math.pi
    env = lone_vessel(wavy(0.5 * math.pi))
    env.state.wave[2:, 0] = torch.as_tensor(alone + FREQUENCY * DT)
    sway = motion_after_a_decision(env)[1] * INERTIA[1] / DT
    assert sway == pytest.approx(106.5, abs=0.1)


def test_the_spectrum_has_its_significant_height():
    """Four standard deviations of the surface are the significant height."""
    assert 4.0 * math.sqrt(5 * AMPLITUDE**2 / 2.0) == pytest.approx(HEIGHT)


def test_force_turns_with_the_hull():
    env = lone_vessel(wavy(0.7), heading=1.9)
    env.state.wave[2:, 0] = torch.as_tensor(PHASES)
    surge, sway, yaw = force(0.7 - 1.9, PHASES - FREQUENCY * DT) / INERTIA * DT
    cos, sin = math.cos(1.9), math.sin(1.9)
    expected = (cos * surge - sin * sway, sin * surge + cos * sway, yaw)
    assert motion_after_a_decision(env) == pytest.approx(expected, rel=1e-5)


def test_phases_turn_with_the_decisions(device):
    """By the frequency times 0.5 s, within 0 and 2 pi, from phases that differ between worlds."""
    options = {"stages": (SPARSE,), "device": device, "dtype": torch.float64}
    env = MarineNavEnv(512, config=wavy(), **options)
    before, *_, after = (env.state.wave[2:, :512].cpu().numpy().copy() for _ in roll(env, 3))
    assert before.std(1) == pytest.approx(2.0 * math.pi / math.sqrt(12.0), rel=0.1)
    assert (after >= 0.0).all()
    assert (after < 2.0 * math.pi).all()
    turned = np.exp(1j * (before - after))
    expected = np.exp(1j * FREQUENCY * 1.5)[:, None] * np.ones(512)
    assert turned == pytest.approx(expected, abs=1e-9)
