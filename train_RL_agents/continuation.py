"""Cuts a run's metrics and TensorBoard files back to a checkpoint's step, before it goes on."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event

from train_RL_agents.analysis import METRICS, SUMMARY
from train_RL_agents.checkpoint import write_atomically

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4


def cut_back(output_dir: Path, step: int) -> None:
    """Remove every record after ``step``, and what a kill left unfinished.

    Args:
        output_dir: the run's folder.
        step: the checkpoint's step; records of that very step stay.
    """
    metrics = output_dir / METRICS
    if metrics.exists():
        _cut_metrics(metrics, step)
    for events in output_dir.glob("events.out.tfevents.*"):
        _cut_events(events, step)
    (output_dir / SUMMARY).unlink(missing_ok=True)
    for unfinished in output_dir.rglob(".*.tmp"):
        unfinished.unlink()


def _cut_metrics(path: Path, step: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if line.endswith(b"\n") and json.loads(line)["step"] <= step]
    write_atomically(path, lambda file: file.writelines(kept))


def _cut_events(path: Path, step: int) -> None:
    kept = [
        raw
        for raw, content in event_records(path.read_bytes())
        if Event.FromString(content).step <= step
    ]
    write_atomically(path, lambda file: file.writelines(kept))


def event_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Split a TensorBoard event file into its records.

    A record is its length (8 bytes), that length's checksum (4), the event, and its checksum (4).

    Yields:
        Each whole record and the event in it; one cut off at the end of the file is left out.
    """
    start = 0
    while start + _HEADER.size <= len(content):
        length, _ = _HEADER.unpack_from(content, start)
        begin = start + _HEADER.size
        end = begin + length + _FOOTER_BYTES
        if end > len(content):
            return
        yield content[start:end], content[begin : begin + length]
        start = end
