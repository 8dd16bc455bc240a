"""What a run tells its user: records reduced on the device, copied once, and written to files."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from marinenav_env.files import parse_json, write_json
from train_RL_agents.metrics.headline import is_headline
from train_RL_agents.metrics.reductions import Histogram, Mean, Reduced, reduce

METRICS = "metrics.jsonl"
EVENTS = "events.out.tfevents.*"
SUMMARY = "summary.json"

Record = dict[str, Any]
Quantity = Tensor | Mean | Histogram | float | int | list


class AnalysisReceiver:
    """Receives arrays under a label and writes what they amount to.

    Every array is reduced on the device it lies on: one element to a number, more to mean, spread,
    quantiles and a histogram. The results of one record, or of all records inside `interval`, are
    copied to the host in one transfer and written to TensorBoard, to ``metrics.jsonl``, and, at
    `close`, as a summary of the whole run to ``summary.json``.

    In TensorBoard ``label/name`` is the number or the mean, however many elements the array had.

    Args:
        output_dir: the run's folder, made if missing; None writes nothing, which leaves `latest`.
        headline: whether TensorBoard shows the numbers of `headline.HEADLINE` alone, or all with
            their spreads and histograms.
    """

    def __init__(self, output_dir: str | Path | None, *, headline: bool = True) -> None:
        self.output_dir = None if output_dir is None else Path(output_dir)
        self._headline = headline
        if self.output_dir is not None:
            self.output_dir.mkdir(parents=True, exist_ok=True)
            self._metrics = (self.output_dir / METRICS).open("a", encoding="utf-8")
            self._events = SummaryWriter(str(self.output_dir), flush_secs=30)
        self._pending: list[tuple[str, int, dict[str, Reduced]]] = []
        self._gathering = False
        self._counts: dict[str, int] = {}
        self.latest: dict[str, Record] = {}
        """The newest record of every label, non-finite values included."""

    def receive(self, mode: str, *, step: int | None = None, **arrays: Quantity) -> None:
        """Take one record.

        Args:
            mode: label of the record, for example ``train`` or ``stage 1``.
            step: steps done; None counts the records of the label.
            **arrays: tensors or arrays of any shape, numbers, `Mean` or `Histogram`. An empty
                array, or a mean over nothing, leaves no entry.
        """
        count = self._counts.get(mode, 0)
        self._counts[mode] = count + 1
        reduced = {name: reduce(value) for name, value in arrays.items()}
        self._pending.append((mode, count if step is None else step, reduced))
        if not self._gathering:
            self._write_pending()

    def show_text(self, tag: str, text: str, *, step: int) -> None:
        """Show a text, as it is, in TensorBoard's tab of texts."""
        if self.output_dir is not None:
            block = "".join(f"    {line}\n" for line in text.splitlines())
            self._events.add_text(tag, block, step)

    def show_figure(self, tag: str, path: Path, *, step: int) -> None:
        """Show the figure in a file in TensorBoard's tab of images.

        Raises:
            OSError: there is no figure in the file.
        """
        if self.output_dir is not None:
            with Image.open(path) as figure:
                pixels = np.asarray(figure.convert("RGB"))
            self._events.add_image(tag, pixels, step, dataformats="HWC")

    @contextmanager
    def interval(self) -> Iterator[None]:
        """Gather the records received inside into one transfer, made on leaving."""
        self._gathering = True
        try:
            yield
        finally:
            self._gathering = False
        self._write_pending()

    def sync(self) -> dict[str, int]:
        """Put everything received so far on the disk.

        Returns:
            The sizes of the files, for `cut_back`.
        """
        if self.output_dir is None:
            return {}
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._events.flush()
        events = list(self.output_dir.glob(EVENTS))
        for path in events:
            with path.open("rb") as file:
                os.fsync(file.fileno())  # of what any process wrote to it
        files = [self.output_dir / METRICS, *events]
        return {file.name: file.stat().st_size for file in files}

    def close(self) -> Record:
        """Write the summary of the whole run and close the files; returns the summary."""
        if self.output_dir is None:
            return {}
        self.sync()
        self._metrics.close()
        self._events.close()
        summary = summarise(self.output_dir / METRICS)
        write_json(self.output_dir / SUMMARY, summary)
        return summary

    def _write_pending(self) -> None:
        pending, self._pending = self._pending, []
        values = transfer([entry for _, _, reduced in pending for entry in reduced.values()])
        for mode, step, reduced in pending:
            record = {}
            for name, entry in reduced.items():
                decoded = entry.decode(next(values))
                if decoded is not None:
                    record[name] = decoded
            self.latest[mode] = record
            if self.output_dir is not None:
                self._write(mode, step, record)

    def _write(self, mode: str, step: int, record: Record) -> None:
        line = {"mode": mode, "step": step, **json_safe(record)}
        self._metrics.write(json.dumps(line, allow_nan=False) + "\n")
        self._metrics.flush()
        for name, value in record.items():
            if self._headline and not is_headline(mode, name):
                continue
            tag = re.sub(r"[^-/\w.]+", "_", f"{mode}/{name}")
            if not isinstance(value, Mapping):
                self._events.add_scalar(tag, value, step)
                continue
            self._events.add_scalar(tag, value["mean"], step)
            if not self._headline:
                self._add_spread(tag, value, step)

    def _add_spread(self, tag: str, value: Mapping[str, Any], step: int) -> None:
        for part, number in value.items():
            if part not in ("mean", "histogram"):
                self._events.add_scalar(f"{tag}/{part}", number, step)
        # TensorBoard tells the kinds of one tag apart by its first event alone.
        self._add_histogram(f"{tag}/histogram", value, step)

    def _add_histogram(self, tag: str, value: Mapping[str, Any], step: int) -> None:
        low, high, counts = (value["histogram"][key] for key in ("low", "high", "counts"))
        if not math.isfinite(low) or not math.isfinite(high):
            return
        width = (high - low) / len(counts)
        edges = [low + width * (i + 1) for i in range(len(counts))]
        total = sum(counts)
        self._events.add_histogram_raw(
            tag,
            min=value["min"],
            max=value["max"],
            num=total,
            sum=value["mean"] * total,
            sum_squares=(value["std"] ** 2 + value["mean"] ** 2) * total,
            bucket_limits=edges,
            bucket_counts=counts,
            global_step=step,
        )


