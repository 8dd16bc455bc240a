"""File formats of exported networks: how each is written, and how its reader calls it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from train_RL_agents.policies.interface import call
from train_RL_agents.policies.seal import UNSEALED, sealed
from train_RL_agents.policies.torchscript import DTYPE, METADATA

OPSET = 17
"""ONNX operator set; onnxruntime reads it from version 1.12 (2022) on."""
BATCH = "batch"


class Format(NamedTuple):
    """A file format.

    Attributes:
        suffix: of the file's name.
        dtype: of inputs and outputs.
        tolerance: largest deviation from the checkpoint in float64, times max(1, |x|).
        write: file's content for a network, example inputs, of which so many are the
            observation's, and a description.
        read: a function that calls the network of a file's content, likewise.
        parts: tensors that an observation has to have; None takes any number.
        traced: whether numbers that follow from the batch's size stay those of the example.
    """

    suffix: str
    dtype: torch.dtype
    tolerance: float
    write: Callable[[nn.Module, Sequence[Tensor], int, Mapping[str, Any]], bytes]
    read: Callable[[bytes, int], Callable[[Sequence[Tensor]], list[Tensor]]]
    parts: int | None = None
    traced: bool = False


def write_torchscript(
    network: nn.Module, example: Sequence[Tensor], parts: int, description: Mapping[str, Any]
) -> bytes:
    """Return a TorchScript file: the description inside as JSON, the checksum as its comment."""
    buffer = io.BytesIO()
    names = [entry["name"] for entry in description["inputs"]]
    arguments = ", ".join([f"({', '.join(names[:parts])})", *names[parts:]])
    described = {**description, "call": f"model({arguments})"}
    extra_files = {METADATA: json.dumps(described, indent=1)}
    torch.jit.save(torch.jit.script(network), buffer, _extra_files=extra_files)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = UNSEALED.encode()
    return sealed(buffer.getvalue())


def read_torchscript(content: bytes, parts: int) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Return a function that calls the network of a TorchScript file."""
    module = torch.jit.load(io.BytesIO(content))
    return lambda inputs: call(module, inputs, parts)


class FlatNetwork(nn.Module):
    """A network that takes the parts of its observation as arguments: ONNX cannot group them."""

    def __init__(self, network: nn.Module, parts: int) -> None:
        super().__init__()
        self.network, self.parts = network, parts

    def forward(self, *inputs: Tensor) -> Any:
        """Return what the network returns."""
        return self.network(inputs[: self.parts], *inputs[self.parts :])


def write_onnx(
    network: nn.Module, example: Sequence[Tensor], parts: int, description: Mapping[str, Any]
) -> bytes:
    """Return an ONNX file with a free batch size; its metadata are description and checksum."""
    import onnx  # here, because TorchScript is exported where it is not installed

    names = {part: [entry["name"] for entry in description[part]] for part in ("inputs", "outputs")}
    buffer = io.BytesIO()
    torch.onnx.export(
        FlatNetwork(network, parts),
        tuple(example),
        buffer,  # type: ignore[arg-type]  # it takes files too
        input_names=names["inputs"],
        output_names=names["outputs"],
        dynamic_axes={name: {0: BATCH} for part in names.values() for name in part},
        opset_version=OPSET,
        dynamo=False,  # the newer exporter needs a package more and gives the same graph
    )
    model = onnx.load_from_string(buffer.getvalue())
    named = ", ".join(f'"{name}": {name}' for name in names["inputs"])
    described = {**description, "call": f"session.run(None, {{{named}}})"}
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in described.items()
    }
    onnx.helper.set_model_props(model, {**texts, "checksum": UNSEALED})
    onnx.checker.check_model(model)
    return sealed(model.SerializeToString())


def read_onnx(content: bytes, parts: int) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Return a function that calls the network of an ONNX file by onnxruntime, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_mem_reuse = False  # to plan it takes a shield's thousands of nodes 15 s
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        values = (part.contiguous().numpy() for part in inputs)
        outputs = session.run(None, dict(zip(names, values, strict=True)))
        return [torch.from_numpy(output) for output in outputs]

    return run


FORMATS = {
    "torchscript": Format(".torchscript.pt", DTYPE, 1e-10, write_torchscript, read_torchscript, 3),
    # float32: onnxruntime has no arctangent in float64, and accelerators rarely have either.
    "onnx": Format(".onnx", torch.float32, 1e-3, write_onnx, read_onnx, traced=True),
}
