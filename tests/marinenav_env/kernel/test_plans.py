"""The operators that look ahead, beside a NumPy model that takes one vessel at a time."""

import dataclasses

import numpy as np
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.kernel import plans as core
from marinenav_env.vessels import VesselConfig
from tests.marinenav_env import look_ahead

OPS = torch.ops.marinenav
OTHER_VESSEL = VesselConfig(
    y_dot_v=-30.0, y_dot_r=15.0, n_dot_v=-12.0, y_r=-20.0, y_rv=-13.0, y_vr=9.0, y_rr=-7.0,
    n_v=-17.0, n_vv=8.0, n_rv=-11.0, n_vr=5.0, substeps=7, dt=0.06, max_thrust=900.0,
)  # fmt: skip
CONFIGS = (EnvConfig(), dataclasses.replace(EnvConfig(), vessel=OTHER_VESSEL))
COSTS = {
    "horizon_s": 2.5, "speed": 2.2, "least_speed": 0.8, "lead": 0.35, "course": 0.83,
    "yaw_s": 0.6, "surge_s": 0.57, "most_yaw_rate": 0.95, "least_surge": -1.0, "safe_m": 2.0,
    "close_m": 9.0, "nearness_power": 3, "contact_m": 0.3, "contact_cost": 50.0, "rule_cost": 300.0,
    "rule_margin_m": 2.0, "ahead_deg": 15.0, "overtaking_deg": 68.5, "head_on_deg": 22.5,
    "abeam_deg": 112.5,
}  # fmt: skip


def situations(count: int, dtype=torch.float64, device="cpu") -> core.Sight:
    """Random observations: goals near and far, buoys and vessels, some places empty."""
    generator = torch.Generator().manual_seed(7)

    def uniform(*shape):
        return 2.0 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 1.0

    goal = uniform(count, 2) * 20.0 * torch.rand(count, 1, generator=generator)
    motion = uniform(count, 3) * torch.tensor([3.0, 0.5, 0.8])
    ego = torch.cat((goal, motion, 250.0 + 750.0 * uniform(count, 2)), 1)
    radius = torch.where(uniform(count, 5, 1) < 0.0, 0.9, 2.5)
    objects = torch.cat((10.0 * uniform(count, 5, 2), 2.0 * uniform(count, 5, 2), radius), -1)
    mask = (uniform(count, 5) < 0.5).double()
    parts = (ego, objects * mask.unsqueeze(-1), mask)
    return tuple(part.to(device=device, dtype=dtype).contiguous() for part in parts)


