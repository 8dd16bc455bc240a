"""The torch operators: schemas, opcheck, and errors that name the argument."""

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.classic import CartPoleEnv
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.kernel import ops
from tests.marinenav_env.kernel.calls import OPS, TENSOR_OPS, Call, turned
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("op", TENSOR_OPS)
def test_opcheck(op, discrete, device):
    call = Call(op, device, discrete=discrete)
    torch.library.opcheck(call.op, tuple(call.values()))


WRITTEN = {
    "step": {"reward", "acted", "terminated", "truncated", "alive", "done", "world_terminated",
             "world_truncated", "robot", "status", "bad", "world", "outcome", "stats", "wind",
             "wave", "thruster", "past"},
    "reset": {"alive", "robot", "status", "buoy", "vortex", "world", "wind", "stream", "wave",
              "thruster", "factor", "sensor", "reach", "past"},
    "observe": {"robot"},
}  # fmt: skip
"""Tensors that an operator writes besides the observation."""


@pytest.mark.parametrize("op", TENSOR_OPS)
def test_schema_marks_what_is_written(op, device):
    """Every tensor that should change does in some call, and no other; marked lists hold them."""
    call = Call(op, device)
    lists = call.tensors()
    tensors = {name: tensor for entries in lists.values() for name, tensor in entries.items()}
    changed = set()
    for step in range(12):
        for name in ("reward", "ego", "objects", "mask"):
            if name in tensors:
                tensors[name].fill_(-7.0)
        if op == "step":
            call.args["action"] = tensors["action"] = actions(call.env, step)
            tensors["action"][0, 0, 0] = torch.nan
            if step == 7:  # everybody arrives
                for axis in "xy":
                    here = call.env.state.robot_field(axis)
                    here.copy_(call.env.state.robot_field(f"goal_{axis}"))
        if op == "observe":
            call.env.state.robot_field("phi").fill_(-7.0)
        before = {name: tensor.clone() for name, tensor in tensors.items()}
        call.run()
        changed |= {
            name
            for name, tensor in tensors.items()
            if not torch.equal(tensor.nan_to_num(9.0), before[name].nan_to_num(9.0))
        }
        if op == "step" and step % 5 == 4:
            call.env.reset_into(call.previous)
    assert changed == WRITTEN[op] | {"ego", "objects", "mask"}
    assert {name for name, entries in lists.items() if changed & set(entries)} == call.written()


