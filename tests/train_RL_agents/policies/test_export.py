"""Exports: the networks in the files, what the files say, and what cannot be exported."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from marinenav_env.vessels import VESSELS
from tests.train_RL_agents.policy_samples import (
    OUTPUTS,
    export_policy,
    recorded_observation,
    save_policy,
)
from train_RL_agents import export
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.config.build import spec_of
from train_RL_agents.policies.formats import FORMATS, OPSET
from train_RL_agents.policies.interface import acting_network, call_inputs
from train_RL_agents.policies.load import load_policy
from train_RL_agents.run.source import source_commit

INPUTS = {"self": ["B", 7], "objects": ["B", 5, 5], "mask": ["B", 5]}


def outputs_of(result):
    return list(result) if isinstance(result, tuple) else [result]


def torchscript_metadata(path):
    files = {"marinenav.json": ""}
    torch.jit.load(str(path), _extra_files=files)
    return json.loads(files["marinenav.json"])


def onnx_metadata(path):
    properties = {entry.key: entry.value for entry in onnx.load(str(path)).metadata_props}
    plain = ("program", "agent", "commit", "call", "dtype", "checksum")
    return {
        # Outside a checkout the commit is null.
        key: value if key in plain and value != "null" else json.loads(value)
        for key, value in properties.items()
    }


@pytest.fixture(params=list(AGENTS), scope="module")
def policy(request, tmp_path_factory):
    """An agent's name, its exports by format, all inputs in float64 and what its network does."""
    path = save_policy(tmp_path_factory.mktemp("policy") / "policy.pt", request.param)
    agent, _ = load_policy(path)
    inputs = call_inputs(agent, recorded_observation(), torch.float64)
    network = acting_network(agent, torch.float64)
    expected = outputs_of(network(tuple(inputs[:3]), *inputs[3:]))
    if agent.name in OUTPUTS:
        assert [part.shape[1:] for part in expected] == [*map(torch.Size, OUTPUTS[agent.name])]
    return agent.name, {kind: export_policy(path, kind) for kind in FORMATS}, inputs, expected


@torch.no_grad()
def test_torchscript_is_called_as_the_planner_calls_it(policy):
    _, files, inputs, expected = policy
    model = torch.jit.load(str(files["torchscript"]))
    for rows in (len(inputs[0]), 1):
        ego, objects, mask, *others = (part[:rows] for part in inputs)
        found = outputs_of(model((ego, objects, mask), *others))
        for value, known in zip(found, expected, strict=True):
            assert value.dtype == torch.float64
            assert not value.requires_grad
            torch.testing.assert_close(value, known[:rows], rtol=1e-12, atol=1e-12)


def test_a_loaded_export_acts_on_any_leading_dimensions(policy):
    _, files, (ego, objects, mask, *_), _ = policy
    agent, _ = load_policy(files["torchscript"])
    known = agent.act((ego, objects, mask), mean=True)
    one = agent.act((ego[0], objects[0], mask[0]), mean=True)
    torch.testing.assert_close(one, known[0])
    more = agent.act(
        (ego[:6].unflatten(0, (2, 3)), *(p[:6].unflatten(0, (2, 3)) for p in (objects, mask))),
        mean=True,
    )
    torch.testing.assert_close(more.flatten(0, 1), known[:6])


