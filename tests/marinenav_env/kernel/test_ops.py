"""The torch operators: schemas, opcheck, and errors that name the argument."""

import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.classic import CartPoleEnv
from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.kernel import ops
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful, rough

OPS = torch.ops.marinenav
TENSOR_OPS = ("step", "reset", "observe")


class Call:
    """Arguments of an operator; a tensor of a list is known by its own name."""

    def __init__(self, op: str, device: str, stack_k: int = 1, discrete: bool = False) -> None:
        self.op = getattr(OPS, op).default
        self.env = MarineNavEnv(
            5,
            stages=(CROWDED, SPARSE),
            config=rough(eventful(4)),
            device=device,
            stack_k=stack_k,
            discrete=discrete,
        )
        self.previous, self.out = self.env.make_buffers(), self.env.make_buffers()
        if op != "reset":
            self.env.reset_into(self.previous)
        state, spec = self.env.state, self.env.kernel_spec
        results = {t.name: getattr(self.out, t.name) for t in spec.results}
        known = {
            **state.context._asdict(),
            "env": state.env,
            "state": state.named(),
            "tables": {t.name: getattr(state, t.name) for t in spec.tables},
            "previous": {f"previous {k}": v for k, v in self.previous.frames._asdict().items()},
            "observation": self.out.frames._asdict(),
            "results": results,
            "action": actions(self.env, 0),
            "only": torch.tensor([True, False, True, True, True], device=device),
            "alive": self.env.alive,
            "skip_if_empty": False,
        }
        self.args = {a.name: known[a.name] for a in self.op._schema.arguments}

    def values(self, **changed: object) -> list:
        """The operator's arguments, some of them or of their tensors changed."""
        return [
            [changed.get(k, v) for k, v in value.items()]
            if isinstance(value, dict)
            else changed.get(name, value)
            for name, value in self.args.items()
        ]

    def run(self, **changed: object) -> None:
        """Calls the operator."""
        self.op(*self.values(**changed))

    def tensors(self) -> dict[str, dict[str, torch.Tensor]]:
        """Tensors of every argument that is one or a list of them."""
        lists = {
            name: value if isinstance(value, dict) else {name: value}
            for name, value in self.args.items()
        }
        return {
            name: value
            for name, value in lists.items()
            if all(isinstance(t, torch.Tensor) for t in value.values())
        }

    def named(self, name: str) -> object:
        """An argument, or a tensor of one of the lists."""
        lists = (value for value in self.args.values() if isinstance(value, dict))
        return next((entries[name] for entries in lists if name in entries), self.args.get(name))

    def written(self) -> set[str]:
        """Names of the arguments that the schema marks as written."""
        marked = (a for a in self.op._schema.arguments if a.alias_info is not None)
        return {a.name for a in marked if a.alias_info.is_write}


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("op", TENSOR_OPS)
def test_opcheck(op, discrete, device):
    call = Call(op, device, discrete=discrete)
    torch.library.opcheck(call.op, tuple(call.values()))


def test_opcheck_philox(device):
    counter = torch.arange(8, device=device).view(2, 4)
    torch.library.opcheck(OPS.philox.default, (counter, 1, 2))


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


def test_known_answers_of_philox(device):
    """Vectors of the Random123 library: zeros, all ones, the digits of pi."""
    ones = 0xFFFFFFFF
    known = [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, (ones, ones), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ]
    for counter, key, words in known:
        assert ops.philox(torch.tensor([counter], device=device), key).tolist() == [words]


def turned(t: torch.Tensor) -> torch.Tensor:
    """The same values, not contiguous."""
    return t.transpose(0, 1).contiguous().transpose(0, 1)


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


def row_of_rings(device: str) -> tuple[list[torch.Tensor], list[torch.Tensor], list[int]]:
    """Rings of three types, four rows of 2 x 3 slots, parts of every width, how many each takes."""
    kinds = [(torch.float32, (7, 10, 1)), (torch.float64, (2,)), (torch.bool, (1, 1, 4)),
             (torch.int64, (1,))]  # fmt: skip
    rings, parts = [], []
    for kind, widths in kinds:
        rings.append(torch.zeros(4, 2, 3, sum(widths), device=device, dtype=kind))
        for width in widths:
            parts.append((torch.rand(2, 3, width, device=device) * 9 - 4).to(kind))
    return rings, parts, [len(widths) for _, widths in kinds]


