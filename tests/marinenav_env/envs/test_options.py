"""Options of the simulator, each by its effect."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from marinenav_env.config import EnvConfig
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import Stage
from marinenav_env.envs.state import STATS, Slots
from tests.marinenav_env.rollouts import (
    CROWDED,
    SPARSE,
    actions,
    decide,
    eventful,
    quiet,
    record,
    roll,
    same_bits,
)

DRIFTING = Stage(robots=2, vortices=4, buoys=0, min_distance_m=20.0)


class OnlyOwnOperators(TorchDispatchMode):
    """Fails on every operator but the simulator's: the others are what allocates and copies."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func.namespace == "marinenav", f"{func} was called"
        return func(*args, **(kwargs or {}))


def assert_same_records(a: dict, b: dict, but: Sequence[str] = ()) -> None:
    """Two records have the same bits."""
    assert a.keys() == b.keys()
    for name in a.keys() - set(but):
        assert same_bits(a[name], b[name]), name


# ---- info_mode ---------------------------------------------------------------------------------


def test_info_mode_decides_what_is_reported_not_what_happens(device):
    envs = {
        mode: MarineNavEnv(
            20, stages=(CROWDED,), config=eventful(), device=device, info_mode=mode, seed=3
        )
        for mode in ("full", "stats", "none")
    }
    records = {mode: record(env, 80) for mode, env in envs.items()}
    assert_same_records(records["full"], records["stats"])
    assert_same_records(records["full"], records["none"])
    assert envs["full"].read_stats()[0, STATS.index("episodes")] > 20
    assert torch.equal(envs["full"].read_stats(), envs["stats"].read_stats())
    assert envs["none"].state.stats.numel() == 0
    assert (envs["none"].outcome["length"] > 0).all(), "outcomes are kept in every mode"


def test_full_info_reports_each_robot(device):
    """Progress, energy, phi and contact of the decision, under ("robots", "info")."""
    env = MarineNavEnv(30, stages=(CROWDED,), config=eventful(), device=device, info_mode="full")
    env.set_seed(1)
    assert set(env.observation_spec["robots", "info"].keys()) == set(env.info_fields)
    before = env.reset()
    before["robots", "action"] = actions(env, 0)
    after = env.step(before)["next"]
    info = after["robots", "info"]
    goal = [td["robots", "self"][..., :2].norm(dim=-1) for td in (before, after)]
    acted = before["robots", "alive"]
    torch.testing.assert_close(
        info["progress"][acted], (goal[0] - goal[1])[acted], atol=1e-4, rtol=0
    )
    thrust = after["robots", "self"][..., 5:].abs().sum(-1)
    torch.testing.assert_close(info["step_energy"][acted], 0.5 * thrust[acted])
    expected = info["progress"] - 0.1 - 0.1 * info["phi"] - 5.0 * info["contact"]
    arrived = after["robots", "terminated"].squeeze(-1) & (info["contact"] == 0)
    reward = after["robots", "reward"].squeeze(-1)
    torch.testing.assert_close((expected + 10.0 * arrived)[acted], reward[acted])


@pytest.mark.parametrize("mode", ["stats", "none"])
def test_other_info_modes_report_sums_or_nothing(mode, device):
    env = MarineNavEnv(3, device=device, info_mode=mode)
    assert ("robots", "info") not in env.reset().keys(include_nested=True)


# ---- stack_k -----------------------------------------------------------------------------------


def test_frames_are_the_past_newest_first(device):
    """Three frames hold this and the two observations before, all equal after a reset."""
    options = {"stages": (CROWDED, SPARSE), "config": eventful(12), "device": device, "seed": 6}
    single, stacked = MarineNavEnv(9, **options), MarineNavEnv(9, **options, stack_k=3)
    one, three = record(single, 40), record(stacked, 40)
    for name, size in (("ego", 7), ("objects", 5), ("mask", 5)):
        frames = three[f"obs.{name}"].unflatten(3, (3, size))
        assert same_bits(frames[:, :, :, 0].contiguous(), one[f"obs.{name}"])
        current = three[f"current.{name}"].unflatten(3, (3, size))
        first = three[f"first.current.{name}"].unflatten(2, (3, size))
        past = torch.cat((first[None], current))[:-1]  # what the policy saw before each step
        acted = one["acted"]
        for frame in (1, 2):
            assert same_bits(frames[:, :, :, frame][acted], past[:, :, :, frame - 1][acted])
        for frame in (1, 2):
            reset = three["done"]
            assert same_bits(current[reset][:, :, frame], current[reset][:, :, 0])
            assert same_bits(first[:, :, frame], first[:, :, 0])
    assert one["done"].sum() > 9
    same = {k: v for k, v in one.items() if "obs" not in k and "current" not in k}
    assert_same_records(same, {k: three[k] for k in same})


