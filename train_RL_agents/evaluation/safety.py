"""Safety numbers of evaluated episodes, with intervals over worlds."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from train_RL_agents.evaluation.colregs import CLASSES, classify
from train_RL_agents.evaluation.encounters import NEVER
from train_RL_agents.evaluation.intervals import (
    Estimate,
    WorldBootstrap,
    bootstrap_of,
    listed,
)
from train_RL_agents.evaluation.measures import Measures
from train_RL_agents.evaluation.score import V1
from train_RL_agents.metrics.reductions import wilson_interval

SECONDS_PER_HOUR = 3_600.0


def safety(measures: Measures) -> dict[str, Any]:
    """Return the safety numbers of some episodes as JSON values (docs/evaluation.md).

    Args:
        measures: of vessels with the columns ``reached``, ``collided`` and ``energy``.
    """
    vessels, bootstrap = measures.vessels, bootstrap_of(measures.worlds)
    world = vessels["world"]
    everyone = bootstrap.sums(world, torch.ones_like(vessels["time"]))
    seconds, astern = (bootstrap.sums(world, vessels[name]) for name in ("time", "sternway"))
    hours = seconds / SECONDS_PER_HOUR
    reached = vessels["reached"] > 0
    ratio = (vessels["path"] / vessels["direct"])[reached]

    def share_of_vessels(flags: Tensor) -> dict[str, Any]:
        return bootstrap.share(bootstrap.sums(world, flags), everyone).as_json()

    numbers: dict[str, Any] = {
        "score": V1.version,
        "vessel_episodes": len(world),
        "vessel_hours": round(hours.sum().item(), 4),
        "robot_success": share_of_vessels(reached),
        "path_ratio": bootstrap.mean(world[reached], ratio).as_json(),
        "robot_energy": bootstrap.mean(world[reached], vessels["energy"][reached]).as_json(),
        "sternway": bootstrap.ratio(astern, seconds).as_json(),
    }
    for kind in V1.near_miss_m:
        gap, near = vessels[f"gap_{kind}"], vessels[f"near_{kind}"]
        counted = bootstrap.rate(bootstrap.sums(world, near), hours)
        numbers |= {
            f"collision_{kind}": collisions(measures, kind).as_json(),
            f"near_miss_{kind}": share_of_vessels(V1.near_misses(gap, kind)),
            f"near_miss_{kind}_per_hour": counted.as_json(),
            f"least_gap_{kind}": separation(world, gap, bootstrap),
        }
    numbers["first_action"] = first_action(measures, bootstrap)
    kinds = classify(measures.encounters["beta0"], measures.encounters["alpha0"])
    counts = torch.bincount(kinds, minlength=len(CLASSES)).tolist()
    numbers["encounters"] = dict(zip(CLASSES, counts, strict=True))
    return numbers


def collisions(measures: Measures, kind: str) -> Estimate:
    """Return the share of episodes with a collision with a ``vessel`` or a ``buoy``.

    The object that a collided vessel touches at its end decides; it may touch both.
    """
    vessels = measures.vessels
    gap = vessels[f"end_{kind}"]
    nearest = torch.minimum(vessels["end_vessel"], vessels["end_buoy"])
    touched = (vessels["collided"] > 0) & (gap <= nearest.clamp(min=0.0))
    episodes = int(vessels["world"][touched].unique().numel())
    low, high = wilson_interval(episodes, measures.worlds)
    return Estimate(episodes / measures.worlds, low, high)


def separation(world: Tensor, gap: Tensor, bootstrap: WorldBootstrap) -> dict:
    """Return quantiles [m] and the distribution of the least gap of each vessel-episode.

    A gap beyond the grid, where the other is no longer seen, counts as larger than any.
    """
    grid = torch.arange(0.0, V1.grid_end + V1.grid_step / 2, V1.grid_step).double()
    limit = V1.grid_end * V1.length_m
    seen = torch.where(gap <= limit, gap, math.inf)
    share, low, high = bootstrap.distribution(world, gap, grid * V1.length_m)
    return {
        "p05_m": bootstrap.quantile(world, seen, 0.05).as_json(),
        "median_m": bootstrap.quantile(world, seen, 0.5).as_json(),
        "cdf": {"grid_step_m": V1.grid_step * V1.length_m, "share": listed(share)}
        | {"low": listed(low), "high": listed(high)},
    }


def first_action(measures: Measures, bootstrap: WorldBootstrap) -> dict[str, Any]:
    """Return when vessels first act in an encounter, and at which stage.

    An encounter without an action until the closest point is censored there.
    """
    rows = measures.encounters
    world, action = rows["world"], rows["action"]
    acted = (action != NEVER) & (action <= rows["closest"])
    end = torch.where(acted, action, rows["closest"])
    median = bootstrap.median_survival(world, end - rows["start"], acted)
    tcpa = rows["action_tcpa"]
    stages = {
        "stage_2": acted & (tcpa > V1.stage_3_s),
        "stage_3": acted & (tcpa <= V1.stage_3_s) & (tcpa > V1.stage_4_s),
        "stage_4": acted & (tcpa <= V1.stage_4_s),
        "none": ~acted,
    }
    everyone = bootstrap.sums(world, torch.ones_like(tcpa))
    numbers = {
        name: bootstrap.share(bootstrap.sums(world, flags), everyone).as_json()
        for name, flags in stages.items()
    }
    gap = rows["action_distance"] - 2.0 * measures.hull_radius
    return {
        "median_s": Estimate(*(time * measures.decision_time for time in median)).as_json(),
        "tcpa_s": bootstrap.mean(world[acted], tcpa[acted]).as_json(),
        "gap_m": bootstrap.mean(world[acted], gap[acted]).as_json(),
        **numbers,
    }