def actions(plans: int, count: int, *, discrete: bool, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(8)
    if discrete:
        return torch.randint(25, (plans, count), generator=generator)
    drawn = 2.4 * torch.rand(plans, count, 2, generator=generator, dtype=torch.float64) - 1.2
    return drawn.to(dtype)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("config", CONFIGS, ids=["published", "other"])
def test_plans_are_those_of_the_numpy_model(config, discrete):
    """Two actions in turn; then what is seen, half of it hidden and all of it 0.4 m closer."""
    count, params = 19, core.packed_params(config)
    sight = situations(count)
    held = actions(4, count, discrete=discrete).view(2, 2, count, -1)
    held = held.squeeze(-1) if discrete else held
    shown = (torch.arange(count * 5).view(count, 5) % 2 == 0) & (sight[2] > 0.5)
    plans = core.Plans.like(sight, 2)
    core.plan_actions(params, sight, held[0].contiguous(), plans, first=0, decisions=2)
    ego, objects, mask = core.plan_and_observe(
        params, sight, held[1].contiguous(), plans, shown, closer=0.4, first=2, decisions=1
    )
    arrivals = 0
    for plan, n in np.ndindex(2, count):
        vessel = look_ahead.Vessel(config, *(part[n].numpy() for part in sight))
        clear = [look_ahead.plan(vessel, held[0, plan, n].numpy(), 2)]
        clear.append(look_ahead.plan(vessel, held[1, plan, n].numpy(), 1))
        np.testing.assert_allclose(plans.clearance[plan, n], np.minimum(*clear), atol=1e-9)
        left = 0.0 if vessel.arrived else vessel.distance()
        np.testing.assert_allclose(plans.remaining[plan, n], left, atol=1e-9)
        own, rows = vessel.seen(shown[n], 0.4)
        np.testing.assert_allclose(ego[plan, n], own, atol=1e-9)
        assert mask[plan, n].tolist() == [1.0] * len(rows) + [0.0] * (5 - len(rows))
        rows += [[0.0] * 5] * (5 - len(rows))
        np.testing.assert_allclose(objects[plan, n], rows, atol=1e-9)
        arrivals += vessel.arrived
    assert 0 < arrivals < 2 * count


@pytest.mark.parametrize("config", CONFIGS, ids=["published", "other"])
def test_courses_are_those_of_the_numpy_model(config):
    sight = situations(40)
    courses = torch.tensor([[0.0, 1.0], [-0.7, 1.0], [1.5, 0.5], [0.2, -0.5]], dtype=torch.float64)
    params = core.packed_params(config)
    danger, remaining = core.plan_courses(params, core.pack_costs(COSTS), sight, courses)
    for c, n in np.ndindex(4, 40):
        vessel = look_ahead.Vessel(config, *(part[n].numpy() for part in sight))
        worst, left = look_ahead.follow(vessel, *courses[c].tolist(), COSTS)
        np.testing.assert_allclose(danger[c, n], worst, rtol=1e-8, err_msg=f"{c} {n}")
        np.testing.assert_allclose(remaining[c, n], left, atol=1e-9)
    lawless = core.pack_costs(COSTS | {"rule_cost": 0.0})
    broken = danger > core.plan_courses(params, lawless, sight, courses)[0]
    assert all(kind.any() for kind in (broken, danger == 0.0, danger > 50.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_vessel_depends_on_its_neighbours_and_float32_is_near(dtype, device):
    params, costs = core.packed_params(EnvConfig()), core.pack_costs(COSTS)
    exact, sight = situations(37), situations(37, dtype, device)
    held = actions(3, 37, discrete=False, dtype=dtype).to(device)
    courses = torch.tensor([[0.4, 1.0]] * 5 + [[-0.4, 0.5]], dtype=dtype, device=device)

    def run(sight, held):
        plans = core.Plans.like(sight, 3)
        core.plan_actions(params, sight, held, plans, first=0, decisions=3)
        return [*plans, *core.plan_courses(params, costs, sight, courses)]

    whole = run(sight, held)
    for n in (0, 20, 36):
        alone = run(tuple(part[n : n + 1] for part in sight), held[:, n : n + 1].contiguous())
        for one, all_ in zip(alone, whole, strict=True):
            axis = 2 if one.dim() == 3 and one.shape[0] == core.MOTION_ROWS else 1
            assert torch.equal(one, all_.narrow(axis, n, 1))
    assert torch.equal(whole[-1][:1].expand(5, -1), whole[-1][:5])
    double = core.Plans.like(exact, 3)
    core.plan_actions(params, exact, held.cpu().double(), double, first=0, decisions=3)
    torch.testing.assert_close(whole[1].cpu().double(), double.clearance, atol=1e-3, rtol=1e-4)


def test_opcheck(device):
    params, sight = core.packed_params(EnvConfig()), situations(5, torch.float32, device)
    plans = core.Plans.like(sight, 2)
    held = actions(2, 5, discrete=False, dtype=torch.float32).to(device)
    shown = sight[2] > 0.5
    seen = [part.new_empty(2, *part.shape) for part in sight]
    for entries, mask in (([], None), (seen, shown)):
        torch.library.opcheck(
            OPS.plan_actions.default,
            ("marine", list(sight), held, list(plans), entries, mask, params, 0.0, 0, 2),
        )
    courses = torch.zeros(3, 2, device=device)
    results = (torch.empty(3, 5, device=device), torch.empty(3, 5, device=device))
    arguments = ("marine", list(sight), courses, *results, params, core.pack_costs(COSTS))
    torch.library.opcheck(OPS.plan_courses.default, arguments)


def test_errors_name_the_argument():
    params, sight = core.packed_params(EnvConfig()), situations(5)
    plans, held = core.Plans.like(sight, 2), actions(2, 5, discrete=False)

    def run(sight=sight, held=held, plans=plans, env="marine", first=0, params=params):
        arguments = (list(sight), held, list(plans), [], None, params, 0.0, first, 1)
        OPS.plan_actions(env, *arguments)

    with pytest.raises(RuntimeError, match=r"`objects` has shape \[5, 4, 5\], expected \[5, 5, 5"):
        run(sight=(sight[0], sight[1][:, 1:].contiguous(), sight[2]))
    with pytest.raises(RuntimeError, match="`mask` has dtype Float, expected Double"):
        run(sight=(*sight[:2], sight[2].float()))
    with pytest.raises(RuntimeError, match="`ego` has dtype Half, expected float32 or float64"):
        run(sight=tuple(part.half() for part in sight))
    with pytest.raises(RuntimeError, match=r"`action` has shape \[2, 5\], expected"):
        run(held=held[..., 0].contiguous())
    with pytest.raises(RuntimeError, match=r"`action` has shape \[1, 5\], expected contiguous"):
        run(held=actions(1, 5, discrete=True))
    with pytest.raises(RuntimeError, match="`first` is -1"):
        run(first=-1)
    with pytest.raises(RuntimeError, match="`cartpole` has no vessels that look ahead"):
        run(env="cartpole")
    with pytest.raises(RuntimeError, match="`icra2024` has no vessels that look ahead"):
        run(env="icra2024")
    with pytest.raises(RuntimeError, match="`params` has"):
        run(params=params[1:])
    costs = core.pack_costs(COSTS)
    for wrong in (costs[1:], [*costs, 0.0]):
        with pytest.raises(RuntimeError, match="`costs` has"):
            core.plan_courses(params, wrong, sight, torch.zeros(1, 2, dtype=torch.float64))
    with pytest.raises(KeyError, match="abeam_deg"):
        core.pack_costs({k: v for k, v in COSTS.items() if k != "abeam_deg"})