def test_one_frame_is_the_observation_itself(device):
    """With k = 1 there is one memory: frames and observation are views of it."""
    buffers = MarineNavEnv(4, device=device).make_buffers()
    for frames, obs in zip(buffers.frames, buffers.obs, strict=True):
        assert frames.data_ptr() == obs.data_ptr()
        assert frames.numel() == obs.numel()


def device_allocations(device: str) -> int:
    """How often memory of the device has been asked for; the CPU's is the profiler's to see."""
    return 0 if device == "cpu" else torch.cuda.memory_stats()["allocation.all.allocated"]


@pytest.mark.parametrize("stack_k", [1, 3])
def test_stepping_allocates_nothing(stack_k, device):
    """No operator but the simulator's runs, no memory is asked for, and no tensor moves."""
    env = MarineNavEnv(64, stages=(CROWDED,), config=eventful(), stack_k=stack_k, device=device)
    action = actions(env, 0)
    buffers = [env.make_buffers(), env.make_buffers()]
    tensors = [t for b in buffers for t in (*b.obs, b.reward, b.done, b.terminated)]
    memory = [t.data_ptr() for t in tensors]
    env.reset_into(buffers[1])

    def loop() -> None:
        for _ in range(30):
            buffers.reverse()
            env.step_into(action, *buffers)
            env.reset_into(buffers[1], buffers[1].done)

    with OnlyOwnOperators():
        loop()
    allocated = device_allocations(device)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        loop()
    assert {e.key for e in recorded.key_averages()} >= {"marinenav::step", "marinenav::reset"}
    used = {e.key: e.self_cpu_memory_usage for e in recorded.key_averages()}
    assert not any(used.values()), used
    assert device_allocations(device) == allocated
    assert memory == [t.data_ptr() for t in tensors]


# ---- skip_reset_if_empty -----------------------------------------------------------------------


def test_skipping_empty_resets_changes_nothing(device):
    options = {"stages": (CROWDED,), "config": eventful(12), "device": device}
    always = MarineNavEnv(7, **options, skip_reset_if_empty=False)
    skipping = MarineNavEnv(7, **options, skip_reset_if_empty=True)
    a, b = record(always, 60), record(skipping, 60)
    assert not a["done"].any(1).all(), "some resets are empty"
    assert a["done"].any()
    assert_same_records(a, b)


def test_empty_reset_touches_nothing(device):
    for skip in (True, False):
        env = MarineNavEnv(5, stages=(CROWDED,), device=device, skip_reset_if_empty=skip)
        out = env.make_buffers()
        env.reset_into(out)
        before = {k: v.clone() for k, v in env.state_dict().items()}
        out.obs.ego.fill_(3.0)
        env.reset_into(out, torch.zeros(5, dtype=torch.bool, device=device))
        assert (out.obs.ego == 3.0).all()
        assert all(torch.equal(v, before[k]) for k, v in env.state_dict().items())


# ---- noise, currents, slots --------------------------------------------------------------------


def test_noise_changes_what_is_seen_only(device):
    options = {"stages": (CROWDED,), "device": device, "seed": 2}
    noisy = record(MarineNavEnv(10, config=eventful(), **options), 10)
    exact = record(MarineNavEnv(10, config=quiet(eventful()), **options), 10)
    assert same_bits(noisy["obs.ego"], exact["obs.ego"])
    seen = exact["obs.mask"].bool()
    assert (noisy["obs.objects"] != exact["obs.objects"])[seen].float().mean() > 0.9


def test_current_carries_a_drifting_vessel(device):
    """Without thrust a vessel moves with the water around it, and rests where there is none."""
    for stage, moves in ((DRIFTING, True), (replace(DRIFTING, vortices=0), False)):
        env = MarineNavEnv(20, stages=(stage,), device=device)
        env.reset_into(env.make_buffers())
        state = env.state
        start = torch.stack([state.robot_field(n).clone() for n in ("x", "y")])
        flow = torch.stack([state.robot_field(n).clone() for n in ("vx", "vy")])
        decide(env, torch.zeros(20, 2, 2, device=device))
        moved = torch.stack([state.robot_field(n) for n in ("x", "y")]) - start
        if moves:
            assert (moved[..., :20].norm(dim=0) > 1e-3).all()
            torch.testing.assert_close(moved, 0.5 * flow, atol=0.01, rtol=0.02)
        else:
            assert (moved == 0).all()