def missing_files(output_dir: Path, sizes: Mapping[str, int]) -> list[str]:
    """Return the files of `AnalysisReceiver.sync` that are gone, or shorter than they were."""
    files = {name: output_dir / name for name in sizes}
    return [n for n, file in files.items() if not file.exists() or file.stat().st_size < sizes[n]]


def cut_back(output_dir: Path, sizes: Mapping[str, int]) -> None:
    """Cut a run's metrics and event files back to a checkpoint, before the run continues.

    Args:
        output_dir: the run's folder.
        sizes: what `AnalysisReceiver.sync` returned for the checkpoint; files that were not there
            yet are removed.
    """
    for file in (output_dir / METRICS, *output_dir.glob(EVENTS)):
        if file.name in sizes:
            os.truncate(file, sizes[file.name])
        else:
            file.unlink(missing_ok=True)
    (output_dir / SUMMARY).unlink(missing_ok=True)


def transfer(entries: list[Reduced]) -> Iterator[list[float]]:
    """Copy the values of all entries to the host, in one copy per device they lie on.

    Yields:
        The values of each entry, in order.
    """
    devices: dict[torch.device, list[Tensor]] = {}
    for entry in entries:
        if entry.values is not None:
            devices.setdefault(entry.values.device, []).append(entry.values)
    hosts = {device: iter(torch.cat(parts).tolist()) for device, parts in devices.items()}
    for entry in entries:
        if entry.values is None:
            yield []
            continue
        host = hosts[entry.values.device]
        yield [next(host) for _ in range(entry.values.numel())]


def json_safe(value: Any) -> Any:
    """Return ``value`` with every non-finite number as None, which JSON can hold."""
    if isinstance(value, Mapping):
        return {key: json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [json_safe(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metrics(path: Path) -> list[Record]:
    """Return the records of a ``metrics.jsonl``; a last line cut off by a kill is left out.

    Damaged lines are left out too, and said on stderr: they cost no run its end.

    Raises:
        OSError: the file cannot be read.
    """
    records, damaged = [], []
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                continue
            try:
                record = parse_json(line)
                record["mode"], record["step"] = str(record["mode"]), int(record["step"])
                _check_numbers(record)
            except (ValueError, TypeError, KeyError, RecursionError):
                damaged.append(number)
            else:
                records.append(record)
    if damaged:
        lines = ", ".join(map(str, damaged[:8])) + (" ..." if len(damaged) > 8 else "")
        print(f"warning: {path}: damaged lines are left out: {lines}", file=sys.stderr)
    return records


def _check_numbers(record: Record) -> None:
    """Check that a record holds numbers, or means with what belongs to them.

    Raises:
        ValueError: it does not.
    """
    for name, value in record.items():
        number = value.get("mean") if isinstance(value, Mapping) else value
        if name != "mode" and not isinstance(number, int | float | None):
            raise ValueError(f"{name} is {number!r}")


def summarise(path: Path) -> Record:
    """Return, for every label of a ``metrics.jsonl``, its span and each number's course."""
    modes: dict[str, Record] = {}
    for record in read_metrics(path):
        mode = modes.setdefault(
            record["mode"], {"records": 0, "first_step": record["step"], "values": {}}
        )
        mode["records"] += 1
        mode["last_step"] = record["step"]
        for name, value in record.items():
            number = value.get("mean") if isinstance(value, dict) else value
            if name in ("mode", "step") or not isinstance(number, int | float):
                continue
            course = mode["values"].setdefault(
                name, {"last": number, "min": number, "max": number, "mean": 0.0, "count": 0}
            )
            course["last"] = number
            course["min"], course["max"] = min(course["min"], number), max(course["max"], number)
            course["count"] += 1
            course["mean"] += (number - course["mean"]) / course["count"]
    return {"modes": modes}