def test_onnx_runs_with_any_batch_size(policy):
    _, files, inputs, expected = policy
    model = onnx.load(str(files["onnx"]))
    assert model.opset_import[0].version == OPSET
    for entry in (*model.graph.input, *model.graph.output):
        first, *others = entry.type.tensor_type.shape.dim
        assert first.dim_param == "batch"
        assert all(other.dim_value > 0 for other in others)
    session = onnxruntime.InferenceSession(str(files["onnx"]), providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    assert names[:3] == ["self", "objects", "mask"]
    for rows in (len(inputs[0]), 1):
        feed = {name: part[:rows].float().numpy() for name, part in zip(names, inputs, strict=True)}
        for value, known in zip(session.run(None, feed), expected, strict=True):
            torch.testing.assert_close(
                torch.from_numpy(value).double(), known[:rows].detach(), rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize(
    ("kind", "read"), [("torchscript", torchscript_metadata), ("onnx", onnx_metadata)]
)
def test_files_say_what_they_are(policy, kind, read):
    name, files, inputs, expected = policy
    said = read(files[kind])
    assert (said["program"], said["agent"], said["commit"]) == ("marinenav", name, source_commit())
    assert said["origin"] == {"file": "policy.pt", "step": 5, "commit": None}
    assert said["dtype"] == {"torchscript": "float64", "onnx": "float32"}[kind]
    described = {entry["name"]: entry for entry in said["inputs"]}
    shapes = {key: entry["shape"] for key, entry in described.items()}
    assert shapes == {**INPUTS, **({"taus": ["B", 32]} if len(inputs) == 4 else {})}
    assert described["self"]["units"] == ["m", "m", "m/s", "m/s", "rad/s", "N", "N"]
    assert described["objects"]["units"] == ["m", "m", "m/s", "m/s", "m"]
    assert len(described["self"]["features"]) == 7
    assert [entry["shape"][1:] for entry in said["outputs"]] == [
        list(part.shape[1:]) for part in expected
    ]
    assert said["actions"]["decision_s"] == 0.5
    assert said["config"]["agent"] == name
    support = torch.linspace(-30.0, 60.0, 51).tolist() if name == "Rainbow" else None
    assert said.get("support") == support


def test_files_say_how_they_are_called(policy):
    _, files, inputs, expected = policy
    given = dict(zip([*INPUTS, "taus"], inputs, strict=False))
    model = torch.jit.load(str(files["torchscript"]))
    found = eval(torchscript_metadata(files["torchscript"])["call"], {"model": model, **given})
    torch.testing.assert_close(outputs_of(found), expected)
    given = {name: part.float().numpy() for name, part in given.items()}
    session = onnxruntime.InferenceSession(str(files["onnx"]))
    found = eval(onnx_metadata(files["onnx"])["call"], {"session": session, **given})
    for part, exact in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, exact.numpy(), rtol=1e-3, atol=1e-3)


def level_by_metadata(said, objects, mask):
    """Return the risk level [B, 1] by the words and numbers in a file's metadata."""
    level = torch.full((len(mask), 1), said["risk_level"]["cvar"], dtype=torch.float64)
    rule = said["risk_level"]["adaptive"]
    if rule is None:
        return level
    surface = objects[..., :2].norm(dim=-1) - objects[..., 4] - rule["own_radius_m"]
    share = (surface / rule["calm_distance_m"]).clamp(0.0, 1.0)
    return level * torch.where(mask == 1.0, share, 1.0).amin(-1, keepdim=True)


RISKS = [
    {"cvar": 0.1},
    {"adaptive_cvar": True},
    {"cvar": 0.3, "adaptive_cvar": True},
]


def history(frames):
    """Return a float64 observation of several frames; older ones hold other objects."""
    parts = recorded_observation()
    shifts = [[torch.roll(part, age, 0) for age in range(frames)] for part in parts]
    return [torch.cat(shift, dim=1).double() for shift in shifts]


@torch.no_grad()
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("task", ["marine", "icra2024"])
def test_relative_motion_runs_with_any_batch_size(tmp_path, task, frames, kind):
    settings = {"algorithm": {"encoder": "relative_motion"}, "stack_k": frames}
    path = save_policy(tmp_path / "policy.pt", "DQN", task=task, **settings)
    agent, _ = load_policy(path)
    observation = agent.spec.observation.draw(7, torch.Generator().manual_seed(1))
    expected = agent.actor.double()(tuple(part.double() for part in observation))
    output = export_policy(path, kind)
    for rows in (7, 1):
        inputs = [part[:rows] for part in observation]
        if kind == "torchscript":
            found = torch.jit.load(str(output))(tuple(part.double() for part in inputs))
        else:
            (found,) = FORMATS["onnx"].read(output.read_bytes(), 3)(inputs)
        torch.testing.assert_close(found.double(), expected[:rows], rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("risk", RISKS)
def test_the_published_planner_acts_under_the_risk_level_of_the_file(tmp_path, risk, frames, kind):
    """It draws its fractions uniformly and knows of no risk level."""
    path = save_policy(tmp_path / "policy.pt", "IQN", algorithm=risk, stack_k=frames)
    agent, _ = load_policy(path)
    ego, objects, mask = history(frames)
    generator = torch.Generator().manual_seed(1)
    taus = torch.rand(len(ego), 32, dtype=torch.float64, generator=generator)
    output = export_policy(path, kind)
    if kind == "torchscript":
        said, tolerance = torchscript_metadata(output), 1e-12
        found = torch.jit.load(str(output))((ego, objects, mask), taus)
    else:
        said, tolerance = onnx_metadata(output), 1e-4
        inputs = [part.float() for part in (ego, objects, mask, taus)]
        (found,) = FORMATS["onnx"].read(output.read_bytes(), 3)(inputs)
    assert found.shape == (len(ego), 32, 25)
    level = level_by_metadata(said, objects[:, :5], mask[:, :5])
    assert level.max() <= risk.get("cvar", 1.0)
    assert (len(level.unique()) > 1) == risk.get("adaptive_cvar", False)
    network = agent.actor.double()
    expected = network((ego, objects, mask), level * taus)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    neutral = network((ego, objects, mask), taus)
    assert (found - neutral).abs().max() > 0.1


@torch.no_grad()
@pytest.mark.parametrize("risk", RISKS)
def test_fixed_fractions_act_as_the_checkpoint(tmp_path, risk):
    path = save_policy(tmp_path / "policy.pt", "IQN", algorithm=risk)
    agent, _ = load_policy(path)
    seen = recorded_observation()
    exported = export_policy(path)
    said = torchscript_metadata(exported)
    midpoints = (torch.arange(32, dtype=torch.float64) + 0.5) / 32
    assert said["inputs"][3]["acting"] == midpoints.tolist()
    assert said["applied_settings"] == ["cvar", "adaptive_cvar"]
    observation = tuple(part.double() for part in seen)
    taus = midpoints.expand(len(seen.ego), -1)
    planned = torch.jit.load(str(exported))(observation, taus).mean(1).argmax(-1)
    seen = type(seen)(*(part.float() for part in seen))
    assert torch.equal(planned, agent.act(seen))
    assert torch.equal(planned, load_policy(exported)[0].act(seen))
    agent.act_under(cvar=1.0, adaptive_cvar=False)
    assert not torch.equal(planned, agent.act(seen))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_history_of_observations(tmp_path, kind):
    save_policy(tmp_path / "policy.pt", "IQN", stack_k=2)
    output = export_policy(tmp_path / "policy.pt", kind)
    said = {"torchscript": torchscript_metadata, "onnx": onnx_metadata}[kind](output)
    shapes = [entry["shape"] for entry in said["inputs"]]
    assert shapes == [["B", 14], ["B", 10, 5], ["B", 10], ["B", 32]]
    assert said["inputs"][0]["history"].startswith("2 decisions")


@pytest.mark.parametrize("name", ["AC-IQN", "DQN"])
def test_a_file_for_another_vessel_has_its_rates_and_the_same_network(name, tmp_path, refused):
    path = save_policy(tmp_path / "policy.pt", name)
    own = torchscript_metadata(export_policy(path, "torchscript"))
    output = export_policy(path, "torchscript", "env.vessel=otter")
    said, otter = torchscript_metadata(output), VESSELS["otter"]
    assert said["actions"] != own["actions"]
    assert otter.max_thrust_rate in said["actions"].values() or name == "DQN"
    assert said["config"]["env"]["vessel"]["name"] == "otter"
    policy, config = load_policy(output)
    assert config.env.vessel == otter
    assert policy.spec.action.meaning == spec_of(config).action.meaning
    known, _ = load_policy(path)
    seen = recorded_observation()
    seen = type(seen)(*(part.float() for part in seen))
    torch.testing.assert_close(policy.act(seen), known.act(seen))
    command = ["--checkpoint", str(path), "--format", "onnx", "env.vessel.mas=3"]
    refused(export.main, command, "env.vessel.mas")


def test_the_place_of_the_file(tmp_path, capsys):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    save_policy(run / "checkpoints" / "best.pt", "DQN")
    for checkpoint, output in (
        (run, run / "policy.onnx"),
        (run / "checkpoints" / "best.pt", run / "checkpoints" / "best.onnx"),
    ):
        assert export.main(["--checkpoint", str(checkpoint), "--format", "onnx"]) == 0
        assert output.is_file()
        assert capsys.readouterr().out.startswith(f"{output}: DQN, onnx, off by at most ")


def test_a_missing_folder_is_made(tmp_path):
    save_policy(tmp_path / "policy.pt", "DQN")
    output = tmp_path / "new" / "folder" / "a.onnx"
    export_policy(tmp_path / "policy.pt", "onnx", "--output", str(output))
    assert output.is_file()


def test_the_help_tells_the_place_of_the_file(capsys):
    with pytest.raises(SystemExit):
        export.parse(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "policy.torchscript.pt or policy.onnx inside a folder" in said
    assert "beside a file, under its name" in said


def spoiled(form):
    """Return the format, whose files hold a network that is slightly another one."""

    def write(network, example, parts, description):
        with torch.no_grad():
            next(network.parameters()).mul_(1.01)
        return form.write(network, example, parts, description)

    return form._replace(write=write)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_differs_from_its_checkpoint_is_not_written(
    tmp_path, refused, monkeypatch, kind
):
    path, output = tmp_path / "policy.pt", tmp_path / "out"
    save_policy(path, "DQN")
    output.write_text("as it was")
    monkeypatch.setitem(FORMATS, kind, spoiled(FORMATS[kind]))
    arguments = ["--checkpoint", str(path), "--format", kind, "--output", str(output)]
    refused(export.main, arguments, "the exported DQN is off by ")
    assert output.read_text() == "as it was"


def test_weights_that_are_not_finite_are_refused(tmp_path, refused):
    path = save_policy(tmp_path / "policy.pt", "DQN")
    state = torch.load(path, weights_only=True)
    state["model"]["networks"]["average.output_layer.bias"][3] = float("nan")
    torch.save(state, path)
    arguments = ["--checkpoint", str(path), "--format", "torchscript"]
    refused(export.main, arguments, "weights that are not finite")
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy.pt"]


def test_bad_input(tmp_path, refused, monkeypatch):
    good = save_policy(tmp_path / "policy.pt", "DQN")
    (tmp_path / "damaged.pt").write_bytes(good.read_bytes()[:1000])
    exported = export_policy(good)
    for checkpoint, output, message in (
        ("none.pt", "x.pt", "no checkpoint"),
        ("damaged.pt", "x.pt", "is damaged or no checkpoint"),
        (exported.name, "x.pt", "is an export already: give the checkpoint it was made of"),
        (good.name, ".", "is a folder: give the name of a file"),
        (good.name, "policy.pt/x.pt", "cannot be written"),
    ):
        arguments = ["--checkpoint", str(tmp_path / checkpoint), "--format", "torchscript"]
        arguments += ["--output", str(tmp_path / output)]
        assert refused(export.main, arguments, message).startswith("error: ")

    def no_space(path, write):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_atomically", no_space)
    message = "cannot be written: [Errno 28] No space left on device"
    refused(export.main, ["--checkpoint", str(good), "--format", "torchscript"], message)


@pytest.mark.parametrize(
    ("form", "name", "other"),
    [("onnx", "foo.pt", "torchscript"), ("torchscript", "foo.ONNX", "onnx")],
)
def test_an_ending_of_another_format_is_refused(form, name, other, tmp_path, refused):
    path, output = save_policy(tmp_path / "policy.pt", "DQN"), tmp_path / name
    arguments = ["--checkpoint", str(path), "--format", form, "--output", str(output)]
    remedy = f"give {FORMATS[form].suffix}, or --format {other}"
    refused(export.main, arguments, f"{str(output)!r} ends as --format {other} does: {remedy}")
    assert not output.exists()
    for suffix in (FORMATS[form].suffix, ".model"):
        assert export.main([*arguments[:-1], str(tmp_path / f"foo{suffix}")]) == 0


def test_an_unknown_format_is_refused(refused):
    arguments = ["--checkpoint", "x.pt", "--format", "tensorrt"]
    refused(export.main, arguments, "invalid choice: 'tensorrt'", status=2)
