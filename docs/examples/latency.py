"""Time a call of an exported policy for one vessel: `python docs/examples/latency.py FILE`."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import torch

CALLS = 2000


def main(path: str) -> None:
    """Print the median and the 99% quantile of a call, in float64 and float32.

    Raises:
        SystemExit: the file is no TorchScript.
    """
    torch.set_num_threads(1)
    description = {"marinenav.json": ""}
    content = Path(path).read_bytes()
    try:
        model = torch.jit.load(io.BytesIO(content), map_location="cpu", _extra_files=description)
    except RuntimeError as error:
        remedy = "export with --format torchscript"
        raise SystemExit(f"{path} is no TorchScript file: {remedy}") from error
    about = json.loads(description["marinenav.json"])
    for dtype in (torch.float64, torch.float32):
        shapes = [[1, *entry["shape"][1:]] for entry in about["inputs"]]
        inputs = [torch.full(shape, 0.5, dtype=dtype) for shape in shapes]
        arguments = (tuple(inputs[:3]), *inputs[3:])
        model.to(dtype)
        spent = []
        with torch.inference_mode():
            for _ in range(CALLS):
                began = time.perf_counter()
                model(*arguments)
                spent.append(1e6 * (time.perf_counter() - began))
        spent.sort()
        median, late = spent[CALLS // 2], spent[CALLS * 99 // 100]
        print(f"{about['agent']}, {dtype}: median {median:.0f} us, 99% {late:.0f} us")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: latency.py POLICY.pt")
    main(sys.argv[1])
