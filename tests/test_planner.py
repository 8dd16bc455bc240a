"""docs/examples/planner.py, driven by a recorded episode, acts as the checkpoint does."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest
import torch

from marinenav_env.episodes.format import read_episode
from marinenav_env.episodes.tracks import tracks_of
from tests.conftest import ROOT, load_file
from tests.train_RL_agents.policy_samples import EPISODES, OUTPUTS, export_policy, save_policy
from train_RL_agents.agents.shield_settings import ShieldConfig
from train_RL_agents.policies.load import load_policy
from train_RL_agents.policies.shield.acting import shield_agent

example = load_file(ROOT / "docs" / "examples" / "planner.py")


@pytest.fixture(scope="module")
def tracks():
    return tracks_of(read_episode(EPISODES / "calm_policy_5r_4o.json"))


def planner_of(tmp_path, name, **settings):
    path = save_policy(tmp_path / "policy.pt", name, **settings)
    return example.Planner(export_policy(path)), load_policy(path)[0].double()


def on_the_chart(tracks, step, robot):
    """Return the arguments of a planner: what robot `robot` saw, on a chart with x to the east."""
    row = tracks.robot[step, 0, robot].tolist()
    own = dict(zip(tracks.fields, row, strict=True))
    heading = own["heading"]  # clockwise from north
    cos, sin = math.cos(heading), math.sin(heading)
    ahead = cos * own["vx"] + sin * own["vy"]
    aside = cos * own["vy"] - sin * own["vx"]
    vessel = example.Vessel(
        east=own["y"],
        north=own["x"],
        yaw=math.pi / 2 - heading,
        surge=ahead,
        sway=-aside,
        yaw_rate=-own["yaw"],
        left_thrust=own["left_thrust"],
        right_thrust=own["right_thrust"],
    )
    contacts = []
    _, objects, mask = (part[step, 0, robot] for part in tracks.observation)
    for x, y, vx, vy, radius in objects[mask > 0.5].tolist():
        contacts.append(
            example.Contact(
                east=own["y"] + sin * x + cos * y,
                north=own["x"] + cos * x - sin * y,
                east_velocity=sin * vx + cos * vy,
                north_velocity=cos * vx - sin * vy,
                radius=radius,
            )
        )
    return vessel, (own["goal_y"], own["goal_x"]), contacts[::-1]


@torch.no_grad()
def assert_follows(planner, agent, act, tracks, steps, within=1e-6):
    """Let the planner act for every vessel of recorded moments: the thrusts of `act`, in N."""
    decision = 0.5
    for step in steps:
        for robot in torch.nonzero(tracks.acted[step, 0]).flatten().tolist():
            vessel, goal, contacts = on_the_chart(tracks, step, robot)
            seen = planner.observe(vessel, goal, contacts)
            recorded = [part[step, 0, robot] for part in tracks.observation]
            for found, expected in zip(seen, recorded, strict=True):
                torch.testing.assert_close(found[0], expected, rtol=0.0, atol=1e-7)
            action = act(type(tracks.observation)(*seen))[0]
            if agent.discrete:
                choices = (0.0, -500.0, -1000.0, 500.0, 1000.0)
                rates = choices[int(action) // 5], choices[int(action) % 5]
            else:
                rates = (1000.0 * action).tolist()
            thrusts = planner.thrusts(vessel, goal, contacts, elapsed=decision)
            before = vessel.left_thrust, vessel.right_thrust
            expected = [
                min(max(thrust + rate * decision, -500.0), 1000.0)
                for thrust, rate in zip(before, rates, strict=True)
            ]
            assert thrusts == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("name", OUTPUTS)
def test_it_sees_and_does_what_the_checkpoint_does(tmp_path, tracks, name):
    planner, agent = planner_of(tmp_path, name)
    act = functools.partial(agent.act, mean=True)
    assert_follows(planner, agent, act, tracks, range(0, 40, 8))


@pytest.mark.parametrize("name", ["AC-IQN", "SAC", "Rainbow"])
def test_a_file_with_a_shield_is_called_as_without(tmp_path, tracks, name):
    path = save_policy(tmp_path / "policy.pt", name)
    planner = example.Planner(export_policy(path, "torchscript", "--shield", "margin_m=3"))
    agent, config = load_policy(path)
    bare = functools.partial(agent.double().act, mean=True)
    guarded = shield_agent(agent, config, ShieldConfig(margin_m=3.0), bare)
    changed = []

    def act(observation):
        action = guarded(observation)
        changed.append(not torch.equal(action, bare(observation)))
        return action

    # A Gaussian's mean leaves the file unbounded, and rounds near the ends of (-1, 1).
    within = 0.3 if agent.stochastic else 1e-6
    assert_follows(planner, agent, act, tracks, range(0, 40, 16), within)
    assert 0 < sum(changed) < len(changed)


def test_what_the_policy_does_not_have_in_view_is_left_out(tmp_path):
    narrow = {"perception": {"angle": math.pi}}
    path = export_policy(save_policy(tmp_path / "policy.pt", "DDPG", env=narrow))
    planner, vessel = example.Planner(path), example.Vessel(*[0.0] * 8)  # faces east
    ahead, astern = (example.Contact(east, 1.0, 0.0, 0.0, 1.0) for east in (8.0, -8.0))
    _, objects, mask = planner.observe(vessel, (20.0, 0.0), [ahead, astern])
    assert (mask.tolist(), objects[0, 0, 0].item()) == ([[1.0, 0.0, 0.0, 0.0, 0.0]], 8.0)


def test_the_network_is_warm_before_the_first_decision(tmp_path, monkeypatch):
    path, calls = export_policy(save_policy(tmp_path / "policy.pt", "IQN")), []
    rates = example.Planner.rates

    def counted(planner, observation):
        calls.append([part.shape for part in observation])
        return rates(planner, observation)

    monkeypatch.setattr(example.Planner, "rates", counted)
    example.Planner(path)
    assert calls == [[(1, 7), (1, 5, 5), (1, 5)]] * example.WARM_UP_CALLS


def test_what_is_out_of_range_is_not_seen(tmp_path, tracks):
    planner, _ = planner_of(tmp_path, "DQN")
    vessel, goal, _ = on_the_chart(tracks, 0, 0)

    def mask(distance, count=1):
        east, north = vessel.east + distance, vessel.north
        contact = example.Contact(east, north, 0.0, 0.0, radius=1.0)
        return planner.observe(vessel, goal, [contact] * count)[2].sum()

    assert (mask(20.9), mask(21.1), mask(5.0, count=7)) == (1, 0, 5)


def test_it_remembers_on_the_way_to_a_goal(tmp_path, tracks, monkeypatch):
    """Three decisions, of the first one all three; after another goal it begins anew."""
    planner, agent = planner_of(tmp_path, "DDPG", stack_k=3)
    called, rates = [], planner.rates

    def kept(observation):
        called.append(observation)
        return rates(observation)

    monkeypatch.setattr(planner, "rates", kept)

    def decide(step, other_goal=()):
        vessel, goal, contacts = on_the_chart(tracks, step, 0)
        planner.thrusts(vessel, other_goal or goal, contacts, elapsed=0.5)

    def assert_sees(*steps, within=1e-7):
        parts = [torch.cat([part[i, :1, 0] for i in steps], 1) for part in tracks.observation]
        for found, expected in zip(called[-1], parts, strict=True):
            torch.testing.assert_close(found, expected, rtol=0.0, atol=within)
        action = agent.act(type(tracks.observation)(*parts))[0]
        assert rates(called[-1]) == pytest.approx((1000.0 * action).tolist(), abs=1e-2)

    for steps in ((0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 1)):
        decide(steps[0])
        assert_sees(*steps)
    goal = list(on_the_chart(tracks, 4, 0)[1])
    decide(4, [goal[0] + 1e-6, goal[1]])  # the same goal, by other roundings
    assert_sees(4, 3, 2, within=1e-5)
    goal[0] += 50.0
    decide(4, goal)
    goal[0] -= 50.0
    decide(5, goal)
    assert_sees(5, 5, 5)
    vessel, goal, contacts = on_the_chart(tracks, 5, 0)
    planner.thrusts(vessel, (vessel.east, vessel.north + 1.0), contacts, elapsed=0.5)
    assert planner.past == []


def test_late_decisions_and_the_goal(tmp_path, tracks):
    planner, _ = planner_of(tmp_path, "AC-IQN")
    vessel, goal, contacts = on_the_chart(tracks, 12, 0)
    on_time = planner.thrusts(vessel, goal, contacts, elapsed=0.5)
    assert planner.thrusts(vessel, goal, contacts, elapsed=2.0) == on_time
    half = planner.thrusts(vessel, goal, contacts, elapsed=0.25)
    assert half[0] == pytest.approx((vessel.left_thrust + on_time[0]) / 2, abs=1e-6)
    there = vessel.east + 1.0, vessel.north
    moving = dataclasses.replace(vessel, left_thrust=-300.0, right_thrust=900.0)
    assert planner.thrusts(moving, there, contacts, elapsed=0.5) == pytest.approx((0.0, 400.0))


def test_what_it_refuses(tmp_path):
    planner_of(tmp_path, "DQN")
    exported = tmp_path / "policy.torchscript.pt"
    content = bytearray(exported.read_bytes())
    content[len(content) // 2] ^= 1
    exported.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        example.Planner(exported)


def test_an_onnx_file_is_refused(tmp_path):
    exported = export_policy(save_policy(tmp_path / "policy.pt", "DQN"), "onnx")
    message = r"policy\.onnx is no TorchScript file: export with --format torchscript"
    with pytest.raises(ValueError, match=message):
        example.Planner(exported)
    with pytest.raises(SystemExit, match=message):
        load_file(ROOT / "docs" / "examples" / "latency.py").main(exported)


def test_no_thrust_follows_from_numbers_that_are_none(tmp_path):
    planner, _ = planner_of(tmp_path, "DQN")
    vessel, buoy = example.Vessel(*[0.0] * 8), example.Contact(9.0, 9.0, 0.0, 0.0, 1.0)
    arguments = {"vessel": vessel, "goal": (20.0, 0.0), "contacts": (buoy,), "elapsed": 0.5}
    assert planner.thrusts(**arguments)
    for changed, message in (
        ({"goal": (math.nan, 40.0)}, "goal is"),
        ({"vessel": dataclasses.replace(vessel, surge=math.inf)}, "vessel is"),
        ({"contacts": (buoy, dataclasses.replace(buoy, radius=math.nan))}, r"contacts\[1\] is"),
        ({"contacts": (dataclasses.replace(buoy, radius=-1.0),)}, "a radius is negative"),
        ({"elapsed": -1.0}, "elapsed is -1.0"),
        (
            {"vessel": dataclasses.replace(vessel, left_thrust=99999.0)},
            "left_thrust is 99999.0: give -500.0 to 1000.0 N, the limits of the policy's vessel",
        ),
        ({"vessel": dataclasses.replace(vessel, right_thrust=-502.0)}, "right_thrust is -502.0"),
    ):
        with pytest.raises(ValueError, match=message):
            planner.thrusts(**{**arguments, **changed})
    rounded = dataclasses.replace(vessel, left_thrust=1000.01, right_thrust=-500.01)
    assert planner.thrusts(**{**arguments, "vessel": rounded})


def test_a_policy_of_another_task_is_refused(tmp_path):
    path = save_policy(tmp_path / "policy.pt", "DQN", task="icra2024", env={})
    with pytest.raises(ValueError, match="acts in the task icra2024: this planner observes as in"):
        example.Planner(export_policy(path))