def test_a_row_of_rings_holds_its_parts_side_by_side(device):
    rings, parts, counts = row_of_rings(device)
    position = torch.tensor([2], device=device)
    torch.library.opcheck(OPS.write_row.default, (rings, parts, counts, position))
    left = iter(parts)
    grouped = [[next(left) for _ in range(count)] for count in counts]
    ops.write_row(list(zip(rings, grouped, strict=True)), position)
    left = iter(parts)
    for ring, count in zip(rings, counts, strict=True):
        assert torch.equal(ring[2], torch.cat([next(left) for _ in range(count)], -1))
        assert not ring[[0, 1, 3]].any()


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_a_part_may_be_a_piece_of_every_slot(shape, device):
    whole = torch.rand(*shape, 8, 5, device=device)
    pieces = [whole[:, :, :3], whole[:, :, 2], whole[..., :1, 1:4]]
    odd = [whole[..., 0:3, 0], whole.transpose(2, 3)[..., 5:], whole[:, :, 0, :1].expand(*shape, 2)]
    for parts, width in ((pieces, 15 + 5 + 3), (odd, 3 + 15 + 2)):
        ring = torch.zeros(4, *shape, width, device=device)
        position = torch.tensor([1], device=device)
        with torch.profiler.profile() as profile:
            ops.write_row([(ring, parts)], position)
        assert torch.equal(ring[1], torch.cat([piece.flatten(2) for piece in parts], -1))
        copied = any(event.name == "aten::clone" for event in profile.events())
        assert copied == (parts is odd)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r, p, n: (r, p, n[:-1]), "`counts` has 3 entries, expected one for each of 4"),
        (lambda r, p, n: (r, p, [*n[:-1], 2]), "`parts` holds 8 tensors, fewer than"),
        (lambda r, p, n: (r[:-1], p, n[:-1]), "`parts` holds 8 tensors, more than"),
        (lambda r, p, n: (r, p[1:2] * 25, n), "`parts` holds 25 tensors, expected 24 at most"),
        (lambda r, p, n: (r, [p[0].double(), *p[1:]], n), "ring 0 has dtype Double .* expected Fl"),
        (lambda r, p, n: (r, [p[1], *p[1:]], n), "parts of ring 0 have 21 numbers a slot, exp"),
        (lambda r, p, n: (r, [p[0][:, :2].contiguous(), *p[1:]], n), "and whole slots of 6"),
        (
            lambda r, p, n: ([r[0], r[1][:, :1].clone(), *r[2:]], p, n),
            "ring 1 has 3 slots in 4",
        ),
        (lambda r, p, n: ([r[0], r[1][:3], *r[2:]], p, n), "ring 1 has 6 slots in 3 rows, expec"),
        (lambda r, p, n: ([r[0][:0], *r[1:]], p, n), "a ring has shape"),
        (lambda r, p, n: ([turned(r[0]), *r[1:]], p, n), "`rings` must be contiguous"),
        (lambda r, p, n: ([], p, []), "`rings` holds no tensor"),
    ],
)
def test_parts_that_make_no_row_are_named(spoil, message, device):
    position = torch.zeros(1, dtype=torch.int64, device=device)
    with pytest.raises(RuntimeError, match=f"marinenav: .*{message}"):
        OPS.write_row(*spoil(*row_of_rings(device)), position)


def test_a_row_wants_a_whole_position(device):
    with pytest.raises(RuntimeError, match="`position` must be one int64"):
        OPS.write_row(*row_of_rings(device), torch.zeros(1, device=device))


@pytest.mark.parametrize("row", [-1, 4])
def test_a_row_that_is_not_there_is_not_written(row):
    with pytest.raises(RuntimeError, match=f"`position` is {row}, expected 0 to 3"):
        OPS.write_row(*row_of_rings("cpu"), torch.tensor([row]))


def test_philox_wants_four_words(device):
    with pytest.raises(RuntimeError, match=r"`counter` has shape \[2, 3\], expected \[N, 4\]"):
        ops.philox(torch.zeros(2, 3, dtype=torch.int64, device=device), (0, 0))


def test_philox_of_nothing(device):
    nothing = torch.zeros(0, 4, dtype=torch.int64, device=device)
    assert ops.philox(nothing, (0, 0)).shape == (0, 4)


@pytest.mark.parametrize("key", [(2**32, 0), (0, 2**32), (-1, 0)])
def test_philox_wants_a_key_of_32_bit_words(key, device):
    with pytest.raises(RuntimeError, match=rf"`key` holds {max(key, key=abs)}, which is no 32-bit"):
        ops.philox(torch.zeros(1, 4, dtype=torch.int64, device=device), key)


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
