"""Simulation-based model predictive control (Johansen et al. 2016; Hagen et al. 2018), scaled.

Each behaviour, an offset of the course to the goal with a factor of the speed, is simulated by the
core with the vessel's own motion and velocity controller in calm water, the others on straight
courses. The cheapest is begun. The published costs of a changed behaviour need a memory; they are
left out.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from marinenav_env.config import EnvConfig, ScenarioConfig
from marinenav_env.envs.observation import Observation
from marinenav_env.fields import ConfigError
from marinenav_env.kernel.plans import pack_costs, packed_params, plan_courses
from marinenav_env.vessels import VesselConfig
from train_RL_agents.evaluation.baselines.observed import BUOY_RADIUS, are_told_apart, flat
from train_RL_agents.evaluation.baselines.vessel import (
    TRACKING,
    VesselModel,
    action_for,
    hold_velocity,
)

LEAST_SPEED = 0.8
"""m/s, of the WAM-V 16: it slows down to this before its goal, as fast as it is far in metres."""
NO_BUOY = 1e-3
"""m, radius of a largest buoy that nothing is as small as."""
ANGLES = {"ahead_deg": 15.0, "overtaking_deg": 68.5, "head_on_deg": 22.5, "abeam_deg": 112.5}
"""deg, sectors of the rules: as in the authors' code, the last one after COLREGs rule 21."""


def offsets(largest: int, step: int) -> tuple[float, ...]:
    """Return offsets [deg] of the course from starboard to port."""
    return tuple(float(angle) for angle in range(largest, -largest - 1, -step))


class Settings(NamedTuple):
    """Horizon, behaviours and costs.

    Attributes:
        speed: wanted [m/s], of the WAM-V 16.
        horizon_s: predicted time.
        offsets_deg: of the course; of equals the first is begun.
        factors: of the speed.
        safe_m: beyond contact, below which nearness costs.
        close_m: within which the rules count.
        nearness_power: Q, a whole number.
        contact_m: beyond contact, what counts as one.
        contact_cost: over the time to it.
        rule_cost: kappa, of breaking a rule.
        rule_margin_m: the rules count so far beyond the safe distance.
        speed_cost: K_P, of slowing down.
        course_cost: K_chi, of turning off.
        way_cost: of each metre that a behaviour does not come nearer to the goal than the speed
            allows; not published. It ends stand-offs.
    """

    speed: float = 2.5
    horizon_s: float = 8.0
    offsets_deg: tuple[float, ...] = offsets(90, 15)
    factors: tuple[float, ...] = (1.0, 0.5, 0.0)
    safe_m: float = 2.0
    close_m: float = 20.0
    nearness_power: int = 4
    contact_m: float = 0.3
    contact_cost: float = 50.0
    rule_cost: float = 3.0
    rule_margin_m: float = 1.0
    speed_cost: float = 2.5
    course_cost: float = 1.3
    way_cost: float = 0.0


PUBLISHED = Settings()
"""Behaviours and costs of the authors, distances scaled to this vessel."""
TUNED = Settings(
    speed=1.75,
    horizon_s=10.0,
    offsets_deg=offsets(180, 30),
    factors=(1.0, 0.5, 0.0, -0.4),
    safe_m=4.0,
    nearness_power=3,
    contact_cost=200.0,
    rule_cost=1.0,
    speed_cost=0.5,
    course_cost=0.03,
)
"""From a random search for success over some 150 settings (docs/evaluation.md)."""


def sb_mpc(observation: Observation, model: VesselModel, settings: Settings = TUNED) -> Tensor:
    """Return actions [..., 2]."""
    ego = observation.ego
    courses, cost = _behaviours(settings, ego.dtype, ego.device)
    sight, lead = flat(observation)
    least, most = (model.speed_ratio * speed for speed in (LEAST_SPEED, settings.speed))
    params, costs = _params(model.vessel, most), _costs(model, settings)
    danger, remaining = plan_courses(params, costs, sight, courses)  # [C, N]
    total = danger + settings.way_cost * remaining + cost.unsqueeze(-1)
    best = courses[total.argmin(0)].reshape(*lead, 2)
    offset, factor = best.unbind(-1)
    course = torch.atan2(ego[..., 1], ego[..., 0]) + offset
    speed = factor * ego[..., :2].norm(dim=-1).clamp(min=least, max=most)
    desired = torch.stack((speed * course.cos(), speed * course.sin()), -1)
    return action_for(model, ego, hold_velocity(model, ego, desired))


@functools.cache
def _params(vessel: VesselConfig, speed: float) -> Tensor:
    """Return the environment that the core predicts in.

    The controller there has a thruster's lever from the width alone and knows no cubic damping, so
    both are put into what it knows; the damping is the same at the wanted speed [m/s]. Where sizes
    do not tell vessels from buoys, every object is a vessel, as large as the larger one of the two.
    """
    simulated = dataclasses.replace(
        vessel,
        width=vessel.width * vessel.thruster_spread,
        thruster_spread=1.0,
        x_uu=vessel.x_uu + vessel.x_uuu * speed,
        x_uuu=0.0,
    )
    scenario = ScenarioConfig()
    if not are_told_apart(vessel.radius):
        simulated = dataclasses.replace(simulated, radius=max(BUOY_RADIUS, vessel.radius))
        scenario = ScenarioConfig(buoy_radius_min=NO_BUOY, buoy_radius_max=NO_BUOY)
    return packed_params(EnvConfig(vessel=_coarser(simulated), scenario=scenario))


def _coarser(vessel: VesselConfig) -> VesselConfig:
    """Return a vessel with half the substeps, for speed; itself where its damping is too stiff."""
    substeps = math.ceil(vessel.substeps / 2)
    dt = vessel.dt * vessel.substeps / substeps
    try:
        return dataclasses.replace(vessel, dt=dt, substeps=substeps)
    except ConfigError:
        return vessel


@functools.cache
def _costs(model: VesselModel, settings: Settings) -> list[float]:
    """Return controller and costs for the core."""
    return pack_costs(
        settings._asdict()
        | TRACKING.for_thrusters(model.slowness)._asdict()
        | ANGLES
        | {
            "speed": settings.speed * model.speed_ratio,
            "least_speed": LEAST_SPEED * model.speed_ratio,
            "most_yaw_rate": model.most_yaw_rate,
            "least_surge": model.least_surge,
        }
    )


@functools.cache
def _behaviours(
    settings: Settings, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return offset [rad] and factor [C, 2] of each behaviour, and what it costs by itself [C]."""
    offsets = torch.tensor(settings.offsets_deg, dtype=dtype).deg2rad()
    factors = torch.tensor(settings.factors, dtype=dtype)
    courses = torch.cartesian_prod(offsets, factors)
    offset, factor = courses.unbind(-1)
    cost = settings.speed_cost * (1.0 - factor) + settings.course_cost * offset**2
    return courses.to(device), cost.to(device)
