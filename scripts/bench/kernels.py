"""Which kernels a GPU spends its time in, by name.

Apart from the rows, and after all of them: what the profiler attaches to the driver stays there for
the life of the process, and slows it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from scripts.bench.case import Case
from scripts.bench.machine import release_memory
from scripts.bench.simulation import NO_RESET_DECISIONS, Simulation
from scripts.bench.training import TRIAL, Training
from train_RL_agents.device.cuda_graphs import WARM_UP_CALLS

COSTLIEST = 10
"""Kernels of a table."""
NAME_LENGTH = 120


class Span(NamedTuple):
    """One run of a kernel, in microseconds."""

    name: str
    begin: float
    end: float


def measure_kernels(case: Case) -> dict[str, Any]:
    """Return the share of time in which kernels run, and the costliest of each part of a case.

    Parts are `collect` and `update` of a training, and `decision` of the simulator, with resets.
    """
    release_memory(case.device)
    if case.mode == "train":
        with Training.running(case) as training:
            learner = training.trainer.learner
            return {
                "kernel_time_share": busy_share(spans_of(lambda: training.repeat(TRIAL))),
                "kernels": {
                    "collect": costliest(spans_of(learner.collect, TRIAL), TRIAL),
                    "update": costliest(spans_of(learner.learn, TRIAL), TRIAL),
                },
            }
    simulation = Simulation(case)
    simulation.place()
    cycle = simulation.cycle
    simulation.run((WARM_UP_CALLS + 1) * cycle)  # its graphs are captured
    simulation.place()
    decisions = max(NO_RESET_DECISIONS // cycle, 1) * cycle
    spans = spans_of(lambda: simulation.run(decisions))
    return {
        "kernel_time_share": busy_share(spans),
        "kernels": {"decision": costliest(spans, decisions)},
    }


def spans_of(work: Callable[[], object], times: int = 1) -> list[Span]:
    """Return the kernels that run on the GPU while something is done a number of times."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(times):
            work()
        torch.cuda.synchronize()
    return [
        Span(event.name, event.time_range.start, event.time_range.end)
        for event in profile.events()
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation
    ]


def busy_share(spans: Sequence[Span]) -> float | None:
    """Return the share of the time from first begin to last end that spans cover; None of none."""
    if not spans:
        return None
    ordered = sorted((span.begin, span.end) for span in spans)
    busy, reached = 0.0, ordered[0][0]
    for begin, end in ordered:
        busy += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return busy / (reached - ordered[0][0])


def costliest(spans: Sequence[Span], times: int) -> list[dict[str, Any]]:
    """Return the kernels that took longest, the longest first.

    Args:
        spans: of something that was done a number of times.
        times: how often.

    Returns:
        Name, calls and microseconds of each a time, and its share of the time in kernels.
    """
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for span in spans:
        taken[span.name].append(span.end - span.begin)
    total = sum(map(sum, taken.values()))
    longest = sorted(taken, key=lambda name: -sum(taken[name]))[:COSTLIEST]
    return [
        {
            "kernel": name[:NAME_LENGTH],
            "calls": len(taken[name]) / times,
            "us": sum(taken[name]) / times,
            "share": sum(taken[name]) / total,
        }
        for name in longest
    ]