WRONG = {
    "shape of an output": ("step", "reward", lambda t: t[:, :2].contiguous(), "`reward` has shape"),
    "shape of the action": ("step", "action", lambda t: t[..., 0].clone(), "`action` has shape"),
    "state of another W": ("step", "world", lambda t: t.repeat(1, 2), "`world` has shape"),
    "frames": ("step", "objects", lambda t: t.repeat(1, 1, 2, 1, 1), "`objects` has shape"),
    "dimensions": ("step", "ego", lambda t: t[..., 0], "`ego` has shape .* expected"),
    "rows of the state": ("observe", "status", lambda t: t[0], "`status` has shape .* expected"),
    "dtype of an output": ("step", "done", lambda t: t.int(), "`done` has dtype Int, expected Boo"),
    "dtype of the action": ("step", "action", lambda t: t.double(), "`action` has dtype Double"),
    "dtype of the state": ("reset", "robot", lambda t: t.half(), "`robot` has dtype Half, exp"),
    "dtype of the mask": ("reset", "only", lambda t: t.int(), "`only` has dtype Int, expected B"),
    "contiguity": ("step", "alive", turned, "`alive` must be contiguous"),
    "contiguity of obs": ("observe", "mask", turned, "`mask` must be c"),
    "mask's length": ("reset", "only", lambda t: t[1:].clone(), r"`only` has shape \[4\]"),
    "too few parameters": (
        "step",
        "params",
        lambda p: p[:-1],
        r"`params` has shape .*\], exp",
    ),
    "too many parameters": (
        "reset",
        "params",
        lambda p: p.repeat(2),
        r"`params` has shape .*\], exp",
    ),
    "shape of the parameters": (
        "step",
        "params",
        lambda p: p[None],
        r"`params` has shape .*\], exp",
    ),
    "dtype of the parameters": (
        "step",
        "params",
        lambda p: p.float(),
        "`params` has dtype Float on",
    ),
    "noise table": ("step", "radius_noise", lambda t: t[:-1].clone(), "`radius_noise` has shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_argument_is_named(case, device):
    op, name, spoil, message = WRONG[case]
    call = Call(op, device)
    with pytest.raises(RuntimeError, match=f"marinenav: {message}"):
        call.run(**{name: spoil(call.named(name))})


@pytest.mark.skipif(
    not (torch.cuda.is_available() and ops.has_cuda()), reason="needs a second device"
)
@pytest.mark.parametrize("op", TENSOR_OPS)
@pytest.mark.parametrize("name", ["mask", "ego", "radius_noise"])
def test_argument_on_another_device_is_named(op, name):
    call = Call(op, "cuda")
    with pytest.raises(RuntimeError, match=f"`{name}` is on cpu, expected cuda:0"):
        call.run(**{name: call.named(name).cpu()})


@pytest.mark.parametrize("name", ["ego", "objects", "mask"])
def test_stacked_frames_may_not_be_their_own_past(name, device):
    call = Call("step", device, stack_k=2)
    with pytest.raises(RuntimeError, match=f"`{name}` and its previous one must not share memory"):
        call.run(**{f"previous {name}": call.named(name)})


def test_a_stage_that_wants_more_than_there_are_slots_fills_them(device):
    """The stage table is data; whatever it says, nothing is written past the slots."""
    env = MarineNavEnv(4, stages=(SPARSE, CROWDED), config=eventful(), device=device)
    env.state.stage[0] = torch.tensor([9.0, 7.0, 8.0, 12.0, 3.0, 5.0])
    env.state.stage[1] = torch.tensor([-1.0, -1e30, torch.nan, 12.0, torch.nan, torch.nan])
    env.set_stage(torch.tensor([0, 0, 1, 1], device=device))
    env.reset_into(env.make_buffers())
    placed = [env.state.world_field(name)[:4].tolist() for name in ("robots", "vortices", "buoys")]
    most = CROWDED.robots, CROWDED.vortices, CROWDED.buoys
    assert placed == [[count, count, 0, 0] for count in most]


def test_unknown_environments_are_an_error(device):
    with pytest.raises(RuntimeError, match="no environment is called `boats`"):
        ops.describe("boats")
    with pytest.raises(RuntimeError, match="no environment is called `boats`"):
        Call("reset", device).run(env="boats")


def test_a_list_that_lacks_a_tensor_is_named(device):
    call = Call("step", device)
    whole = len(call.args["state"])
    del call.args["state"]["buoy"]
    with pytest.raises(RuntimeError, match=f"`state` holds {whole - 1} tensors, expected {whole}"):
        call.run()


def test_parameters_are_packed_by_name():
    """Whatever order they come in, each lands in the place that the core gives its name."""
    spec = ops.describe("marine")
    named = list(EnvConfig().named_numbers())
    distinct = [(name, float(i)) for i, (name, _) in enumerate(named)]
    packed = spec.pack(reversed(distinct))
    assert dict(zip(spec.params, packed.tolist(), strict=True)) == dict(distinct)


@pytest.mark.parametrize("change", [lambda p: p[1:], lambda p: [*p, ("vessel.keel", 1.0)]])
def test_parameters_that_one_side_lacks_are_refused(change):
    with pytest.raises(ImportError, match=r"only one side knows \['vessel\.(dt|keel)'\]"):
        ops.describe("marine").pack(change(list(EnvConfig().named_numbers())))


def test_water_of_two_vortices(device):
    """Outside a core Gamma / (2 pi d), inside it Gamma d / (2 pi r^2), and all add up."""
    env = MarineNavEnv(2, stages=(CROWDED,), device=device, dtype=torch.float64)
    env.state.vortex[:, 0, 0] = torch.tensor([10.0, 20.0, 6.0 * torch.pi])
    env.state.vortex[:, 1, 0] = torch.tensor([10.0, 30.0, -2.0 * torch.pi])
    points = [[10.0, 22.0], [10.25, 20.0], [12.0, 25.0]]
    position = torch.tensor([points, points], device=device, dtype=torch.float64)
    flow = ops.water(env.state, position).cpu()
    assert not flow[1].any()
    # 3 / 2 east of the first and 1 / 8 west of the second: both push north.
    assert flow[0, 0].tolist() == pytest.approx([3.0 / 2.0 + 1.0 / 8.0, 0.0])
    inside = 3.0 / 0.25 * 0.25
    away = 0.0625 + 100.0
    assert flow[0, 1].tolist() == pytest.approx([10.0 / away, -inside + 0.25 / away])
    assert torch.equal(ops.water(env.state, position[:, :1].contiguous())[0, 0].cpu(), flow[0, 0])
    opcheck = (env.state.env, env.state.changing, env.state.tables, position, flow.to(device))
    torch.library.opcheck(OPS.water.default, (*opcheck, env.state.context.params))


def test_only_a_marine_environment_has_water():
    with pytest.raises(RuntimeError, match="`cartpole` has no water"):
        ops.water(CartPoleEnv(1).state, torch.zeros(1, 1, 2))
