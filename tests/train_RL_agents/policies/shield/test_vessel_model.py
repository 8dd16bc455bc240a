"""The shield's vessel model beside the C++ core."""

import dataclasses

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.stepper import Stepper
from marinenav_env.vessels import VESSELS, VesselConfig
from train_RL_agents.policies.shield.scene import start
from train_RL_agents.policies.shield.vessel_model import VesselModel

ALONE = Stage(robots=1, vortices=0, buoys=0, min_distance_m=30.0)
FULL_MODEL = VesselConfig(
    y_dot_v=-30.0, y_dot_r=15.0, n_dot_v=-12.0, y_r=-20.0, y_rv=-13.0, y_vr=9.0, y_rr=-7.0,
    n_v=-17.0, n_vv=8.0, n_rv=-11.0, n_vr=5.0, x_g=0.3, x_uuu=-9.0, cross_flow=20.0,
    thruster_spread=0.8, substeps=7,
)  # fmt: skip


def deviation(vessel: VesselConfig, decisions: int = 12, worlds: int = 16) -> float:
    """Return the largest deviation from the core, each decision predicted from an observation."""
    env = MarineNavEnv(
        worlds,
        stages=(ALONE,),
        config=dataclasses.replace(EnvConfig(), vessel=vessel),
        dtype=torch.float64,
        seed=3,
    )
    stepper = Stepper(env, restarts=False)
    stepper.reset()
    model, generator = VesselModel(vessel), torch.Generator().manual_seed(0)
    worst = torch.zeros((), dtype=torch.float64)
    for _ in range(decisions):
        ego = stepper.now.obs.ego.flatten(0, 1).clone()
        action = 2.0 * torch.rand(worlds, 1, 2, generator=generator, dtype=torch.float64) - 1.0
        rates = action.permute(2, 1, 0) * vessel.max_thrust_rate  # [2, 1, W]
        motion, path = model.decide(start(ego, 1), rates)
        stepper.step(action)
        stepper.advance()
        cos, sin = motion.heading[0].cos(), motion.heading[0].sin()
        dx, dy = ego[:, 0] - path[-1, 0, 0], ego[:, 1] - path[-1, 1, 0]
        vx, vy = motion.vx[0], motion.vy[0]
        predicted = torch.stack(
            (
                cos * dx + sin * dy,
                cos * dy - sin * dx,
                cos * vx + sin * vy,
                cos * vy - sin * vx,
                motion.yaw[0],
                motion.left[0],
                motion.right[0],
            ),
            -1,
        )
        worst = torch.maximum(worst, (predicted - stepper.now.obs.ego[:, 0]).abs().max())
    return worst.item()


@pytest.mark.parametrize("name", VESSELS)
def test_decisions_of_every_vessel_equal_the_cores(name):
    assert deviation(VESSELS[name]) < 1e-9


def test_every_coefficient_enters_as_in_the_core():
    assert deviation(FULL_MODEL) < 1e-9
