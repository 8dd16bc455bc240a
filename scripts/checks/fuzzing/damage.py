"""Damage to files: to their bytes, and to what they hold."""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch
import yaml

# ---- bytes ------------------------------------------------------------------------------------


def flip(content: bytes, draw: Random) -> bytes:
    """Flip one to three bits."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def truncate(content: bytes, draw: Random) -> bytes:
    """Leave out the end, or all."""
    return content[: draw.choice((0, draw.randrange(len(content)), len(content) - 1))]


def blank(content: bytes, draw: Random) -> bytes:
    """Fill a block with zeros, as a disk does whose last blocks were not written."""
    begin = draw.randrange(len(content))
    size = min(draw.choice((1, 64, 4096)), len(content) - begin)
    return content[:begin] + bytes(size) + content[begin + size :]


def insert(content: bytes, draw: Random) -> bytes:
    """Put random bytes in between."""
    at = draw.randrange(len(content))
    return content[:at] + draw.randbytes(draw.randint(1, 40)) + content[at:]


BYTES: dict[str, Callable[[bytes, Random], bytes]] = {
    "bits flipped": flip,
    "truncated": truncate,
    "block of zeros": blank,
    "bytes inserted": insert,
}

# ---- values -----------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, -(2**40), 10**400),
    *(0.5, -0.0, 1e300, 5e-324, math.nan, math.inf, "", "x", "0", "\x00", "../x"),
    *([], {}, [[]], [0], ["x"], {"x": 1}, {1: 2}, [None] * 3),
)


def odd_tensor(tensor: torch.Tensor, draw: Random) -> Any:
    """Return a tensor of another shape, type or content."""
    if tensor.numel() == 0 or draw.random() < 0.3:
        return draw.choice(
            (
                torch.zeros(0),
                torch.zeros(3, 1),
                tensor.flatten(),
                tensor[None],
                tensor.to(torch.int8),
            )
        )
    changed = tensor.clone()
    flat = changed.view(-1)
    at = draw.randrange(flat.numel())
    if tensor.dtype.is_floating_point:
        flat[at] = draw.choice((math.nan, math.inf, -math.inf, 1e30, -1e30))
    elif tensor.dtype == torch.bool:
        changed.view(torch.uint8).view(-1)[at] = draw.choice((0, 1, 2, 255))
    else:
        limits = torch.iinfo(tensor.dtype)
        flat[at] = draw.choice((limits.min, limits.max, -1, 1000))
    return changed


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the paths to all parts of nested lists and dictionaries, the root left out."""
    entries: Any = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list | tuple):
        entries = enumerate(value[:40])
    return [found for key, part in entries for found in ((*path, key), *places(part, (*path, key)))]


def changed(value: Any, draw: Random) -> Any:
    """Return nested data in which a part has been replaced, removed or added."""
    paths = places(value)
    if not paths or draw.random() < 0.05:
        return draw.choice(ODD)
    depth = draw.choice(sorted({len(path) for path in paths}))  # as often near the root as deep in
    *way, key = draw.choice([path for path in paths if len(path) == depth])
    value = copy.deepcopy(value)
    place = value
    for step in way:
        place = place[step]
    if isinstance(place, tuple):
        return draw.choice(ODD)
    what = draw.random()
    if what < 0.15:
        del place[key]
    elif what < 0.25 and isinstance(place, dict):
        place[draw.choice(("x", "", 5))] = draw.choice(ODD)
    elif isinstance(place[key], torch.Tensor) and what < 0.85:
        place[key] = odd_tensor(place[key], draw)
    elif isinstance(place[key], np.ndarray) and what < 0.85:
        place[key] = odd_tensor(torch.from_numpy(place[key].copy()), draw).numpy()
    else:
        place[key] = draw.choice(ODD)
    return value


def of_json(content: bytes, draw: Random) -> bytes:
    """Change what a JSON file holds."""
    return json.dumps(changed(json.loads(content), draw)).encode()


def of_json_lines(content: bytes, draw: Random) -> bytes:
    """Change what a line of a file of JSON lines holds."""
    lines = content.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    lines[at] = of_json(lines[at], draw) + b"\n"
    return b"".join(lines)


def of_yaml(content: bytes, draw: Random) -> bytes:
    """Change what a YAML file holds."""
    return yaml.safe_dump(changed(yaml.safe_load(content), draw)).encode()


def of_torch(content: bytes, draw: Random) -> bytes:
    """Change what a file of `torch.save` holds."""
    buffer = io.BytesIO()
    torch.save(changed(torch.load(io.BytesIO(content), weights_only=True), draw), buffer)
    return buffer.getvalue()


def of_arrays(content: bytes, draw: Random) -> bytes:
    """Change what a `.npz` file holds."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = changed(dict(archive), draw)
    buffer = io.BytesIO()
    if isinstance(arrays, dict):
        np.savez(buffer, **{str(k): v for k, v in arrays.items()})
    else:
        np.save(buffer, np.asarray(arrays, dtype=object), allow_pickle=True)
    return buffer.getvalue()