def test_stronger_currents_drift_further(device):
    config = EnvConfig()
    distance = []
    for speed in (1.5, 3.0):
        current = replace(config.current, edge_speed_min=speed, edge_speed_max=speed)
        options = {"stages": (DRIFTING,), "config": replace(config, current=current)}
        env = MarineNavEnv(50, device=device, **options)
        env.reset_into(env.make_buffers())
        speed_over_ground = env.state.robot_field("vx").square() + env.state.robot_field("vy") ** 2
        distance.append(speed_over_ground.sqrt().mean())
    assert distance[1] > 1.5 * distance[0]


def test_empty_slots_change_nothing(device):
    """More slots than a scenario needs: the same bits, the rest inactive and zero."""
    options = {"stages": (CROWDED,), "config": eventful(), "device": device, "seed": 8}
    exact = record(MarineNavEnv(11, **options), 50)
    roomy = record(MarineNavEnv(11, **options, slots=Slots(8, 9, 6)), 50)
    first = {name: roomy[name] for name in roomy if name.startswith("first.")}
    for name, expected in exact.items():
        robots = 1 if name in first else 2
        got = roomy[name]
        if expected.dim() > robots and expected.shape[robots] == CROWDED.robots:
            empty = got.narrow(robots, CROWDED.robots, 3)
            assert (empty == 0).all(), f"{name} of empty slots"
            got = got.narrow(robots, 0, CROWDED.robots)
        if name not in ("obs.ego", "current.ego"):
            assert same_bits(got.contiguous(), expected), name


def test_worlds_of_a_smaller_stage_leave_slots_empty(device):
    env = MarineNavEnv(6, stages=(SPARSE, CROWDED), device=device)
    env.set_stage(torch.tensor([0, 1, 0, 1, 0, 1], device=device))
    rows = record(env, 5)
    small = torch.tensor([True, False] * 3, device=device)
    assert env.robots == CROWDED.robots
    assert not rows["acted"][:, small, SPARSE.robots :].any()
    assert rows["acted"][0, ~small].all()
    for name in ("obs.ego", "obs.objects", "obs.mask", "reward"):
        assert (rows[name][:, small, SPARSE.robots :] == 0).all(), name
    assert (rows["obs.mask"][:, small].sum(-1) <= SPARSE.robots - 1).all()


# ---- curriculum --------------------------------------------------------------------------------


def test_stage_comes_into_force_at_each_worlds_next_reset(device):
    env = MarineNavEnv(4, stages=(SPARSE, CROWDED), device=device)
    out = env.make_buffers()
    env.reset_into(out)
    assert env.stage_of_worlds().tolist() == [0, 0, 0, 0]
    env.set_stage(torch.tensor([1, 1, 0, 1], device=device))
    previous, out = out, env.make_buffers()
    env.step_into(actions(env, 0), previous, out)
    assert env.stage_of_worlds().tolist() == [0, 0, 0, 0], "running episodes keep their stage"
    assert out.acted.sum(-1).tolist() == [2, 2, 2, 2]
    env.reset_into(out, torch.tensor([True, False, True, False], device=device))
    assert env.stage_of_worlds().tolist() == [1, 0, 0, 0]
    assert env.alive.sum(-1).tolist() == [5, 2, 2, 2]
    env.reset_into(out)
    assert env.stage_of_worlds().tolist() == [1, 1, 0, 1]


def test_masked_reset_touches_only_its_worlds(device):
    env = MarineNavEnv(40, stages=(CROWDED,), config=eventful(), device=device)
    *_, out = roll(env, 5)
    before = {name: tensor.clone() for name, tensor in env.state_dict().items()}
    rows = [tensor.clone() for tensor in out.obs]
    mask = torch.arange(40, device=device) % 3 == 0
    env.reset_into(out, mask)
    kept = torch.nn.functional.pad(~mask, (0, 8))
    for name in ("robot", "status", "buoy", "vortex", "world"):
        now = getattr(env.state, name)
        assert same_bits(now[..., kept], before[name][..., kept]), name
        assert not torch.equal(now[..., :40][..., mask], before[name][..., :40][..., mask]) or (
            name == "status"
        )
    for row, now in zip(rows, out.obs, strict=True):
        assert same_bits(row[~mask], now[~mask])
        assert not torch.equal(row[mask], now[mask])
