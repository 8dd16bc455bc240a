"""Vessels that differ from the parameters: each factor against the same change of a parameter."""

from dataclasses import replace

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.faults import VariationConfig
from tests.marinenav_env.rollouts import CROWDED, SPARSE, decide, lone_vessel, quiet, roll

FACTORS = {
    "mass": ("mass", "izz"),
    "added_inertia": ("n_dot_r",),
    "surge_damping": ("x_u", "x_uu"),
    "sway_damping": ("y_v", "y_vv", "y_r", "y_rv", "y_vr", "y_rr"),
    "yaw_damping": ("n_r", "n_rr", "n_v", "n_vv", "n_rv", "n_vr"),
    "thrust_rate": ("max_thrust_rate",),
}
COUPLED = {"y_r": -10.0, "y_rv": -4.0, "y_vr": -5.0, "y_rr": -6.0, "n_v": -30.0, "n_vv": -3.0,
           "n_rv": -8.0, "n_vr": -7.0, "y_dot_r": -20.0, "n_dot_v": -25.0}  # fmt: skip


def states(config: EnvConfig, device: str) -> torch.Tensor:
    """Robots' states after 30 decisions in current, float64."""
    env = MarineNavEnv(
        3, stages=(CROWDED,), config=quiet(config), device=device, dtype=torch.float64
    )
    for _ in roll(env, 30):
        pass
    return env.state.robot.clone()


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_is_a_change_of_parameters(name, device):
    vessel = replace(EnvConfig().vessel, **COUPLED)
    base = replace(EnvConfig(), vessel=vessel)
    changed = {field: getattr(vessel, field) * 1.25 for field in FACTORS[name]}
    expected = states(replace(base, vessel=replace(vessel, **changed)), device)
    found = states(replace(base, variation=VariationConfig(**{name: (1.25, 1.25)})), device)
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(found, states(base, device), rtol=1e-3)


@pytest.mark.parametrize(("side", "yaw"), [("left", 1.0), ("right", -1.0)])
def test_a_thruster_gives_more(side, yaw):
    """A fifth of 50 N more on one side: 110 N ahead, and 10 N at 1.25 m."""
    variation = VariationConfig(**{f"{side}_thrust": (1.2, 1.2)})
    env = lone_vessel(replace(EnvConfig(), variation=variation))
    decide(env, torch.ones(1, 1, 2, dtype=torch.float64))
    surge, turn = (env.state.robot_field(f)[0, 0].item() for f in ("vx_water", "yaw_water"))
    assert surge == pytest.approx(110.0 / 380.0 * 0.05, rel=1e-12)
    assert turn == pytest.approx(yaw * 10.0 * 1.25 / 1430.0 * 0.05, rel=1e-12)


def test_factors_are_drawn_apart_for_every_world(device):
    ranges = dict.fromkeys(VariationConfig.__dataclass_fields__, (0.8, 1.2))
    config = replace(EnvConfig(), variation=VariationConfig(**ranges))
    env = MarineNavEnv(4096, stages=(SPARSE,), config=config, device=device)
    env.reset_into(env.make_buffers())
    factor = env.state.factor[:, :4096].cpu()
    assert (factor >= 0.8).all()
    assert (factor <= 1.2).all()
    assert factor.mean(1).numpy() == pytest.approx(1.0, abs=0.01)
    others = torch.corrcoef(factor).fill_diagonal_(0.0)
    assert others.abs().max() < 0.06
