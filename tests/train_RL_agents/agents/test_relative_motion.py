"""Features of relative motion: cases worked out by hand, and what networks do on them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from marinenav_env.envs.icra2024 import Icra2024Config, icra2024_spec
from marinenav_env.fields import ConfigError
from tests.train_RL_agents.agent_samples import (
    HISTORY,
    MARINE,
    flat_spec,
    main_loss,
    make_agent,
    random_batch,
    random_observation,
)
from train_RL_agents.agents.encoders import (
    RelativeMotionEncoder,
    TwoListRelativeMotionEncoder,
    make_encoder,
)
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.agents.relative_motion import OwnMotion

NAMES = [
    *("ahead", "starboard", "w_x", "w_y", "v_x", "v_y", "clearance", "near", "far", "tcpa"),
    *("passing", "tight", "soon", "side", "vessel"),
]
OWN_RADIUS, BUOY_RADIUS = 2.8, 1.0
LISTS = icra2024_spec(Icra2024Config(), discrete=True, stack_k=2)


def describe(*, u=0.0, v=0.0, x=0.0, y=0.0, vx=0.0, vy=0.0, radius=2.0):
    """Return the features of one object by name, as the encoder works them out."""
    encoder = RelativeMotionEncoder(replace(MARINE, own_radius=OWN_RADIUS, buoy_radius=BUOY_RADIUS))
    encoder.object_encoder = encoder.self_encoder = torch.nn.Identity()
    ego, objects, mask = (torch.zeros(1, *shape) for shape in MARINE.shapes)
    ego[0, 2:4] = torch.tensor([u, v])
    objects[0, 0], mask[0, 0] = torch.tensor([x, y, vx, vy, radius]), 1.0
    own = encoder.own_motion.features
    values = encoder((ego, objects, mask))[0, own : own + len(NAMES)]
    return dict(zip(NAMES, values.tolist(), strict=True))


def test_vessels_that_meet_head_on():
    seen = describe(u=1.9, x=20.0, vx=-1.9)
    # They close 20 m at 3.8 m/s, which counts as 4.0: 3.8 * 20 / 16 = 4.75 s.
    assert seen["tcpa"] == pytest.approx(0.475)
    assert seen["clearance"] == pytest.approx((20.0 - 5.6) / 20.0)
    assert seen["far"] == pytest.approx(math.exp(-14.4 / 5.0))
    assert seen["passing"] == pytest.approx((20.0 - 3.8 * 4.75 - 5.6) / 20.0)
    assert seen["tight"] == pytest.approx(math.e)  # an overlap of 3.65 m counts as 1 m
    assert seen["soon"] == pytest.approx(math.e * math.exp(-4.75 / 3.0))
    assert (seen["ahead"], seen["starboard"], seen["side"], seen["vessel"]) == (1, 0, 0, 1)
    assert (seen["w_x"], seen["v_x"]) == pytest.approx((-3.8 / 3.0, -1.9 / 3.0))


def test_an_object_that_draws_away_is_closest_now():
    seen = describe(u=1.0, x=-6.0, y=8.0, vx=-1.0)
    assert seen["tcpa"] == 0.0
    assert seen["passing"] == pytest.approx(seen["clearance"])
    assert (seen["ahead"], seen["starboard"]) == pytest.approx((-0.6, 0.8))


@pytest.mark.parametrize(("y", "sign"), [(4.0, 1.0), (-4.0, -1.0)])
def test_the_side_on_which_an_object_passes(y, sign):
    seen = describe(u=3.0, x=10.0, y=y)
    # The line of the relative motion passes 4 m off; 3.0 m/s count as 3.2.
    assert seen["side"] == pytest.approx(sign * 4.0 * 3.0 / 3.2 / 20.0)


def test_a_buoy_has_the_radius_that_is_seen_and_a_vessel_its_hull():
    buoy, vessel = describe(x=10.0, radius=0.8), describe(x=10.0, radius=1.7)
    assert (buoy["vessel"], vessel["vessel"]) == (0.0, 1.0)
    assert buoy["clearance"] == pytest.approx((10.0 - 0.8 - 2.8) / 20.0)
    assert vessel["clearance"] == pytest.approx((10.0 - 2.8 - 2.8) / 20.0)


def test_the_way_to_the_goal():
    ego = torch.tensor([[3.0, 4.0, 3.0, 0.0, 0.5, 500.0, -500.0]])
    expected = [0.6, 0.8, 5 / 40, math.exp(-1.0), 1.0, 0.0, 0.6, -0.8, 0.5, 0.5, -0.5]
    torch.testing.assert_close(OwnMotion((1.0, 1000.0, 1000.0))(ego), torch.tensor([expected]))
    torch.testing.assert_close(OwnMotion(())(ego[:, :4]), torch.tensor([expected[:8]]))


@pytest.mark.parametrize("spec", [MARINE, HISTORY])
def test_the_encoder_reads_every_number_and_no_padding(spec):
    encoder = RelativeMotionEncoder(spec)
    observation = random_observation(9, spec=spec)
    features = encoder(observation)
    assert features.shape == (9, encoder.features)
    padded = observation._replace(
        objects=observation.objects + (1.0 - observation.mask).unsqueeze(-1)
    )
    torch.testing.assert_close(encoder(padded), features)
    for column in range(observation.ego.shape[-1]):
        other = observation.ego.clone()
        other[:, column] += 1.0
        assert not torch.allclose(encoder(observation._replace(ego=other)), features)
    for column in range(observation.objects.shape[-1]):
        objects = observation.objects.clone()
        objects[..., column] += 1.0
        assert not torch.allclose(encoder(observation._replace(objects=objects)), features)


def test_frames_are_described_one_by_one():
    encoder = RelativeMotionEncoder(HISTORY)
    observation = random_observation(4, spec=HISTORY)
    one, rows = RelativeMotionEncoder(MARINE), MARINE.rows
    one.object_encoder.load_state_dict(encoder.object_encoder.state_dict())
    older = observation._replace(
        ego=observation.ego[:, 7:],
        objects=observation.objects[:, rows:],
        mask=observation.mask[:, rows:],
    )
    width = rows * 40
    torch.testing.assert_close(encoder(observation)[:, -width:], one(older)[:, -width:])


@pytest.mark.parametrize(
    ("name", "spec"), [*((name, None) for name in AGENTS), ("DQN", LISTS), ("IQN", LISTS)]
)
def test_every_agent_learns_on_it(name, spec):
    agent = make_agent(name, encoder="relative_motion", spec=spec)
    before = [p.clone() for p in agent.policy_network.encoder.parameters()]
    metrics = agent.update(random_batch(agent, 16))
    assert main_loss(metrics).isfinite()
    after = agent.policy_network.encoder.parameters()
    assert all(not torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_it_can_be_scripted_in_float64():
    encoder = make_encoder(MARINE, "relative_motion").double()
    observation = random_observation(5, dtype=torch.float64)
    scripted = torch.jit.script(encoder)
    torch.testing.assert_close(scripted(tuple(observation)), encoder(observation))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_buoy_is_none_less_for_its_rounding(dtype):
    """In float32 it is a little larger than 1.2 m, also where a network counts in float64."""
    encoder = make_encoder(replace(MARINE, buoy_radius=1.2), "relative_motion").to(dtype)
    observation = random_observation(1)
    observation[1][0, :, 4], observation[2][:] = torch.tensor(1.2), 1.0
    _, motion, _ = encoder.inputs(tuple(part.to(dtype) for part in observation))
    assert motion[..., NAMES.index("vessel")].unique().tolist() == [0.0]


def test_magnitudes_and_other_observations_are_refused():
    with pytest.raises(ConfigError, match=r"ego_magnitude.*encoder=published"):
        make_agent("DQN", encoder="relative_motion", ego_magnitude=(1.0,) * 7)
    with pytest.raises(ConfigError, match=r"'relative_motion'.*no list of objects"):
        make_agent("DQN", encoder="relative_motion", spec=flat_spec("DQN", (1.0,) * 4, 3))
    with pytest.raises(ConfigError, match=r"encoder.*'relative_motoin'"):
        make_agent("DQN", encoder="relative_motoin")


def test_buoys_and_robots_of_two_lists():
    encoder = make_encoder(LISTS.observation, "relative_motion")
    assert isinstance(encoder, TwoListRelativeMotionEncoder)
    for part in ("self_encoder", "static_encoder", "dynamic_encoder"):
        setattr(encoder, part, torch.nn.Identity())
    ego, static, dynamic = (torch.zeros(1, *shape) for shape in LISTS.observation.shapes)
    ego[0, 2] = 1.5  # m/s ahead, in the newest frame
    static[0, 1] = torch.tensor([10.0, 0.0, 1.0])
    dynamic[0, 0] = torch.tensor([0.0, -6.0, 0.0, 2.0])
    static[0, 5:], dynamic[0, 5:] = 3.0, 4.0  # what an older frame shows is not looked at
    features = encoder((ego, static, dynamic))[0, 2 * 8 :].view(2, 5, len(NAMES))
    buoy = dict(zip(NAMES, features[0, 1].tolist(), strict=True))
    robot = dict(zip(NAMES, features[1, 0].tolist(), strict=True))
    assert (buoy["vessel"], robot["vessel"]) == (0.0, 1.0)
    assert buoy["clearance"] == pytest.approx((10.0 - 1.0 - 0.8) / 20.0)
    assert robot["clearance"] == pytest.approx((6.0 - 1.6) / 20.0)
    assert buoy["w_x"] == pytest.approx(-0.5)
    # -(0, -6) (-1.5, 2) = 12, and 2.5 m/s count as 2.7.
    assert robot["tcpa"] == pytest.approx(12.0 / 2.7**2 / 10.0)
    features[0, 1], features[1, 0] = 0.0, 0.0
    assert not features.any()  # padding says nothing


def test_two_lists_can_be_scripted_in_float64():
    encoder = make_encoder(LISTS.observation, "relative_motion").double()
    observation = tuple(part.double() for part in random_observation(5, spec=LISTS.observation))
    torch.testing.assert_close(torch.jit.script(encoder)(observation), encoder(observation))
